# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Server groups by id, for those who list them and for the API, which knows them by nothing else."""

from __future__ import annotations

import dataclasses

import sqlalchemy as sa

from ...db.tables import instance, server_group, server_group_member


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
