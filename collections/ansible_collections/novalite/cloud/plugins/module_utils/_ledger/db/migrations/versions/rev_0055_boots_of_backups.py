# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Outcomes of backups that were booted, and how often they are."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa
from alembic import op

revision = "0055"
down_revision = "0054"
branch_labels = None
depends_on = None
COLUMNS: dict[str, sa.types.TypeEngine[t.Any]] = {
    "proven_at": sa.BigInteger(),
    "booted_at": sa.BigInteger(),
    "boot": sa.JSON(none_as_null=True),
    "console": sa.Text(),
    "picture": sa.Text(),
}


def upgrade() -> None:
    for name, kind in COLUMNS.items():
        op.add_column("server_backup", sa.Column(name, kind))
    op.add_column("backup_policy", sa.Column("boot_every", sa.BigInteger))


def downgrade() -> None:
    op.drop_column("backup_policy", "boot_every")
    for name in reversed(COLUMNS):
        op.drop_column("server_backup", name)
