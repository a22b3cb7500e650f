# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Server groups by id, for those who list them and for the API, which knows them by nothing else."""

from __future__ import annotations

import dataclasses
import typing as t

import sqlalchemy as sa

from ..._errors import ConflictError
from ..db.tables import instance, server_group, server_group_member
from .server_groups import write_server_groups


@dataclasses.dataclass(frozen=True)
class ServerGroup:
    """A server group of a project."""

    id: str
    project_id: str
    name: str
    policy: str
    max_server_per_host: int
    user_id: str | None  # who asked for it; None: a playbook
    members: list[str]  # UUIDs


def server_groups(connection: sa.Connection, project_id: str | None) -> list[ServerGroup]:
    """The groups of a project (None: of all)."""
    query = sa.select(server_group).order_by(server_group.c.project_id, server_group.c.name)
    if project_id is not None:
        query = query.where(server_group.c.project_id == project_id)
    group_by_id = {row["id"]: ServerGroup(**row, members=[]) for row in connection.execute(query).mappings()}
    member = server_group_member
    rows = connection.execute(
        sa.select(member.c.group_id, member.c.instance_uuid)
        .join(instance, instance.c.uuid == member.c.instance_uuid)
        .where(member.c.group_id.in_(list(group_by_id)), instance.c.deleted == 0)
        .order_by(instance.c.id)
    )
    for group_id, uuid in rows:
        group_by_id[group_id].members.append(uuid)
    return list(group_by_id.values())


def create_server_group(
    connection: sa.Connection,
    project: t.Mapping[str, str],
    name: str,
    policy: str,
    most: int | None,
    user_id: str | None = None,
) -> str:
    """Make a group of `project` (id, name); returns its id. Raises ConflictError for a name that it has, QuotaError."""
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
