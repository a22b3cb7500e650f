# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tokens of consoles."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0044"
down_revision = "0043"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "console_token",
        sa.Column("hash", sa.String(64), primary_key=True),
        sa.Column("token_hash", sa.String(64), sa.ForeignKey("token.hash", ondelete="CASCADE"), nullable=False),
        sa.Column("instance_uuid", sa.String(36), nullable=False),
        sa.Column("type", sa.String(16), nullable=False),
        sa.Column("expires_at", sa.Float, nullable=False),
    )
    op.create_index("ix_console_token_token_hash", "console_token", ["token_hash"])
    op.create_index("ix_console_token_expires_at", "console_token", ["expires_at"])


def downgrade() -> None:
    op.drop_table("console_token")
