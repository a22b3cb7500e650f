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
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("volume_id", sa.String(36), nullable=False),
        sa.Column("project_id", sa.String(32), nullable=False),
        sa.Column("name", sa.String(255)),
        sa.Column("key_hash", sa.String(64), nullable=False),
        sa.Column("no_snapshots", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_volume_transfer"),
        sa.UniqueConstraint("volume_id", name="uq_volume_transfer_volume_id"),
        sa.ForeignKeyConstraint(["volume_id"], ["volume.id"], name="fk_volume_transfer_volume_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name="fk_volume_transfer_project_id"),
    )
    op.create_index("ix_volume_transfer_project_id", "volume_transfer", ["project_id"])


def downgrade() -> None:
    op.drop_table("volume_transfer")
