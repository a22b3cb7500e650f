# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The CPUs, NUMA nodes and pages that an instance holds on its host."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0045"
down_revision = "0044"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("allocation", sa.Column("numa", sa.JSON))
    held = sa.text("numa IS NOT NULL")
    op.create_index("ix_allocation_numa", "allocation", ["compute_host_id"], sqlite_where=held, postgresql_where=held)


def downgrade() -> None:
    op.drop_index("ix_allocation_numa", "allocation")
    op.drop_column("allocation", "numa")
