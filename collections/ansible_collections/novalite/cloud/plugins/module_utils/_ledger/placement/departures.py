# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hosts that instances have left: what those have of them afterwards is a leftover, though that alone is no proof yet.

Written in the transaction by which an instance leaves a host, never concluded afterwards.
"""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._drift import proofs
from ..db.tables import instance
from ..db.tables_migrations import departure

DELETED, EVACUATED, MOVED, REVERTED = "deleted", "evacuated", "moved", "reverted"
RETRIED, SHELVED = proofs.RETRIED, proofs.SHELVED  # which are proof of more


def leave(connection: sa.Connection, uuids: t.Iterable[str], host: str | None, reason: str, now: int) -> None:
    """Write down that these instances left `host` (None: they were on none); nothing of one that is there."""
    going, c = set(uuids), instance.c
    if host is None or not going:
        return
    there = sa.select(c.uuid).where(c.uuid.in_(sorted(going)), c.deleted == 0, c.host == host)
    gone = sorted(going - set(connection.execute(there).scalars()))
    if gone:
        arrive(connection, gone, host)
        rows = [{"instance_uuid": uuid, "host": host, "reason": reason, "left_at": now} for uuid in gone]
        connection.execute(sa.insert(departure), rows)


def leave_all(connection: sa.Connection, hosts: t.Mapping[str, str | None], reason: str, now: int) -> None:
    """Record that each instance (UUID) left its host of `hosts`, as leave() does for one host."""
    for host in sorted({host for host in hosts.values() if host}):
        leave(connection, [uuid for uuid in hosts if hosts[uuid] == host], host, reason, now)


def arrive(connection: sa.Connection, uuids: t.Iterable[str], host: str | None) -> None:
    """Record that these instances come to `host`: what is there of them is theirs."""
    of_these = departure.c.instance_uuid.in_(sorted(set(uuids)))
    connection.execute(sa.delete(departure).where(of_these, departure.c.host == host))


def arrive_all(connection: sa.Connection, hosts: t.Mapping[str, str | None]) -> None:
    """Record that each instance (UUID) comes to its host of `hosts`, as arrive() does for one host."""
    for host in sorted({host for host in hosts.values() if host}):
        arrive(connection, [uuid for uuid in hosts if hosts[uuid] == host], host)


def of_instances(connection: sa.Connection, uuids: t.Collection[str]) -> dict[str, dict[str, str]]:
    """{UUID: {host that it left: reason}}."""
    hosts: dict[str, dict[str, str]] = {}
    for row in connection.execute(sa.select(departure).where(departure.c.instance_uuid.in_(sorted(uuids)))):
        hosts.setdefault(row.instance_uuid, {})[row.host] = row.reason
    return hosts
