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
from ..._scheduling import balance
from ..._scheduling.options import Options
from ..._scheduling.rows import request_of
from ..db import clock
from ..placement.compute_hosts import EVER, host_states
from ..queries.groups import groups_of
from ..queries.views import instances_by


def balance_plan(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Propose moves that would even out the load of the hosts, as commands. Moves nothing."""
    options = Options.of(params["options"])
    if params["max_moves"] < 1 or params["min_gain"] < 0:
        raise NovaliteError("give max_moves of at least 1 and min_gain of at least 0")
    states, _versions = host_states(
        connection, clock.seconds(connection), params["limit_to"], EVER, with_instances=True, with_claims=True
    )
    instances = {
        instance["uuid"]: instance
        for instance in instances_by(connection, hosts=[state.name for state in states])
        if instance["vm_state"] == "active" and instance["task_state"] is None and instance["adopted"] is None
    }
    groups = groups_of(connection, list(instances.values()))
    placed = [
        balance.Placed(request_of({**instance, "attempts": []}, groups.get(uuid)), instance["host"] or "")
        for uuid, instance in instances.items()
    ]
    moves = balance.moves(states, placed, options, params["max_moves"], params["min_gain"])
    before = balance.score(state for state in states if state.up and state.enabled)
    after = moves[-1].after if moves else before
    return {
        "changed": False,
        "score_before": round(before, 4),
        "score_after": round(after, 4),
        "moves": [
            {
                "uuid": move.uuid,
                "name": move.name,
                "project": instances[move.uuid]["project"]["name"],
                "from": move.source,
                "to": move.target,
                "score_before": round(move.before, 4),
                "score_after": round(move.after, 4),
                "commands": _commands(instances[move.uuid], move.target),
            }
            for move in moves
        ],
        "msg": f"{len(moves)} moves would bring the score from {before:.4f} to {after:.4f}",
    }


def _commands(server: Instance, target: str) -> list[str]:
    """Move the server while it runs: nothing of it is lost, and the claim at its new host is checked once more."""
    what = {"project": server["project"]["name"], "server": server["name"], "host": target}
    return [shlex.join(["ansible-playbook", "novalite.cloud.live_migrate", "-e", json.dumps(what)])]
