# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Volumes that are made of a disk of a server's backup."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0057"
down_revision = "0056"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("volume", sa.Column("backup_disk", sa.JSON(none_as_null=True)))


def downgrade() -> None:
    op.drop_column("volume", "backup_disk")
