# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Guests that changed their state by themselves, and how the ledger follows them.

A guest shuts itself down, a host reboots, a person uses virsh. Nova compares every ten minutes, and then stops what
should not run; here nothing is done to a guest, the ledger learns what it is, and whoever wants it otherwise says so.
"""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._json import JsonMapping, JsonObject
from ..._model.instance import Instance
from ..db import clock
from ..db.tables import instance
from ..instances import actions
from ..instances.actions import swap
from ..queries.compute.views import instances_by
from . import server_actions

# libvirt's word for a domain's state -> vm_state, Nova's power state; `missing` and `unknown` say nothing of a guest
GUEST_STATES = {
    "running": ("active", 1),
    "paused": ("paused", 3),
    "shutoff": ("stopped", 4),
    "saved": ("suspended", 4),
    "crashed": ("stopped", 6),
}
POWER_STATES = {state: number for state, (_vm_state, number) in GUEST_STATES.items()}
# a guest that was rescued, or failed, is not called something else for what its domain is
_FOLLOWED = ("active", "stopped", "paused", "suspended")
_WAITING = "resized"  # whatever its guest does, it goes on waiting for its owner's word


def to_look_at(instances: t.Iterable[Instance]) -> dict[str, JsonObject]:
    """`{host: {"domains": [{"uuid", "name"}], "updated_at": {uuid: epoch}}}` for those of `instances` that nothing is
    being done to."""
    hosts: dict[str, JsonObject] = {}
    for server in instances:
        if server["task_state"] is None and server["vm_state"] in _FOLLOWED:
            look = hosts.setdefault(server["host"] or "", {"domains": [], "updated_at": {}})
            look["domains"].append({"uuid": server["uuid"], "name": server["domain_name"]})
            look["updated_at"][server["uuid"]] = server["updated_at"]
    return hosts


def follow(connection: sa.Connection, observed: t.Iterable[JsonMapping]) -> list[JsonObject]:
    """Record what was `observed` of each host: `domains` (uuid, state), and the `updated_at` of the look (uuid: epoch).
    Whatever was begun in between wins. Returns `uuid`, `name`, `before` and `after` of those that this changed."""
    seen = {
        domain["uuid"]: (domain["state"], look["updated_at"].get(domain["uuid"]))
        for look in observed
        for domain in look["domains"]
        if domain["state"] in POWER_STATES
    }
    now, changed = clock.seconds(connection), []
    for server in instances_by(connection, uuids=seen):
        state, updated_at = seen[server["uuid"]]
        vm_state, number = GUEST_STATES[state]
        if server["vm_state"] == _WAITING:
            vm_state = _WAITING
            if server["power_state"] in (number, server_actions.NO_STATE):
                continue
        elif server["vm_state"] not in _FOLLOWED or server["vm_state"] == vm_state:
            continue
        after = {"vm_state": vm_state, "power_state": number}
        seen_then = instance.c.updated_at == updated_at
        if not swap(connection, server["uuid"], {**after, "updated_at": now}, *at_rest(server), seen_then):
            continue
        before = {"vm_state": server["vm_state"], "power_state": server["power_state"]}
        sides = {"before": before, "after": after}
        changed.append({"uuid": server["uuid"], "name": server["name"], **sides})
        request = actions.new_request_id()
        actions.start(
            connection, "power_state", {server["uuid"]: sides}, request, now, project_id=server["project"]["id"]
        )
        actions.finish(connection, "power_state", [(server["uuid"], server["host"], None)], now=now)
    return changed


def remember(connection: sa.Connection, server: Instance, state: str) -> bool:
    """Record that the guest is in `state` if nobody knew what it does, and that is what it should do."""
    vm_state, number = GUEST_STATES.get(state, ("", server_actions.NO_STATE))
    as_it_should = vm_state == server["vm_state"] or (server["vm_state"] == _WAITING and vm_state)
    if server["power_state"] != server_actions.NO_STATE or not as_it_should:
        return False
    return swap(connection, server["uuid"], {"power_state": number}, *at_rest(server))


def at_rest(server: Instance) -> tuple[sa.ColumnElement[bool], ...]:
    """Return conditions that a row meets while its instance is as it was read, with no task under way."""
    return instance.c.task_state.is_(None), instance.c.vm_state == server["vm_state"]


def runs_while_waiting(power_state: int, old_vm_state: str) -> bool:
    """Tell whether a guest is to run while its move waits to be confirmed: as before the move, unless it was seen to be
    off since."""
    if power_state == server_actions.NO_STATE:
        return old_vm_state != "stopped"
    return power_state != server_actions.SHUTDOWN
