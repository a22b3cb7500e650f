# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Storing a backup: an object for the blocks of each disk, and the manifest with their maps, which makes it count.

Few blocks are stored with the manifest: each object is a call of the store, which takes as long as many megabytes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import itertools
import secrets
import tempfile
import typing as t

from .._errors import NovaliteError
from . import objects
from .blocks import Block
from .catalog import BACKUP, BLOCKS, DISK, MANIFEST, OBJECT, PARENT, RUN, SEAL, SERVER
from .manifest import INLINE, Manifest, SavedDisk
from .objects import Header, Written
from .store import Store
from .whole import Whole

UNCHANGED = Written(0, 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", 0)  # SHA-256 of nothing
_INLINE = 1024  # blocks of all disks: 64 MiB, which are held in memory
_PIECE = 1 << 20


@dataclasses.dataclass(frozen=True)
class _Disk:
    saved: SavedDisk
    map: t.BinaryIO
    inline: bytes = b""


class Writing:
    """A backup that is being stored; nothing of it counts until finish()."""

    def __init__(self, store: Store, server: str, backup: str) -> None:
        self._store, self._server, self._backup = store, server, backup
        self._run = secrets.token_hex(8)
        self._disks: list[_Disk] = []
        self._stored: list[str] = []
        self._stack = contextlib.ExitStack()
        self._room = _INLINE

    def __enter__(self) -> Writing:
        return self

    def __exit__(self, kind: object, *_exception: object) -> None:
        self._stack.close()
        if kind is not None and self._stored:
            with contextlib.suppress(NovaliteError):  # the next run removes it, too
                self._store.forget(self._stored)

    def add(self, disk: SavedDisk, header: Header, rows: t.Iterator[Block], whole: Whole | None = None) -> SavedDisk:
        """Store the blocks of a disk; returns it with what was written. `whole` are the hashes of all blocks before,
        and afterwards those that they have now, which the disk says, or has to say already. Raises NovaliteError."""
        # SIM115: the stack closes it when the backup ends
        into_map = t.cast(t.BinaryIO, self._stack.enter_context(tempfile.TemporaryFile()))  # noqa: SIM115
        inline = io.BytesIO()
        first = list(itertools.islice(rows, self._room + 1))
        if len(first) <= self._room:
            self._room -= len(first)
            written = objects.write(header, first, inline, into_map) if first else UNCHANGED
            source = INLINE if first else None
        else:
            every: list[Written] = []

            def write(out: t.BinaryIO) -> None:
                every.append(objects.write(header, itertools.chain(_emptied(first), rows), out, into_map))

            source = self._store.put(self._words(BLOCKS, **{DISK: disk.name}), write)
            self._stored.append(source)
            written = every[0]
        saved = dataclasses.replace(disk, source=source, written=written)
        if whole is not None:
            into_map.seek(0)
            name = f"backup {self._backup}, disk {disk.name}"
            whole.change(objects.read_map(into_map, written, disk.size, name))
            saved = dataclasses.replace(saved, whole=whole.hash())
            if disk.whole not in ("", saved.whole):
                raise NovaliteError(f"{name}: what is put together is not what was saved: it stays as it was")
        self._disks.append(_Disk(saved, into_map, inline.getvalue() if source == INLINE else b""))
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
            for disk in self._disks:
                out.write(disk.inline)

        words = {"created": f"{manifest.created:015d}", "kind": manifest.kind, "consistency": manifest.consistency}
        if manifest.parent is not None:
            words[PARENT] = manifest.parent
        words["bytes"] = str(sum(disk.saved.written.data for disk in self._disks))
        words["size"] = str(sum(disk.saved.size for disk in self._disks))
        self._store.put({**self._words(MANIFEST), **words, SEAL: manifest.seal()}, write)
        return manifest

    def _words(self, kind: str, **more: str) -> dict[str, str]:
        return {SERVER: self._server, BACKUP: self._backup, RUN: self._run, OBJECT: kind, **more}


def _emptied(rows: list[Block]) -> t.Iterator[Block]:
    rows.reverse()
    while rows:
        yield rows.pop()
