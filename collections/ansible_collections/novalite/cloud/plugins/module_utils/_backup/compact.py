# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Making chains of backups shorter, at the store alone: a full backup of an incremental one, and removing one that
others need. What is new is complete before what it replaces goes, so a run that is killed leaves all backups whole."""

from __future__ import annotations

import contextlib
import dataclasses
import typing as t

from .._errors import NovaliteError
from .._host.locks import locked
from . import manifest, replay
from .catalog import Catalog
from .manifest import FULL, INCREMENTAL, Manifest
from .store import Restic, Store
from .whole import Whole
from .writing import Writing

LONGEST = 7  # incremental backups that follow a full one
_LOCK_TIMEOUT = 5.0  # seconds
PRUNE_TIMEOUT = 6 * 3600.0  # seconds


def is_due(needed: t.Sequence[Manifest], longest: int = LONGEST) -> bool:
    """Tell whether the last of these backups, the others being what it needs, should become a full one: it needs more
    than `longest` others, or what changed since the full ones has come to more than half of the disks."""
    changed = sum(disk.written.data for each in needed[1:] for disk in each.disks if disk.kind == INCREMENTAL)
    return len(needed) > longest + 1 or changed * 2 > sum(disk.size for disk in needed[-1].disks)


def make_full(store: Store, server: str, backup: str) -> Manifest:
    """Make a full backup of an incremental one, of what is in the store. Raises NovaliteError, also when what is
    put together is not what was saved: the backup stays as it was."""
    with locked(f"backup-{server}", timeout=_LOCK_TIMEOUT):
        catalog = Catalog(store, server)
        made = _rewrite(catalog, catalog.chain(backup))
        catalog.refresh()
        store.forget(catalog.left_over())
        return made


def delete(store: Store, server: str, backup: str) -> list[str]:
    """Remove a backup; returns the names of those that changed it, which change now what it changed itself. Raises
    NovaliteError: all of them are there then."""
    with locked(f"backup-{server}", timeout=_LOCK_TIMEOUT):
        catalog = Catalog(store, server)
        gone = catalog.load(backup)
        children = [name for name in catalog.names() if catalog.parent_of(name) == backup]
        for child in children:
            _rewrite(catalog, [gone, catalog.load(child)])
        catalog.refresh()
        store.forget([*catalog.left_over(), *catalog.objects_of(backup)])
        return children


def remove(store: Restic, owner: str, backup_id: str, check_mode: bool) -> list[Manifest] | None:
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
        changed = delete(store, owner, backup_id)
    else:
        store.forget(there)
    store.prune(PRUNE_TIMEOUT)
    catalog.refresh()
    return [catalog.load(name) for name in changed]


def _rewrite(catalog: Catalog, needed: t.Sequence[Manifest]) -> Manifest:
    """Store the last of these backups anew, so that it needs none of the others; what the first of them changes, it
    changes then."""
    first, last = needed[0], needed[-1]
    layers = {disk.name: _layers(needed, disk.name) for disk in last.disks}
    kinds = {name: of_disk[0][1].kind for name, of_disk in layers.items()}
    parent = first.parent if INCREMENTAL in kinds.values() else None
    new = dataclasses.replace(last, parent=parent)
    with Writing(catalog.store, catalog.server, last.backup) as writing:
        for disk in last.disks:
            reason = disk.reason
            if kinds[disk.name] == FULL and disk.kind == INCREMENTAL:
                reason = f"it was put together of backups {', '.join(each.backup for each, _disk in layers[disk.name])}"
            saved = dataclasses.replace(disk, kind=kinds[disk.name], reason=reason)
            with contextlib.ExitStack() as stack:
                rows = replay.put_together(catalog, layers[disk.name], stack)
                writing.add(saved, new.header(saved), rows, Whole(disk.size) if saved.kind == FULL else None)
        return writing.finish(new)


def _layers(needed: t.Sequence[Manifest], name: str) -> list[tuple[Manifest, manifest.SavedDisk]]:
    """List what of the disk is in these backups, from its newest full copy on."""
    layers: list[tuple[Manifest, manifest.SavedDisk]] = []
    for each in reversed(needed):
        if name not in {disk.name for disk in each.disks}:
            raise NovaliteError(f"backup {needed[-1].backup} has disk {name} of backup {each.backup}, which lacks it")
        layers.insert(0, (each, each.disk(name)))
        if each.disk(name).kind == FULL:
            break
    return layers
