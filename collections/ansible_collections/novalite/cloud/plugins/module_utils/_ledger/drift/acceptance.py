# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ledger brought to what is: guests that an operator wants to stay on the host where they were seen to be."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._drift import proofs
from ..._json import JsonMapping, JsonObject
from ..._model.numa import Claim
from ..._model.rows import InstanceRow
from ..._scheduling.rows import AMOUNTS, Request, request_of
from ..compute.server_actions import RUNNING, SHUTDOWN
from ..db import clock
from ..db.tables import instance
from ..db.tables_migrations import OPEN, migration
from ..db.tables_volumes import volume, volume_attachment
from ..instances import actions
from ..instances.actions import swap
from ..placement import departures
from ..placement.claims import claim_what_it_has, release_claims
from ..queries.compute.instance_rows import instance_rows
from ..queries.compute.views import instances_by
from ..queries.placement.host_states import EVER, host_states

_ON = ("active", "paused", "rescued", "suspended")  # what a guest that runs may be recorded as


def choose(
    connection: sa.Connection,
    hosts: t.Iterable[str],
    known: t.Mapping[str, proofs.Word],
    evidence: t.Mapping[str, proofs.Evidence],
    volumes: t.Mapping[str, t.Collection[str]],
) -> tuple[list[JsonObject], list[str]]:
    """The guests that are on one of `hosts` though the ledger has them elsewhere, as write() takes them; and why others
    are not accepted. `evidence` is of all hosts, `volumes` those that each has."""
    rows = {row.uuid: row for row in instance_rows(connection, instance.c.uuid.in_(sorted(known)))}
    moving = sa.select(migration.c.instance_uuid).where(migration.c.status.in_(OPEN))
    moves = set(connection.execute(moving).scalars())
    chosen: list[JsonObject] = []
    refusals: list[str] = []
    for host in sorted(set(hosts)):
        for uuid, word in sorted(known.items()):
            here = evidence[uuid].sights.get(host)
            if here is None or word.deleted or word.host == host:
                continue
            reason = _not_now(rows[uuid], moves) or proofs.refusal(word, host, here, evidence[uuid])
            if reason is None:
                ends = {"from_host": word.host, "to_host": host}
                attached = sa.select(volume_attachment.c.volume_id).where(volume_attachment.c.instance_uuid == uuid)
                brought = set(connection.execute(attached).scalars()).intersection(volumes[host])
                chosen.append({"uuid": uuid, **ends, "runs": here.runs, "volumes": sorted(brought)})
            else:
                refusals.append(f"{word.name} is not accepted on {host}: {reason}")
    return chosen, refusals


def _not_now(row: InstanceRow, moves: t.Container[str]) -> str | None:
    if row.adopted is not None:
        return "it was adopted: release it (release.yml), and adopt it there (adopt.yml)"
    if row.task_state is not None:
        return f"it is in task_state {row.task_state}"
    return "its move waits to be confirmed or reverted" if row.uuid in moves else None


def write(connection: sa.Connection, chosen: t.Iterable[JsonMapping]) -> list[JsonObject]:
    """Record these guests on their `to_host`, with their claims and the volumes whose files are there. Returns
    corrections as ledger_heal does; whose row was changed meanwhile is left out."""
    now, corrections = clock.seconds(connection), []
    for guest in chosen:
        uuid, source, host = guest["uuid"], guest["from_host"], guest["to_host"]
        (row,) = instance_rows(connection, instance.c.uuid == uuid)
        after: JsonObject = {"host": host, "power_state": RUNNING if guest["runs"] else SHUTDOWN}
        if guest["runs"] != (row.vm_state in _ON):
            after["vm_state"] = "active" if guest["runs"] else "stopped"
        before = {name: getattr(row, name) for name in after}
        same = (instance.c.task_state.is_(None), instance.c.host == source)
        if not swap(connection, uuid, {**after, "fault": None, "updated_at": now}, *same):
            continue
        departures.leave(connection, [uuid], source, departures.MOVED, now)
        departures.arrive(connection, [uuid], host)
        (server,) = instances_by(connection, uuids=[uuid])
        request = request_of(server)
        release_claims(connection, [uuid])
        amounts = {name: getattr(request, name) for name in AMOUNTS}
        claim_what_it_has(connection, uuid, host, amounts, now, _own_there(connection, request, host, now))
        brought = (volume.c.id.in_(guest["volumes"]), volume.c.host == source)
        connection.execute(sa.update(volume).where(*brought).values(host=host))
        request_id, details = actions.new_request_id(), {uuid: {"from": source, "to": host}}
        actions.start(connection, "reconcile", details, request_id, now, project_id=row.project_id)
        actions.finish(connection, "reconcile", [(uuid, host, None)], now=now)
        reason = f"{'runs' if guest['runs'] else 'its disk is'} on {host}: accepted"
        corrections.append(
            {"kind": "instance", "name": f"{row.name} ({uuid})", "reason": reason, "before": before, "after": after}
        )
    return corrections


def _own_there(connection: sa.Connection, request: Request, host: str, now: int) -> Claim | None:
    """The CPUs, NUMA nodes, pages and devices that it is to have on the host that it came to; None where there are none
    left: then it has no place of its own until it is moved."""
    if not request.asks_own:
        return None
    (state,), _versions = host_states(connection, now, [host], EVER, with_claims=True)
    claim = state.own_fit(request.numa, request.devices)
    return None if isinstance(claim, str) else claim
