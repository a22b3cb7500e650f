# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Step `backup_policy`: have policies of backups, or delete them; or begin what is due by them."""

from __future__ import annotations

import sqlalchemy as sa

from ..._json import JsonMapping, JsonObject
from ..._rules import retention
from ..._rules.records import with_diff
from ..operations import backup_policies
from ..operations.call import by_playbook

ARGUMENT_SPEC = {
    # Policies by their `name`, `every`, `verify_every` and `boot_every` such as `daily` or `12h`, how many backups are
    # kept, and what they are for.
    "policies": {
        "type": "list",
        "elements": "dict",
        "options": {
            "name": {"type": "str", "required": True},
            "every": {"type": "str"},
            "verify_every": {"type": "str"},
            "boot_every": {"type": "str"},
            "server": {"type": "str"},
            "flavor": {"type": "str"},
            "project": {"type": "str"},
            **{option: {"type": "int"} for option in retention.OPTIONS},
        },
    },
    # `due` begins the backups and the proofs that are due.
    "state": {"type": "str", "choices": ["present", "absent", "due"], "default": "present"},
}


def backup_policy(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Return `changed`, and
    * `policies`: all that there are then
    * `taken`, `proven`: the servers (UUIDs) whose backups and proofs began, and `left`, those whose did not, each with
      `uuid` and `reason` (of `due`)
    """
    call = by_playbook(connection)
    before = {policy["name"]: policy for policy in backup_policies.listed(call)}
    if params["state"] == "due":
        begun = backup_policies.begin_due(call)
        return {"changed": bool(begun["taken"] or begun["proven"]), "policies": list(before.values()), **begun}
    changed = False
    for policy in params.get("policies") or []:
        if params["state"] == "absent":
            changed = backup_policies.remove(call, policy["name"]) or changed
        else:
            changed = backup_policies.ensure(call, policy) or changed
    after = {policy["name"]: policy for policy in backup_policies.listed(call)}
    return with_diff({"changed": changed, "policies": list(after.values())}, before, after)
