# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Turns of balancing beside the watch: when the last one began, and the plan that was told last."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0056"
down_revision = "0055"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("watch", sa.Column("balance_at", sa.Float, nullable=False, server_default="0"))
    op.add_column("watch", sa.Column("balance", sa.JSON(none_as_null=True)))


def downgrade() -> None:
    op.drop_column("watch", "balance")
    op.drop_column("watch", "balance_at")
