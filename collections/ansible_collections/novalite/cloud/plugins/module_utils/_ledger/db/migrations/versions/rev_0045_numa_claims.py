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


def downgrade() -> None:
    op.drop_column("allocation", "numa")
