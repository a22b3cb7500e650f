# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The end of an EC2 instance whose guest shuts itself down: it is stopped, or terminated."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("ec2_instance") as table:
        table.add_column(sa.Column("shutdown_behavior", sa.String(9), nullable=False, server_default="stop"))


def downgrade() -> None:
    with op.batch_alter_table("ec2_instance") as table:
        table.drop_column("shutdown_behavior")
