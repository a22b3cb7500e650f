# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operation `server_state`: what became of builds and deletions."""

from __future__ import annotations

import sqlalchemy as sa

from ..._errors import NovaliteError
from ..._json import JsonMapping, JsonObject
from ..compute.server_states import MAX_ATTEMPTS, STATES, Outcome, record_outcomes
from ..db import clock
from ..placement.fresh_facts import record_reported


def server_state(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Operation `server_state`: see the module's documentation for `params` and what is returned. Raises NovaliteError
    for outcomes that contradict each other."""
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
