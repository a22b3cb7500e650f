# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Limits of what a project's servers name, when it asks for them in the words of the module `server`."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._json import JsonMapping
from ..catalog import volume_types
from ..network import network_choices
from ..queries import lookups

Record = JsonMapping


def check(connection: sa.Connection, project_id: str, servers: t.Iterable[Record], by_admin: bool) -> None:
    """Raise for what servers (as module `server` takes them) name and a member of the project may not.

    NotFoundError for a flavor or a volume type that it does not see, ForbiddenError for an address on a network of
    others. Playbooks are an operator's, who may name any: so may an administrator.
    """
    if by_admin:
        return
    for server in servers:
        if server.get("flavor"):
            lookups.flavor_by_name(connection, server["flavor"], project_id)
        for volume in server.get("volumes") or ():
            if volume.get("type"):
                volume_types.type_usable(connection, volume["type"], project_id, everything=False)
        for nic in server.get("networks") or ():
            if isinstance(nic, dict) and nic.get("fixed_ip"):
                (row,) = lookups.networks_by_name(connection, [nic["name"]], project_id)
                network_choices.check(
                    row["uuid"], row["owner"], project_id, {"fixed_ips:ip_address": nic["fixed_ip"]}, by_admin
                )
