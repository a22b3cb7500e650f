# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Floating pools with a UUID of their own, by which an external network keeps its id, and what else was said of it."""

from __future__ import annotations

import typing as t
import uuid

import sqlalchemy as sa
from alembic import op

revision = "0040"
down_revision = "0039"
branch_labels = None
depends_on = None

_POOLS = uuid.UUID("a2f9a4ac-8f0e-5f1b-9d53-0f5e8c1b7c11")  # the namespace of the UUIDs until now


def _columns() -> tuple[sa.Column[t.Any], ...]:
    return (
        sa.Column("uuid", sa.String(36), nullable=False, server_default=""),
        sa.Column("display_name", sa.String(255)),
        sa.Column("description", sa.String(255), nullable=False, server_default=""),
        sa.Column("made_by", sa.String(32), nullable=False, server_default=""),
        sa.Column("port_security_enabled", sa.Boolean, nullable=False, server_default=sa.true()),
        sa.Column("mtu", sa.Integer),
        sa.Column("isolated", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("subnet_name", sa.String(255)),
        sa.Column("gateway", sa.String(15)),
    )


def upgrade() -> None:
    for column in _columns():
        op.add_column("floating_pool", column)
    connection = op.get_bind()
    pool = sa.table("floating_pool", sa.column("name"), sa.column("uuid"))
    for name in connection.execute(sa.select(pool.c.name)).scalars().all():
        own = sa.update(pool).where(pool.c.name == name)
        connection.execute(own.values(uuid=str(uuid.uuid5(_POOLS, name))))
    op.create_index("uq_floating_pool_uuid", "floating_pool", ["uuid"], unique=True)


def downgrade() -> None:
    op.drop_index("uq_floating_pool_uuid", "floating_pool")
    for column in reversed(_columns()):
        op.drop_column("floating_pool", column.name)
