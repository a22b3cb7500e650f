# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Deletions against all keys of other tables that hold a row: each is refused by what holds it, or takes that along."""

from __future__ import annotations

import typing as t
import uuid

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.catalog import volume_types
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import reading, transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity import domains, projects
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.network import (
    address_scopes,
    floating_pools,
    routers,
    subnet_pools,
    tenant_networks,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.placement import host_removal
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.security import security_groups
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.network import network
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.volumes import volumes
from tests.support.rows import a_host, an_instance, insert
from tests.unit._ledger.conftest import on_sqlite

Row = t.Any
Delete = t.Callable[[sa.Connection, Row], object]
TABLES = tables.metadata.tables


_ABSENT = {"state": "absent", "project": None}
# Tables that others hold rows of, with all ways to delete one
DELETIONS: dict[str, tuple[Delete, ...]] = {
    "address_scope": (lambda connection, row: address_scopes.delete_scope(connection, row.id),),
    "compute_host": (lambda connection, row: host_removal.remove(connection, row.name),),
    "domain": (lambda connection, row: domains.delete_domain(connection, row.id),),
    "floating_pool": (lambda connection, row: floating_pools.remove_floating_pools(connection, [{"name": row.name}]),),
    "network": (
        lambda connection, row: tenant_networks.delete_network(connection, row),
        lambda connection, row: network(connection, {"networks": [{"name": row.name}], **_ABSENT}),
    ),
    "project": (lambda connection, row: projects.delete_project(connection, row.id),),
    "router": (lambda connection, row: routers.delete_router(connection, row),),
    "security_group": (lambda connection, row: security_groups.remove_groups(connection, row.project_id, [row.name]),),
    "subnet_pool": (lambda connection, row: subnet_pools.delete_subnet_pool(connection, row.id),),
    "volume": (lambda connection, row: volumes.begin_delete(connection, row.id),),
    "volume_type": (lambda connection, row: volume_types.delete_type(connection, row.id),),
}
# Rows that go before: those of a server when that is deleted, whose own row stays; an interface by remove_interface()
BEFORE = {"instance", "vif"}
COLUMNS: dict[str, dict[str, t.Any]] = {
    "domain": {"enabled": False},
    "subnet": {"version": 4, "position": 0, "cidr": None},
    "volume": {"status": "available", "size_gb": 1, "format": "raw"},
    "security_group_rule": {"ethertype": "IPv4", "direction": "ingress"},
    "volume_type": {"backend": "file"},
}


def holding() -> list[sa.ForeignKey]:
    """List the keys that let no row go which another names."""
    keys = [key for table in TABLES.values() for key in table.foreign_keys if key.ondelete is None]
    return sorted(keys, key=lambda key: (key.column.table.name, str(key.parent)))


def fill(connection: sa.Connection, table: sa.Table, **values: t.Any) -> Row:
    """Write a row with a value for all that its table asks for, and rows for what it names; return it."""
    known = {"compute_host": a_host, "instance": an_instance}.get(table.name, dict)()
    columns: dict[str, t.Any] = {**known, **COLUMNS.get(table.name, {}), **values}
    for column in table.columns:
        needed = not column.nullable and column.server_default is None and column.autoincrement is not True
        if columns.get(column.name) is not None or not needed:
            continue
        if column.foreign_keys:
            (key,) = column.foreign_keys
            same = {name: value for name, value in values.items() if name == "network_id"}
            parent = fill(connection, key.column.table, **(same if same.keys() & key.column.table.c.keys() else {}))
            columns[column.name] = getattr(parent, key.column.name)
        elif not (column.primary_key and isinstance(column.type, sa.Integer)):
            columns[column.name] = _value(column)
    key = insert(connection, table, **columns)
    return connection.execute(sa.select(table).where(next(iter(table.primary_key)) == key)).first()


def _value(column: sa.Column[t.Any]) -> t.Any:
    if isinstance(column.type, sa.JSON):
        return {}
    if isinstance(column.type, sa.String):
        return uuid.uuid4().hex[: column.type.length]
    return 4 if "version" in column.name else 0


def test_all_that_others_hold_is_deleted_here() -> None:
    assert {key.column.table.name for key in holding()} == DELETIONS.keys() | BEFORE


@on_sqlite
@pytest.mark.parametrize(
    ("key", "delete"),
    [
        pytest.param(key, delete, id=f"{key.column.table.name}-{key.parent}-{number}")
        for key in holding()
        for number, delete in enumerate(DELETIONS.get(key.column.table.name, ()))
    ],
)
def test_what_is_held_is_refused_in_words(ledger: sa.Engine, key: sa.ForeignKey, delete: Delete) -> None:
    with transaction(ledger) as connection:
        held = fill(connection, key.column.table)
        fill(connection, key.parent.table, **{key.parent.name: getattr(held, key.column.name)})
    try:
        with transaction(ledger) as connection:
            delete(connection, held)
    except NovaliteError as error:
        assert "another run" not in str(error)
    else:
        own = next(iter(key.column.table.primary_key))
        with reading(ledger) as connection:
            left = connection.execute(sa.select(key.column.table).where(own == getattr(held, own.name))).first()
        assert left is None or getattr(left, "status", "") == "deleting"


@on_sqlite
@pytest.mark.parametrize(
    "table", sorted({key.parent.table.name for key in holding() if key.column.table.name == "project"})
)
def test_a_project_names_what_it_is_left_with(ledger: sa.Engine, table: str) -> None:
    with transaction(ledger) as connection:
        project_id = fill(connection, tables.project).id
        assert projects.left_in(connection, project_id) == []
        fill(connection, TABLES[table], project_id=project_id)
        ((kind, number, first),) = projects.left_in(connection, project_id)
        assert kind.lower().replace(" ", "_") in table.replace("server_backup", "backup") and number == 1 and first
