# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operation `ledger_rebuild`: make a lost ledger again from the slices of it that its hosts keep (slices.py).

It adds rows and changes none: over a ledger that was restored from an older copy, it adds what came since. Ids are what
they were, since hosts know them: in the names of chains, domains and filters. The ledger's identity, too.
"""

from __future__ import annotations

import collections
import re
import typing as t
import uuid as uuids

import netaddr
import sqlalchemy as sa

from ..._addressing.pools import to_text
from ..._errors import ConflictError
from ..._json import Json, JsonMapping, JsonObject
from ..._model.look import Kept
from ..._rules.build_states import OFFLOADED
from ..._rules.records import with_diff
from ..compute.slices import POOL, Row
from ..db import tables
from ..db.ledger_identity import ledger_id, set_ledger_id
from ..db.text import raise_number
from ..drift.slices_on_hosts import Slice, SlicesOnHosts, judge
from ..placement.machines import adopt_marks
from ..queries.subnet_records import derived_id
from .ledger_heal import wrong_sums

# whose ids hosts know, or that other hosts' things are named by: two of one name are not taken for each other
_OUR_DOMAIN = re.compile(r"instance-[0-9a-f]{8}")
_OWNED = ("owner", "further_of", "released_at", "last_owner")  # of an address that somebody has
FIRM = ("project", "network", "security_group", "instance")
LOST = (
    "users, their passwords and roles, application credentials and EC2 keys: users.yml, or record them again",
    "tokens: whoever is logged in logs in again",
    "images, flavors, groups, networks and volume types that no instance used: seed.yml, stack.yml, or by hand",
    "the history of instances, jobs, and deleted instances",
    "the ledger's secret: new IPv6 addresses of networks with stable-privacy follow from another one",
)


def ledger_rebuild(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Operation of the module `ledger_rebuild`: see its documentation for `params` and what is returned. Raises
    ConflictError when the ledger here has other things of the same names, or other addresses for them."""
    findings = judge(params["hosts"], params.get("ledger"))
    writer = _Writer(connection)
    if findings.ledger is not None and findings.ledger != ledger_id(connection):
        set_ledger_id(connection, findings.ledger)
        writer.added["ledger_identity"] += 1
    before = _servers(connection)
    writer.add(_merged(findings))
    wrong_sums(connection)
    marks = {host["name"]: host.get("marks") or {} for host in params["hosts"]}
    adopted = adopt_marks(connection, findings.ledger or ledger_id(connection), marks)
    for table, highest in _highest(params["hosts"]).items():
        raise_number(connection, table, highest)
    servers = [server for server in _servers(connection) if server not in before]
    lost = [
        *LOST,
        *_withheld(findings),
        *_on_the_controller(connection),
        *(f"what is on hosts of {server}: no record of it" for server in findings.unrecorded),
        *(f"the adopted {server}: its domain is gone, or carries no mark" for server in findings.unmarked),
        *findings.unreadable,
        *writer.dropped,
        *_volumes(connection, params["hosts"]),
    ]
    result: JsonObject = {
        "changed": bool(writer.added or adopted),
        "ledger": findings.ledger,
        "added": dict(sorted(writer.added.items())),
        "servers": servers,
        "lost": lost,
    }
    return with_diff(result, {"servers": before}, {"servers": [*before, *servers]})


def _merged(findings: SlicesOnHosts) -> dict[str, list[Row]]:
    """The rows of all slices by table; of a row that several have, the newest one. An instance's own counts more."""
    rows: dict[str, dict[str, Row]] = collections.defaultdict(dict)
    own = ("volume", "volume_attachment", "vif", "fixed_ip")
    firm: set[tuple[str, str]] = set()
    for part in findings.slices:
        for name, of_table in _with_subnet_ids(part.tables).items():
            for row in of_table:
                key = _key(name, row)
                if part.uuid is None and (name, key) in firm:
                    continue
                rows[name][key] = row
                if part.uuid is not None and name in own:
                    firm.add((name, key))
    return {name: list(of_table.values()) for name, of_table in rows.items()}


def _with_subnet_ids(tables_: t.Mapping[str, list[Row]]) -> t.Mapping[str, list[Row]]:
    """The rows of a slice; subnets, and interfaces of routers, of before subnets had ids have those that they were
    known by."""
    uuids_of = {row["id"]: str(row["uuid"]) for row in tables_.get("network", ())}
    named = {"subnet": "id", "router_interface": "subnet_id"}
    return {
        name: [
            {named[name]: derived_id(uuids_of[row["network_id"]], row["version"]), **row}
            if name in named and row["network_id"] in uuids_of
            else row
            for row in rows
        ]
        for name, rows in tables_.items()
    }


def _key(name: str, row: Row) -> str:
    table = tables.metadata.tables.get(name)
    columns = (
        [column.name for column in table.primary_key.columns] if table is not None else ["network_id", "floating_pool"]
    )
    return repr([row.get(column) for column in columns])


class _Writer:
    """Writes rows that are not there yet, in an order in which they can be."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection
        self._ids: dict[tuple[str, Json], Json] = {}  # (table, id in a slice) -> id of the same thing here
        self.added: collections.Counter[str] = collections.Counter()
        self.dropped: list[str] = []

    def add(self, rows: t.Mapping[str, list[Row]]) -> None:
        there = {
            table.name: set(self._connection.execute(sa.select(*table.primary_key.columns)).scalars())
            for table in (tables.network, tables.floating_pool)
        }
        for table in tables.metadata.sorted_tables:
            if table.name == "floating_ip":
                known = {row["address"] for row in rows.get(table.name, ())}
                addresses = _pool_addresses(rows, "floating_pool", there["floating_pool"])
                new = [(name, ip) for name, ip, _role in addresses if ip not in known]
                self._insert(table, [{"id": str(uuids.uuid4()), "pool": name, "address": ip} for name, ip in new])
            if table.name == "fixed_ip":
                pooled = _pool_addresses(rows, "network_id", there["network"])
                pooled += self._of_new_subnets(rows, there["network"])
                self._insert(table, [{"network_id": key, "ip": ip, "reserved": role} for key, ip, role in pooled])
                self.added += collections.Counter(fixed_ip=len(pooled))
                self._take_addresses(rows.get(table.name, ()))
            elif table.name in rows:
                self._add_to(table, rows[table.name])

    def _of_new_subnets(self, rows: t.Mapping[str, list[Row]], there: set[Json]) -> list[tuple[Json, int, Json]]:
        """(network, address, role) of further subnets that come to networks which are `there` without them."""
        fixed = tables.fixed_ip.c
        ranges: list[tuple[Json, netaddr.IPNetwork]] = []
        for row in rows.get("subnet", ()):
            if row.get("cidr") is None or row["network_id"] not in there:
                continue
            around = netaddr.IPNetwork(row["cidr"])
            mine = sa.and_(fixed.network_id == row["network_id"], fixed.ip.between(around.first, around.last))
            if self._connection.execute(sa.select(fixed.ip).where(mine).limit(1)).first() is None:
                ranges.append((row["network_id"], around))
        pooled = _pool_addresses(rows, "network_id", set()) if ranges else []
        return [
            (key, ip, role)
            for key, ip, role in pooled
            if any(key == number and around.first <= ip <= around.last for number, around in ranges)
        ]

    def _add_to(self, table: sa.Table, rows: t.Sequence[Row]) -> None:
        keys = [column.name for column in table.primary_key.columns]
        unique = _unique(table)
        present = [dict(row) for row in self._connection.execute(sa.select(table)).mappings()]
        by_key = {tuple(row[key] for key in keys) for row in present}
        by_value = {
            (columns, *(row[column] for column in columns)): row
            for columns in unique
            for row in present
            if all(row[column] is not None for column in columns)
        }
        new = []
        for original in sorted(rows, key=lambda row: [str(row.get(key)) for key in keys]):
            row = self._here(table, original)
            if row is None or tuple(row[key] for key in keys) in by_key:
                continue
            same = next(
                (
                    by_value[key]
                    for columns in unique
                    if (key := (columns, *(row.get(column) for column in columns))) in by_value
                ),
                None,
            )
            if same is not None:
                self._same(table, keys, row, same)
                continue
            new.append(row)
        for row in new:  # one by one: all rows of an INSERT are to have the same columns
            self._insert(table, [row])
        if new:
            self.added[table.name] += len(new)

    def _same(self, table: sa.Table, keys: list[str], row: Row, same: Row) -> None:
        """Take what is here for what the slice tells of, or refuse to."""
        if table.name in FIRM:
            raise ConflictError(
                f"the ledger here has a {table.name} {same.get('name')!r} of its own, and the hosts know another one "
                "of that name: move this ledger away (or drop its database), and make the lost one in an empty one"
            )
        if len(keys) == 1:
            self._ids[table.name, row[keys[0]]] = same[keys[0]]

    def _here(self, table: sa.Table, original: Row) -> Row | None:
        """The row with the columns and ids that this ledger has; None when what it belongs to is not there."""
        row = {name: value for name, value in original.items() if name in table.columns}
        for key in table.foreign_keys:
            name, target = key.parent.name, key.column.table
            if row.get(name) is None:
                continue
            row[name] = self._ids.get((target.name, row[name]), row[name])
            query = sa.select(sa.literal(1)).where(key.column == row[name]).limit(1)
            if self._connection.execute(query).first() is not None:
                continue
            if not key.parent.nullable:
                self.dropped.append(f"a {table.name}, whose {target.name} {row[name]} no host knows")
                return None
            row[name] = None
        return row

    def _insert(self, table: sa.Table, rows: list[Row]) -> None:
        if rows:
            self._connection.execute(sa.insert(table), rows)

    def _take_addresses(self, rows: t.Iterable[Row]) -> None:
        """Give addresses to those that have them. Raises ConflictError for one that this ledger gave to another."""
        fixed = tables.fixed_ip
        for row in rows:
            mine = sa.and_(fixed.c.network_id == row["network_id"], fixed.c.ip == row["ip"])
            holder = self._connection.execute(sa.select(fixed.c.owner).where(mine)).scalar()
            if holder == row["owner"]:
                continue
            took = self._connection.execute(
                sa.update(fixed)
                .where(mine, fixed.c.owner.is_(None))
                .values(reserved=None, **{name: row.get(name) for name in _OWNED})
            ).rowcount
            if not took:
                raise ConflictError(
                    f"the address {to_text(row['ip'])} is {holder or 'nobody'}'s here and {row['owner']}'s on the "
                    "hosts: end the one that came later, or make the lost ledger again in an empty one"
                )
            self.added["addresses"] += 1


def _pool_addresses(rows: t.Mapping[str, list[Row]], key: str, there: set[Json]) -> list[tuple[Json, int, Json]]:
    """(network or pool, address, role) of the networks or pools that were not here; `key` is the column with them."""
    return [
        (pool[key], ip, role)
        for pool in rows.get(POOL, ())
        if pool.get(key) is not None and pool[key] not in there
        for first, last, role in pool["ranges"]
        for ip in range(first, last + 1)
    ]


def _unique(table: sa.Table) -> list[tuple[str, ...]]:
    """The sets of columns that no two rows have the same values in, without the key."""
    column_sets = [
        tuple(column.name for column in constraint.columns)
        for constraint in table.constraints
        if isinstance(constraint, sa.UniqueConstraint)
    ]
    column_sets += [(column.name,) for column in table.columns if column.unique]
    column_sets += [tuple(column.name for column in index.columns) for index in table.indexes if index.unique]
    return sorted(set(column_sets))


def _highest(hosts: t.Sequence[Kept]) -> dict[str, int]:
    """The highest ids that hosts know, so that none is given to another: also those of what is left over there."""
    numbers = [0]
    for host in hosts:
        look = host["found"]
        numbers += [chain["id"] for chain in look["chains"]]
        numbers += [int(name[-8:], 16) for name in look["filters"]]
        names = [domain["name"] for domain in look["domains"]]
        # what others call their domains, adopted ones too, is no number of ours
        numbers += [int(name[-8:], 16) for name in names if _OUR_DOMAIN.fullmatch(name)]
    return {"instance": max(numbers), "security_group": 0, "network": 0}


def _servers(connection: sa.Connection) -> list[str]:
    i, p = tables.instance, tables.project
    query = sa.select(i.c.name, i.c.host, i.c.vm_state, p.c.name.label("project")).join(p, p.c.id == i.c.project_id)
    rows = connection.execute(query.where(i.c.deleted == 0).order_by(i.c.id))
    return [f"{row.name} of {row.project} on {row.host or 'no host'}: {row.vm_state}" for row in rows]


def _on_the_controller(connection: sa.Connection) -> list[str]:
    """List the files of shelved instances' disks: no host has these."""
    i = tables.instance.c
    shelved = sa.select(i.name, i.disk_image).where(i.vm_state == OFFLOADED, i.host.is_(None), i.deleted == 0)
    return [
        f"the disk of {row.name}, which is shelved: {row.disk_image['source']} on the controller; without that file it "
        "can only be deleted"
        for row in connection.execute(shelved.order_by(i.id))
        if row.disk_image is not None
    ]


def _withheld(findings: SlicesOnHosts) -> list[str]:
    """List the instances' data that no host keeps."""
    words = {"user_data": "user data", "files": "injected files", "password_hash": "a password"}
    names = collections.defaultdict(list)
    for part in findings.slices:
        for what in part.withheld:
            names[what].append(_name(part))
    return [
        f"{words.get(what, what)} of {', '.join(sorted(names[what]))}: the guests have it, the ledger not any more"
        for what in sorted(names)
    ]


def _name(part: Slice) -> str:
    return str(part.tables["instance"][0]["name"]) if part.uuid else part.host


def _volumes(connection: sa.Connection, hosts: t.Sequence[Kept]) -> list[str]:
    """Volumes that lie on hosts and that nothing tells of."""
    known = set(connection.execute(sa.select(tables.tables_volumes.volume.c.id)).scalars())
    return [
        f"the volume {volume} on {host['name']}: whose it is"
        for host in hosts
        for volume in host["found"]["volumes"]
        if volume not in known
    ]
