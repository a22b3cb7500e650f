# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""An identity of the ledger, which is written on what it makes on hosts."""

from __future__ import annotations

import uuid

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    table = op.create_table(
        "ledger_identity",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.CheckConstraint("id = 1", name=op.f("ck_ledger_identity_single")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ledger_identity")),
    )
    op.bulk_insert(table, [{"id": 1, "uuid": str(uuid.uuid4())}])


def downgrade() -> None:
    op.drop_table("ledger_identity")
