# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Copies of servers' disks on a second host."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0058"
down_revision = "0057"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "replica",
        sa.Column("instance_uuid", sa.String(36), nullable=False),
        sa.Column("every", sa.BigInteger),
        sa.Column("host", sa.String(255)),
        sa.Column("requested_host", sa.String(255)),
        sa.Column("disk_gb", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("copy_id", sa.String(36)),
        sa.Column("taken_at", sa.BigInteger),
        sa.Column("tried_at", sa.BigInteger),
        sa.Column("kind", sa.String(16)),
        sa.Column("reason", sa.Text),
        sa.Column("moved", sa.BigInteger),
        sa.Column("consistency", sa.String(16)),
        sa.Column("fault", sa.Text),
        sa.Column("former", sa.JSON, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("updated_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("instance_uuid", name="pk_replica"),
    )


def downgrade() -> None:
    op.drop_table("replica")
