# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Data for the plays that carry a plan out, so that no playbook has to work it out: the hosts of each of them (name ->
inventory names), and what follows from a host's moves."""

from __future__ import annotations

import typing as t

from .._json import JsonMapping, JsonObject

Targets = dict[str, list[str]]

CONTROLLER = "localhost"  # as the playbooks name it
PARTS = ("build", "keep", "remove", "vacate", "peers", "groups", "network")  # of a host's plan by server_plan

ARRIVING, LEAVING, STAYING = "arriving", "leaving", "staying"
DISCARDED = "discarded"  # copies of servers' disks that are to go
SOURCES = (LEAVING, STAYING)
# step of the role `move` -> the parts of a host's plan, one of which the host must have to take it
STEPS: dict[str, tuple[str, ...]] = {
    "look_for_former": (ARRIVING, STAYING),
    "stop": SOURCES,
    "dest_open_channel": (ARRIVING,),
    "send": SOURCES,
    "receive": (ARRIVING,),
    "build": ("build",),
    "rebuild": (ARRIVING,),
    "source_cleanup": (LEAVING,),
    "dest_close_channel": (ARRIVING,),
    "source_open_channel": (LEAVING,),
    "source_reach": (LEAVING,),
    "dest_allow_source": (ARRIVING,),
    "send_beside": (LEAVING,),
    "prepare": (ARRIVING,),
    "migrate": (LEAVING,),
    "source_cleanup_live": (LEAVING,),
    "replica_open": (ARRIVING,),
    "replica_send": (LEAVING,),
    "replica_receive": (ARRIVING, DISCARDED),
    "replica_close": (ARRIVING, LEAVING),
}
# the step that undoes another one, on the same hosts, as soon as an instance is lost
UNDOING = {"dest_rollback": "dest_open_channel", "restore": "stop"}


def controller(*works: t.Collection[object]) -> list[str]:
    """The controller, where there is any work whose end it has to record."""
    return [CONTROLLER] if any(works) else []


def of_hosts(hosts: t.Collection[str], **others: t.Collection[str]) -> Targets:
    """Return all of `hosts`, those of each of `others`, and the controller if there are any in `hosts`."""
    more = {name: list(each) for name, each in others.items()}
    return {"hosts": list(hosts), "controller": controller(hosts), **more}


def of_plan(hosts: t.Mapping[str, JsonMapping]) -> Targets:
    """The hosts that have each part of server_plan's plans; `controller` records how builds went."""
    targets = {part: _with(hosts, (part,)) for part in PARTS}
    return {**targets, "controller": controller(targets["build"])}


def of_moves(hosts: t.Mapping[str, JsonMapping], action: str) -> Targets:
    """The hosts that take each step of `action`'s moves, and, as `hosts`, all that have a part in them."""
    targets = {step: _with(hosts, parts) for step, parts in STEPS.items()}
    if action == "confirmResize":  # what an instance kept that was resized where it is goes, too
        targets["source_cleanup"] = _with(hosts, SOURCES)
    return {**targets, "peers": _with(hosts, ("peers",)), "hosts": list(hosts), "controller": controller(hosts)}


def of_lost(targets: t.Mapping[str, list[str]], lost: t.Collection[object]) -> Targets:
    """The `targets` of moves, with the hosts of the steps that undo what the `lost` ones left."""
    return {**targets, **{step: targets.get(undone, []) if lost else [] for step, undone in UNDOING.items()}}


def _with(hosts: t.Mapping[str, JsonMapping], parts: t.Iterable[str]) -> list[str]:
    return list(dict.fromkeys(host for part in parts for host, plan in hosts.items() if part in plan))


def summary(plan: JsonMapping) -> JsonObject:
    """The consequences of the `arriving`, `leaving` and `staying` moves of a host's `plan`.

    `sources` and `destinations` are the names of the hosts at the other ends; `starts` has, for each of the three, the
    UUIDs of the guests that run before and afterwards, and `rests` those of the guests that are here in the end, off.
    """
    moves = {kind: plan.get(kind, ()) for kind in (ARRIVING, LEAVING, STAYING)}
    return {
        "sources": list(dict.fromkeys(move["from_host"] for move in moves[ARRIVING])),
        "destinations": list(dict.fromkeys(move["to_host"] for move in moves[LEAVING])),
        "starts": {kind: [move["uuid"] for move in of_kind if move["starts"]] for kind, of_kind in moves.items()},
        "rests": [move["uuid"] for kind in (ARRIVING, STAYING) for move in moves[kind] if not move["starts"]],
    }


def domains_there(plan: JsonMapping, plans: t.Mapping[str, JsonMapping]) -> list[JsonObject]:
    """The domains of the guests that leave the host of `plan`, as the `plans` of their new hosts have them."""
    return [domain for host in plan["destinations"] for domain in plans[host].get("build", {}).get("domains", ())]
