# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Step `server_state`: what became of builds and deletions.

The last step of a termination, and a part of a launch's last one. Records outcomes, and gives back the claims and
addresses of what failed or is gone. Every transition expects a state, and is refused for that server alone when the
server is in another one, because its deletion was asked for meanwhile, for example. The same outcome twice changes
nothing the second time.
"""

from __future__ import annotations

import sqlalchemy as sa

from ..._errors import NovaliteError
from ..._json import JsonMapping, JsonObject
from ..compute.server_states import MAX_ATTEMPTS, STATES, Outcome, record_outcomes
from ..db import clock
from ..placement.fresh_facts import record_reported

OUTCOMES = {
    # What became of which servers.
    "outcomes": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "uuids": {"type": "list", "elements": "str", "required": True},
            # `active`, the guest runs. `error`, it will not be built, or, after a request to delete it, could not be
            # deleted; it keeps its host, claim and addresses until it is. `retry`, the host failed to build it; the
            # claim is released and the next host may try, until there were `max_attempts`. `deleted`, nothing of it is
            # left on its host.
            "state": {"type": "str", "choices": ["active", "error", "retry", "deleted"], "required": True},
            # The compute host that this comes from. It must be the one that the ledger has, as it is when left out.
            "host": {"type": "str"},
            # Why it failed. It becomes the server's fault, cut to one line of 255 characters.
            "reason": {"type": "str"},
            # Nova's number of the guest's power state, for `active`. 1, running, if it is left out.
            "power_state": {"type": "int"},
            # `trip` of `host_steps`, which the action of a launch keeps for `call_diagram`.
            "trip": {"type": "dict"},
            # What the host said of itself meanwhile, as `compute_host` returns it on it. It is recorded.
            "facts": {"type": "dict"},
            # Guests that run and did not answer, as `server_wait` returns them.
            "silent": {"type": "list", "elements": "dict", "default": []},
        },
    },
    # The plans that the hosts were given, as the step `server_plan` returns them. A server that was to be built and is
    # in none of the outcomes counts as `retry`, since its host did not even say that it failed.
    "plans": {"type": "dict", "default": {}},
    # Whether the servers were asked for together. When they are of several requests, one of these may have spoiled it
    # for the others, and `error` counts as `retry`.
    "alone": {"type": "bool", "default": True},
}
ARGUMENT_SPEC = {
    **OUTCOMES,
    # How many hosts may try to build a server, the first one included.
    "max_attempts": {"type": "int", "default": MAX_ATTEMPTS},
}


def server_state(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Return `changed`, and
    * `instances`: as they are now, as `server` returns them
    * `retry`: those of `instances` that are to be scheduled again
    * `errors`: the servers that failed, and those whose outcome was refused, `uuid`, `name` and `message`
    * `failures`: the messages of `errors`, each once

    Raises NovaliteError for outcomes that contradict each other."""
    facts = [outcome["facts"] for outcome in params.get("outcomes") or () if outcome.get("facts")]
    if facts:
        record_reported(connection, facts, clock.seconds(connection))
    return record_outcomes(connection, _by_uuid(params), params.get("max_attempts") or MAX_ATTEMPTS)


def _by_uuid(params: JsonMapping) -> dict[str, Outcome]:
    """Return each server's outcome, by UUID. A server that was to be built and has none is to be retried: its host did
    not even answer."""
    outcomes: dict[str, Outcome] = {}
    for outcome in params.get("outcomes") or []:
        if outcome["state"] not in STATES:
            raise NovaliteError(f"state '{outcome['state']}': give one of {', '.join(STATES)}")
        if outcome["state"] == "error" and params.get("alone") is False:
            outcome = {**outcome, "state": "retry"}
        for uuid in outcome["uuids"]:
            if uuid in outcomes:
                raise NovaliteError(f"server {uuid} has two outcomes in one call: give one")
            outcomes[uuid] = outcome
    for host, plans in (params.get("plans") or {}).items():
        for uuid in plans.get("build", {}).get("uuids", []):
            outcomes.setdefault(uuid, {"state": "retry", "host": host, "reason": f"host {host} did not answer"})
    return outcomes
