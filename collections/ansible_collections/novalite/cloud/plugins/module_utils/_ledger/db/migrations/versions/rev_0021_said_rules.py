# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Protocol and address range of a security group's rule, as its maker wrote them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("security_group_rule") as table:
        table.add_column(sa.Column("protocol_said", sa.String(16)))
        table.add_column(sa.Column("cidr_said", sa.String(43)))


def downgrade() -> None:
    with op.batch_alter_table("security_group_rule") as table:
        table.drop_column("cidr_said")
        table.drop_column("protocol_said")
