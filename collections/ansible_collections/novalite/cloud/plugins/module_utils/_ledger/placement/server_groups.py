# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Server groups: servers that shall run together, or apart; and who joins and leaves."""

from __future__ import annotations

import typing as t
import uuid

import sqlalchemy as sa

from ..._errors import ConflictError, NotFoundError, NovaliteError
from ..._json import JsonMapping, JsonObject
from ..._rules.hints import SERVERS, Hints
from ..._rules.records import Changes, check_range, checked_names
from ..db import tables
from ..db.tables import server_group
from ..identity.quotas import check_quota
from ..queries.lookups import project_by_name, unknown

POLICIES = ("affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity")

Record = JsonObject


def write_server_groups(connection: sa.Connection, project: str, items: t.Sequence[JsonMapping]) -> JsonObject:
    """Make or change server groups of the project of this name: `server_groups`, `changed` and `diff`.

    Raises ConflictError for another policy of a group that has servers (they stand where the old one put them),
    QuotaError, NovaliteError for a policy that makes no sense.
    """
    owner, names, mine, there = _named(connection, project, items)
    table = tables.server_group
    members = _members(connection, [row.id for row in there.values()])
    changes = Changes()
    for item, name in zip(items, names):
        old = there.get(name)
        after = _requested_rules(item, name, old)
        if not changes.note(name, _rules_of(old), after):
            continue
        if old is None:
            connection.execute(sa.insert(table).values(id=str(uuid.uuid4()), project_id=owner, name=name, **after))
            continue
        if members[old.id]:
            raise ConflictError(
                f"server group {name!r} has {len(members[old.id])} servers that stand where its policy {old.policy} "
                "put them: make another group, or delete them first"
            )
        connection.execute(sa.update(table).where(table.c.id == old.id).values(**after))
    if changes.made:
        count = sa.select(sa.func.count()).select_from(table).where(table.c.project_id == owner)
        check_quota(connection, owner, "server_groups", connection.execute(count).scalar_one())
    rows = connection.execute(sa.select(table).where(mine).order_by(table.c.name)).all()
    return changes.result(
        "server_groups",
        [
            {"id": row.id, "name": row.name, **(_rules_of(row) or {}), "members": members.get(row.id, [])}
            for row in rows
        ],
    )


def remove_server_groups(connection: sa.Connection, project: str, items: t.Sequence[JsonMapping]) -> JsonObject:
    """Remove the groups of this project that `items` name. As in Nova, their servers stay where they are."""
    _owner, names, mine, there = _named(connection, project, items)
    changes = Changes()
    for name in names:
        changes.note(name, _rules_of(there.get(name)), None)
    connection.execute(sa.delete(tables.server_group).where(mine))
    return changes.result("server_groups", [])


def _named(
    connection: sa.Connection, project: str, items: t.Sequence[JsonMapping]
) -> tuple[str, list[str], sa.ColumnElement[bool], dict[str, sa.Row[t.Any]]]:
    """The project's id, the names of `items`, what selects these groups of the project, and those that there are."""
    table, owner = tables.server_group, project_by_name(connection, project, lock=True)["id"]
    names = checked_names("server group", items)
    mine = sa.and_(table.c.project_id == owner, table.c.name.in_(names))
    return owner, names, mine, {row.name: row for row in connection.execute(sa.select(table).where(mine))}


def groups_by_name_or_id(connection: sa.Connection, names: t.Iterable[str], project_id: str) -> dict[str, Record]:
    """The project's server groups by what they were called, a name or an id. Raises NotFoundError for one unknown."""
    distinct_names = sorted(set(names))
    table = tables.server_group
    mine = table.c.project_id == project_id
    rows = (
        connection.execute(
            sa.select(table).where(mine, sa.or_(table.c.name.in_(distinct_names), table.c.id.in_(distinct_names)))
        )
        .mappings()
        .all()
    )
    record_by_name_or_id = {row["id"]: dict(row) for row in rows}
    record_by_name_or_id.update({row["name"]: dict(row) for row in rows})
    for name in distinct_names:
        if name not in record_by_name_or_id:
            others = connection.execute(sa.select(table.c.name).where(mine).order_by(table.c.name)).scalars()
            raise unknown("server group", name, others)
    return {name: record_by_name_or_id[name] for name in distinct_names}


def servers_by_name_or_id(
    connection: sa.Connection, names: t.Iterable[str], project_id: str, being_made: t.Mapping[str, str]
) -> dict[str, str]:
    """UUIDs of the project's servers by what they were called. `being_made` are those of the same call, by name.

    Raises NotFoundError for one unknown: a hint that silently meant nothing would be worse.
    """
    distinct_names = sorted(set(names))
    table = tables.instance
    rows = connection.execute(
        sa.select(table.c.name, table.c.uuid).where(
            table.c.project_id == project_id,
            table.c.deleted == 0,
            sa.or_(table.c.name.in_(distinct_names), table.c.uuid.in_(distinct_names)),
        )
    ).all()
    uuid_by_name_or_id = {**being_made, **{row.uuid: row.uuid for row in rows}, **{row.name: row.uuid for row in rows}}
    for name in distinct_names:
        if name not in uuid_by_name_or_id:
            raise NotFoundError(f"a scheduler hint names the server {name!r}, which the project does not have")
    return {name: uuid_by_name_or_id[name] for name in distinct_names}


def join(connection: sa.Connection, project_id: str, members: t.Mapping[str, str]) -> None:
    """Put new instances (UUID -> group id) into their groups. Raises QuotaError for more than a group may have."""
    if not members:
        return
    table = tables.server_group_member
    connection.execute(
        sa.insert(table),
        [{"instance_uuid": instance_uuid, "group_id": group} for instance_uuid, group in sorted(members.items())],
    )
    counted = (
        sa.select(tables.server_group.c.name, sa.func.count().label("members"))
        .join(table, table.c.group_id == tables.server_group.c.id)
        .where(table.c.group_id.in_(sorted(set(members.values()))))
        .group_by(tables.server_group.c.name)
    )
    for row in connection.execute(counted):
        check_quota(connection, project_id, "server_group_members", row.members, f"server group {row.name!r}")


def leave(connection: sa.Connection, uuids: t.Iterable[str]) -> None:
    """Take instances that are gone out of their groups."""
    table = tables.server_group_member
    connection.execute(sa.delete(table).where(table.c.instance_uuid.in_(sorted(set(uuids)))))


def _members(connection: sa.Connection, group_ids: t.Sequence[str]) -> dict[str, list[str]]:
    table = tables.server_group_member
    members_by_group: dict[str, list[str]] = {group_id: [] for group_id in group_ids}
    query = sa.select(table).where(table.c.group_id.in_(group_ids)).order_by(table.c.instance_uuid)
    for row in connection.execute(query):
        members_by_group[row.group_id].append(row.instance_uuid)
    return members_by_group


def _requested_rules(item: JsonMapping, name: str, old: t.Any) -> Record:
    policy = item["policy"] or (old.policy if old is not None else None)
    if policy is None:
        raise NovaliteError(f"server group {name!r} does not exist yet: give its policy, one of {', '.join(POLICIES)}")
    limit = item["max_server_per_host"]
    if limit is not None:
        if policy != "anti-affinity":
            raise NovaliteError(
                f"server group {name!r}: max_server_per_host means something for anti-affinity only, not for {policy}"
            )
        check_range(f"server group {name!r}: max_server_per_host", limit, 1)
    elif old is not None and policy == old.policy:
        limit = old.max_server_per_host
    return {"policy": policy, "max_server_per_host": limit or 1}


def _rules_of(row: t.Any) -> Record | None:
    return None if row is None else {"policy": row.policy, "max_server_per_host": row.max_server_per_host}


def resolve_hints(
    connection: sa.Connection, project_id: str, hints_by_name: t.Mapping[str, Hints], being_made: t.Mapping[str, str]
) -> dict[str, Hints]:
    """The same hints by server name, with ids in place of the names of groups and servers.

    `being_made` are the UUIDs of the servers of the same call, by name. Raises NotFoundError for an unknown name.
    """
    groups = {hints["group"] for hints in hints_by_name.values() if "group" in hints}
    servers = {server for hints in hints_by_name.values() for key in SERVERS for server in hints.get(key, [])}
    group_of = groups_by_name_or_id(connection, groups, project_id) if groups else {}
    uuid_of = servers_by_name_or_id(connection, servers, project_id, being_made) if servers else {}
    resolved = {}
    for name, hints in hints_by_name.items():
        server_hints = dict(hints)
        if "group" in server_hints:
            server_hints["group"] = group_of[server_hints["group"]]["id"]
        for key in SERVERS:
            if key in server_hints:
                server_hints[key] = [uuid_of[server] for server in server_hints[key]]
                if being_made.get(name) in server_hints[key]:
                    raise NovaliteError(f"hint {key} of '{name}' names that server itself: name others")
        resolved[name] = server_hints
    return resolved


def create_server_group(
    connection: sa.Connection,
    project: t.Mapping[str, str],
    name: str,
    policy: str,
    most: int | None,
    user_id: str | None = None,
) -> str:
    """Make a group of `project` (id, name); returns its id. Raises ConflictError for a name that it has, QuotaError."""
    # one writer for each project at a time, from this look on: a second request would change the group of the first
    project_by_name(connection, project["name"], lock=True)
    mine = sa.and_(server_group.c.project_id == project["id"], server_group.c.name == name)
    query = sa.select(server_group.c.id).where(mine)
    if connection.execute(query).first() is not None:
        raise ConflictError(f"the project has a server group {name!r} already: names are unique here")
    item = {"name": name, "policy": policy, "max_server_per_host": most}
    write_server_groups(connection, project["name"], [item])
    connection.execute(sa.update(server_group).where(mine).values(user_id=user_id))
    return str(connection.execute(query).scalar_one())


def delete_server_group(connection: sa.Connection, group_id: str) -> None:
    """Delete a server group. Its servers stay where they are."""
    connection.execute(sa.delete(server_group).where(server_group.c.id == group_id))
