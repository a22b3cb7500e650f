# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Volumes that a project gives to another one."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "volume_transfer",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column(
            "volume_id", sa.String(36), sa.ForeignKey("volume.id", ondelete="CASCADE"), nullable=False, unique=True
        ),
        sa.Column("project_id", sa.String(32), sa.ForeignKey("project.id"), nullable=False, index=True),
        sa.Column("name", sa.String(255)),
        sa.Column("key_hash", sa.String(64), nullable=False),
        sa.Column("no_snapshots", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("created_at", sa.BigInteger, nullable=False),
    )


def downgrade() -> None:
    op.drop_table("volume_transfer")
