# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Interfaces have further IPv4 addresses besides their first one."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("fixed_ip", sa.Column("further_of", sa.String(36)))
    op.create_index(
        "ix_fixed_ip_further",
        "fixed_ip",
        ["further_of"],
        sqlite_where=sa.text("further_of IS NOT NULL"),
        postgresql_where=sa.text("further_of IS NOT NULL"),
    )


def downgrade() -> None:
    op.execute("UPDATE fixed_ip SET owner = NULL WHERE further_of IS NOT NULL")
    op.drop_index("ix_fixed_ip_further", table_name="fixed_ip")
    op.drop_column("fixed_ip", "further_of")
