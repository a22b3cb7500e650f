# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""Operations `capacity_info` and `balance_plan`: questions to the scheduler that change nothing."""

from __future__ import annotations

import json
import shlex
import time
import typing as t

import sqlalchemy as sa

from ..._errors import NovaliteError
from ..._scheduling import balance, capacity_tools
from ..._scheduling.capacity import used_by_others
from ..._scheduling.options import Options
from ..._scheduling.rows import request_of
from ..queries import lookups
from ..queries.groups import groups_of
from ..queries.views import flavor_of, image_of, instances_by
from . import hints
from .compute_hosts import host_states

EVER = 10**10  # seconds; whoever asks what a host could hold does not ask whether it answered in the last minute


def capacity_info(connection: sa.Connection, params: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """How many more instances of a flavor fit on each host, and in all, and what is in the way of the next."""
    options = Options.of(params["options"])
    owner = lookups.project_by_name(connection, params["project"])
    image = {"virtual_size": 0, "properties": {}}
    if params["image"] is not None:
        image = image_of(lookups.image_by_name(connection, params["image"], owner["id"]))
    wanted = {
        "uuid": "",
        "name": params["flavor"],
        "project": {"id": owner["id"]},
        "flavor": flavor_of(lookups.flavor_by_name(connection, params["flavor"])),
        "image": image,
        "availability_zone": params["availability_zone"],
        "request": hints.checked(params["flavor"], {"requirements": params["requirements"]}),
    }
    states, _versions = host_states(connection, int(time.time()), params["limit_to"], EVER)
    rooms = capacity_tools.room(states, request_of(wanted), options)
    others = {state.name: used_by_others(state) for state in states}
    total, closed = sum(one.fits for one in rooms), capacity_tools.bottlenecks(rooms)
    bottleneck = next(iter(closed), None)
    message = f"{total} more of {params['flavor']} fit"
    if bottleneck is not None:
        message += f"; {bottleneck} is in the way of more on {closed[bottleneck]} of {len(rooms)} hosts"
    return {
        "changed": False,
        "fits": total,
        "bottleneck": bottleneck,
        "bottlenecks": closed,
        "hosts": [
            {
                "host": one.host,
                "fits": one.fits,
                "bottleneck": one.bottleneck,
                "reason": one.reason,
                "used_by_others": others[one.host],
            }
            for one in rooms
        ],
        "msg": message,
    }


def balance_plan(connection: sa.Connection, params: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Which moves would even out the load of the hosts, as commands. Moves nothing."""
    options = Options.of(params["options"])
    if params["max_moves"] < 1 or params["min_gain"] < 0:
        raise NovaliteError("give max_moves of at least 1 and min_gain of at least 0")
    states, _versions = host_states(connection, int(time.time()), params["limit_to"], EVER, with_instances=True)
    instances = {
        one["uuid"]: one
        for one in instances_by(connection, hosts=[state.name for state in states])
        if one["vm_state"] == "active" and one["task_state"] is None and one["adopted"] is None
    }
    groups = groups_of(connection, list(instances.values()))
    placed = [
        balance.Placed(request_of({**one, "attempts": []}, groups.get(uuid)), one["host"])
        for uuid, one in instances.items()
    ]
    found = balance.moves(states, placed, options, params["max_moves"], params["min_gain"])
    before = balance.score(state for state in states if state.up and state.enabled)
    after = found[-1].after if found else before
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
            for move in found
        ],
        "msg": f"{len(found)} moves would bring the score from {before:.4f} to {after:.4f}",
    }


def _commands(one: dict[str, t.Any], target: str) -> list[str]:
    """End the server, and launch it anew with a rank that prefers the other host: it must not be bound to it."""
    again = {
        "name": one["name"],
        "hostname": one["hostname"],
        "flavor": one["flavor"]["name"],
        "image": one["image"]["name"],
        "key": one["key"]["name"] if one["key"] else None,
        "networks": [nic["network"]["name"] for nic in one["nics"]],
        "security_groups": [group["name"] for group in one["security_groups"]],
        "availability_zone": one["availability_zone"],
        "metadata": one["metadata"],
        "hints": one["request"],
        "rank": f'name = "{target}"',
    }
    servers = [{key: value for key, value in again.items() if value not in (None, {}, [])}]
    project = one["project"]["name"]
    return [
        shlex.join(["ansible-playbook", f"playbooks/{playbook}.yml", "-e", json.dumps({"project": project, **what})])
        for playbook, what in (("terminate", {"servers": [{"name": one["name"]}]}), ("launch", {"servers": servers}))
    ]
