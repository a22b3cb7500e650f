# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Several IPv4 subnets on a network: subnets have ids of their own, and routers an interface for each subnet."""

from __future__ import annotations

import ipaddress
import typing as t
import uuid

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None

Columns = list[sa.Column[t.Any]]
Rows = list[dict[str, t.Any]]
_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    subnets, interfaces = _taken("subnet", _subnet()), _taken("router_interface", _interface())
    rows = op.get_bind().execute(sa.text("SELECT id, uuid FROM network"))
    uuids = {row.id: uuid.UUID(row.uuid) for row in rows}

    def first(row: dict[str, t.Any]) -> str:
        """The id that clients have known the subnet by."""
        return str(uuid.uuid5(uuids[row["network_id"]], f"IPv{row['version']}"))

    _make_subnet(
        [*_subnet(), *_further()],
        sa.PrimaryKeyConstraint("id", name=op.f("pk_subnet")),
        sa.UniqueConstraint("network_id", "version", "position", name=op.f("uq_subnet_network_id_version_position")),
        sa.CheckConstraint("(position = 0) = (cidr IS NULL)", name=op.f("ck_subnet_first")),
        rows=[{**row, "id": first(row), "position": 0} for row in subnets],
    )
    _make_interface(
        [*_interface(), sa.Column("subnet_id", sa.String(36), nullable=False)],
        sa.UniqueConstraint("subnet_id", name=op.f("uq_router_interface_subnet_id")),
        rows=[{**row, "subnet_id": first(row)} for row in interfaces],
    )
    op.create_index("ix_router_interface_network_id", "router_interface", ["network_id"])


def downgrade() -> None:
    """Drop further subnets, with their addresses and routers' interfaces."""
    op.drop_index("ix_router_interface_network_id", table_name="router_interface")
    subnets = _taken("subnet", [*_subnet(), *_further()])
    further = {row["id"] for row in subnets if row["position"]}
    pool = sa.text("DELETE FROM fixed_ip WHERE network_id = :network_id AND ip BETWEEN :first AND :last")
    for row in subnets:
        if row["position"]:
            around = ipaddress.ip_network(row["cidr"])
            first, last = int(around.network_address), int(around.broadcast_address)
            op.get_bind().execute(pool, {"network_id": row["network_id"], "first": first, "last": last})
    interfaces = _taken("router_interface", [*_interface(), sa.Column("subnet_id", sa.String(36))])
    before = {column.name for column in _subnet()}
    _make_subnet(
        _subnet(),
        sa.PrimaryKeyConstraint("network_id", "version", name=op.f("pk_subnet")),
        rows=[{key: row[key] for key in row if key in before} for row in subnets if not row["position"]],
    )
    _make_interface(
        _interface(),
        sa.UniqueConstraint("network_id", "version", name=op.f("uq_router_interface_network_id_version")),
        rows=[
            {key: row[key] for key in row if key != "subnet_id"}
            for row in interfaces
            if row["subnet_id"] not in further
        ],
    )


def _subnet() -> Columns:
    return [
        sa.Column("network_id", _BIG, nullable=False),
        sa.Column("version", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("name", sa.String(255), server_default="", nullable=False),
        sa.Column("description", sa.String(255), server_default="", nullable=False),
        sa.Column("gateway", sa.String(39)),
        sa.Column("pools", sa.JSON(), nullable=False),
        sa.Column("enable_dhcp", sa.Boolean(), server_default=sa.true(), nullable=False),
        sa.Column("ra_mode", sa.String(24)),
        sa.Column("address_mode", sa.String(24)),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("subnetpool_id", sa.String(36)),
    ]


def _further() -> Columns:
    return [
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("position", sa.Integer(), server_default="0", nullable=False),
        sa.Column("cidr", sa.String(18)),
        sa.Column("dns", sa.JSON(none_as_null=True)),
        sa.Column("routes", sa.JSON(none_as_null=True)),
    ]


def _interface() -> Columns:
    return [
        sa.Column("vif_id", sa.String(36), nullable=False),
        sa.Column("router_id", sa.String(36), nullable=False),
        sa.Column("network_id", _BIG, nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
    ]


def _taken(name: str, columns: Columns) -> Rows:
    """The rows of a table to which no other one refers, and which goes."""
    table = sa.table(name, *(sa.column(column.name, column.type) for column in columns))
    rows: Rows = [dict(row) for row in op.get_bind().execute(sa.select(table)).mappings()]
    op.drop_table(name)
    return rows


def _make_subnet(columns: Columns, *constraints: sa.Constraint, rows: Rows) -> None:
    table = op.create_table(
        "subnet",
        *columns,
        *constraints,
        sa.CheckConstraint("version IN (4, 6)", name=op.f("ck_subnet_version")),
        sa.ForeignKeyConstraint(["network_id"], ["network.id"], name=op.f("fk_subnet_network_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["subnetpool_id"], ["subnet_pool.id"], name=op.f("fk_subnet_subnetpool_id")),
    )
    op.create_index("ix_subnet_subnetpool_id", "subnet", ["subnetpool_id"])
    if rows:
        op.bulk_insert(table, rows)


def _make_interface(columns: Columns, *constraints: sa.Constraint, rows: Rows) -> None:
    table = op.create_table(
        "router_interface",
        *columns,
        *constraints,
        sa.ForeignKeyConstraint(["network_id"], ["network.id"], name=op.f("fk_router_interface_network_id")),
        sa.ForeignKeyConstraint(["router_id"], ["router.id"], name=op.f("fk_router_interface_router_id")),
        sa.ForeignKeyConstraint(["vif_id"], ["vif.id"], name=op.f("fk_router_interface_vif_id")),
        sa.PrimaryKeyConstraint("vif_id", name=op.f("pk_router_interface")),
    )
    op.create_index("ix_router_interface_router_id", "router_interface", ["router_id"])
    if rows:
        op.bulk_insert(table, rows)
