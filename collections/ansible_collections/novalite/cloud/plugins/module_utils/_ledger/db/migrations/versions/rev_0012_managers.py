# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A role between member and admin; when an aggregate was made and changed; who asked for a server group."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

CHECK = "ck_role_assignment_role"


def upgrade() -> None:
    op.add_column("aggregate", sa.Column("created_at", sa.BigInteger(), server_default="0", nullable=False))
    op.add_column("aggregate", sa.Column("updated_at", sa.BigInteger(), server_default="0", nullable=False))
    op.add_column("server_group", sa.Column("user_id", sa.String(32)))
    _allow("'admin', 'manager', 'member', 'reader'")


def downgrade() -> None:
    op.execute("DELETE FROM role_assignment WHERE role = 'manager'")
    _allow("'admin', 'member', 'reader'")
    op.drop_column("server_group", "user_id")
    op.drop_column("aggregate", "updated_at")
    op.drop_column("aggregate", "created_at")


def _allow(roles: str) -> None:
    with op.batch_alter_table("role_assignment") as batch:  # no other table points here
        batch.drop_constraint(op.f(CHECK), type_="check")
        batch.create_check_constraint(op.f(CHECK), f"role IN ({roles})")
