# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Step `balance_turn`: whether the balance of the hosts is looked at now, by this controller, and what becomes of the
plan. Between `begin` and `record`, `balance_plan` makes it."""

from __future__ import annotations

import hashlib
import json
import socket
import typing as t

import sqlalchemy as sa

from ..._healing import balancing
from ..._healing.nouns import Clock
from ..._json import JsonMapping, JsonObject
from ..db import clock
from ..healing import balance_turns, watch_rows

_NAMED = 20  # moves that the journal names

ARGUMENT_SPEC = {
    # `begin` takes the turn, `record` tells of the plan.
    "state": {"type": "str", "choices": ["begin", "record"], "required": True},
    # What becomes of a plan: nothing, it is told, or it is carried out.
    "mode": {"type": "str", "choices": list(balancing.MODES), "required": True},
    # Name of the controller, if it is not that of its machine.
    "controller": {"type": "str"},
    # Seconds between the beginnings of two turns.
    "every": {"type": "int", "default": balancing.EVERY_S},
    # What `balance_plan` returned as `moves` and `msg`, with `record`.
    "moves": {"type": "list", "elements": "dict", "default": []},
    "text": {"type": "str", "default": ""},
}


def balance_turn(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Return `changed` and `in_words`, and
    * `begun`: whether the turn is this run's, and `hosts`, those that may give and take (with `begin`)
    * `act`: whether the moves are to be made now (with `record`)
    """
    watch_rows.ensure(connection)
    situation = balance_turns.situation(connection, lock=True)
    now = Clock(clock.now(connection), params.get("controller") or socket.gethostname())
    return _STATES[params["state"]](connection, params, situation, now)


def _begin(connection: sa.Connection, params: JsonMapping, situation: balancing.Situation, now: Clock) -> JsonObject:
    mode = params["mode"]
    result: JsonObject = {"changed": False, "begun": False, "hosts": [], "in_words": ""}
    if mode == balancing.OFF:
        balance_turns.forget(connection)
        return {**result, "changed": bool(situation.plan), "in_words": "nobody balances the hosts: the mode is off"}
    if not balancing.is_due(situation, now, params["every"]):
        return {**result, "in_words": "the balance was looked at a short while ago"}
    why_not = balancing.hindrance(mode, situation, now)
    if why_not or not balance_turns.take(connection, situation.at, now.now):
        return {**result, "in_words": f"the balance is left alone: {why_not or 'another run looks at it'}"}
    return {**result, "changed": True, "begun": True, "hosts": situation.hosts}


def _record(connection: sa.Connection, params: JsonMapping, situation: balancing.Situation, now: Clock) -> JsonObject:
    mode, moves, text = params["mode"], params["moves"], params["text"]
    verdict = balancing.verdict(mode, _digest(moves), situation, now)
    if not verdict.plan:
        balance_turns.forget(connection)
    elif verdict.tell:
        balance_turns.keep(connection, verdict.plan, len(moves), text)
    if verdict.tell:
        named = [f"{move['name']} from {move['from']} to {move['to']}" for move in moves[:_NAMED]]
        more = [f"and {len(moves) - _NAMED} more"] if len(moves) > _NAMED else []
        word = "carried out" if verdict.act else "suggested"
        balance_turns.note(connection, now.controller, f"{word}: {text}: {', '.join([*named, *more])}")
    why_not = balancing.hindrance(mode, situation, now) if moves and not verdict.act else ""
    words = f"nothing moves: {why_not}" if why_not else ""
    changed = verdict.tell or verdict.plan != situation.plan
    return {"changed": changed, "act": verdict.act, "in_words": words}


def _digest(moves: t.Iterable[JsonMapping]) -> str:
    """Return what tells one plan from another, "" for one without moves: who goes where, in whatever order."""
    ways = sorted((move["uuid"], move["to"]) for move in moves)
    return hashlib.sha256(json.dumps(ways).encode()).hexdigest() if ways else ""


_STATES: t.Mapping[str, t.Callable[[sa.Connection, JsonMapping, balancing.Situation, Clock], JsonObject]] = {
    "begin": _begin,
    "record": _record,
}
