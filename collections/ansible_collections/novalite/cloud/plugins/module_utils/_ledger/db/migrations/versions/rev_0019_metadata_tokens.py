# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Metadata service: instances whose guests need a session token."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("ec2_instance") as table:
        table.add_column(sa.Column("http_tokens", sa.String(8), nullable=False, server_default="optional"))


def downgrade() -> None:
    with op.batch_alter_table("ec2_instance") as table:
        table.drop_column("http_tokens")
