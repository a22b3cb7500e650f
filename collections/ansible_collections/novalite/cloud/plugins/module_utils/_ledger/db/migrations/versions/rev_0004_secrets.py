# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ledger's secret, and who had an address last."""

from __future__ import annotations

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    table = op.create_table(
        "secret",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("value", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_secret")),
    )
    # made here and not when it is first needed, so that check mode plans with the one that a run will use
    op.bulk_insert(table, [{"name": "ledger", "value": secrets.token_hex(32)}])
    op.add_column("fixed_ip", sa.Column("last_owner", sa.String(80)))
    free = sa.text("owner IS NULL AND last_owner IS NOT NULL")
    op.create_index(
        "ix_fixed_ip_last_owner",
        "fixed_ip",
        ["network_id", "last_owner"],
        unique=False,
        sqlite_where=free,
        postgresql_where=free,
    )


def downgrade() -> None:
    op.drop_index("ix_fixed_ip_last_owner", table_name="fixed_ip")
    op.drop_column("fixed_ip", "last_owner")
    op.drop_table("secret")
