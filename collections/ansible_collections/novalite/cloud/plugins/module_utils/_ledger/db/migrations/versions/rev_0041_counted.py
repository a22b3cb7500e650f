# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The number of claims beside their sums, so that a choice counts those of no host."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0041"
down_revision = "0040"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("compute_host", sa.Column("num_instances", sa.Integer, nullable=False, server_default="0"))
    claims = "SELECT count(*) FROM allocation WHERE allocation.compute_host_id = compute_host.id"
    op.execute(f"UPDATE compute_host SET num_instances = ({claims})")


def downgrade() -> None:
    op.drop_column("compute_host", "num_instances")
