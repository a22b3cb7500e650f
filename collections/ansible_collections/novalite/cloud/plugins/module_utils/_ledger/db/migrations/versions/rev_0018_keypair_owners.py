# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whose a key pair is. Of those that are there nobody knows: managers and playbooks alone remove them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("keypair") as table:
        table.add_column(sa.Column("user_id", sa.String(32), nullable=False, server_default=""))


def downgrade() -> None:
    with op.batch_alter_table("keypair") as table:
        table.drop_column("user_id")
