# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Time of each compute host's last comparison with the ledger, and the number of differences."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("compute_host", sa.Column("looked_at", sa.BigInteger(), nullable=True))
    op.add_column("compute_host", sa.Column("differences", sa.Integer(), nullable=True))


def downgrade() -> None:
    op.drop_column("compute_host", "differences")
    op.drop_column("compute_host", "looked_at")
