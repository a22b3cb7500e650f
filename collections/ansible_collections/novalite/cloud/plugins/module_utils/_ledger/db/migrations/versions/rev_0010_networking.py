# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Objects of Neutron that tenants write, beyond networks and groups; projects that see a private flavor."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

# A network without a subnet has no range yet; an interface that no server has is a port by itself
OPTIONAL: dict[str, dict[str, sa.types.TypeEngine[t.Any]]] = {
    "network": {"cidr": sa.String(18)},
    "vif": {"instance_uuid": sa.String(36), "position": sa.Integer()},
}


def upgrade() -> None:
    _let_be_null(True)
    op.add_column("network", sa.Column("tenant", sa.Boolean(), server_default=sa.false(), nullable=False))
    op.add_column("network", sa.Column("display_name", sa.String(255)))
    op.add_column("network", sa.Column("description", sa.String(255), server_default="", nullable=False))
    op.add_column("network", sa.Column("created_at", sa.BigInteger(), server_default="0", nullable=False))
    op.add_column("network", sa.Column("updated_at", sa.BigInteger(), server_default="0", nullable=False))
    op.add_column("network", sa.Column("routes", sa.JSON(), server_default="[]", nullable=False))
    op.add_column("vif", sa.Column("status", sa.String(16)))
    op.add_column("security_group_rule", sa.Column("description", sa.String(255), server_default="", nullable=False))
    op.add_column("floating_ip", sa.Column("description", sa.String(255), server_default="", nullable=False))
    op.create_table(
        "subnet",
        sa.Column("network_id", _big_id(), nullable=False),
        sa.Column("version", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("name", sa.String(255), server_default="", nullable=False),
        sa.Column("description", sa.String(255), server_default="", nullable=False),
        sa.Column("gateway", sa.String(39)),
        sa.Column("pools", sa.JSON(), nullable=False),
        sa.Column("enable_dhcp", sa.Boolean(), server_default=sa.true(), nullable=False),
        sa.Column("ra_mode", sa.String(24)),
        sa.Column("address_mode", sa.String(24)),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("version IN (4, 6)", name=op.f("ck_subnet_version")),
        sa.ForeignKeyConstraint(["network_id"], ["network.id"], name=op.f("fk_subnet_network_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("network_id", "version", name=op.f("pk_subnet")),
    )
    op.create_table(
        "port",
        sa.Column("vif_id", sa.String(36), nullable=False),
        sa.Column("project_id", sa.String(32), nullable=False),
        sa.Column("kept", sa.Boolean(), nullable=False),
        sa.Column("name", sa.String(255), server_default="", nullable=False),
        sa.Column("description", sa.String(255), server_default="", nullable=False),
        sa.Column("admin_state_up", sa.Boolean(), server_default=sa.true(), nullable=False),
        sa.Column("device_id", sa.String(255), server_default="", nullable=False),
        sa.Column("device_owner", sa.String(255), server_default="", nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_port_project_id")),
        sa.ForeignKeyConstraint(["vif_id"], ["vif.id"], name=op.f("fk_port_vif_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("vif_id", name=op.f("pk_port")),
    )
    op.create_index(op.f("ix_port_project_id"), "port", ["project_id"], unique=False)
    op.create_table(
        "port_security_group",
        sa.Column("vif_id", sa.String(36), nullable=False),
        sa.Column("group_id", _big_id(), nullable=False),
        sa.ForeignKeyConstraint(["group_id"], ["security_group.id"], name=op.f("fk_port_security_group_group_id")),
        sa.ForeignKeyConstraint(
            ["vif_id"], ["port.vif_id"], name=op.f("fk_port_security_group_vif_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("vif_id", "group_id", name=op.f("pk_port_security_group")),
    )
    op.create_index(op.f("ix_port_security_group_group_id"), "port_security_group", ["group_id"], unique=False)
    op.create_table(
        "router",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("project_id", sa.String(32), nullable=False),
        sa.Column("name", sa.String(255), server_default="", nullable=False),
        sa.Column("description", sa.String(255), server_default="", nullable=False),
        sa.Column("admin_state_up", sa.Boolean(), server_default=sa.true(), nullable=False),
        sa.Column("external_pool", sa.String(64)),
        sa.Column("enable_snat", sa.Boolean(), server_default=sa.true(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["external_pool"], ["floating_pool.name"], name=op.f("fk_router_external_pool")),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_router_project_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_router")),
    )
    op.create_index(op.f("ix_router_external_pool"), "router", ["external_pool"], unique=False)
    op.create_index(op.f("ix_router_project_id"), "router", ["project_id"], unique=False)
    op.create_table(
        "router_interface",
        sa.Column("vif_id", sa.String(36), nullable=False),
        sa.Column("router_id", sa.String(36), nullable=False),
        sa.Column("network_id", _big_id(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["network_id"], ["network.id"], name=op.f("fk_router_interface_network_id")),
        sa.ForeignKeyConstraint(["router_id"], ["router.id"], name=op.f("fk_router_interface_router_id")),
        sa.ForeignKeyConstraint(["vif_id"], ["vif.id"], name=op.f("fk_router_interface_vif_id")),
        sa.PrimaryKeyConstraint("vif_id", name=op.f("pk_router_interface")),
        sa.UniqueConstraint("network_id", "version", name=op.f("uq_router_interface_network_id_version")),
    )
    op.create_index(op.f("ix_router_interface_router_id"), "router_interface", ["router_id"], unique=False)
    op.create_table(
        "resource_tag",
        sa.Column("resource_id", sa.String(36), nullable=False),
        sa.Column("tag", sa.String(255), nullable=False),
        sa.PrimaryKeyConstraint("resource_id", "tag", name=op.f("pk_resource_tag")),
    )
    op.create_table(
        "quota_default",
        sa.Column("resource", sa.String(32), nullable=False),
        sa.Column("hard_limit", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("hard_limit >= -1", name=op.f("ck_quota_default_hard_limit")),
        sa.PrimaryKeyConstraint("resource", name=op.f("pk_quota_default")),
    )
    op.create_table(
        "flavor_access",
        sa.Column("flavor_id", _big_id(), nullable=False),
        sa.Column("project_id", sa.String(32), nullable=False),
        sa.ForeignKeyConstraint(
            ["flavor_id"], ["flavor.id"], name=op.f("fk_flavor_access_flavor_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name=op.f("fk_flavor_access_project_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("flavor_id", "project_id", name=op.f("pk_flavor_access")),
    )


def downgrade() -> None:
    op.drop_table("flavor_access")
    op.drop_table("quota_default")
    op.drop_table("resource_tag")
    op.drop_index(op.f("ix_router_interface_router_id"), table_name="router_interface")
    op.drop_table("router_interface")
    op.drop_index(op.f("ix_router_project_id"), table_name="router")
    op.drop_index(op.f("ix_router_external_pool"), table_name="router")
    op.drop_table("router")
    op.drop_index(op.f("ix_port_security_group_group_id"), table_name="port_security_group")
    op.drop_table("port_security_group")
    op.drop_index(op.f("ix_port_project_id"), table_name="port")
    op.drop_table("port")
    op.drop_table("subnet")
    op.drop_column("floating_ip", "description")
    op.drop_column("security_group_rule", "description")
    op.drop_column("vif", "status")
    for name in ("routes", "updated_at", "created_at", "description", "display_name", "tenant"):
        op.drop_column("network", name)
    _let_be_null(False)


def _big_id() -> sa.types.TypeEngine[int]:
    return sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _let_be_null(null: bool) -> None:
    """Let these columns be null, or no more."""
    connection = op.get_bind()
    for table, columns in OPTIONAL.items():
        for column, kind in columns.items():
            if connection.dialect.name == "sqlite":
                _rewrite(connection, table, column, kind, null)
            else:
                op.alter_column(table, column, existing_type=kind, nullable=null)


def _rewrite(connection: sa.Connection, table: str, column: str, kind: sa.types.TypeEngine[t.Any], null: bool) -> None:
    """SQLite's way for a change that leaves the rows as they are (https://sqlite.org/lang_altertable.html, section 7).

    A copy of the table in the other's place would take with it, by their ON DELETE clauses, what other tables hold: the
    foreign keys cannot be put to sleep within a transaction.
    """
    optional = f"{column} {kind.compile(connection.dialect)}"
    before, after = (f"{optional} NOT NULL", optional) if null else (optional, f"{optional} NOT NULL")
    named = {"table": table}
    query = sa.text("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = :table")
    old = str(connection.execute(query, named).scalar_one())
    new = old.replace(before, after, 1)
    if new == old:
        raise RuntimeError(f"the table {table} has no column {before!r}")
    version = connection.exec_driver_sql("PRAGMA schema_version").scalar_one()
    connection.exec_driver_sql("PRAGMA writable_schema=ON")
    write = sa.text("UPDATE sqlite_master SET sql = :sql WHERE type = 'table' AND name = :table")
    connection.execute(write, {**named, "sql": new})
    connection.exec_driver_sql(f"PRAGMA schema_version={version + 1}")
    connection.exec_driver_sql("PRAGMA writable_schema=OFF")
