# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lock of the controller that watches, and the end of the lease before its own."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0059"
down_revision = "0058"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("watch", sa.Column("former_expires", sa.Float, nullable=False, server_default="0"))
    op.add_column("watch", sa.Column("lock", sa.Integer))


def downgrade() -> None:
    op.drop_column("watch", "lock")
    op.drop_column("watch", "former_expires")
