# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Aggregates: named sets of compute hosts, with metadata for filters and weighers; some are zones.

A host is in the aggregates that name it here, and in those that its inventory names (option `aggregates` of
compute_host). Its availability zone is that of an aggregate that has one, else the one that its inventory says.
"""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._errors import ConflictError, NovaliteError
from ..._json import JsonMapping, JsonObject
from ..._rules.records import Changes, check_text, checked_names, scalar_text
from ..db import clock, tables
from ..db.engine import inserted_id
from ..db.tables import aggregate
from ..queries.lookups import check_compute_hosts, lock_rows
from ..queries.placement.host_states import memberships

DEFAULT_ZONE = "nova"  # Nova's: what a host is in that nobody put into any
METADATA_LENGTH = 255  # Nova's, for keys and values


Record = JsonObject  # {"zone", "metadata", "hosts"}


def write_aggregates(connection: sa.Connection, items: t.Sequence[JsonMapping]) -> JsonObject:
    """Make or change these aggregates: `aggregates`, `changed` and `diff`, as modules return them.

    What is left out stays as it is; what is given replaces what was. Raises NotFoundError for a host that never
    reported, ConflictError for a host that would be in two availability zones.
    """
    names = checked_names("aggregate", items)
    lock_rows(connection, tables.aggregate.c.name.in_(names), by=tables.aggregate.c.id)
    ids, there = _aggregates(connection, names)
    changes = Changes()
    for item, name in zip(items, names):
        before = there.get(name)
        after = {**(before or {"zone": None, "metadata": {}, "hosts": []}), **_requested_attributes(item, name)}
        if changes.note(name, before, after):
            _write(connection, ids.get(name), name, after)
    _concern(connection, changes)
    ids, now = _aggregates(connection, names)
    return changes.result("aggregates", [{"id": ids[name], "name": name, **now[name]} for name in names])


def remove_aggregates(connection: sa.Connection, items: t.Sequence[JsonMapping]) -> JsonObject:
    """Remove the aggregates that `items` name. Their hosts stay, in the zone that is left to them."""
    names = checked_names("aggregate", items)
    _ids, there = _aggregates(connection, names)
    changes = Changes()
    for name in names:
        changes.note(name, there.get(name), None)
    connection.execute(sa.delete(tables.aggregate).where(tables.aggregate.c.name.in_(names)))
    _concern(connection, changes)
    return changes.result("aggregates", [])


def _concern(connection: sa.Connection, changes: Changes) -> None:
    """Check the hosts that these changes of aggregates concern, and have choices of hosts made again."""
    concerned = {
        host for side in (changes.before, changes.after) for record in side.values() for host in record["hosts"]
    }
    check_compute_hosts(connection, {host for record in changes.after.values() for host in record["hosts"]})
    hosts = tables.compute_host
    # those of their inventories, too
    naming = sa.select(hosts.c.name, hosts.c.aggregates).where(sa.cast(hosts.c.aggregates, sa.Text) != "[]")
    names = changes.before.keys() | changes.after.keys()
    concerned |= {row.name for row in connection.execute(naming) if not names.isdisjoint(row.aggregates)}
    of_these = hosts.c.name.in_(sorted(concerned))
    # held before their zones are looked at: of two runs that put a host into two, the second sees what the first wrote;
    # in the order of the ids, as by every writer of these rows
    lock_rows(connection, of_these, by=hosts.c.id)
    check_zones(connection, concerned)
    # a choice that another run made on the old values must be made again
    connection.execute(sa.update(hosts).where(of_these).values(generation=hosts.c.generation + 1))


def check_zones(connection: sa.Connection, hosts: t.Collection[str]) -> None:
    """Raise ConflictError if one of these hosts is in two availability zones now."""
    if not hosts:
        return
    table = tables.compute_host
    query = sa.select(table.c.name, table.c.zone, table.c.aggregates).where(table.c.name.in_(sorted(hosts)))
    rows = connection.execute(query).all()
    of_hosts = memberships(connection, {row.name: row.aggregates for row in rows})
    for row in rows:
        zones = {record.zone: f"aggregate '{record.name}'" for record in of_hosts[row.name] if record.zone}
        if row.zone != DEFAULT_ZONE:  # the default is what everybody says who says nothing
            zones.setdefault(row.zone, "its own zone in the inventory")
        if len(zones) > 1:
            (first, by_first), (second, by_second) = sorted(zones.items())[:2]
            raise ConflictError(
                f"compute host '{row.name}' would be in two availability zones, '{first}' ({by_first}) and "
                f"'{second}' ({by_second}): leave it in one of them"
            )


def _aggregates(connection: sa.Connection, names: t.Sequence[str]) -> tuple[dict[str, int], dict[str, Record]]:
    table, hosts = tables.aggregate, tables.aggregate_host
    ids: dict[str, int] = {}
    record_by_name: dict[str, Record] = {}
    for row in connection.execute(sa.select(table).where(table.c.name.in_(names))):
        ids[row.name] = row.id
        record_by_name[row.name] = {"zone": row.zone, "metadata": row.metadata, "hosts": []}
    query = (
        sa.select(table.c.name, hosts.c.host)
        .join(hosts, hosts.c.aggregate_id == table.c.id)
        .where(table.c.name.in_(names))
        .order_by(hosts.c.host)
    )
    for name, host in connection.execute(query):
        record_by_name[name]["hosts"].append(host)
    return ids, record_by_name


def _write(connection: sa.Connection, number: int | None, name: str, values: Record) -> None:
    table, hosts = tables.aggregate, tables.aggregate_host
    own = {"zone": values["zone"], "metadata": values["metadata"]}
    now = clock.seconds(connection)
    if number is None:
        number = inserted_id(connection.execute(sa.insert(table).values(name=name, created_at=now, **own)))
    else:
        connection.execute(sa.update(table).where(table.c.id == number).values(updated_at=now, **own))
    connection.execute(sa.delete(hosts).where(hosts.c.aggregate_id == number))
    if values["hosts"]:
        connection.execute(sa.insert(hosts), [{"aggregate_id": number, "host": host} for host in values["hosts"]])


def _requested_attributes(item: JsonMapping, name: str) -> Record:
    attributes: Record = {}
    if item["zone"] is not None:
        if ":" in item["zone"]:
            raise NovaliteError(f"aggregate {name!r}: zone {item['zone']!r} holds a colon, which parts zone and host")
        attributes["zone"] = check_text(f"aggregate {name!r}: zone", item["zone"]) or None
    if item["metadata"] is not None:
        attributes["metadata"] = {
            check_text(f"aggregate {name!r}: metadata key", str(key)): scalar_text(
                f"aggregate {name!r}: metadata {key}", value, METADATA_LENGTH
            )
            for key, value in item["metadata"].items()
        }
    if item["hosts"] is not None:
        attributes["hosts"] = sorted(set(item["hosts"]))
    return attributes


def rename_aggregate(connection: sa.Connection, number: int, name: str) -> None:
    """Give the aggregate with this number another name: inventories may name the former one, or this. Raises
    ConflictError for a host that would be in two availability zones."""
    former = connection.execute(sa.select(aggregate.c.name).where(aggregate.c.id == number)).scalar_one()
    _ids, there = _aggregates(connection, [former])
    changed = {"name": name, "updated_at": clock.seconds(connection)}
    connection.execute(sa.update(aggregate).where(aggregate.c.id == number).values(**changed))
    _concern(connection, Changes({former: there[former]}, {name: there[former]}))
