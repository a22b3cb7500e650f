# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Room on a second host for the copy of a server's disks: chosen as for a server that moves, and claimed.

A copy takes disk space alone. What it claims is in `replica.disk_gb` and `next_gb`, and among what its
hosts say is used.
"""

from __future__ import annotations

import dataclasses
import typing as t

import sqlalchemy as sa

from ..._errors import ConflictError
from ..._model.instance import Instance
from ..._scheduling.options import Options
from ..._scheduling.rows import Group
from ..._scheduling.select import select
from ..db import clock
from ..db.tables import server_group_member
from ..db.tables_images import replica
from ..queries.placement.groups import lock_groups
from ..queries.placement.host_states import EVER, host_states
from . import claims, replica_rows
from .migration_claims import request_at


class Room(t.NamedTuple):
    """Host that a copy goes to (None: there is none, for the reason in `message`), and the GiB claimed there."""

    host: str | None
    disk_gb: int
    message: str


def _place(connection: sa.Connection, server: Instance, host: str | None, excluded: t.Collection[str | None]) -> Room:
    """Choose a host for a copy of the server's disks that is none of `excluded`, or take `host`, and claim the room.

    Filters and the server's group hold as they will for the server once its own host is dead. Raises ConflictError when
    other runs changed the hosts under ten choices in a row.
    """
    lock_groups(connection, [server])
    now, options = clock.seconds(connection), Options.of(None)
    asks_instances = claims.asks_for_instances([server], options)
    limit_to = None if host is None else [host]

    def choose(lock: bool) -> Room:
        states, versions = host_states(connection, now, limit_to, EVER, lock, asks_instances)
        request = request_at(connection, server, without=server["host"])
        group = request.group
        if host is None and group is not None and group.policy == "affinity" and not group.members:
            # who names a host moves them one after another
            request = dataclasses.replace(request, group=_with_copies(connection, group, request.uuid, excluded))
        request = dataclasses.replace(request, vcpus=0, memory_mb=0, numa=None, devices=None)
        others = [state for state in states if state.name not in excluded]
        (decision,) = select(others, [request], claims.DEFAULT_CHOICE, options=options)
        if decision.host is not None:
            claims.take_room(connection, [decision], versions, grows=True)
        return Room(decision.host, request.disk_gb if decision.host else 0, decision.message)

    return claims.choose_and_claim(connection, choose)


def _with_copies(connection: sa.Connection, group: Group, uuid: str, excluded: t.Collection[str | None]) -> Group:
    """Return the group of the server `uuid`, whose members are together on its host, with each where its copy is: there
    they will be together again. Copies on the `excluded` hosts are to follow this one."""
    member = server_group_member.c
    others = sa.select(member.instance_uuid).where(member.group_id == group.id, member.instance_uuid != uuid)
    query = sa.select(replica.c.instance_uuid, sa.func.coalesce(replica.c.next_host, replica.c.host).label("host"))
    copies = {
        row.instance_uuid: row.host
        for row in connection.execute(query.where(replica.c.every.is_not(None), replica.c.instance_uuid.in_(others)))
        if row.host is not None and row.host not in excluded
    }
    return dataclasses.replace(group, members=copies)


def choose(connection: sa.Connection, server: Instance, host: str | None, excluded: str | None = None) -> str:
    """Have the next copy go to `host`, or another one than `excluded`: beside the one that is there, which stays as it
    is until the next one is complete. Raises ConflictError where there is no room."""
    row = replica_rows.row_of(connection, server["uuid"])
    room = _place(connection, server, host, (server["host"], row.host, excluded))
    if room.host is None:
        raise ConflictError(f"there is no second host for the disks of '{server['name']}': {room.message}")
    names = ("host", "disk_gb") if row.host is None else ("next_host", "next_gb")
    former = [name for name in row.former if name != room.host]
    replica_rows.write(connection, row.instance_uuid, {**dict(zip(names, (room.host, room.disk_gb))), "former": former})
    return room.host


def size_of(connection: sa.Connection, server: Instance) -> int:
    """Return the GiB that a copy of the server's disks claims."""
    return request_at(connection, server).disk_gb
