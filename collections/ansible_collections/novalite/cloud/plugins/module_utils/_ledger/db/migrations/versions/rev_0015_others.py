# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Resources of a compute host that foreign guests take; adopted guests."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

AMOUNTS = {"vcpus_others": sa.Integer(), "memory_mb_others": sa.BigInteger(), "disk_gb_others": sa.BigInteger()}


def upgrade() -> None:
    for name, kind in AMOUNTS.items():
        op.add_column("compute_host", sa.Column(name, kind, server_default="0", nullable=False))
    op.add_column("compute_host", sa.Column("count_foreign", sa.String(8), server_default="running", nullable=False))
    op.add_column("instance", sa.Column("adopted", sa.JSON()))


def downgrade() -> None:
    op.drop_column("instance", "adopted")
    op.drop_column("compute_host", "count_foreign")
    for name in AMOUNTS:
        op.drop_column("compute_host", name)
