# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A network that is the default one."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0043"
down_revision = "0042"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("network", sa.Column("is_default", sa.Boolean, nullable=False, server_default=sa.false()))
    only = sa.text("is_default")
    op.create_index(
        "uq_network_default", "network", ["is_default"], unique=True, sqlite_where=only, postgresql_where=only
    )


def downgrade() -> None:
    op.drop_index("uq_network_default", "network")
    op.drop_column("network", "is_default")
