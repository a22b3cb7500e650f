# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Copies of servers' disks stay usable until the next host has one, and hosts that do not answer are remembered."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0060"
down_revision = "0059"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("replica") as batch:
        batch.add_column(sa.Column("next_host", sa.String(255)))
        batch.add_column(sa.Column("next_gb", sa.BigInteger, nullable=False, server_default="0"))
        batch.add_column(sa.Column("silent_since", sa.BigInteger))


def downgrade() -> None:
    with op.batch_alter_table("replica") as batch:
        for name in ("silent_since", "next_gb", "next_host"):
            batch.drop_column(name)
