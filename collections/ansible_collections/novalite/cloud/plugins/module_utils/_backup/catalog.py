# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The backups of one server in a store: which there are, their objects and maps, and what a run left that was killed.

A backup is complete when its manifest is there, which is stored last. What a run stores bears a word of its own, so
that the rest of one without a manifest is known; of two manifests of a backup the newer one holds. What this host keeps
of the store beside it spares reading that again.
"""

from __future__ import annotations

import contextlib
import io
import os
import typing as t

from .._errors import NovaliteError
from . import manifest as manifests
from . import objects
from .blocks import Block
from .manifest import INLINE, Manifest, SavedDisk
from .objects import Entry
from .store import Store
from .whole import Kept, Whole

SERVER, BACKUP, PARENT, RUN, OBJECT, DISK, SEAL = "server", "backup", "parent", "run", "object", "disk", "seal"
MANIFEST, BLOCKS = "manifest", "blocks"
_PIECE = 1 << 20


class Catalog:
    """The backups of `server` in `store`, as they were when they were listed."""

    def __init__(self, store: Store, server: str) -> None:
        self.store, self.server = store, server
        self.kept = Kept(os.path.join(store.local, "kept"))
        self.refresh()

    def refresh(self) -> None:
        """List again."""
        self._objects = list(self.store.list(**{SERVER: self.server}))
        stored = [each for each in self._objects if each.word(OBJECT) == MANIFEST]
        self._manifests = {str(each.word(BACKUP)): each for each in stored}  # the newest of each holds
        self._known: dict[str, Manifest] = {}

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
            seal = self._manifests[backup].word(SEAL) if backup in self._manifests else None
            line = self.kept.get(self.server, seal or "")
            if line is None:
                with _named(f"backup {backup}"), self._opened(backup) as stream:
                    line = stream.readline(manifests.LONGEST)
                self.kept.put(self.server, line)
            self._known[backup] = manifests.parse(line, f"backup {backup}")
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
            _to_map(stream, backup, disk)
            yield objects.read_map(stream, disk.written, disk.size, name)

    @contextlib.contextmanager
    def blocks_of(self, backup: Manifest, disk: SavedDisk) -> t.Iterator[t.Iterable[Block]]:
        """Open the blocks of a disk, each compared with its map. Raises NovaliteError, also while they are read."""
        name = f"backup {backup.backup}, disk {disk.name}"
        if disk.source is None:
            yield ()
        elif disk.source == INLINE:
            with _named(name), self._opened(backup.backup) as stream:
                _to_map(stream, backup, disk)
                hashes = io.BytesIO(stream.read(disk.written.map_size))
                _skip(stream, sum(each.written.map_size for each in backup.after(disk)))
                _skip(stream, sum(backup.inline_size(each) for each in backup.before(disk)))
                rows = objects.read(stream, backup.header(disk), name, is_last=False)
                yield objects.checked(rows, objects.read_map(hashes, disk.written, disk.size, name), name)
        else:
            with _named(name), self.store.get(disk.source) as stream, self.map_of(backup, disk) as entries:
                yield objects.checked(objects.read(stream, backup.header(disk), name), entries, name)

    def whole_of(self, backup: str, disk: str) -> Whole:
        """The hashes of all blocks that a disk had at a backup, which has to say so of them. Raises NovaliteError."""
        saved = self.load(backup).disk(disk)
        kept = self.kept.get(f"{self.server} {disk}", saved.whole)
        if kept is not None:
            return Whole.read(saved.size, kept)
        layers: list[tuple[Manifest, SavedDisk]] = []
        name: str | None = backup
        while name is not None and (not layers or layers[-1][1].kind == manifests.INCREMENTAL):
            layers.append((self.load(name), self.load(name).disk(disk)))
            name = layers[-1][0].parent
        whole = Whole(saved.size)
        for layer in reversed(layers):
            with self.map_of(*layer) as entries:
                whole.change(entries)
        if whole.hash() != saved.whole:
            raise NovaliteError(f"backup {backup}, disk {disk}: its maps are not what was saved: restore another one")
        return whole

    def keep(self, made: Manifest, wholes: t.Mapping[str, Whole]) -> None:
        """Keep what the backup after the one that was just made will need, and nothing that is of no use any more."""
        self.kept.put(self.server, made.line())
        seals = [stored.word(SEAL) or "" for stored in self._manifests.values()]
        self.kept.only(self.server, [*seals, made.seal()])
        for disk in made.disks:
            owner = f"{self.server} {disk.name}"
            if disk.has_bitmap and disk.name in wholes:
                self.kept.put(owner, wholes[disk.name].data())
            self.kept.only(owner, [disk.whole])

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


def _to_map(stream: t.BinaryIO, backup: Manifest, disk: SavedDisk) -> None:
    stream.readline(manifests.LONGEST)
    _skip(stream, sum(each.written.map_size for each in backup.before(disk)))


def _skip(stream: t.BinaryIO, size: int) -> None:
    while size > 0:
        size -= len(stream.read(min(size, _PIECE))) or size
