# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Backups of servers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0049"
down_revision = "0047"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "server_backup",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("instance_uuid", sa.String(36), nullable=False),
        sa.Column("project_id", sa.String(32), nullable=False),
        sa.Column("server", sa.String(255), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("kind", sa.String(16)),
        sa.Column("reason", sa.Text),
        sa.Column("parent_id", sa.String(36)),
        sa.Column("consistency", sa.String(16)),
        sa.Column("disks", sa.JSON, nullable=False),
        sa.Column("gigabytes", sa.BigInteger, nullable=False),
        sa.Column("moved", sa.BigInteger),
        sa.Column("size", sa.BigInteger),
        sa.Column("flavor", sa.JSON, nullable=False),
        sa.Column("image_id", sa.String(36)),
        sa.Column("verified_at", sa.BigInteger),
        sa.Column("complaint", sa.Text),
        sa.Column("fault", sa.JSON(none_as_null=True)),
        sa.Column("user_id", sa.String(32)),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("updated_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_server_backup"),
        sa.UniqueConstraint("instance_uuid", "name", name="uq_server_backup_instance_uuid_name"),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name="fk_server_backup_project_id"),
    )
    op.create_index("ix_server_backup_project_id", "server_backup", ["project_id"])


def downgrade() -> None:
    op.drop_table("server_backup")
