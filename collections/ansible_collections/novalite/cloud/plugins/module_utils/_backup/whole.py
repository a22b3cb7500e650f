# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The hashes of all blocks of a disk, carried from backup to backup while disks are read, and never made of what is put
together again: each backup says the hash of all of them, by which a wrong merge is known for what it is.

What the next backup needs of the store is kept on the host as well, each file known by its hash, so that whatever else
lies there is as good as nothing.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import typing as t

from .._host.files import read_bytes, remove_file, write_atomically
from .._host.own_directory import make_own
from . import blocks
from .blocks import Block
from .objects import ZEROS, Entry, hash_of

_HASH = len(ZEROS)


class Whole:
    """The hash of each block of a disk of `size` bytes: those that it had `before`, as far as there were any."""

    def __init__(self, size: int, before: Whole | None = None) -> None:
        self._hashes = bytearray(blocks.count_of(size) * _HASH)
        if before is not None:
            self._hashes[: len(before._hashes)] = before._hashes

    @classmethod
    def read(cls, size: int, hashes: bytes) -> Whole:
        """The hashes of a disk of `size` bytes, as they were written."""
        whole = cls(size)
        whole._hashes[:] = hashes
        return whole

    def change(self, entries: t.Iterable[Entry]) -> None:
        """Put these hashes in the place of those that the blocks had."""
        for number, digest in entries:
            self._hashes[number * _HASH : (number + 1) * _HASH] = digest

    def change_blocks(self, rows: t.Iterable[Block]) -> None:
        """Put the hashes of these blocks in the place of those that they had."""
        self.change(Entry(block.number, hash_of(block.data)) for block in rows)

    def hash(self) -> str:
        """The hash of all of them."""
        return hashlib.sha256(self._hashes).hexdigest()

    def data(self) -> bytes:
        """The hashes themselves, as read() takes them."""
        return bytes(self._hashes)


@dataclasses.dataclass(frozen=True)
class Kept:
    """Copies of what the store has, in this `directory` of the host: for each `owner`, such as a disk, some of it."""

    directory: str

    def get(self, owner: str, digest: str) -> bytes | None:
        """The copy with this hash, if it is there."""
        data = read_bytes(self._path(owner, digest))
        return data if data is not None and hashlib.sha256(data).hexdigest() == digest else None

    def put(self, owner: str, data: bytes) -> None:
        """Keep a copy, if there is room."""
        with contextlib.suppress(OSError):
            make_own(self.directory, links=True)
            write_atomically(self._path(owner, hashlib.sha256(data).hexdigest()), data, 0o600)

    def only(self, owner: str, digests: t.Collection[str]) -> None:
        """Remove what is kept for an owner, but these."""
        keep = {os.path.basename(self._path(owner, digest)) for digest in digests}
        with contextlib.suppress(OSError):
            for name in os.listdir(self.directory):
                if name.startswith(_prefix(owner)) and name not in keep:
                    remove_file(os.path.join(self.directory, name))

    def _path(self, owner: str, digest: str) -> str:
        return os.path.join(self.directory, _prefix(owner) + digest)


def _prefix(owner: str) -> str:
    return hashlib.sha256(owner.encode()).hexdigest()[:16] + "-"
