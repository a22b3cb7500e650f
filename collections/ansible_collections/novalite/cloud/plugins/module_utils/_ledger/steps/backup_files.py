# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Step `backup_files`: which host reads files of a server's backup, and of which."""

from __future__ import annotations

import sqlalchemy as sa

from ..._errors import ConflictError
from ..._json import JsonMapping, JsonObject
from ..._plan import targets
from ..queries import lookups
from ..queries.volumes import server_backup_rows
from ..volumes import volume_plans

FRAGMENTS = ("ledger.project",)
ARGUMENT_SPEC = {
    # Name or id of the backup.
    "backup": {"type": "str", "required": True},
    # Names of the only compute hosts to choose among. All that the ledger knows, when left out.
    "limit_to": {"type": "list", "elements": "str"},
}


def backup_files(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Return `changed`, false; `hosts`: for the host that reads, `backup_id` and `chain` of the step of the same name;
    and `targets`, `hosts` and `controller`."""
    owner = lookups.project_by_name(connection, params.get("project") or lookups.DEFAULT_PROJECT)["id"]
    backup = server_backup_rows.backup_in(connection, owner, params["backup"])
    if backup.kind is None:
        raise ConflictError(f"Backup '{backup.name}' of instance {backup.instance_uuid} is {backup.status}: try later")
    host = volume_plans.host_for(connection, backup.host, params.get("limit_to"))
    if host is None:
        raise ConflictError("no compute host can be reached, which reads the store: see `novalite hosts`")
    hosts = {host: {"backup_id": backup.id, "chain": backup.instance_uuid}}
    return {"changed": False, "hosts": hosts, "targets": targets.of_hosts(hosts)}
