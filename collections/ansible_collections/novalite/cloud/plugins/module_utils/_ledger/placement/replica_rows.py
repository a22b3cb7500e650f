# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rows of copies of servers' disks: what is written to them, and what becomes of them when a host gives up its copy."""

from __future__ import annotations

import dataclasses
import typing as t

import sqlalchemy as sa

from ..._healing import states
from ..._json import JsonMapping, JsonObject
from ..db import clock
from ..db.tables import compute_host
from ..db.tables_images import replica
from ..db.tables_migrations import host_watch

_OF_COPY = ("copy_id", "taken_at", "kind", "reason", "moved", "consistency")  # columns of the newest complete one
SILENT = 600  # seconds without an answer, after which copies go to another host: a reboot takes less


@dataclasses.dataclass(frozen=True)
class Outage:
    """Reason for which a host gets no copies: one that only does not answer, since `silent_since`, may again."""

    reason: str
    silent_since: float | None = None

    @property
    def is_certain(self) -> bool:
        """Tell whether a copy is not even to be tried."""
        return self.silent_since is None


def outages(connection: sa.Connection, hosts: t.Collection[str]) -> dict[str, Outage]:
    """Return what the ledger and the watch know against these hosts, by their names."""
    now, c, w = clock.seconds(connection), compute_host.c, host_watch.c
    down = sa.or_(~c.up, w.state.in_(states.PROVEN), w.silent_since <= now - SILENT)
    query = sa.select(c.name, c.up, c.down_reason, w.state, w.silent_since).join(
        host_watch, w.host == c.name, isouter=True
    )
    known: dict[str, Outage] = {}
    for row in connection.execute(query.where(down, c.name.in_(sorted(hosts)))):
        if row.state in states.PROVEN:
            known[row.name] = Outage(f"{row.name} is dead")
        elif not row.up:
            known[row.name] = Outage(f"{row.name} is down: {row.down_reason or 'no reason is recorded'}")
        else:
            known[row.name] = _silence(row.name, row.silent_since, now)
    return known


def outage_of(
    connection: sa.Connection, host: str, server_host: str, silent_since: int | None, answered_at: int | None
) -> Outage | None:
    """Return why `host` gets no copy of a server on `server_host`; None if nothing is known against it. Copies found it
    silent since then, and came through last at `answered_at`: what was seen of its silence before that is over. Where
    both hosts are silent, it is rather the network that is."""
    now, known = clock.seconds(connection), outages(connection, (host, server_host))
    if silent_since is not None and now - silent_since >= SILENT:
        known.setdefault(host, _silence(host, silent_since, now))
    outage = known.get(host)
    if outage is None or outage.silent_since is None:
        return outage
    return None if server_host in known or outage.silent_since < (answered_at or 0) else outage


def _silence(host: str, since: float, now: int) -> Outage:
    return Outage(f"{host} did not answer for {int(now - since) // 60} min", since)


def leave(connection: sa.Connection, uuid: str, host: str | None) -> None:
    """Give up what `host` has of the server's copy, or was to get, and its room there; it removes the files with the
    next run. The host of the next copy, if there is one, is that of the copy then."""
    row = row_of(connection, uuid)
    if host is None or host not in (row.host, row.next_host):
        return
    held = row.next_gb
    values: JsonObject = {"next_host": None, "next_gb": 0, "fault": None, "silent_since": None}
    if host == row.host:
        held = row.disk_gb
        values |= {**dict.fromkeys(_OF_COPY), "host": row.next_host, "disk_gb": row.next_gb}
    add(connection, host, -held)
    write(connection, uuid, {**values, "former": sorted({*row.former, host})})


def leave_host(connection: sa.Connection, host: str) -> None:
    """Give up all copies of the compute host `host`, which leaves the cloud: they get another one the next time."""
    c = replica.c
    there = sa.select(c.instance_uuid).where(sa.or_(c.host == host, c.next_host == host))
    for uuid in connection.scalars(there).all():
        leave(connection, uuid, host)
    connection.execute(sa.update(replica).where(c.requested_host == host).values(requested_host=None))


def write(connection: sa.Connection, uuid: str, values: JsonMapping) -> None:
    """Record `values` of the copy of this server's disks."""
    values = {**values, "updated_at": clock.seconds(connection)}
    connection.execute(sa.update(replica).where(replica.c.instance_uuid == uuid).values(**values))


def row_of(connection: sa.Connection, uuid: str) -> sa.Row[t.Any]:
    """Return the row of this server's copy, which nobody else changes until the transaction ends."""
    return connection.execute(sa.select(replica).where(replica.c.instance_uuid == uuid).with_for_update()).one()


def add(connection: sa.Connection, host: str, disk_gb: int) -> None:
    """Add to what a host says is used, without a guard: what is there is there. Less than nothing gives room back."""
    c = compute_host.c
    values = {"disk_gb_used": c.disk_gb_used + disk_gb, "generation": c.generation + 1}
    connection.execute(sa.update(compute_host).where(c.name == host).values(**values))
