# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operation `server_security_groups`: instances that run already join security groups, or leave them."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._json import JsonMapping, JsonObject
from ..._rules.records import Changes
from ..db.tables import instance, instance_security_group, security_group
from ..queries import adopted, lookups
from ..security.firewalls import plan_for_instances
from ..security.security_groups import DEFAULT_GROUP, ensure_default_group


def server_security_groups(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Put the instances `params["servers"]` (`{"name", "security_groups"}`) of a project into groups, or take them out.

    Returns `servers` with the groups that each is in, and `hosts`: the plan for the module `firewall` on every host
    that has to know, also when nothing changed here (an earlier run may not have reached them all). Raises
    NotFoundError for an unknown server or group.
    """
    owner = lookups.project_by_name(connection, params["project"], lock=True)["id"]
    wanted: dict[str, list[str]] = {}
    for item in params["servers"]:
        wanted.setdefault(item["name"], []).extend(item["security_groups"])
    ids = _instances(connection, owner, list(wanted))
    names = list(dict.fromkeys(name for groups in wanted.values() for name in groups))
    if DEFAULT_GROUP in names:
        ensure_default_group(connection, owner)
    found = lookups.security_groups_by_name(connection, names, owner) if names else []
    groups = {row["name"]: row["id"] for row in found}
    adopted.refuse(connection, [uuid for _id, uuid in ids.values()], "security groups of")

    before = _memberships(connection, ids)
    touched = set(groups.values())
    for name, mentioned in wanted.items():
        now, asked = set(before[name]), set(mentioned)
        joined = asked if params["exclusive"] else now | asked
        shall = now - asked if params["state"] == "absent" else joined
        leaving = [before[name][group] for group in now - shall]
        touched.update(leaving)
        link = instance_security_group
        if leaving:
            connection.execute(sa.delete(link).where(link.c.instance_id == ids[name][0], link.c.group_id.in_(leaving)))
        joining = [{"instance_id": ids[name][0], "group_id": groups[group]} for group in sorted(shall - now)]
        if joining:
            connection.execute(sa.insert(link), joining)
    after = _memberships(connection, ids)
    changes = Changes()
    for name in wanted:
        changes.note(name, sorted(before[name]), sorted(after[name]))
    return {
        **changes.result("servers", [{"name": name, "security_groups": sorted(after[name])} for name in wanted]),
        "hosts": plan_for_instances(connection, [uuid for _id, uuid in ids.values()], touched),
    }


def _instances(connection: sa.Connection, project_id: str, names: t.Sequence[str]) -> dict[str, tuple[int, str]]:
    """Name -> (id, UUID), in the order of `names`."""
    mine = sa.and_(instance.c.project_id == project_id, instance.c.deleted == 0)
    rows = connection.execute(
        sa.select(instance.c.name, instance.c.id, instance.c.uuid).where(mine, instance.c.name.in_(names))
    )
    found = {row.name: (row.id, row.uuid) for row in rows}
    for name in names:
        if name not in found:
            raise lookups.unknown_server(connection, project_id, name)
    return {name: found[name] for name in names}


def _memberships(connection: sa.Connection, ids: t.Mapping[str, tuple[int, str]]) -> dict[str, dict[str, int]]:
    """Server -> its groups: name -> id."""
    link = instance_security_group
    rows = connection.execute(
        sa.select(instance.c.name, security_group.c.name.label("group"), security_group.c.id)
        .select_from(
            link.join(instance, instance.c.id == link.c.instance_id).join(
                security_group, security_group.c.id == link.c.group_id
            )
        )
        .where(link.c.instance_id.in_([number for number, _uuid in ids.values()]))
    )
    found: dict[str, dict[str, int]] = {name: {} for name in ids}
    for row in rows:
        found[row.name][row.group] = row.id
    return found
