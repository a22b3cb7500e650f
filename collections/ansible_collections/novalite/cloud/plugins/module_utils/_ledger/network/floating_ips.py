# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A project's floating IPs, and which of its servers each leads to.

The ledger only. What the hypervisors translate is the module `router`'s; `hosts` in the result says where.
"""

from __future__ import annotations

import dataclasses
import typing as t

import sqlalchemy as sa

from ..._addressing.pools import to_int, to_text
from ..._errors import ConflictError, NotFoundError, NovaliteError, PortLedToError, UnreachableError
from ..._json import JsonMapping, JsonObject
from ..._rules.records import Changes
from ..db import clock
from ..db.tables import fixed_ip, floating_pool, instance, network, vif
from ..db.tables import floating_ip as table
from ..db.tables_addresses import HELD, HELD_ALL, LED_TO
from ..identity.quotas import check_quota
from ..queries.compute import state_rules
from ..queries.compute.instance_rows import instance_rows
from ..queries.lookups import project_by_name, unknown, unknown_server
from . import routers
from .router_gateways import FREE

QUARANTINE = 600  # seconds, as for fixed IPs; the address that was free for longest goes out first in any case

Item = JsonMapping


@dataclasses.dataclass
class _Work:
    """Work of one call: what it works on, and what it did."""

    connection: sa.Connection
    project: JsonMapping
    now: int
    used: set[int] = dataclasses.field(default_factory=set)  # what an item names, or was given
    changes: Changes = dataclasses.field(default_factory=Changes)
    hosts: set[str] = dataclasses.field(default_factory=set)
    warnings: list[str] = dataclasses.field(default_factory=list)


def write_floating_ips(connection: sa.Connection, project: str, items: t.Sequence[Item]) -> JsonObject:
    """Allocate, associate or disassociate floating IPs of the project of this name: see the module's documentation.

    Returns `floating_ips`, and as `hosts` the names of the compute hosts where an association came or went. Raises
    NotFoundError for names that do not exist, ConflictError for what others have, QuotaError,
    UnreachableError, PortLedToError.
    """
    work = _begin(connection, project, items)
    numbers = [_present(work, item) for item in items]
    if work.changes.after:
        mine = sa.select(sa.func.count()).select_from(table).where(table.c.project_id == work.project["id"])
        check_quota(connection, work.project["id"], "floating_ips", connection.execute(mine).scalar_one())
    rows = {row.address: _shown(row) for row in _rows(connection, table.c.address.in_(numbers))}
    return _result(work, [rows[number] for number in numbers])


def release_floating_ips(connection: sa.Connection, project: str, items: t.Sequence[Item]) -> JsonObject:
    """Give back floating IPs of the project of this name; returns and raises as write_floating_ips()."""
    work = _begin(connection, project, items, absent=True)
    for item in items:
        _absent(work, item)
    return _result(work, [])


def _begin(connection: sa.Connection, project: str, items: t.Sequence[Item], absent: bool = False) -> _Work:
    work = _Work(connection, project_by_name(connection, project, lock=True), clock.seconds(connection))
    for item in items:
        _check(item, absent)
    for item in items:
        if item["address"] is not None:
            number = to_int(item["address"])
            if number in work.used:
                raise NovaliteError(f"floating IP {item['address']} is listed twice: list each once")
            work.used.add(number)
    return work


def _result(work: _Work, shown: list[JsonObject]) -> JsonObject:
    result = work.changes.result("floating_ips", shown)
    result["hosts"] = sorted(work.hosts)
    result["holders"] = list(dict.fromkeys(record["host"] for record in result["floating_ips"] if record["host"]))
    if work.warnings:
        result["warnings"] = work.warnings
    return result


def _check(item: Item, absent: bool) -> None:
    address, server = item["address"], item["server"]
    if address is None and not server and (absent or server is not None):
        doing = "release, or the server that it leads to" if absent else "disassociate"
        raise NovaliteError(f"floating_ips: give the address to {doing}")
    if item["fixed_ip"] is not None:
        if not server:
            raise NovaliteError(f"floating_ips: fixed_ip {item['fixed_ip']} needs the server whose address it is")
        to_int(item["fixed_ip"])


def is_chosen(connection: sa.Connection, project_id: str, address: str) -> bool:
    """Tell whether the project would choose `address`: it neither has it nor had it last. Who may do that gets what
    others' names and allow lists still lead to (Neutron keeps it for administrators; Amazon gives back one's own)."""
    query = sa.select(table.c.project_id, table.c.last_project_id).where(table.c.address == to_int(address))
    row = connection.execute(query).first()
    return row is not None and project_id not in (row.project_id, row.last_project_id)


def lead_to_port(connection: sa.Connection, project_id: str, number: str, vif_id: str, vif_ip: str | None) -> None:
    """Let the project's floating IP (its UUID) lead to an address of a port that no server has yet. No host learns.

    Raises NovaliteError for a port without an IPv4 address, or on a network that no hypervisor routes for,
    UnreachableError, PortLedToError.
    """
    on = sa.select(network.c.uuid, network.c.gateway).join(vif, vif.c.network_id == network.c.id)
    row = connection.execute(on.where(vif.c.id == vif_id)).one()
    if vif_ip is None or row.gateway is not None:
        raise NovaliteError(f"no floating IP can lead to port {vif_id}: no hypervisor routes for its address")
    (before,) = _rows(connection, table.c.id == number)
    if not routers.reaches(connection, row.uuid, to_int(vif_ip), before.pool):
        raise UnreachableError(before.pool_uuid, row.uuid, vif_id)
    _refuse_second(connection, before, vif_id, to_int(vif_ip))
    further = sa.select(fixed_ip.c.ip).where(fixed_ip.c.further_of == vif_id, fixed_ip.c.ip == to_int(vif_ip))
    leads_to = {"vif_id": vif_id, "further_ip": connection.execute(further).scalar()}
    _update(connection, project_id, table.c.id == number, leads_to)


def describe(connection: sa.Connection, project_id: str, number: str, text: str) -> None:
    """Keep what the project says of its floating IP (a UUID)."""
    _update(connection, project_id, table.c.id == number, {"description": text})


# --- present --------------------------------------------------------------------------------------------------------


def _present(work: _Work, item: Item) -> int:
    """Allocate and associate as `item` says; returns the address."""
    nics = _nics(work, item) if item["server"] else []
    pool = None if item["pool"] is None else _pool(work, item["pool"])
    if item["address"] is not None:
        number = to_int(item["address"])
        _take(work, number, pool)
    elif item.get("new"):  # the API's: who asks it for an address gets one more
        number = _new(work, _pool(work, None) if pool is None else pool)
    else:
        number = _some(work, pool, nics)
    work.used.add(number)
    if item["server"] is not None:
        _associate(work, number, nics)
    return number


def _take(work: _Work, number: int, pool: str | None) -> None:
    """Allocate one certain address to the project, or see that it has it. The write decides."""
    before = _row(work, number)
    if before is None or (pool is not None and before.pool != pool):
        where = "any floating pool" if pool is None else f"the floating pool {pool!r}"
        raise NotFoundError(f"floating IP {to_text(number)} is outside of {where}: choose another, or none")
    if before.project_id == work.project["id"]:
        return
    done = work.connection.execute(
        sa.update(table).where(table.c.address == number, FREE).values(project_id=work.project["id"])
    )
    if done.rowcount != 1:
        raise ConflictError(f"floating IP {to_text(number)} belongs to another project: take another")
    _note(work, None, number)
    _warn_of_quarantine(work, number, before.released_at)


def _some(work: _Work, pool: str | None, nics: t.Sequence[t.Any]) -> int:
    """An address of the project that leads to one of these interfaces, or to none; or else a new one."""
    query = (
        sa.select(table.c.address)
        .where(
            table.c.project_id == work.project["id"],
            sa.or_(table.c.vif_id.is_(None), table.c.vif_id.in_([nic.vif_id for nic in nics])),
            table.c.address.not_in(sorted(work.used)),
            sa.true() if pool is None else table.c.pool == pool,
        )
        # one that is associated already goes before one that is not
        .order_by(table.c.vif_id.is_(None), table.c.address)
        .limit(1)
    )
    address = work.connection.execute(query).scalar()
    return _new(work, _pool(work, None) if pool is None else pool) if address is None else int(address)


def _new(work: _Work, pool: str) -> int:
    """Allocate the address of `pool` that was free for longest."""
    # PostgreSQL passes over what others are about to take, and waits for it when there is nothing else
    for skip_locked in (True, False):
        oldest = (
            sa.select(table.c.address)
            .where(table.c.pool == pool, FREE, table.c.address.not_in(sorted(work.used)))
            .order_by(table.c.released_at, table.c.address)
            .limit(1)
            .with_for_update(skip_locked=skip_locked)
        )
        row = work.connection.execute(
            sa.update(table)
            .where(table.c.address == oldest.scalar_subquery(), FREE)
            .values(project_id=work.project["id"])
            .returning(table.c.address, table.c.released_at)
        ).first()
        if row is not None:
            _note(work, None, row.address)
            _warn_of_quarantine(work, row.address, row.released_at)
            return int(row.address)
    raise NovaliteError(f"floating pool {pool!r} has no free address left: release some, or make it larger")


def _associate(work: _Work, number: int, nics: t.Sequence[t.Any]) -> None:
    """Let the address lead to the first of these that it reaches, unless it leads to one; or, with none, nowhere."""
    before = _row(work, number)
    if (before.vif_id, before.fixed_ip) in ([(nic.vif_id, nic.ip) for nic in nics] or [(None, None)]):
        return
    leads_to: JsonObject = {"vif_id": None, "further_ip": None}
    if nics:
        reached = (nic for nic in nics if routers.reaches(work.connection, nic.network_uuid, nic.ip, before.pool))
        nic = next(reached, None)
        if nic is None:
            raise UnreachableError(before.pool_uuid, nics[0].network_uuid, nics[0].vif_id)
        _refuse_second(work.connection, before, nic.vif_id, nic.ip)
        leads_to = {"vif_id": nic.vif_id, "further_ip": nic.ip if nic.further_of is not None else None}
    _update(work.connection, work.project["id"], table.c.address == number, leads_to)
    work.hosts |= {row.host for row in (before, *nics[:1]) if row.host}
    _note(work, before, number)


def _refuse_second(connection: sa.Connection, before: t.Any, vif_id: str, ip: int | None) -> None:
    """Raise PortLedToError for an address of the interface that has another floating IP of the pool."""
    others = _rows(connection, table.c.vif_id == vif_id, table.c.pool == before.pool, table.c.address != before.address)
    if ip is not None and any(other.fixed_ip == ip for other in others):
        raise PortLedToError(
            f"Cannot associate floating IP {to_text(before.address)} ({before.id}) with port {vif_id} using fixed IP "
            f"{to_text(ip)}, as that fixed IP already has a floating IP on that external network."
        )


def _nics(work: _Work, item: Item) -> list[t.Any]:
    """The interfaces that an item's server and fixed_ip allow, in order; at least one."""
    name = item["server"]
    mine = sa.and_(instance.c.project_id == work.project["id"], instance.c.deleted == 0)
    rows = work.connection.execute(
        sa.select(
            vif.c.id.label("vif_id"),
            instance.c.uuid,
            instance.c.host,
            fixed_ip.c.ip,
            fixed_ip.c.further_of,
            network.c.name.label("network"),
            network.c.uuid.label("network_uuid"),
            network.c.gateway,
        )
        .select_from(
            instance.outerjoin(vif, vif.c.instance_uuid == instance.c.uuid)
            .outerjoin(network, network.c.id == vif.c.network_id)
            .outerjoin(fixed_ip, HELD_ALL)
        )
        .where(mine, instance.c.name == name)
        .order_by(vif.c.position, fixed_ip.c.further_of.is_not(None), fixed_ip.c.ip)
    ).all()
    if not rows:
        raise unknown_server(work.connection, work.project["id"], name)
    servers = instance_rows(work.connection, instance.c.uuid == rows[0].uuid)
    state_rules.check(work.connection, state_rules.RULES["give a floating IP to"], servers)
    nics = [row for row in rows if row.vif_id is not None]
    if item["fixed_ip"] is not None:
        fixed_address = to_int(item["fixed_ip"])
        nics = [row for row in nics if row.ip == fixed_address]
        if not nics:
            raise NotFoundError(
                f"server {name!r} has no fixed IP {item['fixed_ip']}: it has "
                + (", ".join(to_text(row.ip) for row in rows if row.ip is not None) or "none yet")
            )
    # the answers must come back through the hypervisor that translates
    routed = [row for row in nics if row.gateway is None]
    if not nics or not routed:
        reason = f"the gateway of the network {nics[0].network!r} is {nics[0].gateway}" if nics else "it has no network"
        raise NovaliteError(f"no floating IP can lead to the server {name!r}: {reason}, so that no hypervisor routes")
    return routed


def _pool(work: _Work, name: str | None) -> str:
    """The pool of this name; None: the only one."""
    names = list(work.connection.execute(sa.select(floating_pool.c.name).order_by(floating_pool.c.name)).scalars())
    if name is not None and name not in names:
        raise unknown("floating pool", name, names)
    if not names:
        raise NotFoundError("there is no floating pool yet: make one with novalite.cloud.floating_pool")
    if name is None and len(names) > 1:
        raise NovaliteError(f"there are {len(names)} floating pools ({', '.join(names[:5])}): name one in pool")
    return name or names[0]


def _warn_of_quarantine(work: _Work, number: int, released_at: int) -> None:
    if released_at > work.now - QUARANTINE:
        work.warnings.append(f"floating IP {to_text(number)} was released {work.now - released_at} s ago")


# --- absent ---------------------------------------------------------------------------------------------------------


def _absent(work: _Work, item: Item) -> None:
    pool = None if item["pool"] is None else _pool(work, item["pool"])
    if item["address"] is not None:
        rows = [row for row in [_row(work, to_int(item["address"]))] if row is not None and row.project_id is not None]
        if any(row.project_id != work.project["id"] for row in rows):
            raise ConflictError(f"floating IP {item['address']} belongs to another project: it stays")
    else:
        rows = list(_rows(work.connection, table.c.project_id == work.project["id"], instance.c.name == item["server"]))
    for row in rows:
        if pool not in (None, row.pool) or item["server"] not in (None, row.server):
            continue
        if item["fixed_ip"] is not None and row.fixed_ip != to_int(item["fixed_ip"]):
            continue
        free = {"project_id": None, "vif_id": None, "further_ip": None, "released_at": work.now, "description": ""}
        free["last_project_id"] = work.project["id"]
        _update(work.connection, work.project["id"], table.c.address == row.address, free)
        work.hosts |= {row.host} if row.host else set()
        work.changes.note(to_text(row.address), _summary(row), None)


# --- Rows -----------------------------------------------------------------------------------------------------------


def _rows(connection: sa.Connection, *conditions: sa.ColumnElement[bool]) -> t.Iterable[t.Any]:
    return connection.execute(
        sa.select(
            table,
            floating_pool.c.interface,
            floating_pool.c.uuid.label("pool_uuid"),
            instance.c.name.label("server"),
            instance.c.uuid.label("server_id"),
            instance.c.host,
            LED_TO.label("fixed_ip"),
            network.c.name.label("network"),
        )
        .select_from(
            table.join(floating_pool, floating_pool.c.name == table.c.pool)
            .outerjoin(vif, vif.c.id == table.c.vif_id)
            .outerjoin(instance, instance.c.uuid == vif.c.instance_uuid)
            .outerjoin(network, network.c.id == vif.c.network_id)
            .outerjoin(fixed_ip, HELD)
        )
        .where(*conditions)
        .order_by(table.c.address)
    )


def _update(connection: sa.Connection, project_id: str, condition: sa.ColumnElement[bool], values: JsonMapping) -> None:
    """Change the project's floating IP that meets `condition`."""
    connection.execute(sa.update(table).where(condition, table.c.project_id == project_id).values(values))


def _row(work: _Work, number: int) -> t.Any:
    return next(iter(_rows(work.connection, table.c.address == number)), None)


def _note(work: _Work, before: t.Any, number: int) -> None:
    """Take down what became of an address; of several changes in one call, the first `before` counts."""
    name, changes = to_text(number), work.changes
    if before is not None and name not in changes.after:
        changes.before[name] = _summary(before)
    changes.after[name] = _summary(_row(work, number))


def _summary(row: t.Any) -> JsonObject:
    return {
        "pool": row.pool,
        "server": row.server,
        "fixed_ip": None if row.fixed_ip is None else to_text(row.fixed_ip),
        "host": row.host,
    }


def _shown(row: t.Any) -> JsonObject:
    return {
        "id": row.id,
        "address": to_text(row.address),
        "interface": row.interface,
        "server_id": row.server_id,
        "network": row.network,
        **_summary(row),
    }
