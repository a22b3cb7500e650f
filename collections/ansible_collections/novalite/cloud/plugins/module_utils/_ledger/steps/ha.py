# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Step `ha`: people's decisions about healing."""

from __future__ import annotations

import sqlalchemy as sa

from ..._errors import ConflictError
from ..._json import JsonMapping, JsonObject
from ..db.tables import compute_host
from ..operations import healing
from ..operations.call import by_playbook
from ..queries.views import instances_by

ARGUMENT_SPEC = {
    # `armed` and `disarmed`, for all hosts or `host`; `confirmed`: a person saw that `host` is dead; `testable`: fails
    # unless `host` may be switched off for a test.
    "state": {"type": "str", "choices": ["armed", "disarmed", "confirmed", "testable"], "required": True},
    "host": {"type": "str"},
    # Who says so, by name.
    "by": {"type": "str", "default": "a person"},
}
SPEC_RULES = {"required_if": [("state", "confirmed", ["host"]), ("state", "testable", ["host"])]}


def ha(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Return `changed`, and `in_words`. Raises NotFoundError for an unknown host, ConflictError for one that lives."""
    call, state, host, by = by_playbook(connection), params["state"], params.get("host"), params["by"]
    if state == "confirmed":
        changed = healing.confirm_dead(call, host, by)
        return {"changed": changed, "in_words": f"{by} confirmed that {host} is dead: the next round of the watch acts"}
    if state == "testable":
        _check_testable(connection, host)
        return {"changed": False, "in_words": f"{host} is disabled, and bears no server"}
    changed = healing.arm(call, state == "armed", host, by)
    return {"changed": changed, "in_words": f"healing of {host or 'all hosts'} is {state}"}


def _check_testable(connection: sa.Connection, host: str) -> None:
    enabled = connection.scalar(sa.select(compute_host.c.enabled).where(compute_host.c.name == host))
    servers = instances_by(connection, hosts=[host])
    if enabled or servers:
        raise ConflictError(
            f"{host} is in service, or bears servers ({len(servers)}): empty it first (novalite.cloud.host_evacuate), "
            "or test with --dry-run"
        )
