# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Port security, DHCP options and bindings of ports; traffic of a network's own guests."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # without batch_alter_table, which on SQLite makes the table anew for a default that is an expression
    op.add_column("network", sa.Column("port_security_enabled", sa.Boolean, nullable=False, server_default=sa.true()))
    op.add_column(
        "network", sa.Column("allow_project_net_traffic", sa.Boolean, nullable=False, server_default=sa.false())
    )
    op.add_column("vif", sa.Column("port_security_enabled", sa.Boolean, nullable=False, server_default=sa.true()))
    for name in ("extra_dhcp_opts", "binding"):
        op.add_column("port", sa.Column(name, sa.JSON(none_as_null=True)))


def downgrade() -> None:
    for name in ("binding", "extra_dhcp_opts"):
        op.drop_column("port", name)
    op.drop_column("vif", "port_security_enabled")
    for name in ("allow_project_net_traffic", "port_security_enabled"):
        op.drop_column("network", name)
