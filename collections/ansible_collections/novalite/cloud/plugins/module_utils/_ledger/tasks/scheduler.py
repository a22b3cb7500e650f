# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operation `scheduler`: a compute host, and a claim on it, for each instance."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._json import JsonMapping, JsonObject
from ..._model.instance import Instance
from ..._model.rows import StateRow
from ..._rules.build_states import build_of
from ..._scheduling.explain import Decision
from ..._scheduling.options import Options
from ..._scheduling.rows import Request, request_of
from ..._scheduling.select import EXPLAINED_HOSTS, MAX_ATTEMPTS, select
from ..compute import shelving
from ..db import clock
from ..db.tables import allocation, compute_host, instance
from ..instances.actions import one_line
from ..placement.claims import (
    DEFAULT_CHOICE,
    asks_for_instances,
    asks_for_own,
    choose_and_claim,
    release_claims,
    take_room,
)
from ..placement.compute_hosts import record
from ..placement.placements import Outcome, StaleChoiceError, result_of, write_outcome
from ..queries.compute.instance_rows import instance_rows
from ..queries.placement.groups import groups_of, lock_groups, violated
from ..queries.placement.host_states import SERVICE_DOWN_TIME, host_states


def scheduler(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Choose a host and claim it for each instance; one that has a claim keeps it. To find no host is a result
    (`unplaced`), not an error: it has to be recorded. Raises ConflictError when other runs changed the hosts under ten
    choices in a row."""
    instances: list[Instance] = params["instances"]
    now = clock.seconds(connection)
    options = Options.of(params.get("options"))
    lock_groups(connection, instances)
    if params.get("compute_hosts"):
        record(connection, params["compute_hosts"], now)
    outcome = choose_and_claim(connection, lambda lock: _place(connection, instances, params, options, now, lock))
    return result_of(instances, outcome)


def _place(
    connection: sa.Connection,
    instances: t.Sequence[Instance],
    params: JsonMapping,
    options: Options,
    now: int,
    lock: bool,
) -> Outcome:
    """Choose and claim for all. Raises StaleChoiceError when something changed meanwhile: undo and repeat."""
    max_attempts = params.get("max_attempts") or MAX_ATTEMPTS
    outcome = Outcome(hosts=_claims(connection, instances), explain_all=bool(params.get("explain_all")))
    outcome.kept = set(outcome.hosts)
    # in check mode a new one is not in the ledger
    of_these = instance.c.uuid.in_([server["uuid"] for server in instances])
    rows: dict[str, StateRow] = {row.uuid: row for row in instance_rows(connection, of_these)}
    ask = []
    for server in instances:
        uuid, attempts = server["uuid"], server.get("attempts") or []
        if uuid in outcome.kept:
            continue
        if (state := _not_to_be_built(rows.get(uuid))) is not None:
            outcome.unplaced[uuid] = f"'{server['name']}' is {state}: another run changed it meanwhile"
        elif len(attempts) >= max_attempts:
            tried = ", ".join(attempts)
            outcome.unplaced[uuid] = f"'{server['name']}' could not be built in {len(attempts)} attempts (on {tried})"
            outcome.recorded.add(uuid)
        else:
            ask.append(server)

    if ask:
        down_time = params.get("service_down_time")
        hosts, versions = host_states(
            connection,
            now,
            params.get("limit_to"),
            SERVICE_DOWN_TIME if down_time is None else down_time,
            lock,
            with_instances=asks_for_instances(ask, options),
            with_claims=asks_for_own(ask),
            seen=params.get("seen_hosts") or (),
        )
        groups = groups_of(connection, ask)
        ask = shelving.placed_anew(connection, ask)
        placed = _decide(
            outcome,
            [request_of(server, groups.get(server["uuid"])) for server in ask],
            _together(instances, params),
            lambda requests: select(
                hosts,
                requests,
                params.get("choice") or DEFAULT_CHOICE,
                max_attempts=max_attempts,
                options=options,
                explained_hosts=len(hosts) if outcome.explain_all else EXPLAINED_HOSTS,
            ),
        )
        _claim(connection, placed, versions, now)
        in_groups = {
            decision.request.uuid: (decision.request.group, decision.host)
            for decision in placed
            if decision.request.group and decision.host
        }
        if violated(connection, in_groups):
            raise StaleChoiceError
        outcome.hosts.update({decision.request.uuid: decision.host for decision in placed if decision.host is not None})
        outcome.recorded.update(uuid for uuid in outcome.decisions if uuid in outcome.unplaced)
    for uuid, reason in (params.get("last_errors") or {}).items():  # of hosts that are not tried again
        if uuid in outcome.unplaced:
            outcome.unplaced[uuid] = f"{one_line(reason)}. {outcome.unplaced[uuid]}"  # the cause first
    write_outcome(connection, outcome, rows, now)
    return outcome


def _together(instances: t.Sequence[Instance], params: JsonMapping) -> dict[str, str]:
    """Group instances that are launched together or not at all: UUID -> a name that they have in common."""
    apart = not params.get("all_or_nothing", True)
    named = params.get("reservations") or {}
    return {server["uuid"]: server["uuid"] if apart else str(named.get(server["uuid"], "")) for server in instances}


def _decide(
    outcome: Outcome,
    requests: list[Request],
    together: t.Mapping[str, str],
    choose: t.Callable[[list[Request]], list[Decision]],
) -> list[Decision]:
    """Decisions for those that are to be launched; the others are in `outcome.unplaced`. What is given up, because
    another of its request found no host, must not take the room of others: for them it is chosen again, without it."""
    lost = {together[uuid] for uuid in outcome.recorded}
    while True:
        decisions = {decision.request.uuid: decision for decision in choose(requests)}
        outcome.decisions.update(decisions)
        missing = {uuid for uuid, decision in decisions.items() if decision.host is None}
        without = lost | {together[uuid] for uuid in missing}
        wasted = next((together[uuid] for uuid in decisions if uuid not in missing and together[uuid] in without), None)
        if wasted is None:
            break
        for uuid, decision in decisions.items():
            if together[uuid] == wasted:
                outcome.unplaced[uuid] = (
                    decision.message
                    if uuid in missing
                    else f"'{decision.request.name}' was not launched, for another of its request found no host: "
                    "ask for fewer, or set all_or_nothing=false"
                )
        requests = [request for request in requests if together[request.uuid] != wasted]
    outcome.unplaced.update({uuid: decisions[uuid].message for uuid in missing})
    return [decision for decision in decisions.values() if decision.host is not None]


def _claims(connection: sa.Connection, instances: t.Sequence[Instance]) -> dict[str, str]:
    """The host that each instance has a claim on. One on a host that failed to build it is given back first."""
    query = (
        sa.select(allocation.c.instance_uuid, compute_host.c.name)
        .join(compute_host, compute_host.c.id == allocation.c.compute_host_id)
        .where(allocation.c.instance_uuid.in_([server["uuid"] for server in instances]))
    )
    host_by_uuid = {row.instance_uuid: row.name for row in connection.execute(query)}
    stale = [
        server["uuid"] for server in instances if host_by_uuid.get(server["uuid"]) in (server.get("attempts") or [])
    ]
    release_claims(connection, stale)
    return {uuid: name for uuid, name in host_by_uuid.items() if uuid not in stale}


def _not_to_be_built(row: StateRow | None) -> str | None:
    if row is None:
        return None
    if row.deleted or row.task_state == "deleting":
        return "deleted" if row.deleted else "being deleted"
    buildable = row.vm_state == "error" or build_of(row.vm_state, row.task_state) is not None
    return None if buildable else str(row.vm_state)


def _claim(
    connection: sa.Connection, placed: t.Sequence[Decision], versions: dict[str, tuple[int, int]], now: int
) -> None:
    """Take what `placed` need: one guarded write for each host. Raises StaleChoiceError when one is refused."""
    if not placed:
        return
    take_room(connection, placed, versions)
    connection.execute(
        sa.insert(allocation),
        [
            {
                "instance_uuid": decision.request.uuid,
                "compute_host_id": versions[decision.host or ""][0],
                "vcpus": decision.request.vcpus,
                "memory_mb": decision.request.memory_mb,
                "disk_gb": decision.request.disk_gb,
                "created_at": now,
                "numa": decision.numa and decision.numa.row,
            }
            for decision in placed
        ],
    )
