# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operation `balance_plan`: which moves would even out the load of the hosts."""

from __future__ import annotations

import json
import shlex

import sqlalchemy as sa

from ..._errors import NovaliteError
from ..._json import JsonMapping, JsonObject
from ..._model.instance import Instance
from ..._samples.rings import Samples
from ..._scheduling.balance import Rules
from ..._scheduling.options import Options
from ..db.engine import place_of
from ..operations import balance


def balance_plan(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Propose moves that would even out the load of the hosts, as commands. Moves nothing."""
    if params["max_moves"] < 1 or params["min_gain"] < 0 or params["cooldown"] < 0:
        raise NovaliteError("give max_moves of at least 1, and min_gain and cooldown of at least 0")
    limit = params["max_gib"]
    rules = Rules(
        max_moves=params["max_moves"],
        min_gain=params["min_gain"],
        max_mib=None if limit is None else limit * 1024,
        max_pressure=params["max_pressure"],
    )
    plan = balance.plan(
        connection,
        params.get("measured") or balance.NOTHING_MEASURED,
        Options.of(params["options"]),
        rules,
        params["cooldown"],
        params["limit_to"],
    )
    sent = sum(move.moved_mib for move in plan.moves)
    return {
        "changed": False,
        "score_before": round(plan.before, 4),
        "score_after": round(plan.after, 4),
        "moves": [
            {
                "uuid": move.uuid,
                "name": move.name,
                "project": plan.instances[move.uuid]["project"]["name"],
                "from": move.source,
                "to": move.target,
                "score_before": round(move.before, 4),
                "score_after": round(move.after, 4),
                "moved_mib": move.moved_mib,
                "why": move.why,
                "commands": _commands(plan.instances[move.uuid], move.target),
            }
            for move in plan.moves
        ],
        "msg": _message(plan, sent),
    }


def prepare_balance_plan(engine: sa.Engine, params: JsonMapping) -> JsonObject:
    """Return `params` with what was `measured`: to read that of many guests takes a while."""
    samples = Samples(place_of(params.get("home"), params.get("ledger_url")).home)
    return {**params, "measured": balance.measured(engine, samples)}


def _message(plan: balance.Plan, sent: int) -> str:
    rest = f"; {plan.resting} servers rest after a move" if plan.resting else ""
    if not plan.moves:
        return f"no move is worth it: the score is {plan.before:.4f}{rest}"
    scores = f"from {plan.before:.4f} to {plan.after:.4f}"
    return f"{len(plan.moves)} moves would bring the score {scores}, and send at most {sent / 1024:.1f} GiB{rest}"


def _commands(server: Instance, target: str) -> list[str]:
    """Move the server while it runs: nothing of it is lost, and the claim at its new host is checked once more."""
    what = {"project": server["project"]["name"], "server": server["name"], "host": target}
    return [shlex.join(["ansible-playbook", "novalite.cloud.live_migrate", "-e", json.dumps(what)])]
