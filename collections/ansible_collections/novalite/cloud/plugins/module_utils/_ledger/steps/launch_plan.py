# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Step `launch_plan`: hosts, claims and addresses for instances, and the plan of each host, or nothing of it.

What `scheduler`, `fixed_ip` and the step `server_plan` do one after another, as one.
"""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._errors import NovaliteError, UndoneError
from ..._json import JsonMapping, JsonObject
from ..._plan.targets import of_plan
from ..db import clock
from ..placement.fresh_facts import fresh_hosts
from ..queries.compute import launch_calls
from ..tasks.fixed_ip import fixed_ip
from ..tasks.scheduler import scheduler
from .server_plan import server_plan
from .server_state import server_state

FRAGMENTS = ("scheduling", "scheduling.choice", "state_dir")
ARGUMENT_SPEC = {
    # The instances to place, as `server` returns them.
    "instances": {"type": "list", "elements": "dict", "default": []},
    # Instances that run already and are to be compared with what they should be.
    "existing": {"type": "list", "elements": "dict", "default": []},
    # Whether the instances were asked for together. When they are of several requests, one of these may have spoiled it
    # for the others, and what fails waits to be tried again.
    "alone": {"type": "bool", "default": True},
    # Names of the compute hosts of the inventory. A host is known well enough where the ledger heard of it, up, no
    # longer than `max_age` seconds ago, and where its variables say of it what they said then, unless it failed to
    # build the last time. Where any host is not, nothing is planned.
    "hosts": {"type": "list", "elements": "str"},
    "max_age": {"type": "int", "default": 60},
}


def launch_plan(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Either all of scheduling, claims, addresses and plans is in the ledger, or none of it: then the instances are
    ERROR with the reason as their fault, and hold nothing (Nova's conductor gives claims back one by one). Raises
    UndoneError for what the database takes back: all of it is to be tried again.

    `expected`: the hosts of the inventory, see fresh_hosts(). Where the ledger's word cannot be taken of all of them,
    nothing is planned, and `ask` are the others.

    Returns `changed`, and
    * `ask`, `fresh`: those of `hosts` that are to be asked what they offer (`compute_host`), and the others; where
      there are any to be asked
    * `instances`: those that have a host and addresses, in the order given; or, where all were refused, all
    * `launch`: what the launch has come to so far. `built`, the instances that run; `failures`, why others do not;
      `seen_hosts`, or the hosts of which the ledger's word was taken; `silent`, those that run and did not answer as
      was asked for, as `server_wait` returns them; `placed`, of a plan that has secrets what none is in
    * `refused`: why none could be placed, where that is not the scheduler's refusal
    * `unplaced`, `explanations`: as `scheduler` returns them, where there was something to place
    * `hosts`, `targets`: as the step `server_plan` returns them
    """
    calls: list[launch_calls.Call] = []
    launch: JsonObject = params.get("launch") or {"built": [], "failures": [], "silent": []}  # of launch_record
    if expected := params.get("expected"):
        fresh = fresh_hosts(connection, expected, params["max_age"], clock.seconds(connection))
        if ask := [name for name in expected if name not in fresh]:
            nothing: JsonObject = {"changed": False, "hosts": {}, "targets": of_plan({}), "instances": []}
            return {**nothing, "launch": launch, "ask": ask, "fresh": fresh}
        params = {**params, "seen_hosts": fresh}
    launch = {**launch, "calls": calls, "seen_hosts": list(params.get("seen_hosts") or ())}
    if not params["instances"]:
        return {**_plan(connection, params, []), "instances": [], "launch": launch}
    try:
        with connection.begin_nested():
            with launch_calls.timed(calls, "scheduler"):
                placed = scheduler(connection, params)
            with launch_calls.timed(calls, "fixed_ip"):
                addressed = fixed_ip(connection, {"instances": placed["instances"]})
            with launch_calls.timed(calls, "server_plan"):
                planned = _plan(connection, params, addressed["instances"])
    except UndoneError:
        raise
    except NovaliteError as error:
        outcome = {"uuids": [server["uuid"] for server in params["instances"]], "state": "error", "reason": str(error)}
        recorded = server_state(connection, {"outcomes": [outcome], "alone": params["alone"]})
        return {
            **_plan(connection, params, []),
            **changes(recorded),
            "instances": recorded["instances"],
            "launch": {**launch, "failures": [*launch["failures"], str(error)]},
            "refused": str(error),
        }
    # it may be none of its business: there are other hosts
    refused = [str(host["down_reason"]) for host in params.get("compute_hosts") or () if host.get("refused_host")]
    if planned["secret"]:  # the plan is shown to nobody; this may be
        parts = {**addressed, **placed, "instances": addressed["instances"]}
        launch["placed"] = {part: parts[part] for part in ("instances", "explanations", "unplaced")}
    return {
        **planned,
        **changes(placed, addressed, {"changed": False, "warnings": refused}),
        "instances": addressed["instances"],
        "unplaced": placed["unplaced"],
        "explanations": placed["explanations"],
        "msg": placed["msg"],
        "launch": {**launch, "failures": [*launch["failures"], *placed["failures"]]},
    }


def changes(*results: JsonMapping) -> JsonObject:
    """Return whether any of `results` changed anything, and the diffs and warnings of all."""
    summed: JsonObject = {"changed": any(result["changed"] for result in results)}
    diffs = [result["diff"] for result in results if "diff" in result]
    if diffs := [diff for part in diffs for diff in (part if isinstance(part, list) else [part])]:
        summed["diff"] = diffs
    if warnings := [warning for result in results for warning in result.get("warnings", ())]:
        summed["warnings"] = warnings
    return summed


def _plan(connection: sa.Connection, params: JsonMapping, instances: t.Sequence[JsonObject]) -> JsonObject:
    return server_plan(connection, {**params, "instances": instances, "leaving": (), "count_room": True})
