# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A second claim for an instance that moves: chosen as for a new one, held beside the first until the move is over.

An instance that gets another size on its own host keeps its one claim, which grows to what both sizes need: of
processors and memory the larger, since never both run, and of the disk the sum, since both are kept.
"""

from __future__ import annotations

import dataclasses
import typing as t

import sqlalchemy as sa

from ..._json import JsonMapping
from ..._model.instance import Flavor, Instance
from ..._model.numa import Topology
from ..._scheduling.explain import Decision, explanation, lines_of
from ..._scheduling.options import Options
from ..._scheduling.rows import AMOUNTS, HostState, Request, request_of, unpinned
from ..._scheduling.select import select
from ..db import clock
from ..db.tables import allocation, compute_host
from ..queries.placement.groups import groups_of, lock_groups
from ..queries.placement.host_states import SERVICE_DOWN_TIME, host_states
from . import claims, departures


@dataclasses.dataclass(frozen=True)
class Place:
    """An instance's destination (None: nowhere), and the reasons, in lines for a person."""

    host: str | None
    message: str
    lines: tuple[str, ...]


def place(
    connection: sa.Connection,
    server: Instance,
    flavor: Flavor,
    *,
    host: str | None = None,
    same_host: str = "never",
    options: JsonMapping | None = None,
    down_time: int | None = None,
    limit_to: t.Collection[str] | None = None,
    live: bool = False,
    keeps_disks: bool = False,
    dead: bool = False,
) -> Place:
    """Choose a host for the instance in the size `flavor`, and claim it there.

    `host` is the only one that may be chosen; filters and claims hold for it all the same, as in Nova since 2.30.
    `same_host`: whether its own host may be chosen (allowed: when no other can), where it `keeps_disks`, or gets others
    beside them. `limit_to`: the hosts there are (None: all that the ledger knows). `live`: the guest runs meanwhile,
    and keeps the size of its memory's pages. `dead`: its own host is, and of its server group what is there is gone.
    Raises ConflictError when other runs changed the hosts under ten choices
    in a row.
    """
    lock_groups(connection, [server])
    source, now, chosen = server["host"], clock.seconds(connection), Options.of(options)
    down_time = SERVICE_DOWN_TIME if down_time is None else down_time
    here = host == source if host is not None else same_host == "only"
    asks_instances = claims.asks_for_instances([server], chosen)
    asks_own = claims.asks_for_own([server, {**server, "flavor": flavor}])
    if here and asks_own:
        # both sizes are kept until the resize is confirmed, and no CPU or device is in two of them
        message = (
            f"'{server['name']}' has, or is to have, CPUs, NUMA nodes, pages or devices of its own: resize it to "
            "another host"
        )
        return Place(None, message, (message,))

    def choose(lock: bool) -> Place:
        states, versions = host_states(connection, now, limit_to, down_time, lock, asks_instances, asks_own)
        request = request_at(connection, {**server, "flavor": flavor}, without=source if dead else None)
        if live and request.numa is not None:
            request = dataclasses.replace(request, numa=_same_pages(connection, server, request.numa))
        grown = _growth(request, server["flavor"], keeps_disks)
        at_home = [state for state in states if state.name == source]
        if here:
            decision = _select(at_home, grown, chosen)
        else:
            others = [state for state in states if state.name != source and host in (None, state.name)]
            decision = _select(others, request, chosen)
            if decision.host is None and host is None and same_host == "allowed" and not asks_own:
                instead = _select(at_home, grown, chosen)
                decision = decision if instead.host is None else instead
        if decision.host is not None:
            _claim(connection, decision, source, versions, now)
        return Place(decision.host, decision.message, tuple(lines_of(explanation(decision))))

    return claims.choose_and_claim(connection, choose)


def _select(hosts: t.Sequence[HostState], request: Request, options: Options) -> Decision:
    return select(hosts, [request], claims.DEFAULT_CHOICE, options=options)[0]


def request_at(connection: sa.Connection, server: Instance, without: str | None = None) -> Request:
    """Return what the instance asks of a host, as at its launch, but without the host that was asked for then; its
    server group counts it at its destination only, and nobody on the host `without`."""
    group = groups_of(connection, [server]).get(server["uuid"])
    if group is not None:
        group = group.without([server["uuid"]], without)
    return request_of({**unpinned(server), "attempts": []}, group)


def _claim(
    connection: sa.Connection, decision: Decision, source: str | None, versions: dict[str, tuple[int, int]], now: int
) -> None:
    request = decision.request
    claims.take_room(connection, [decision], versions, grows=decision.host == source)
    host_id = versions[decision.host or ""][0]
    amounts = {name: getattr(request, name) for name in AMOUNTS}
    numa = decision.numa and decision.numa.row
    if decision.host == source:
        columns = {name: allocation.c[name] + amount for name, amount in amounts.items()}
        connection.execute(sa.update(allocation).where(*_own(request.uuid, host_id)).values(**columns))
    else:
        row = {"instance_uuid": request.uuid, "compute_host_id": host_id, "created_at": now, "numa": numa, **amounts}
        connection.execute(sa.insert(allocation).values(**row))
        departures.arrive(connection, [request.uuid], decision.host)


def _same_pages(connection: sa.Connection, server: Instance, asked: Topology) -> Topology:
    """Return what is asked for, with the pages that the guest has: one that runs cannot change them."""
    uuid, host = server["uuid"], server["host"] or ""
    held = claims.own_claims(connection, [uuid], [host]).get((uuid, host))
    return asked if held is None else dataclasses.replace(asked, page_size=held.cells[0].page_kib)


def _growth(request: Request, old: Flavor, keeps_disks: bool) -> Request:
    """Return the request reduced to what its own host has to give beside the claim there."""
    return dataclasses.replace(
        request,
        vcpus=max(0, request.vcpus - old["vcpus"]),
        memory_mb=max(0, request.memory_mb - old["memory_mb"]),
        disk_gb=0 if keeps_disks else request.disk_gb,
    )


def change_claim(connection: sa.Connection, uuid: str, host: str, flavor: Flavor) -> None:
    """Make the instance's claim on `host` smaller: what `flavor` takes. One that is smaller already stays."""
    row = connection.execute(
        sa.select(allocation, compute_host.c.id)
        .join(compute_host, compute_host.c.id == allocation.c.compute_host_id)
        .where(allocation.c.instance_uuid == uuid, compute_host.c.name == host)
        .with_for_update()
    ).first()
    if row is None:
        return
    image = {"virtual_size": 0}
    request = request_of({"uuid": uuid, "name": uuid, "flavor": flavor, "image": image})
    # a flavor without a size of its own takes the image's, and no resize leads from or to one: that part stays
    disk_gb = request.disk_gb if flavor["root_gb"] else row.disk_gb
    new = {"vcpus": request.vcpus, "memory_mb": request.memory_mb, "disk_gb": disk_gb}
    freed = {name: max(0, getattr(row, name) - new[name]) for name in AMOUNTS}
    if not any(freed.values()):
        return
    host_id = row.compute_host_id
    connection.execute(
        sa.update(allocation)
        .where(*_own(uuid, host_id))
        .values(**{name: allocation.c[name] - amount for name, amount in freed.items()})
    )
    connection.execute(
        sa.update(compute_host)
        .where(compute_host.c.id == host_id)
        .values(
            **{f"{name}_used": compute_host.c[f"{name}_used"] - amount for name, amount in freed.items()},
            generation=compute_host.c.generation + 1,
        )
    )


def _own(uuid: str, host_id: int) -> tuple[sa.ColumnElement[bool], ...]:
    return allocation.c.instance_uuid == uuid, allocation.c.compute_host_id == host_id
