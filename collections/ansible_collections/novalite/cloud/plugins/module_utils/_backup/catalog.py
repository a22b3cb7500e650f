# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The backups of one server in a store: which there are, their objects and maps, and what a run left that was killed.

A backup is complete when its manifest is there, which is stored last. What a run stores bears a word of its own, so
that the rest of one without a manifest is known; of two manifests of a backup the newer one holds.
"""

from __future__ import annotations

import contextlib
import dataclasses
import secrets
import tempfile
import typing as t

from .._errors import NovaliteError
from . import manifest as manifests
from . import objects
from .blocks import Block
from .manifest import Manifest, SavedDisk
from .objects import Entry, Header, Written
from .store import Store

SERVER, BACKUP, PARENT, RUN, OBJECT, DISK = "server", "backup", "parent", "run", "object", "disk"
_MANIFEST, _BLOCKS = "manifest", "blocks"
_PIECE = 1 << 20
UNCHANGED = Written(0, 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", 0)  # SHA-256 of nothing


class Catalog:
    """The backups of `server` in `store`, as they were when they were listed."""

    def __init__(self, store: Store, server: str) -> None:
        self.store, self.server = store, server
        self._known: dict[str, Manifest] = {}
        self.refresh()

    def refresh(self) -> None:
        """List again."""
        self._objects = list(self.store.list(**{SERVER: self.server}))
        stored = [each for each in self._objects if each.word(OBJECT) == _MANIFEST]
        self._manifests = {str(each.word(BACKUP)): each for each in stored}  # the newest of each holds
        self._known = {}

    def names(self) -> list[str]:
        """The complete backups, the oldest first."""
        return sorted(self._manifests, key=lambda name: self._manifests[name].word("created") or "")

    def parent_of(self, backup: str) -> str | None:
        """The backup that a complete one changes."""
        return self._manifests[backup].word(PARENT)

    def left_over(self) -> list[str]:
        """Names of the objects that belong to no complete backup, or to an older form of one."""
        runs = {stored.word(RUN) for stored in self._manifests.values()}
        return [stored.name for stored in self._objects if stored.word(RUN) not in runs]

    def objects_of(self, backup: str) -> list[str]:
        """Names of all objects of a backup."""
        return [stored.name for stored in self._objects if stored.word(BACKUP) == backup]

    def load(self, backup: str) -> Manifest:
        """Read the manifest of a backup. Raises NovaliteError."""
        if backup not in self._known:
            with _named(f"backup {backup}"), self._opened(backup) as stream:
                self._known[backup] = manifests.parse(stream.readline(manifests.LONGEST), f"backup {backup}")
            if (self._known[backup].server, self._known[backup].backup) != (self.server, backup):
                raise NovaliteError(f"backup {backup}: the store has the manifest of another one in its place")
        return self._known[backup]

    def chain(self, backup: str) -> list[Manifest]:
        """Read the manifests of all backups that `backup` needs, the oldest first. Raises NovaliteError."""
        needed: dict[str, Manifest] = {}
        name: str | None = backup
        while name in self._manifests and name not in needed:
            needed[name] = self.load(name)
            name = needed[name].parent if needed[name].kind == manifests.INCREMENTAL else None
        return manifests.chain(needed, backup)

    @contextlib.contextmanager
    def map_of(self, backup: Manifest, disk: SavedDisk) -> t.Iterator[t.Iterable[Entry]]:
        """Open the map of a disk. Raises NovaliteError, also while it is read."""
        name = f"backup {backup.backup}, disk {disk.name}"
        with _named(name), self._opened(backup.backup) as stream:
            stream.readline(manifests.LONGEST)
            for before in backup.disks[: backup.disks.index(disk)]:
                _skip(stream, before.written.map_size)
            yield objects.read_map(stream, disk.written, disk.size, name)

    @contextlib.contextmanager
    def blocks_of(self, backup: Manifest, disk: SavedDisk) -> t.Iterator[t.Iterable[Block]]:
        """Open the blocks of a disk, each compared with its map. Raises NovaliteError, also while they are read."""
        name = f"backup {backup.backup}, disk {disk.name}"
        if disk.source is None:
            yield ()
            return
        with _named(name), self.store.get(disk.source) as stream, self.map_of(backup, disk) as entries:
            yield objects.checked(objects.read(stream, backup.header(disk), name), entries, name)

    def _opened(self, backup: str) -> t.ContextManager[t.BinaryIO]:
        if backup not in self._manifests:
            there = ", ".join(self.names()) or "none"
            raise NovaliteError(f"backup {backup} of server {self.server} is not in the store: name one of {there}")
        return self.store.get(self._manifests[backup].name)


@contextlib.contextmanager
def _named(name: str) -> t.Iterator[None]:
    """Have errors of the store begin with `name`, the backup that it cannot give."""
    try:
        yield
    except NovaliteError as error:
        raise error if str(error).startswith("backup ") else NovaliteError(f"{name}: {error}") from None


@dataclasses.dataclass(frozen=True)
class _Disk:
    saved: SavedDisk
    map: t.BinaryIO


class Writing:
    """A backup that is being stored; nothing of it counts until finish()."""

    def __init__(self, store: Store, server: str, backup: str) -> None:
        self._store, self._server, self._backup = store, server, backup
        self._run = secrets.token_hex(8)
        self._disks: list[_Disk] = []
        self._stored: list[str] = []
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Writing:
        return self

    def __exit__(self, kind: object, *_exception: object) -> None:
        self._stack.close()
        if kind is not None and self._stored:
            with contextlib.suppress(NovaliteError):  # the next run removes it, too
                self._store.forget(self._stored)

    def add(self, disk: SavedDisk, header: Header, rows: t.Iterator[Block]) -> SavedDisk:
        """Store the blocks of a disk; returns it with what was written. Raises NovaliteError."""
        into_map = t.cast(t.BinaryIO, self._stack.enter_context(tempfile.TemporaryFile()))  # noqa: SIM115
        first = next(rows, None)
        if first is None:
            saved = dataclasses.replace(disk, source=None, written=UNCHANGED)
        else:
            written: list[Written] = []

            def write(out: t.BinaryIO) -> None:
                written.append(objects.write(header, _followed(first, rows), out, into_map))

            source = self._store.put(self._words(_BLOCKS, **{DISK: disk.name}), write)
            self._stored.append(source)
            saved = dataclasses.replace(disk, source=source, written=written[0])
        self._disks.append(_Disk(saved, into_map))
        return saved

    def finish(self, manifest: Manifest) -> Manifest:
        """Store the manifest, of the disks that were added, and their maps: the backup is complete."""
        manifest = dataclasses.replace(manifest, disks=tuple(disk.saved for disk in self._disks))

        def write(out: t.BinaryIO) -> None:
            out.write(manifest.line())
            for disk in self._disks:
                disk.map.seek(0)
                while piece := disk.map.read(_PIECE):
                    out.write(piece)

        words = {"created": f"{manifest.created:015d}", "kind": manifest.kind, "consistency": manifest.consistency}
        if manifest.parent is not None:
            words[PARENT] = manifest.parent
        words["bytes"] = str(sum(disk.saved.written.data for disk in self._disks))
        words["size"] = str(sum(disk.saved.size for disk in self._disks))
        self._store.put({**self._words(_MANIFEST), **words}, write)
        return manifest

    def _words(self, kind: str, **more: str) -> dict[str, str]:
        return {SERVER: self._server, BACKUP: self._backup, RUN: self._run, OBJECT: kind, **more}


def _followed(first: Block, rows: t.Iterator[Block]) -> t.Iterator[Block]:
    yield first
    yield from rows


def _skip(stream: t.BinaryIO, size: int) -> None:
    while size > 0:
        size -= len(stream.read(min(size, _PIECE))) or size
