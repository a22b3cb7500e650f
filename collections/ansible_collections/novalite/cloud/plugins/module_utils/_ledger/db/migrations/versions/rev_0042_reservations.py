# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Volumes that are kept for a client, and indexes by which no more of the others is read than is shown."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0042"
down_revision = "0041"
branch_labels = None
depends_on = None

_LISTED = ["created_at", "id"]
_TABLES = ("volume", "volume_snapshot")


def upgrade() -> None:
    op.create_table(
        "volume_reservation",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("volume_id", sa.String(36), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("mode", sa.String(4)),
        sa.Column("host", sa.String(255)),
        sa.Column("device", sa.String(255)),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("attached_at", sa.BigInteger),
        sa.PrimaryKeyConstraint("id", name="pk_volume_reservation"),
        sa.UniqueConstraint("volume_id", name="uq_volume_reservation_volume_id"),
        sa.ForeignKeyConstraint(
            ["volume_id"], ["volume.id"], name="fk_volume_reservation_volume_id", ondelete="CASCADE"
        ),
    )
    for table in _TABLES:
        op.drop_index(f"ix_{table}_project_id", table)  # the second of these begins with it
        op.create_index(f"ix_{table}_status", table, ["status", "updated_at"])
        op.create_index(f"ix_{table}_listed", table, _LISTED)
        op.create_index(f"ix_{table}_listed_of_project", table, ["project_id", *_LISTED])
    op.create_index("ix_volume_host", "volume", ["host"])


def downgrade() -> None:
    op.drop_index("ix_volume_host", "volume")
    for table in _TABLES:
        op.drop_index(f"ix_{table}_listed_of_project", table)
        op.drop_index(f"ix_{table}_listed", table)
        op.drop_index(f"ix_{table}_status", table)
        op.create_index(f"ix_{table}_project_id", table, ["project_id"])
    op.drop_table("volume_reservation")
