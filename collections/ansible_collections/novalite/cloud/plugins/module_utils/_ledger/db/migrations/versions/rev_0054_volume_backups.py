# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Backups of volumes, and policies of backups."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0054"
down_revision = "0053"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "volume_backup",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("volume_id", sa.String(36), nullable=False),
        sa.Column("project_id", sa.String(32), nullable=False),
        sa.Column("user_id", sa.String(32)),
        sa.Column("name", sa.String(255)),
        sa.Column("description", sa.Text),
        sa.Column("metadata", sa.JSON, nullable=False),
        sa.Column("size_gb", sa.BigInteger, nullable=False),
        sa.Column("status", sa.String(32), nullable=False),
        sa.Column("incremental", sa.Boolean, nullable=False),
        sa.Column("parent_id", sa.String(36)),
        sa.Column("reason", sa.Text),
        sa.Column("host", sa.String(255)),
        sa.Column("restore_volume_id", sa.String(36)),
        sa.Column("consistency", sa.String(16)),
        sa.Column("moved", sa.BigInteger),
        sa.Column("size", sa.BigInteger),
        sa.Column("fault", sa.JSON(none_as_null=True)),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("updated_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_volume_backup"),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name="fk_volume_backup_project_id"),
    )
    op.create_index("ix_volume_backup_volume_id", "volume_backup", ["volume_id"])
    op.create_index("ix_volume_backup_status", "volume_backup", ["status", "updated_at"])
    op.create_index("ix_volume_backup_listed", "volume_backup", ["created_at", "id"])
    op.create_index("ix_volume_backup_listed_of_project", "volume_backup", ["project_id", "created_at", "id"])
    op.create_table(
        "backup_policy",
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("scope", sa.String(16), nullable=False),
        sa.Column("target", sa.String(64), nullable=False),
        sa.Column("every", sa.BigInteger, nullable=False),
        sa.Column("keep", sa.JSON, nullable=False),
        sa.Column("verify_every", sa.BigInteger),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("updated_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_backup_policy"),
        sa.UniqueConstraint("scope", "target", name="uq_backup_policy_scope_target"),
    )


def downgrade() -> None:
    op.drop_table("backup_policy")
    op.drop_table("volume_backup")
