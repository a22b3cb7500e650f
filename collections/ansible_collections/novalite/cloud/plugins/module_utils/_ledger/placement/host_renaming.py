# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A compute host gets another name, wherever the ledger has the old one."""

from __future__ import annotations

import re
import typing as t

import sqlalchemy as sa

from ..._errors import ConflictError, NotFoundError, NovaliteError
from ..._host.mark import OTHER_NAME, Identity, Mark, Seen, differs
from ..._json import JsonMapping
from ..._rules.machines import Meeting, refusal
from ..._rules.records import check_text
from ..db.ledger_identity import ledger_id
from ..db.tables import (
    aggregate_host,
    allocation,
    compute_host,
    fixed_ip,
    instance,
    instance_action,
    instance_action_event,
)
from ..db.tables_addresses import host_owner
from ..db.tables_images import replica, server_backup, server_snapshot
from ..db.tables_jobs import job, job_event
from ..db.tables_migrations import UNDER_WAY, departure, host_watch, migration, rolling_host, watch_event
from ..db.tables_networking import MOST_RANGES, port
from ..db.tables_volumes import volume, volume_backup, volume_type
from .machines import same_machine

# Columns that hold a host's name and nothing else
NAMES: tuple[sa.Column[t.Any], ...] = (
    compute_host.c.name,
    aggregate_host.c.host,
    instance.c.host,
    instance_action_event.c.host,
    migration.c.source_host,
    migration.c.dest_host,
    departure.c.host,
    rolling_host.c.host,
    host_watch.c.host,
    watch_event.c.host,
    volume.c.host,
    volume_backup.c.host,
    server_snapshot.c.host,
    server_backup.c.host,
    replica.c.host,
    replica.c.next_host,
    replica.c.requested_host,
    job_event.c.host,
)
# Those that hold an address's owner (host_owner())
OWNERS: tuple[sa.Column[t.Any], ...] = (fixed_ip.c.owner, fixed_ip.c.last_owner)
# Those that hold it among other things
WITHIN: tuple[sa.Column[t.Any], ...] = (
    instance.c.attempts,  # [name]
    instance.c.availability_zone,  # zone:name
    instance_action.c.details,  # {"host": name, "hints": {"host": name}} of one that is to go there
    job.c.variables,  # {"host": name, "limit": "name,other", "holders": [name], "servers": [{"hints": {"host": name}}]}
    port.c.binding,  # {"host_id": name}
    replica.c.former,  # [name]
    volume_type.c.options,  # {"hosts": [name]}
)
OF_JOBS = ("host", "limit", "network_hosts", "holders")  # variables of jobs that name hosts


def rename(
    connection: sa.Connection, host: str, new_name: str, identity: Identity, marks: t.Mapping[str, JsonMapping]
) -> dict[str, int]:
    """Give the compute host `host` its new name; return how many rows of each table named it, nothing if that was done
    before. `identity` is the machine's that has the new name in the inventory, `marks` are those on it, by ledger.

    Raises NotFoundError, ConflictError for a name that another host has and while something is under way on the host,
    and NovaliteError for a machine that is not the host."""
    if check_text("new_name", new_name) in ("", host):
        raise NovaliteError(f"new_name={new_name!r}: give '{host}' another name than it has")
    c = compute_host.c
    query = sa.select(c.id, c.name, c.identity).where(c.name.in_([host, new_name])).with_for_update()
    rows = {row.name: row for row in connection.execute(query)}
    if not rows:
        raise NotFoundError(f"there is no compute host '{host}': name one that the ledger has")
    if host in rows and new_name in rows:
        raise ConflictError(f"compute host '{host}' cannot be called '{new_name}': there is another host of this name")
    _check_machine(connection, rows.get(host) or rows[new_name], host, new_name, identity, marks)
    if host not in rows:
        return {}
    _check_rest(connection, rows[host])
    # of a host that had the new name once, and is gone
    connection.execute(sa.delete(departure).where(departure.c.host == new_name))
    renamed: dict[str, int] = {}
    for column in NAMES:
        _replace(connection, column, host, new_name, renamed)
    for column in OWNERS:
        for position in range(MOST_RANGES):
            _replace(connection, column, host_owner(host, position), host_owner(new_name, position), renamed)
    _within(connection, host, new_name, renamed)
    connection.execute(sa.update(compute_host).where(c.name == new_name).values(generation=c.generation + 1))
    return renamed


def _check_machine(
    connection: sa.Connection,
    row: t.Any,
    host: str,
    new_name: str,
    identity: Identity,
    marks: t.Mapping[str, JsonMapping],
) -> None:
    mark = marks.get(ledger_id(connection))
    other_name = mark is not None and mark["host"] not in (host, new_name)
    if other_name or differs(identity, row.identity or {}):
        seen = Seen(identity, None if mark is None else Mark(**mark), OTHER_NAME if other_name else None)
        others = same_machine(connection, row.name, identity)
        raise NovaliteError(refusal(Meeting(row.name, seen, True, row.identity, others)))


def _check_rest(connection: sa.Connection, row: t.Any) -> None:
    """Raise ConflictError while something is under way on the host: it would be recorded of the old name."""
    i, m = instance.c, migration.c
    claimed = sa.select(allocation.c.instance_uuid).where(allocation.c.compute_host_id == row.id)
    busy = sa.select(i.name).where(sa.or_(i.host == row.name, i.uuid.in_(claimed)), i.task_state.is_not(None))
    moving = (
        sa.select(i.name)
        .join(migration, m.instance_uuid == i.uuid)
        .where(sa.or_(m.source_host == row.name, m.dest_host == row.name), m.status.in_(UNDER_WAY), i.deleted == 0)
    )
    if names := sorted({*connection.execute(busy).scalars(), *connection.execute(moving).scalars()}):
        raise ConflictError(
            f"compute host '{row.name}' cannot be renamed while something is under way on it ({', '.join(names)}): run "
            "again afterwards, or run reconcile.yml first if a run was cut off"
        )


def _within(connection: sa.Connection, host: str, new_name: str, renamed: dict[str, int]) -> None:
    """Replace the name in columns that have other things beside it."""
    i, a, j, p = instance.c, instance_action.c, job.c, port.c
    replaced: list[tuple[sa.Column[t.Any], t.Any, t.Any]] = []
    for uuid, attempts in connection.execute(sa.select(i.uuid, i.attempts).where(sa.cast(i.attempts, sa.Text) != "[]")):
        if host in attempts:
            replaced.append((i.uuid, uuid, {"attempts": _replaced(attempts, host, new_name)}))
    zones = sa.select(i.uuid, i.availability_zone).where(i.availability_zone.endswith(f":{host}", autoescape=True))
    for uuid, zone in connection.execute(zones):
        replaced.append((i.uuid, uuid, {"availability_zone": _zone(zone, host, new_name)}))
    waiting = sa.and_(i.deleted == 0, sa.or_(i.host.is_(None), a.finished_at.is_(None)))
    actions = sa.select(a.id, a.details).join(instance, i.uuid == a.instance_uuid).where(waiting)
    for number, details in connection.execute(actions):
        if (renamed_details := _pinned(details, host, new_name)) != details:
            replaced.append((a.id, number, {"details": renamed_details}))
    for number, variables in connection.execute(sa.select(j.id, j.variables).where(j.state.in_(("queued", "running")))):
        changed = {key: _replaced(variables[key], host, new_name) for key in OF_JOBS if key in variables}
        if isinstance(variables.get("servers"), list):  # of a launch that has recorded none of them yet
            changed["servers"] = [_pinned(server, host, new_name) for server in variables["servers"]]
        if (renamed_variables := {**variables, **changed}) != variables:
            replaced.append((j.id, number, {"variables": renamed_variables}))
    for vif, binding in connection.execute(sa.select(p.vif_id, p.binding).where(p.binding.is_not(None))):
        if binding.get("host_id") == host:
            replaced.append((p.vif_id, vif, {"binding": {**binding, "host_id": new_name}}))
    for uuid, former in connection.execute(sa.select(replica.c.instance_uuid, replica.c.former)):
        if host in former:
            replaced.append((replica.c.instance_uuid, uuid, {"former": _replaced(former, host, new_name)}))
    for type_id, options in connection.execute(sa.select(volume_type.c.id, volume_type.c.options)):
        if host in (options.get("hosts") or ()):
            hosts = list(dict.fromkeys(_replaced(options["hosts"], host, new_name)))
            replaced.append((volume_type.c.id, type_id, {"options": {**options, "hosts": hosts}}))
    for key, value, values in replaced:
        connection.execute(sa.update(key.table).where(key == value).values(values))
        renamed[key.table.name] = renamed.get(key.table.name, 0) + 1


def _pinned(value: t.Any, host: str, new_name: str) -> t.Any:
    """Return a request for a server, or what is kept of it, with the new name where it asks for that host."""
    if not isinstance(value, dict):
        return value
    pinned = {**value}
    if value.get("host") == host:
        pinned["host"] = new_name
    if isinstance(value.get("hints"), dict):
        pinned["hints"] = _pinned(value["hints"], host, new_name)
    if isinstance(value.get("availability_zone"), str):
        pinned["availability_zone"] = _zone(value["availability_zone"], host, new_name)
    return pinned


def _zone(zone: str, host: str, new_name: str) -> str:
    name, _colon, of_host = zone.partition(":")
    return f"{name}:{new_name}" if of_host == host else zone


def _replaced(value: t.Any, host: str, new_name: str) -> t.Any:
    """Return a list of names, or an Ansible pattern of them, with the new one."""
    if isinstance(value, list):
        return [new_name if name == host else name for name in value]
    if not isinstance(value, str):  # of a job that leaves it open
        return value
    return re.sub(rf"(?<![^,:&!]){re.escape(host)}(?![^,:])", lambda _name: new_name, value)


def _replace(connection: sa.Connection, column: sa.Column[t.Any], old: str, new: str, renamed: dict[str, int]) -> None:
    table = column.table
    count = connection.execute(sa.update(table).where(column == old).values({column: new})).rowcount
    if count:
        renamed[table.name] = renamed.get(table.name, 0) + count
