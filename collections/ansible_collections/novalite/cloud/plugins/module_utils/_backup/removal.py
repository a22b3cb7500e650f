# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Removal of a backup of a server or a volume from its repository."""

from __future__ import annotations

import typing as t

from . import compact
from .catalog import Catalog
from .manifest import Manifest
from .store import Restic

PRUNE_TIMEOUT = 6 * 3600.0  # seconds


def delete(store: Restic, owner: str, backup_id: str, check_mode: bool) -> list[Manifest] | None:
    """Remove a backup of a server or a volume, and what a run left of it that was killed. Returns those that
    changed with it; None where nothing of it is there."""
    if store.is_missing:
        return None
    if not check_mode:
        store.prepare()
    catalog = Catalog(store, owner)
    there = catalog.objects_of(backup_id)
    if not there:
        return None
    if check_mode:
        return []
    changed: t.Collection[str] = ()
    if backup_id in catalog.names():
        changed = compact.delete(store, owner, backup_id)
    else:
        store.forget(there)
    store.prune(PRUNE_TIMEOUT)
    catalog.refresh()
    return [catalog.load(name) for name in changed]
