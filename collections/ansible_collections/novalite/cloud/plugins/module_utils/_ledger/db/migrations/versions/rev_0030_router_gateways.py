# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Gateway addresses of routers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("floating_ip", sa.Column("router_id", sa.String(36)))
    op.create_index(op.f("ix_floating_ip_router_id"), "floating_ip", ["router_id"])


def downgrade() -> None:
    op.drop_index(op.f("ix_floating_ip_router_id"), table_name="floating_ip")
    op.drop_column("floating_ip", "router_id")
