# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The project that had a floating IP last."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("floating_ip", sa.Column("last_project_id", sa.String(32)))


def downgrade() -> None:
    op.drop_column("floating_ip", "last_project_id")
