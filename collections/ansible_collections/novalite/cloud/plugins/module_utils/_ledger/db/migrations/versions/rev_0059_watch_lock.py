# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lock of the controller that watches, readings of the clocks of hosts, and how long their dead-man's switches take."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0059"
down_revision = "0058"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("host_watch", sa.Column("switch_s", sa.Float, nullable=False, server_default="0"))
    op.add_column("host_watch", sa.Column("reading", sa.JSON(none_as_null=True)))
    op.add_column("watch", sa.Column("lock", sa.Integer))


def downgrade() -> None:
    op.drop_column("watch", "lock")
    op.drop_column("host_watch", "reading")
    op.drop_column("host_watch", "switch_s")
