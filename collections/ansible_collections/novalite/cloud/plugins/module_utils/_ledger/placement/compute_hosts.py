# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compute hosts: what they reported, and what their operator decided about them."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._addressing import places
from ..._domain.usage import COUNTS, usage
from ..._errors import NovaliteError
from ..._host.files import STATE_DIR
from ..._json import JsonMapping, JsonObject
from ..._model import host_numa, pci
from ..._rules.records import Changes, check_text
from ..db.ledger_identity import ledger_id
from ..db.tables import compute_host as table
from ..queries.compute.foreign import known_uuids
from ..queries.lookups import check_compute_hosts
from ..queries.placement.host_states import TOTALS
from .aggregates import check_zones
from .host_removal import check_empty
from .machines import check_machines

# What an operator decides, with Nova's defaults (34.0.0: nova/conf/compute.py). None or left out: as it is.
POLICY: JsonObject = {
    "enabled": True,
    "disabled_reason": None,
    "zone": "nova",
    "aggregates": [],
    "reserved_vcpus": 0,
    "reserved_memory_mb": 512,
    "reserved_disk_gb": 0,
    "cpu_ratio": 4.0,
    "ram_ratio": 1.0,
    "disk_ratio": 1.0,
    "count_foreign": "running",
}
_NOT_FACTS = {
    "name",
    "identity",
    "replaced",
    "refused_host",
    "state_dir",
    "up",
    "down_reason",
    "traits",
    "domains",
    "pci_users",
    *TOTALS,
    *POLICY,
}


def record(connection: sa.Connection, entries: t.Sequence[JsonMapping], now: int) -> tuple[JsonObject, JsonObject]:
    """Insert or update these hosts; return what differed, by name, as it was and as it is. `now` is in seconds.

    Raises NovaliteError for facts that make no sense, ConflictError for a host that would be in two zones,
    HostInUseError for one that says that it keeps its files elsewhere, while there are any; NovaliteError for a machine
    that is not the one that is recorded, or that is another host's.
    """
    for entry in entries:
        _check(entry)
    query = sa.select(table).where(table.c.name.in_({entry["name"] for entry in entries})).order_by(table.c.id)
    # held, and in the order of the ids, as by every writer of these rows: nothing changes between this look and the
    # writes, and no two writers wait for each other
    known = {row.name: row for row in connection.execute(query.with_for_update(key_share=True))}
    reported = {entry["name"]: entry["identity"] for entry in entries if entry.get("identity") is not None}
    replaced = {entry["name"] for entry in entries if entry.get("replaced")}
    machines = check_machines(connection, reported, replaced)
    ours = known_uuids(connection, (domain["uuid"] for entry in entries for domain in entry.get("domains") or ()))
    own_id = ledger_id(connection)
    before: JsonObject = {}
    after: JsonObject = {}
    new, seen_ids = [], []
    for entry in entries:
        name = entry["name"]
        old = known.get(name)
        if old is None and entry.get("refused_host"):
            continue  # another name of a machine that is recorded
        values = _reported(entry, old, own_id, ours) | _decided(entry, old)
        values |= _foreign(entry, old, ours)
        if old is None or name in machines:
            values["identity"] = machines.get(name)
        if old is not None and values.get("state_dir", old.state_dir) != old.state_dir:
            check_empty(connection, old, f"cannot have the state directory {values['state_dir']}")
        if old is None:
            new.append({"name": name, "last_seen_at": now if values["up"] else 0, **values})
            after[name] = values
            continue
        if values["up"]:  # a report that it is down comes from somebody else
            seen_ids.append(old.id)
        changes = {key: value for key, value in values.items() if getattr(old, key) != value}
        if changes.keys() == {"facts"} and _without_asker(old.facts) == _without_asker(changes["facts"]):
            # two controllers, or one by several ways, make no other host of it: nobody has to choose again
            connection.execute(sa.update(table).where(table.c.id == old.id).values(facts=changes["facts"]))
        elif changes:
            before[name] = {key: getattr(old, key) for key in changes}
            after[name] = changes
            # a choice made on the old values must be made again
            written = {**changes, "generation": table.c.generation + 1}
            connection.execute(sa.update(table).where(table.c.id == old.id).values(written))
    if seen_ids:
        connection.execute(sa.update(table).where(table.c.id.in_(seen_ids)).values(last_seen_at=now))
    for row in new:  # one by one: of a host that is down fewer columns are known
        connection.execute(sa.insert(table).values(row))
    check_zones(connection, [name for name, changes in after.items() if {"zone", "aggregates"} & changes.keys()])
    return before, after


def switch_hosts(
    connection: sa.Connection, hosts: t.Iterable[str], enabled: bool, reason: str | None = None
) -> JsonObject:
    """Enable or disable the compute hosts of these names: `compute_hosts`, `changed` and `diff`.

    Holds until it is said otherwise here, or by an inventory that sets `enabled` itself. Raises NotFoundError for a
    host that never reported.
    """
    if enabled and reason is not None:
        raise NovaliteError(f"disabled_reason {reason!r} for hosts that are enabled: leave it out")
    names = sorted(set(hosts))
    check_compute_hosts(connection, names)
    columns = (table.c.name, table.c.enabled, table.c.disabled_reason)
    # in the order of the ids, as every writer of these rows: two of them cannot lock each other out
    query = sa.select(*columns).where(table.c.name.in_(names)).order_by(table.c.id).with_for_update()
    there = {row.name: dict(row._mapping) for row in connection.execute(query)}
    changes = Changes()
    result = []
    for name in names:
        before = {key: there[name][key] for key in ("enabled", "disabled_reason")}
        after = {"enabled": enabled, "disabled_reason": before["disabled_reason"] if not enabled else None}
        if reason is not None:
            after["disabled_reason"] = check_text("disabled_reason", reason) or None
        result.append({"name": name, **after})
        if changes.note(name, before, after):
            # a choice that another run made on the old values must be made again
            connection.execute(
                sa.update(table).where(table.c.name == name).values(generation=table.c.generation + 1, **after)
            )
    return changes.result("compute_hosts", result)


def _reported(entry: JsonMapping, old: t.Any, own_id: str, ours: t.Container[str]) -> JsonObject:
    up = bool(entry.get("up", True))
    # why a task failed may be a long story; the column is not
    values: JsonObject = {"up": up, "down_reason": None if up else (entry.get("down_reason") or "is down")[:255]}
    if up or old is None:
        values.update({key: entry.get(key) or 0 for key in TOTALS})
        # as Nova's inventory of VCPU: those that are given out one by one are not among them
        values["vcpus"] = max(0, values["vcpus"] - host_numa.not_shared(entry))
        values["traits"] = sorted(entry.get("traits") or [])
        values["state_dir"] = entry.get("state_dir") or (STATE_DIR if old is None else old.state_dir)
        values["facts"] = {key: value for key, value in entry.items() if key not in _NOT_FACTS}
        if "places" in entry:
            values["facts"]["places"] = [place.row for place in places.parse(entry["places"])]
        if taken := sorted(at for at, user in (entry.get("pci_users") or {}).items() if user not in ours):
            values["facts"][pci.TAKEN] = taken
        if others := sorted({domain.get("ledger") or own_id for domain in entry.get("domains") or ()} - {own_id}):
            values["facts"]["other_ledger"] = others[0]
    return values


def _without_asker(facts: JsonMapping) -> JsonObject:
    return {**facts, "places": [place for place in places.parse(facts.get("places")) if place.kind != places.CLIENT]}


def _foreign(entry: JsonMapping, old: t.Any, ours: t.Container[str]) -> dict[str, int]:
    """Return the use by others' guests; as it was where the host did not say which guests it has."""
    if not entry.get("up", True) or entry.get("domains") is None:
        return {}
    count = entry.get("count_foreign") or (POLICY["count_foreign"] if old is None else old.count_foreign)
    return usage(entry["domains"], ours, count, entry.get("removed_gb") or 0)._asdict()


def _decided(entry: JsonMapping, old: t.Any) -> JsonObject:
    policy = {key: entry[key] for key in POLICY if entry.get(key) is not None}
    if policy.get("enabled"):
        policy["disabled_reason"] = None
    return policy if old is not None else {**POLICY, **policy}


def _check(entry: JsonMapping) -> None:
    name = entry.get("name")
    if not name:
        raise NovaliteError("facts of a compute host without its name: pass the inventory hostname as `name`")
    host_numa.check(name, entry)
    pci.check(name, entry)
    if entry.get("up", True):
        for key in TOTALS:
            if not isinstance(entry.get(key), int) or entry[key] < 0:
                raise NovaliteError(f"compute host '{name}' reports {key}={entry.get(key)!r}: give a whole number")
    for key in ("reserved_vcpus", "reserved_memory_mb", "reserved_disk_gb"):
        if (entry.get(key) or 0) < 0:
            raise NovaliteError(f"compute host '{name}': {key}={entry[key]} is below zero: give 0 or more")
    if entry.get("count_foreign") not in (None, *COUNTS):
        raise NovaliteError(
            f"compute host '{name}': count_foreign={entry['count_foreign']!r} is none of {', '.join(COUNTS)}"
        )
    for key in ("cpu_ratio", "ram_ratio", "disk_ratio"):
        if entry.get(key) is not None and not entry[key] > 0:
            raise NovaliteError(f"compute host '{name}': {key}={entry[key]} lets nothing in: give more than 0")
