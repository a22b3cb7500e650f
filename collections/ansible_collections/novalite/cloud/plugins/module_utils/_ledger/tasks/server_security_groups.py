# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operation `server_security_groups`: instances that run already join security groups, or leave them."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._json import JsonMapping, JsonObject
from ..._model.instance import Instance
from ..._rules.records import Changes
from ..compute.named_servers import servers_named
from ..db.tables import instance, instance_security_group
from ..queries import lookups
from ..queries.compute import state_rules
from ..queries.compute.instance_rows import instance_rows
from ..queries.compute.views import instances_by
from ..queries.network.group_records import DEFAULT_GROUP
from ..security.firewalls import plan_for_members
from ..security.security_groups import ensure_default_group


def server_security_groups(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Put instances (`{"name", "security_groups"}`) of a project into groups, or take them out. `hosts` is the plan for
    the module `firewall` on every host that has to know, also when nothing changed here (an earlier run may not have
    reached them all). Raises NotFoundError for an unknown server or group."""
    owner = lookups.project_by_name(connection, params["project"], lock=True)["id"]
    groups_by_server: dict[str, list[str]] = {}
    for item in params["servers"]:
        groups_by_server.setdefault(item["name"], []).extend(item["security_groups"])
    servers = servers_named(connection, params["project"], list(groups_by_server))
    ids = {server["name"]: server["id"] for server in servers}
    uuids = [server["uuid"] for server in servers]
    names = list(dict.fromkeys(name for groups in groups_by_server.values() for name in groups))
    if DEFAULT_GROUP in names:
        ensure_default_group(connection, owner, open_to_members=False)
    group_rows = lookups.security_groups_by_name(connection, names, owner) if names else []
    groups = {row["name"]: row["id"] for row in group_rows}

    before = _memberships(servers)
    touched = set(groups.values())
    for name, mentioned in groups_by_server.items():
        now, requested_groups = set(before[name]), set(mentioned)
        joined = requested_groups if params["exclusive"] else now | requested_groups
        shall = now - requested_groups if params["state"] == "absent" else joined
        leaving = [before[name][group] for group in now - shall]
        touched.update(leaving)
        if shall != now:
            rows = instance_rows(connection, instance.c.id == ids[name])
            state_rules.check(connection, state_rules.RULES["change_security_groups"], rows)
        link = instance_security_group
        if leaving:
            connection.execute(sa.delete(link).where(link.c.instance_id == ids[name], link.c.group_id.in_(leaving)))
        joining = [{"instance_id": ids[name], "group_id": groups[group]} for group in sorted(shall - now)]
        if joining:
            connection.execute(sa.insert(link), joining)
    after = _memberships(instances_by(connection, uuids=uuids))
    changes = Changes()
    for name in groups_by_server:
        changes.note(name, sorted(before[name]), sorted(after[name]))
    return {
        **changes.result(
            "servers", [{"name": name, "security_groups": sorted(after[name])} for name in groups_by_server]
        ),
        "hosts": plan_for_members(connection, uuids, touched),
    }


def _memberships(servers: t.Iterable[Instance]) -> dict[str, dict[str, int]]:
    """Server -> its groups: name -> id."""
    return {server["name"]: {group["name"]: group["id"] for group in server["security_groups"]} for server in servers}
