# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Backups of volumes of their own: taken, brought back, removed. Each volume has a repository in the store.

A volume that a running guest has is read through that guest's QEMU, and any other one as a file. Both go on in one
chain of backups, as long as the volume is the same disk of its guest (`vdb`).
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import secrets
import typing as t

from .._disk import layout
from .._disk import volumes as data
from .._errors import NovaliteError
from .._host.files import remove_file
from .._json import JsonMapping, JsonObject
from .._snapshots import server_snapshots
from . import compact, domain_xml, manifest, replay
from .catalog import Catalog
from .domain_xml import Disk
from .manifest import record_of
from .servers import ABSENT, RESTORED, TAKEN, Place, scratch_of
from .take import Request, take

with contextlib.suppress(ImportError):  # connect() reports it
    import libvirt

STATES = (TAKEN, RESTORED, ABSENT)
_NAME = "volume"  # of the disk in a backup of a volume that was in no guest


@dataclasses.dataclass(frozen=True)
class Spec:
    """The backup `backup_id`, one of those of the volume `chain`, of or for the `volume`, as step volume_disk takes
    it. With `disk`, it is one of a server's backups, and this disk of it (`vdb`) becomes a new volume."""

    backup_id: str
    chain: str
    volume: JsonMapping | None = None
    full: bool = False
    disk: str | None = None

    @property
    def id(self) -> str:
        """The id by which its outcome is known: that of the backup, or of the volume that is new."""
        return self.backup_id if self.disk is None or self.volume is None else str(self.volume["id"])


@dataclasses.dataclass
class Done:
    """Result of one backup: what was done (in check mode: would be), the fields of the record that are known anew, the
    `records` of other backups that changed with it, and `error`, why it was not done."""

    id: str
    action: str = "none"
    record: JsonObject = dataclasses.field(default_factory=dict)
    records: list[JsonObject] = dataclasses.field(default_factory=list)
    error: str | None = None


_Connect = t.Callable[[], "libvirt.virConnect"]


def ensure(
    specs: t.Sequence[Spec],
    state: str,
    place: Place,
    connect: _Connect,
    check_mode: bool = False,
    warn: t.Callable[[str], None] = lambda warning: None,
) -> list[Done]:
    """Bring each backup into its `state` (of STATES), one after the other: what failed says so in its own `error`."""
    done = []
    for spec in specs:
        result = Done(spec.id, {TAKEN: "take", RESTORED: "restore", ABSENT: "delete"}[state])
        try:
            if state == ABSENT:
                changed = compact.remove(place.store(spec.chain), spec.chain, spec.backup_id, check_mode)
                result.action = "none" if changed is None else "delete"
                result.records = [record_of(saved) for saved in changed or ()]
            elif check_mode:
                pass
            elif state == TAKEN:
                _take(spec, result, place, connect, warn)
            else:
                _restore(spec, place)
        except (NovaliteError, OSError, libvirt.libvirtError) as error:
            of = f"volume {spec.chain}" if spec.disk is None else f"server {spec.chain}"
            result.error = f"backup {spec.backup_id} of {of}: {error}"
        done.append(result)
    return done


def _volume_of(spec: Spec) -> JsonMapping:
    if spec.volume is None:
        raise NovaliteError("its volume is not known: give volume, as step volume_disk takes it")
    return spec.volume


def _take(spec: Spec, done: Done, place: Place, connect: _Connect, warn: t.Callable[[str], None]) -> None:
    volume = _volume_of(spec)
    store = place.store(spec.chain)
    store.prepare()
    catalog = Catalog(store, spec.chain)
    newest = catalog.load(catalog.names()[-1]).disks[0].name if catalog.names() else _NAME
    disk = Disk(newest, spec.chain, layout.volume_path(volume, place.state_dir), volume["format"])
    request = Request(
        spec.backup_id,
        volume.get("instance_uuid") or "",
        scratch_of(place),
        freeze=False,  # a snapshot of one volume has none of the others at rest
        full=spec.full,
        volume=disk,
    )
    taken = take(connect(), request, store)
    saved = taken.manifest
    try:
        catalog.refresh()
        if compact.is_due(catalog.chain(spec.backup_id)):
            saved = compact.make_full(store, spec.chain, spec.backup_id)
    except NovaliteError as error:  # the backup is there all the same, and the next one tries again
        warn(f"backup {spec.backup_id} was taken, and needs many others: {error}")
    done.record = {**record_of(saved), "moved": taken.read}


def _restore(spec: Spec, place: Place) -> None:
    """Give the volume, which no guest has open, the data of the backup: all of it is compared before anything of the
    volume is touched."""
    volume = _volume_of(spec)
    catalog = Catalog(place.known(spec.chain), spec.chain)
    needed = catalog.chain(spec.backup_id)
    if spec.disk is None:
        (disk,) = needed[-1].disks
    else:
        disk = needed[-1].disk(spec.disk)
    path = os.path.join(place.scratch(), f".restore-{secrets.token_hex(8)}")
    room = sum(each.written.data for _backup, each in manifest.disk_chain(needed, disk.name))
    server_snapshots.check_room(room, place.scratch(), f"backup {spec.backup_id}")
    try:
        replay.restore(catalog, spec.backup_id, {disk.name: path})
        data.replace(volume, path, domain_xml.QCOW2, place.state_dir)
    finally:
        remove_file(path)
