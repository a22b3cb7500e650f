# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Making again, out of slices that hosts kept, what instances stand on: projects, groups, networks, volumes.

Rows that the ledger lacks are added, under the ids that they had, since hosts know them: in the names of chains and
filters. Rows that it has stay as they are, and get no new parts: of what many use, one host's word is not enough.
"""

from __future__ import annotations

import collections
import dataclasses
import typing as t
import uuid as uuids

import netaddr
import sqlalchemy as sa

from ..._errors import ConflictError
from ..._json import Json
from ..catalog.kept_images import KeptImages
from ..compute.slices import POOL, Row, Rows
from ..db import tables
from ..db.tables_networking import subnet
from ..db.tables_volumes import volume_type
from .slices_on_hosts import Slice

_OF_SLICES = ("instance", "instance_security_group", "instance_action", "ec2_instance", "allocation", "migration")
# the rows of an instance that own_rows.py brings in line; routers' interfaces and ports are shared rows
OWN = (*_OF_SLICES, "server_group_member", "volume_attachment", "fixed_ip", "floating_ip")
# Parts that nobody but the ledger adds to what it has: (table, column that leads to the whole)
_CLOSED = {"security_group_rule": "group_id", "quota": "project_id"}
# Whose ids hosts know, or that are named by users: a new row of a name that is taken gets another one
_NAMED = ("network", "security_group", "volume", "volume_snapshot")
_TIMES = ("created_at", "updated_at")
DEFAULT_BACKEND = "file"  # of volumes: in the state directory of hosts, wherever that is


@dataclasses.dataclass
class Report:
    """Report of what a rebuild did, in lines for people."""

    added: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    servers: list[str] = dataclasses.field(default_factory=list)  # that were added
    updated: list[str] = dataclasses.field(default_factory=list)  # servers that are not as they were
    gone: list[str] = dataclasses.field(default_factory=list)  # of which no host has anything
    disputed: list[str] = dataclasses.field(default_factory=list)  # what several claim
    reserved: list[str] = dataclasses.field(default_factory=list)  # addresses that are nobody's to take
    dropped: list[str] = dataclasses.field(default_factory=list)  # what could not be recorded


class SharedRows:
    """Adds rows that are not there yet, in an order in which they can be."""

    def __init__(self, connection: sa.Connection, report: Report, files: KeptImages) -> None:
        self._connection = connection
        self._report = report
        self.files = files
        self._new: dict[str, set[Json]] = collections.defaultdict(set)  # table -> keys of what was added
        self._left: collections.Counter[tuple[str, str, Json]] = collections.Counter()  # parts of what is here
        self.ids: dict[tuple[str, Json], Json] = {}  # (table, id in a slice) -> id of the same thing here

    def add(self, slices: t.Sequence[Slice]) -> None:
        """Add what these slices, oldest first, have and the ledger lacks. Raises ConflictError for a project of the
        name of another one here."""
        projects = set(self._connection.execute(sa.select(tables.project.c.id)).scalars())
        users = set(self._connection.execute(sa.select(tables.tables_identity.user.c.id)).scalars())
        rows = _merged(slices, projects, users, self._report)
        for table in tables.metadata.sorted_tables:
            if table.name in rows and table.name not in OWN:
                self._add_to(table, rows[table.name])
        self._add_pools(rows)
        self._add_floating_pools(rows)
        for (name, whole, value), count in sorted(self._left.items(), key=str):
            self._report.dropped.append(
                f"{count} rows of {name} of the {whole} {value}: that one is here, and what the ledger says of it holds"
            )

    def here(self, table: sa.Table, reported: Row) -> Row | None:
        """The row with the columns and ids that this ledger has; None when what it belongs to is not there."""
        row = {name: value for name, value in reported.items() if name in table.columns}
        for key in table.foreign_keys:
            name, target = key.parent.name, key.column.table
            if row.get(name) is None:
                continue
            row[name] = self.ids.get((target.name, row[name]), row[name])
            query = sa.select(sa.literal(1)).where(key.column == row[name]).limit(1)
            if self._connection.execute(query).first() is not None:
                continue
            if not key.parent.nullable:
                self._report.dropped.append(f"a {table.name}, whose {target.name} {row[name]} no host knows")
                return None
            row[name] = None
        return row

    def _add_to(self, table: sa.Table, reported: t.Sequence[Row]) -> None:
        keys = [column.name for column in table.primary_key.columns]
        present: set[tuple[Json, ...]] = set()
        by_value: dict[tuple[Json, ...], Row] = {}

        def note(row: Row) -> None:
            present.add(tuple(row[key] for key in keys))
            by_value.update(dict.fromkeys(_values(table, row), row))

        for there in self._connection.execute(sa.select(table)).mappings():
            note(dict(there))
        for original in sorted(reported, key=lambda row: [str(row.get(key)) for key in keys]):
            row = self.here(table, original)
            if row is None or tuple(row[key] for key in keys) in present:
                continue
            whole = _CLOSED.get(table.name)
            if whole is not None and row[whole] not in self._new[_parent(table, whole)]:
                self._left[table.name, _parent(table, whole), row[whole]] += 1
                continue
            same = next((by_value[value] for value in _values(table, row) if value in by_value), None)
            if same is not None and table.name not in _NAMED:
                self._same(table, keys, row, same)
                continue
            row = self._completed(table, row if same is None else self._renamed(table, row, same))
            self._connection.execute(sa.insert(table), [row])
            note({**dict.fromkeys(table.columns.keys()), **row})
            self._new[table.name].add(row[keys[0]])
            self._report.added[table.name] += 1

    def _completed(self, table: sa.Table, row: Row) -> Row:
        """A new row with what no host may say."""
        if table is tables.image:
            return self.files.of_record(row)
        if table is tables.network:
            return {**row, "made_by": row["owner"] if row.get("tenant") else ""}
        if table is volume_type and row["backend"] != DEFAULT_BACKEND and row.get("is_public", True):
            self._report.dropped.append(
                f"who may use the volume type {row['name']!r}: nobody, until an administrator says so, since its "
                f"{row['backend']} was reported by a host"
            )
            return {**row, "is_public": False}
        return row

    def _same(self, table: sa.Table, keys: list[str], row: Row, same: Row) -> None:
        """Take what is here for what the slice tells of, or refuse to."""
        if table.name == "project":
            raise ConflictError(
                f"the ledger here has a project {same['name']!r} of its own, and the hosts know another one of that "
                "name: move this ledger away (or drop its database), and make the lost one in an empty one"
            )
        if len(keys) == 1:
            self.ids[table.name, row[keys[0]]] = same[keys[0]]

    def _renamed(self, table: sa.Table, row: Row, same: Row) -> Row:
        """Let a row in beside one here with the same name, or, of networks, bridge or number: a network without guests
        gives way to one that has some."""
        gone = {column: value for column, value in _ways(table, same).items() if same.get(column) == row.get(column)}
        used = sa.select(tables.vif.c.id).where(tables.vif.c.network_id == same["id"]).limit(1)
        if table is not tables.network or self._connection.execute(used).first() is not None:
            name = f"{row['name']}-{str(row['id'])[:8]}"
            if gone.keys() - {"name"}:
                raise ConflictError(
                    f"networks {same['name']!r} here and {row['name']!r} on the hosts share {', '.join(sorted(gone))}, "
                    "and both have interfaces: detach those of the one that is wrong, and run again"
                )
            self._report.dropped.append(f"the name of {table.name} {row['name']!r}: it is {name!r} by now")
            return {**row, "name": name}
        self._connection.execute(sa.update(table).where(table.c.id == same["id"]).values(**gone))
        self._report.gone.append(f"network {same['name']!r}: another one has its {', '.join(sorted(gone))}")
        return row

    def _add_pools(self, rows: Rows) -> None:
        """Add the addresses of networks, and of subnets, that are new."""
        new = self._new["network"]
        ranges = [
            (row["network_id"], netaddr.IPNetwork(row["cidr"]))
            for row in rows.get(subnet.name, ())
            if row.get("cidr") and row["id"] in self._new[subnet.name] and row["network_id"] not in new
        ]
        pooled = [
            {"network_id": pool["network_id"], "ip": ip, "reserved": role}
            for pool in rows.get(POOL, ())
            if pool.get("network_id") is not None
            for first, last, role in pool["ranges"]
            for ip in range(first, last + 1)
            if pool["network_id"] in new
            or any(pool["network_id"] == of and around.first <= ip <= around.last for of, around in ranges)
        ]
        if pooled:
            self._connection.execute(sa.insert(tables.fixed_ip), pooled)
            self._report.added["fixed_ip"] += len(pooled)

    def _add_floating_pools(self, rows: Rows) -> None:
        ids = {row["address"]: row["id"] for row in rows.get("floating_ip", ())}
        pooled = [
            {"id": ids.get(ip) or str(uuids.uuid4()), "pool": pool["floating_pool"], "address": ip}
            for pool in rows.get(POOL, ())
            if pool.get("floating_pool") in self._new["floating_pool"]
            for first, last, _role in pool["ranges"]
            for ip in range(first, last + 1)
        ]
        if pooled:
            self._connection.execute(sa.insert(tables.floating_ip), pooled)


def _merged(slices: t.Sequence[Slice], projects: t.Collection[Json], users: t.Collection[Json], report: Report) -> Rows:
    """The shared rows of all slices by table; of a row that several have, the newest one. What an instance's slice says
    of its volumes counts more than what a host's does. `projects` and `users` are those that the ledger has."""
    rows: dict[str, dict[str, Row]] = collections.defaultdict(dict)
    whose: dict[tuple[str, str], Slice] = {}
    for part in slices:
        of_routers = {row["id"] for row in part.tables.get("vif", ()) if row.get("instance_uuid") is None}
        for name, row in ((name, row) for name, of_table in part.tables.items() for row in of_table):
            if name in OWN and name != "floating_ip":
                continue
            if name in ("vif", "port") and row["id" if name == "vif" else "vif_id"] not in of_routers:
                continue
            if name == "keypair" and part.uuid is None and row["project_id"] in projects:
                continue  # a key that somebody could log in with, and that no guest of the host has
            if name == "keypair" and row["user_id"] in users:
                continue  # it would go before a shared one of its name wherever its user launches servers
            key = _key(name, row)
            before = whose.get((name, key))
            if before is not None and before.uuid is not None and part.uuid is None and name == "volume":
                continue
            if before is not None and before.host != part.host and name not in (POOL, "volume", "floating_ip"):
                other = rows[name][key]
                differing = sorted(
                    column for column in row if row[column] != other.get(column) and column not in _TIMES
                )
                if differing:
                    report.disputed.append(
                        f"{name} {row.get('name') or key}: {before.host} and {part.host} tell of another "
                        f"{', '.join(differing)}; taken from {part.host}, which was reported last"
                    )
            rows[name][key], whose[name, key] = row, part
    return {name: list(of_table.values()) for name, of_table in rows.items()}


def _key(name: str, row: Row) -> str:
    table = tables.metadata.tables.get(name)
    columns = (
        [column.name for column in table.primary_key.columns] if table is not None else ["network_id", "floating_pool"]
    )
    return repr([row.get(column) for column in columns])


def _parent(table: sa.Table, column: str) -> str:
    return next(key.column.table.name for key in table.columns[column].foreign_keys)


def _ways(table: sa.Table, row: Row) -> Row:
    """Return the values that a row which gives way takes for those that make it unique, beside its key."""
    name = {"name": f"{row['name']}-{str(row['id'])[:8]}"}
    return name if table is not tables.network else {**name, "bridge": f"gone{row['id']}", "vlan": None, "vni": None}


def _values(table: sa.Table, row: Row) -> list[tuple[Json, ...]]:
    """List the values that no other row of the table may have as well, beside the key."""
    return [
        (columns, *(row[column] for column in columns))
        for columns in unique(table)
        if all(row.get(column) is not None for column in columns)
    ]


def unique(table: sa.Table) -> list[tuple[str, ...]]:
    """The sets of columns that no two rows have the same values in, without the key."""
    column_sets = [
        tuple(column.name for column in constraint.columns)
        for constraint in table.constraints
        if isinstance(constraint, sa.UniqueConstraint)
    ]
    column_sets += [(column.name,) for column in table.columns if column.unique]
    column_sets += [tuple(column.name for column in index.columns) for index in table.indexes if index.unique]
    return sorted(set(column_sets))
