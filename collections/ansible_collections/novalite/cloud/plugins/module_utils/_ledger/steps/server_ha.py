# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Step `server_ha`: what is to become of servers when their host dies."""

from __future__ import annotations

import sqlalchemy as sa

from ..._errors import ConflictError, NotFoundError, NovaliteError
from ..._json import JsonMapping, JsonObject
from ..._rules import ha_wishes
from ..._rules.server_requests import expand_names
from ..compute.named_servers import servers_named, with_names
from ..operations import servers as operations
from ..operations.call import by_playbook
from ..queries.compute.views import instances_by

FRAGMENTS = ("ledger.project",)
ARGUMENT_SPEC = {
    # The servers by name. Each item is a name, or a dictionary of `name` and `count`, which may also say what is below.
    "servers": {"type": "list", "elements": "raw", "required": True},
    # Whether the servers run again on another host when theirs dies. What is left out stays as it is.
    "ha": {"type": "bool"},
    # Which of them get places first, the highest.
    "ha_priority": {"type": "int"},
    # Whether a new disk of the image will do where their own dies with their host.
    "ha_rebuild": {"type": "bool"},
}


def server_ha(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Return `changed`, and
    * `instances`: the servers that changed, as `server` returns them
    * `servers`: all of them, each with `name`, `ha`, `ha_priority` and `ha_rebuild`
    * `request_id`: as it stands in the servers' action logs

    Raises NovaliteError for the first server that is unknown, or of which it cannot be asked; nothing was written then.
    """
    common = {field: params.get(field) for field in ha_wishes.FIELDS}
    call, changed, before, after = by_playbook(connection), [], {}, {}
    for item in params["servers"]:
        entry = dict(item) if isinstance(item, dict) else {"name": item}
        asked = {field: common[field] if entry.get(field) is None else entry[field] for field in ha_wishes.FIELDS}
        if all(value is None for value in asked.values()):
            raise NovaliteError(f"'{entry.get('name')}': say what is to change: {', '.join(ha_wishes.FIELDS)}")
        wishes = ha_wishes.of_entry(str(entry.get("name")), asked)
        for server in servers_named(connection, params.get("project"), expand_names([entry])):
            try:
                was, now = operations.change_ha(call, server["uuid"], wishes)
            except (ConflictError, NotFoundError) as error:
                raise type(error)(with_names(str(error), [server])) from None
            after[server["name"]] = now
            if now != was:
                before[server["name"]] = was
                changed.append(server["uuid"])
    result: JsonObject = {
        "changed": bool(changed),
        "instances": instances_by(connection, uuids=changed),
        "servers": [{"name": name, **values} for name, values in after.items()],
        "request_id": call.request_id,
    }
    if changed:
        result["diff"] = {"before": before, "after": {name: after[name] for name in before}}
    return result
