# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Subnet pools and address scopes, as in Neutron."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

# SQLite's table is made anew: what it says of these is not what was declared
TEXTS = tuple(sa.Column(name, sa.String(255), nullable=False, server_default="") for name in ("name", "description"))


def upgrade() -> None:
    op.create_table(
        "address_scope",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("project_id", sa.String(32), nullable=False),
        sa.Column("name", sa.String(255), nullable=False, server_default=""),
        sa.Column("ip_version", sa.Integer, nullable=False),
        sa.Column("shared", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.PrimaryKeyConstraint("id", name="pk_address_scope"),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name="fk_address_scope_project_id"),
    )
    op.create_index("ix_address_scope_project_id", "address_scope", ["project_id"])
    op.create_table(
        "subnet_pool",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("project_id", sa.String(32), nullable=False),
        sa.Column("name", sa.String(255), nullable=False, server_default=""),
        sa.Column("description", sa.String(255), nullable=False, server_default=""),
        sa.Column("ip_version", sa.Integer, nullable=False),
        sa.Column("prefixes", sa.JSON, nullable=False),
        sa.Column("min_prefixlen", sa.Integer, nullable=False),
        sa.Column("max_prefixlen", sa.Integer, nullable=False),
        sa.Column("default_prefixlen", sa.Integer, nullable=False),
        sa.Column("default_quota", sa.BigInteger),
        sa.Column("address_scope_id", sa.String(36)),
        sa.Column("is_default", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("shared", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("updated_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_subnet_pool"),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name="fk_subnet_pool_project_id"),
        sa.ForeignKeyConstraint(["address_scope_id"], ["address_scope.id"], name="fk_subnet_pool_address_scope_id"),
        sa.CheckConstraint(
            "min_prefixlen <= default_prefixlen AND default_prefixlen <= max_prefixlen",
            name=op.f("ck_subnet_pool_prefixlen_order"),
        ),
    )
    op.create_index("ix_subnet_pool_project_id", "subnet_pool", ["project_id"])
    op.create_index("ix_subnet_pool_address_scope_id", "subnet_pool", ["address_scope_id"])
    op.create_index(
        "uq_subnet_pool_default",
        "subnet_pool",
        ["ip_version"],
        unique=True,
        sqlite_where=sa.text("is_default"),
        postgresql_where=sa.text("is_default"),
    )
    with op.batch_alter_table("subnet", reflect_args=TEXTS) as table:
        table.add_column(sa.Column("subnetpool_id", sa.String(36)))
        table.create_foreign_key(op.f("fk_subnet_subnetpool_id"), "subnet_pool", ["subnetpool_id"], ["id"])
        table.create_index("ix_subnet_subnetpool_id", ["subnetpool_id"])


def downgrade() -> None:
    with op.batch_alter_table("subnet", reflect_args=TEXTS) as table:
        table.drop_index("ix_subnet_subnetpool_id")
        table.drop_constraint(op.f("fk_subnet_subnetpool_id"), type_="foreignkey")
        table.drop_column("subnetpool_id")
    op.drop_table("subnet_pool")
    op.drop_table("address_scope")
