# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Distinction between this ledger's guests on a compute host, and those of somebody else, or of another ledger."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ...db.tables import instance

_BATCH = 5000  # UUIDs in one query; SQLite takes 32766 variables


def known_uuids(connection: sa.Connection, uuids: t.Iterable[str]) -> set[str]:
    """Return those of the UUIDs that are, or were, instances of this ledger.

    What was deleted just now may still be in a host's list from before, and what a crash left of it is going to be
    removed (orphans.py): neither is somebody else's.
    """
    sorted_uuids = sorted(set(uuids))
    known: set[str] = set()
    for begin in range(0, len(sorted_uuids), _BATCH):
        batch = sorted_uuids[begin : begin + _BATCH]
        known.update(connection.execute(sa.select(instance.c.uuid).where(instance.c.uuid.in_(batch))).scalars())
    return known
