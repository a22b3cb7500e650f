# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Directory of images, instances and volumes on each compute host."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # until now every plan named this directory, whatever the inventory said
    with op.batch_alter_table("compute_host") as table:
        table.add_column(sa.Column("state_dir", sa.String(4096), nullable=False, server_default="/var/lib/novalite"))


def downgrade() -> None:
    with op.batch_alter_table("compute_host") as table:
        table.drop_column("state_dir")
