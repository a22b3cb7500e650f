# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Floating IPs lead to any of an interface's addresses."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("floating_ip", sa.Column("further_ip", sa.BigInteger))


def downgrade() -> None:
    op.drop_column("floating_ip", "further_ip")
