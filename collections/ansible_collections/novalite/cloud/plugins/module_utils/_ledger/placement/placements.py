# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Outcome of a scheduling: in the instances' rows, in the record of their launch, and for the caller."""

from __future__ import annotations

import collections
import dataclasses
import typing as t

import sqlalchemy as sa

from ..._json import JsonMapping, JsonObject
from ..._model.instance import NO_HOST, Fault, Instance
from ..._model.rows import StateRow
from ..._rules.build_states import BUILDS, CREATE, build_of
from ..._scheduling.explain import NAMED, Decision, explanation, lines_of
from ..._scheduling.select import EXPLAINED_HOSTS
from ..db.tables import instance, instance_action
from . import departures


@dataclasses.dataclass
class Outcome:
    """Outcome for each instance, by UUID. `hosts` holds those with a claim, new or kept."""

    hosts: dict[str, str] = dataclasses.field(default_factory=dict)
    decisions: dict[str, Decision] = dataclasses.field(default_factory=dict)
    kept: set[str] = dataclasses.field(default_factory=set)
    unplaced: dict[str, str] = dataclasses.field(default_factory=dict)  # with the message for its owner
    explain_all: bool = False
    recorded: set[str] = dataclasses.field(default_factory=set)  # of `unplaced`: those that become ERROR


class StaleChoiceError(Exception):
    """A row changed between the choice and the write: undo, and choose again."""


def write_outcome(connection: sa.Connection, outcome: Outcome, rows: t.Mapping[str, StateRow], now: int) -> None:
    """Write what was decided to the instances and to the record of their launch, where there are any."""
    moves = []
    for uuid, row in rows.items():
        build = build_of(row.vm_state, row.task_state) or CREATE
        move: JsonObject = {"of": uuid, "was": row.task_state, "task": None, "at": None, "why": None}
        if uuid in outcome.recorded:
            fault: Fault = {"code": 500, "message": outcome.unplaced[uuid], "created": now}
            if uuid in outcome.decisions:
                fault["reason"] = NO_HOST
            moves.append({**move, "vm": build.failed, "why": fault if build is CREATE else None})
        elif uuid in outcome.hosts and (uuid not in outcome.kept or row.task_state == build.waiting):
            vm_state = "building" if build is CREATE else row.vm_state
            moves.append({**move, "vm": vm_state, "task": build.placed, "at": outcome.hosts[uuid]})
    if moves:
        written = connection.execute(
            sa.update(instance)
            .where(
                instance.c.uuid == sa.bindparam("of"),
                instance.c.deleted == 0,
                instance.c.task_state.is_not_distinct_from(sa.bindparam("was")),
            )
            .values(
                vm_state=sa.bindparam("vm"),
                task_state=sa.bindparam("task"),
                host=sa.bindparam("at"),
                fault=sa.bindparam("why"),
                updated_at=now,
            ),
            moves,
        )
        if written.rowcount != len(moves):
            raise StaleChoiceError
        hosts = {move["of"]: move["at"] for move in moves}
        departures.arrive_all(connection, hosts)
        tried = {uuid: rows[uuid].host for uuid in hosts if rows[uuid].host != hosts[uuid]}
        departures.leave_all(connection, tried, departures.RETRIED, now)
    _explain(connection, outcome, now)


def _explain(connection: sa.Connection, outcome: Outcome, now: int) -> None:
    """Put the reasons beside the launch that is under way; a launch that found no host ends here."""
    concerned = [*outcome.decisions, *(uuid for uuid in outcome.recorded if uuid not in outcome.decisions)]
    query = (
        sa.select(instance_action.c.id, instance_action.c.instance_uuid, instance_action.c.details)
        .where(
            instance_action.c.instance_uuid.in_(concerned),
            instance_action.c.action.in_([build.action for build in BUILDS]),
            instance_action.c.finished_at.is_(None),
        )
        .order_by(instance_action.c.id)
    )
    latest = {row.instance_uuid: row for row in connection.execute(query)}
    writes = []
    for uuid, row in latest.items():
        details = dict(row.details)
        if uuid in outcome.decisions:
            details["scheduler"] = _explanation(outcome, uuid, everything=False)
        message = outcome.unplaced.get(uuid)
        ended = None if message is None else now
        writes.append({"action_id": row.id, "new_details": details, "new_message": message, "ended": ended})
    if writes:
        connection.execute(
            sa.update(instance_action)
            .where(instance_action.c.id == sa.bindparam("action_id"))
            .values(
                details=sa.bindparam("new_details"),
                message=sa.bindparam("new_message"),
                finished_at=sa.bindparam("ended"),
            ),
            writes,
        )


def result_of(instances: t.Sequence[Instance], outcome: Outcome) -> JsonObject:
    placed: list[Instance] = []
    unplaced, explanations = [], []
    for server in instances:
        uuid = server["uuid"]
        decision, host = outcome.decisions.get(uuid), outcome.hosts.get(uuid)
        if uuid in outcome.unplaced:
            no_host = decision is not None and decision.host is None
            unplaced.append({"instance": dict(server), "message": outcome.unplaced[uuid], "no_host": no_host})
        elif host is not None:
            build = build_of(server["vm_state"], server.get("task_state")) or CREATE
            moved = uuid not in outcome.kept or server.get("task_state") == build.waiting
            alternates = list(decision.alternates) if decision else list(server.get("alternates") or [])
            there: Instance = {**server, "host": host, "alternates": alternates}
            vm_state = "building" if build is CREATE else there["vm_state"]
            placed.append({**there, "vm_state": vm_state, "task_state": build.placed} if moved else there)
        if decision is not None:
            explanations.append(_explanation(outcome, uuid, outcome.explain_all))
        else:
            message = outcome.unplaced.get(uuid) or f"{host} holds the claim of '{server['name']}' already"
            kept = {"uuid": uuid, "name": server["name"], "host": host, "message": message}
            explanations.append({**kept, "lines": [message]})
    claimed = [server for server in placed if server["uuid"] not in outcome.kept]
    result = {
        "changed": bool(claimed or outcome.recorded),
        "instances": placed,
        "unplaced": unplaced,
        "failures": list(dict.fromkeys(refusal["message"] for refusal in unplaced)),
        "explanations": explanations,
        "msg": _message(placed, unplaced, len(instances)),
    }
    if result["changed"]:
        names = {server["uuid"]: server["name"] for server in instances}
        why = {explained["uuid"]: explained["lines"] for explained in explanations}
        result["diff"] = {
            "before": {
                names[uuid]: {"host": None} for uuid in [*(server["uuid"] for server in claimed), *outcome.recorded]
            },
            "after": {
                server["name"]: {"host": server["host"], "alternates": server["alternates"], "why": why[server["uuid"]]}
                for server in claimed
            }
            | {
                names[uuid]: {"host": None, "fault": outcome.unplaced[uuid], "why": why[uuid]}
                for uuid in outcome.recorded
            },
        }
    return result


def _explanation(outcome: Outcome, uuid: str, everything: bool) -> JsonObject:
    """Return the explanation of a decision with every host or, as it is recorded, with a bounded number of them."""
    # in a request for all or nothing, an instance may have had its choice and not got it
    explained = {**explanation(outcome.decisions[uuid]), "host": outcome.hosts.get(uuid)}
    if everything:
        explained["filters"] = explanation(outcome.decisions[uuid], named=None)["filters"]
    else:
        explained["weights"] = explained["weights"][:EXPLAINED_HOSTS]
    return {**explained, "lines": lines_of(explained, named=None if everything else NAMED)}


def _message(placed: t.Sequence[Instance], unplaced: t.Sequence[JsonMapping], requested_count: int) -> str:
    counts = collections.Counter(server["host"] for server in placed)
    shares = ", ".join(f"{count} on {host}" for host, count in sorted(counts.items())[:10])
    more = f" and on {len(counts) - 10} other hosts" if len(counts) > 10 else ""
    line = f"placed {len(placed)} of {requested_count} instances" + (f": {shares}{more}" if shares else "")
    if unplaced:
        # the one that found no host says why; those that were given up for it only point to it
        reasons = [refusal["message"] for refusal in sorted(unplaced, key=lambda refusal: not refusal["no_host"])]
        line += f". {reasons[0]}" + (f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else "")
    return line
