# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Snapshots of servers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0046"
down_revision = "0045"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "server_snapshot",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("instance_uuid", sa.String(36), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("description", sa.String(255), nullable=False, server_default=""),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("consistency", sa.String(16)),
        sa.Column("size", sa.BigInteger),
        sa.Column("image_id", sa.String(36)),
        sa.Column("volumes", sa.JSON, nullable=False),
        sa.Column("fault", sa.JSON(none_as_null=True)),
        sa.Column("user_id", sa.String(32)),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("updated_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_server_snapshot"),
        sa.UniqueConstraint("instance_uuid", "name", name="uq_server_snapshot_instance_uuid_name"),
        sa.ForeignKeyConstraint(["instance_uuid"], ["instance.uuid"], name="fk_server_snapshot_instance_uuid"),
    )


def downgrade() -> None:
    op.drop_table("server_snapshot")
