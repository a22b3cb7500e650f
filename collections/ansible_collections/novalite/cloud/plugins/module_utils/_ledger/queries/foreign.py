# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Use of compute hosts by guests that are not in this ledger: somebody's own, or another ledger's."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..db.tables import instance

RUNNING, ALL, NONE = "running", "all", "none"
COUNTS = (RUNNING, ALL, NONE)  # which of them count, by a host's `count_foreign`
_BATCH = 5000  # UUIDs in one query; SQLite takes 32766 variables

Domain = t.Mapping[str, t.Any]


class Usage(t.NamedTuple):
    """Sums over guests, by the names of their columns in compute_host. Memory in MiB, disk in GiB."""

    vcpus_others: int = 0
    memory_mb_others: int = 0
    disk_gb_others: int = 0


def known_uuids(connection: sa.Connection, uuids: t.Iterable[str]) -> set[str]:
    """Those of the UUIDs that are, or were, instances of this ledger.

    What was deleted just now may still be in a host's list from before, and what a crash left of it is going to be
    removed (orphans.py): neither is somebody else's.
    """
    wanted = sorted(set(uuids))
    known: set[str] = set()
    for begin in range(0, len(wanted), _BATCH):
        batch = wanted[begin : begin + _BATCH]
        known.update(connection.execute(sa.select(instance.c.uuid).where(instance.c.uuid.in_(batch))).scalars())
    return known


def usage(domains: t.Iterable[Domain], known: t.Container[str], count: str) -> Usage:
    """Return what those `domains` of a host take that are not `known`.

    With `running`, those that are off count with their disks alone: nobody gave their memory away, but their files are
    there, and grow when they start. `all` counts them as if they ran, `none` counts nobody.
    """
    if count == NONE:
        return Usage()
    sums = [0, 0, 0]
    for domain in domains:
        if domain["uuid"] in known:
            continue
        if domain["state"] == "running" or count == ALL:
            sums[0] += domain["vcpus"]
            sums[1] += domain["memory_mb"]
        sums[2] += domain.get("disk_gb") or 0
    return Usage(*sums)
