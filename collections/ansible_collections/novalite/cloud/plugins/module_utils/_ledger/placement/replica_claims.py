# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Room on a second host for the copy of a server's disks: chosen as for a server that moves, and claimed.

A copy takes disk space alone. What it claims is in `replica.disk_gb`, and among what its host says is used.
"""

from __future__ import annotations

import dataclasses
import typing as t

import sqlalchemy as sa

from ..._model.instance import Instance
from ..._scheduling.options import Options
from ..._scheduling.select import select
from ..db import clock
from ..db.tables import compute_host
from ..queries.groups import lock_groups
from . import claims
from .compute_hosts import EVER, host_states
from .migration_claims import request_at


class Room(t.NamedTuple):
    """Host that a copy goes to (None: there is none, for the reason in `message`), and the GiB claimed there."""

    host: str | None
    disk_gb: int
    message: str


def place(connection: sa.Connection, server: Instance, host: str | None = None) -> Room:
    """Choose another host than the server's own for a copy of its disks, or take `host`, and claim the room there.

    Filters and the server's group hold as they do for the server itself. Raises ConflictError when other runs changed
    the hosts under ten choices in a row.
    """
    lock_groups(connection, [server])
    now, options = clock.seconds(connection), Options.of(None)
    asks_instances = claims.asks_for_instances([server], options)
    limit_to = None if host is None else [host]

    def choose(lock: bool) -> Room:
        states, versions = host_states(connection, now, limit_to, EVER, lock, asks_instances)
        request = request_at(connection, server)
        request = dataclasses.replace(request, vcpus=0, memory_mb=0, numa=None, devices=None)
        others = [state for state in states if state.name != server["host"]]
        (decision,) = select(others, [request], claims.DEFAULT_CHOICE, options=options)
        if decision.host is not None:
            claims.take_room(connection, [decision], versions, grows=True)
        return Room(decision.host, request.disk_gb if decision.host else 0, decision.message)

    return claims.choose_and_claim(connection, choose)


def add(connection: sa.Connection, host: str, disk_gb: int) -> None:
    """Add to what a host says is used, without a guard: what is there is there. Less than nothing gives room back."""
    c = compute_host.c
    values = {"disk_gb_used": c.disk_gb_used + disk_gb, "generation": c.generation + 1}
    connection.execute(sa.update(compute_host).where(c.name == host).values(**values))


def size_of(connection: sa.Connection, server: Instance) -> int:
    """Return the GiB that a copy of the server's disks claims."""
    return request_at(connection, server).disk_gb
