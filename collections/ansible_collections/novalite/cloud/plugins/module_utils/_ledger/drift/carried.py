# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Credible part of a slice that a host kept: the tables and columns of CARRIED (slices.py), values that fit them, and
rows about the host's own instances and what these stand on. The rest is refused, by name. No SQL.

Whoever is root of a host writes its slices. They speak for the host's guests, and for nothing else of the cloud.
"""

from __future__ import annotations

import collections
import re
import typing as t

import netaddr
import sqlalchemy as sa

from ..._json import Json, JsonMapping
from ..._model.instance import Flavor, Image
from ..._rules.ha_wishes import LEAST, MOST
from ..compute.slices import CARRIED, POOL, Row, Rows, without_paths
from ..db import tables
from ..db.tables_addresses import OF_HOST, OF_VIF

MOST_ADDRESSES = 1 << 20  # of a network's pool in a slice
_NEEDED = {"flavor": Flavor, "image": Image, "old_flavor": Flavor, "new_flavor": Flavor}  # what others read of these
# Tables whose rows are an instance's own, and the column that says whose
_OWN = {
    "vif": "instance_uuid",
    "allocation": "instance_uuid",
    "server_group_member": "instance_uuid",
    "ec2_instance": "instance_uuid",
    "volume_attachment": "instance_uuid",
    "server_snapshot": "instance_uuid",
    "migration": "instance_uuid",
    "instance_action": "instance_uuid",
    "instance": "uuid",
    "instance_security_group": "instance_id",
}
# Parts of something else: they come with it, by the column that leads there
_PARTS = {
    "subnet": ("network", "network_id"),
    POOL: ("network", "network_id"),
    "router_interface": ("network", "network_id"),
    "security_group_rule": ("security_group", "group_id"),
    "floating_ip": ("vif", "vif_id"),
    "port": ("vif", "vif_id"),
    "volume_snapshot": ("volume", "volume_id"),
}
# Of a project with an instance on the host, in the host's own slice
_OF_PROJECTS = {
    "quota": "project_id",
    "keypair": "project_id",
    "server_group": "project_id",
    "security_group": "project_id",
    "network": "owner",
}
# What leads to rows of other tables and is no foreign key: (table, column, key within it) -> (table, column)
_NAMES: dict[tuple[str, str, str | None], tuple[str, str]] = {
    ("instance", "flavor", "name"): ("flavor", "name"),
    ("instance", "image", "id"): ("image", "id"),
    ("instance", "disk_image", "id"): ("image", "id"),
    ("volume", "image", "id"): ("image", "id"),
    ("network", "owner", None): ("project", "id"),
    ("floating_ip", "router_id", None): ("router", "id"),
    ("router", "external_pool", None): ("floating_pool", "name"),
}


class Filter:
    """Takes what may be believed out of slices; `refused` collects what was left out, in words."""

    def __init__(self, now: int) -> None:
        self._now = now
        self.refused: collections.Counter[str] = collections.Counter()

    def of_instance(self, uuid: str, reported: JsonMapping) -> Rows:
        """The rows of the slice of the instance `uuid`."""
        rows = self._fitting(reported)
        instances = [row for row in rows.get("instance", ()) if row["uuid"] == uuid]
        names = {uuid} | {row["id"] for row in instances}
        own = {
            table: [row for row in rows.get(table, ()) if row.get(column) in names] for table, column in _OWN.items()
        }
        keys = {
            (*place, row.get("key_name"))
            for row in instances
            for place in ((row.get("user_id"), ""), ("", row["project_id"]))
        }
        own["keypair"] = [
            row for row in rows.get("keypair", ()) if (row["user_id"], row["project_id"], row["name"]) in keys
        ]
        return self._connected(rows, own)

    def of_host(self, host: str, projects: t.Collection[str], users: t.Collection[str], reported: JsonMapping) -> Rows:
        """The rows of the slice of a `host` that has instances of these `projects` and `users`."""
        rows = self._fitting(reported)
        own = {"volume": [row for row in rows.get("volume", ()) if row.get("host") == host]}
        for table, column in _OF_PROJECTS.items():
            own[table] = [row for row in rows.get(table, ()) if row[column] in projects]
        own["keypair"] += [row for row in rows.get("keypair", ()) if row["user_id"] in users]
        return self._connected(rows, own)

    def _fitting(self, reported: JsonMapping) -> Rows:
        """The rows whose columns a slice may have, with values that the ledger takes."""
        rows: Rows = {}
        for table, told_rows in reported.items():
            if table not in CARRIED or not isinstance(told_rows, list):
                self.refused[str(table)] += 1
                continue
            for row in told_rows:
                if isinstance(row, dict) and (fitting := self._row(table, row)) is not None:
                    rows.setdefault(table, []).append(fitting)
                else:
                    self.refused[f"a {table} that makes no sense"] += 1
        return rows

    def _row(self, table: str, reported: JsonMapping) -> Row | None:
        if table == POOL:
            return dict(reported) if _is_pool(reported) else None
        columns = tables.metadata.tables[table].columns
        row: Row = {}
        for name, value in reported.items():
            if name not in CARRIED[table]:
                if value is not None:  # records of older versions name them
                    self.refused[f"{table}.{name}"] += 1
                continue
            clean = without_paths(table, name, value) if name in columns and _fits(columns[name], value) else value
            if clean != value:
                self.refused[f"{table}.{name}'s files and what hosts may do with them"] += 1
            # what was written is past: else nothing could be called old before that time has come
            row[name] = min(clean, self._now) if name.endswith("_at") and isinstance(clean, int) else clean
        if table == "keypair" and row.get("user_id"):
            row["project_id"] = ""  # records of before revision 0039 name the project in which it was made
        known = [columns[name] for name in row if name in columns]
        complete = all(
            row.get(column.name) is not None
            for column in columns
            if not (column.nullable or column.server_default is not None) and column.name in CARRIED[table]
        )
        return row if complete and all(_fits(column, row[column.name]) for column in known) else None

    def _connected(self, rows: Rows, own: Rows) -> Rows:
        """Return those of `rows` that the `own` ones stand on, with all their parts."""
        kept: Rows = {}
        reached: set[Place] = set()
        waiting = [
            (table, row)
            for table, of_table in rows.items()
            if table not in _OWN or (table == "vif" and of_table)
            for row in of_table
            if table != "vif" or row.get("instance_uuid") is None  # a router's, if it has one
        ]
        new = [(table, row) for table, of_table in own.items() for row in of_table]
        while new:
            for table, row in new:
                kept.setdefault(table, []).append(row)
                reached |= _leading_to(table, row)
            left = [(table, row) for table, row in waiting if not _is_reached(table, row, reached)]
            taken = {id(row) for _table, row in left} | {id(row) for of_table in own.values() for row in of_table}
            new = [(table, row) for table, row in waiting if id(row) not in taken]
            waiting = left
        for table, of_table in rows.items():
            if left_out := len(of_table) - len(kept.get(table, ())):
                self.refused[f"{table} of others"] += left_out
        return kept


# A table, a column, and the value there that a row has, or is to have
Place = tuple[str, str, Json]


def _leading_to(table: str, row: Row) -> set[Place]:
    """Return what a row that is kept brings along: what it refers to, and its parts."""
    places = {
        (*target, value) for (column, key), target in _LEADS[table] if (value := _value(row, column, key)) is not None
    }
    places |= {(part, column, row[_key(table)]) for part, (of, column) in _PARTS.items() if of == table}
    if table == "floating_pool":
        places.add((POOL, "floating_pool", row["name"]))
    if table == "vif":
        places |= {("fixed_ip", "owner", f"{OF_VIF}{row['id']}"), ("fixed_ip", "further_of", row["id"])}
    if table == "network":
        places.add(("fixed_ip", "of hosts", row["id"]))
    return places


def _is_reached(table: str, row: Row, reached: set[Place]) -> bool:
    if table == "fixed_ip" and str(row.get("owner")).startswith(OF_HOST):
        return (table, "of hosts", row["network_id"]) in reached
    return any((table, column, value) in reached for column, value in row.items() if isinstance(value, (str, int)))


def _value(row: Row, column: str, key: str | None) -> Json:
    """Return what a row refers to by a column, or by a `key` of the mapping there; None where it refers to nothing."""
    value = row.get(column)
    if key is not None:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, (str, int)) else None


def _key(table: str) -> str:
    return next(iter(tables.metadata.tables[table].primary_key.columns)).name


def _leads() -> dict[str, list[tuple[tuple[str, str | None], tuple[str, str]]]]:
    """Table -> its columns (and keys in them) that lead to rows of other tables, and where."""
    leads: dict[str, list[tuple[tuple[str, str | None], tuple[str, str]]]] = {table: [] for table in CARRIED}
    for table in CARRIED.keys() - {POOL}:
        for key in tables.metadata.tables[table].foreign_keys:
            if key.column.table.name in CARRIED and key.parent.name in CARRIED[table]:
                leads[table].append(((key.parent.name, None), (key.column.table.name, key.column.name)))
    for (table, column, within), target in _NAMES.items():
        leads[table].append(((column, within), target))
    return leads


_LEADS = _leads()


def _is_range(text: str) -> bool:
    try:
        return bool(netaddr.IPNetwork(text))
    except (ValueError, netaddr.AddrFormatError):
        return False


_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch
_PROJECT = re.compile(r"[0-9a-f]{32}").fullmatch
_DEVICE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*").fullmatch
_LABELS = re.compile(r"[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*").fullmatch
# Forms of texts that become parts of paths, commands and files of hosts, by (length, name) or name of their columns
_FORMS: dict[t.Any, t.Callable[[str], object]] = {
    (36, "id"): _UUID,
    (36, "uuid"): _UUID,
    (32, "id"): _PROJECT,
    **dict.fromkeys(("bridge", "bridge_interface", "interface"), _DEVICE),
    **dict.fromkeys(("hostname", "domain"), _LABELS),
    **dict.fromkeys(("cidr", "cidr_v6"), _is_range),
    "mac": re.compile(r"[0-9a-f]{2}(?::[0-9a-f]{2}){5}").fullmatch,
}


def _fits(column: sa.Column[t.Any], value: Json) -> bool:
    """Tell whether the database takes this value for the column, and others find in it what they read."""
    if value is None:
        return bool(column.nullable or column.server_default is not None)
    kind = column.type
    if isinstance(kind, sa.JSON):
        if column.name == "cdroms":
            return isinstance(value, list) and all(
                item is None or (isinstance(item, dict) and set(Image.__annotations__) <= set(item)) for item in value
            )
        needed = _NEEDED.get(column.name)
        return needed is None or (isinstance(value, dict) and set(needed.__annotations__) - {"flavorid"} <= set(value))
    if isinstance(kind, sa.Boolean):
        return isinstance(value, bool)
    if column.name == "ha_priority" and value not in range(LEAST, MOST + 1):
        return False
    if isinstance(kind, (sa.Integer, sa.BigInteger)):
        return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63
    if isinstance(kind, sa.Float):
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    length = getattr(kind, "length", None)
    form = _FORMS.get((length, column.name)) or _FORMS.get(column.name)
    return isinstance(value, str) and len(value) <= (length or len(value)) and (form is None or bool(form(value)))


def _is_pool(reported: JsonMapping) -> bool:
    ranges = reported.get("ranges")
    if not isinstance(ranges, list) or set(reported) - CARRIED[POOL]:
        return False
    sizes = [
        bounds[1] - bounds[0] + 1
        for bounds in ranges
        if isinstance(bounds, list) and len(bounds) == 3 and all(isinstance(end, int) for end in bounds[:2])
    ]
    return len(sizes) == len(ranges) and all(size > 0 for size in sizes) and sum(sizes) <= MOST_ADDRESSES
