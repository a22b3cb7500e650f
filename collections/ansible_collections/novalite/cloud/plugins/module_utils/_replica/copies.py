# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Copies of servers' disks on their second host: what arrived whole is merged into them, and never lost on the way.

`replicas/<uuid>` in the state directory holds
* `copy.json`, which copy that is, and in which directory its disks are, qcow2 files that stand on no other one;
* that directory, by the id of the full copy that it began with;
* `delta`, what came whole and is to be merged. It is moved here after all of it was compared and is on the disk.

A full copy is made beside the older one, and takes its place by a new `copy.json`. An incremental one is written over
the older one: cut off there, the same blocks are written again, before anybody may use it. So the newest complete copy
is `copy.json` with `delta` merged, at any moment.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import os
import shutil
import typing as t
import zlib

from .._backup import manifest as manifests
from .._backup import objects, stopped
from .._backup.blocks import Block
from .._backup.domain_xml import Disk
from .._backup.manifest import FULL, Manifest, SavedDisk
from .._disk import layout, records
from .._disk.inspect import qcow2_size
from .._disk.sparse import resize
from .._errors import NotFoundError, NovaliteError
from .._host.files import instance_dir, is_uuid, read_text, remove_file, sync, write_atomically
from .._host.locks import locked
from .._host.own_directory import make_own
from .._json import JsonObject
from .._snapshots import server_snapshots
from . import delta as deltas
from .delta import DamagedError, Delta

REPLICAS = "replicas"  # in the state directory
COPY, DELTA = "copy.json", "delta"
CLOCKS = 300  # seconds that the clocks of a host and of the ledger may differ
LOCK_TIMEOUT = 3600.0  # seconds; a run that was cut off may still merge


@dataclasses.dataclass(frozen=True)
class Copy:
    """Complete copy of a server's disks: its manifest, the file of each disk by its target, the directory that they are
    in, and whether the server was given them."""

    manifest: Manifest
    files: t.Mapping[str, str]
    directory: str
    is_used: bool = False

    def without_definition(self) -> Manifest:
        """The manifest as far as another host goes on from it."""
        return dataclasses.replace(self.manifest, definition="", firmware=None, tpm=None)

    def text(self) -> str:
        """The content of COPY."""
        fields = {"manifest": self.manifest.line().decode(), "files": dict(self.files)}
        return json.dumps({**fields, "directory": self.directory, "is_used": self.is_used})


class Place:
    """The copy of the server `uuid` on this host, whose instances are in `state_dir`."""

    def __init__(self, state_dir: str, uuid: str) -> None:
        if not is_uuid(uuid):
            raise NovaliteError(f"'{uuid[:40]}' is not the UUID of a server: name one as the ledger has it")
        self.state_dir, self.uuid = state_dir, uuid
        self.root = os.path.join(state_dir, REPLICAS, uuid)

    def locked(self) -> t.ContextManager[object]:
        """Hold the lock under which the copy is changed or used."""
        return locked(f"replica-{self.uuid}", timeout=LOCK_TIMEOUT)

    def prepare(self) -> None:
        """Have the directory of the copy, root's own."""
        make_own(os.path.dirname(self.root), links=True)
        make_own(self.root)

    def current(self) -> Copy | None:
        """Return the copy, without what is to be merged; None where there is none that is complete."""
        path = os.path.join(self.root, COPY)
        text = read_text(path)
        if text is None:
            return None
        try:
            fields = json.loads(text)
            manifest = manifests.parse(fields["manifest"].encode(), path)
            return Copy(manifest, dict(fields["files"]), str(fields["directory"]), bool(fields["is_used"]))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise DamagedError(f"{path} cannot be read ({error}): have the disks copied anew") from None

    def accept(self, staging: str) -> Delta:
        """Take what arrived in `staging`, all of it compared, so that it counts from now on. Raises NovaliteError:
        nothing of it counts then."""
        delta = deltas.read(staging)
        try:
            current = self.settle()
        except DamagedError:
            if not _is_new(delta):
                raise
            current = None
            shutil.rmtree(self.root)
        if delta.manifest.server != self.uuid:
            raise NovaliteError(f"what arrived is of server {delta.manifest.server}, not of {self.uuid}")
        if not _is_new(delta) and not (current is not None and current.manifest.backup == delta.manifest.parent):
            raise NovaliteError(f"what arrived changes copy {delta.manifest.parent}, which is not here: copy again")
        for name in (*(part.name for part in delta.parts), deltas.DELTA):
            sync(os.path.join(staging, name), 0o600)
        sync(staging)
        self.prepare()
        os.rename(staging, os.path.join(self.root, DELTA))
        sync(self.root)
        return delta

    def settle(self) -> Copy | None:
        """Merge what arrived, and return the newest complete copy. Whoever is cut off here does it again. Raises
        DamagedError where what lies here is not what was sent, NovaliteError where there is no room."""
        directory = os.path.join(self.root, DELTA)
        if os.path.lexists(self.root):
            self.prepare()
        current = self.current()
        if layout.is_directory(directory):
            delta = deltas.read(directory)
            if current is None or current.manifest.backup != delta.manifest.backup:
                current = self._merged(delta, directory, current)
            shutil.rmtree(directory)
            sync(self.root)
        if layout.is_directory(self.root):
            for entry in os.scandir(self.root):
                if entry.is_dir(follow_symlinks=False) and entry.name != (current.directory if current else None):
                    shutil.rmtree(entry.path)  # an older copy, or half of a new one
        return current

    def _merged(self, delta: Delta, arrived: str, current: Copy | None) -> Copy:
        if _is_new(delta):
            name = delta.manifest.backup
            directory = os.path.join(self.root, name)
            if layout.is_directory(directory):
                shutil.rmtree(directory)
            make_own(directory)
            server_snapshots.check_room(delta.moved, directory, "a copy of the disks")
        elif current is None or current.manifest.backup != delta.manifest.parent:
            raise DamagedError(f"the copy of server {self.uuid} is not the one that changed: have it copied anew")
        else:
            name, directory = current.directory, os.path.join(self.root, current.directory)
        for disk in delta.manifest.disks:
            path = os.path.join(directory, delta.files[disk.name])
            self._merge(delta, disk, arrived, path)
            sync(path, 0o600)
        sync(directory)
        merged = Copy(delta.manifest, delta.files, name)
        write_atomically(os.path.join(self.root, COPY), merged.text(), 0o600)
        sync(self.root)
        return merged

    def _merge(self, delta: Delta, disk: SavedDisk, arrived: str, path: str) -> None:
        if disk.kind == FULL:
            remove_file(path)
            stopped.make(path, disk.size)
        elif qcow2_size(path) < disk.size:
            resize(path, "qcow2", disk.size)
        with stopped.opened(Disk(disk.name, disk.identity, path, "qcow2"), None, write=True) as opened:
            opened.write(_blocks(delta, disk, arrived), is_new=disk.kind == FULL)

    def use(self, copy_id: str, taken_at: int, guests: server_snapshots.Guests) -> Copy | None:
        """Give the server, whose disks were made anew and whose guest is off, those of the copy, or of a newer one: the
        ledger does not know of it where the controller died before it was recorded, or where the ledger was restored.
        `taken_at` (seconds since 1970) is when the copy was taken by the ledger's clock. Returns the copy, None where
        that was done before. Raises NovaliteError where it is not here."""
        own = instance_dir(self.state_dir, self.uuid)
        is_fresh = os.path.lexists(os.path.join(own, records.FRESH))
        if guests.running(self.uuid):
            return None
        with self.locked():
            current = self.settle()
            if current is not None and current.is_used and not is_fresh:
                return None
            if current is None or not (
                current.manifest.backup == copy_id or current.manifest.created >= (taken_at - CLOCKS) * 1000
            ):
                has = "none" if current is None else current.manifest.backup
                raise NotFoundError(f"copy {copy_id} of server {self.uuid} is not on this host, which has {has}")
            spec = server_snapshots.Spec(self.uuid, copy_id)
            snapshot = server_snapshots.snapshot_dir(self.state_dir, spec)
            self._to_snapshot(current, snapshot)
            (done,) = server_snapshots.ensure([spec], "reverted", self.state_dir, guests)
            if done.error:
                raise NovaliteError(done.error)
            used = dataclasses.replace(current, is_used=True)
            write_atomically(os.path.join(self.root, COPY), used.text(), 0o600)
            shutil.rmtree(snapshot)
        return current

    def _to_snapshot(self, current: Copy, snapshot: str) -> None:
        """Have the copy be a snapshot of the server, which its disks are then brought back to."""
        part = snapshot + server_snapshots.PART
        for path in (snapshot, part):
            if layout.is_directory(path):
                shutil.rmtree(path)
        layout.make_searchable(os.path.dirname(snapshot), part)
        sizes = {}
        for disk in current.manifest.disks:
            name = current.files[disk.name]
            os.link(os.path.join(self.root, current.directory, name), os.path.join(part, name))
            sizes[name] = disk.size
        firmware = current.manifest.firmware
        if firmware is not None:
            write_atomically(os.path.join(part, layout.NVRAM), zlib.decompress(base64.b64decode(firmware)), 0o600)
        said = {"disks": sizes, "consistency": current.manifest.consistency}
        write_atomically(os.path.join(part, server_snapshots.MANIFEST), json.dumps(said), 0o600)
        os.rename(part, snapshot)

    def remove(self) -> bool:
        """Remove the copy; returns whether there was one."""
        with self.locked():
            is_there = layout.is_directory(self.root)
            if is_there:
                shutil.rmtree(self.root)
        return is_there


def _is_new(delta: Delta) -> bool:
    """Tell whether it needs no older copy."""
    return delta.manifest.kind == FULL


def _blocks(delta: Delta, disk: SavedDisk, directory: str) -> t.Iterator[Block]:
    header = delta.manifest.header(disk)
    for part in delta.parts:
        if part.disk == disk.name:
            with open(os.path.join(directory, part.name), "rb") as handle:
                yield from objects.read(handle, header, f"part {part.name}")


def record_of(copy: Copy, moved: int) -> JsonObject:
    """Return the fields that the ledger keeps of a copy for which so many bytes came."""
    record = manifests.record_of(copy.manifest)
    return {"moved": moved, **{name: record[name] for name in ("kind", "reason", "consistency")}}
