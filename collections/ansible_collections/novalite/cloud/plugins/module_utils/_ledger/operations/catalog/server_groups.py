# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operations on server groups, for every door that knows them by ids."""

from __future__ import annotations

from ...placement import server_groups
from ...queries.identity import projects
from ...queries.placement import server_group_records
from ...queries.placement.server_group_records import ServerGroup
from ..call import Call


def create(call: Call, name: str, policy: str, *, max_server_per_host: int | None = None) -> ServerGroup:
    """Make a group of the caller's project. Raises as server_groups.create_server_group()."""
    project = {"id": call.project, "name": str(projects.project_name(call.connection, call.project))}
    number = server_groups.create_server_group(
        call.connection, project, name, policy, max_server_per_host, call.user_id
    )
    return next(row for row in server_group_records.server_groups(call.connection, call.project) if row.id == number)


def delete(call: Call, row: ServerGroup) -> None:
    """Delete a server group. Its servers stay where they are."""
    server_groups.delete_server_group(call.connection, row.id)
