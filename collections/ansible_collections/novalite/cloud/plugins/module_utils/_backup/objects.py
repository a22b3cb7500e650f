# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Objects of a disk in the store: one with its changed blocks, and the map of their hashes beside it.

Each is a line of JSON that says whose it is, a record for each block in ascending order, and a last record with
their number, so that one which was cut off is known. A map is an entry for each block: its number, and its hash, or
zeros for a block of zeros. Each can be read with what is written here, and nothing else.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import struct
import typing as t

from .._errors import NovaliteError
from . import blocks
from .blocks import Block

FORMAT = "novalite-backup-1"
_RECORD = struct.Struct(">QB")  # number, kind
_DATA, _ZERO, _END = 0, 1, 2
_ENTRY = struct.Struct(">Q16s")  # number, hash
ZEROS = bytes(16)  # instead of the hash of a block of zeros
_LONGEST_LINE = 4096


class Entry(t.NamedTuple):
    """Hash of the block `number` in a map."""

    number: int
    digest: bytes


@dataclasses.dataclass(frozen=True)
class Header:
    """Whose blocks an object holds: those of `disk`, of `size` bytes, which `backup` changes in `parent`."""

    backup: str
    parent: str | None
    disk: str
    size: int

    def line(self) -> bytes:
        """The first line of the object."""
        fields = {"format": FORMAT, **dataclasses.asdict(self)}
        return json.dumps(fields, sort_keys=True).encode() + b"\n"


class Readable(t.Protocol):
    """A source of bytes, such as a pipe."""

    def read(self, size: int, /) -> bytes: ...

    def readline(self, limit: int, /) -> bytes: ...


@dataclasses.dataclass(frozen=True)
class Written:
    """An object as it was written: its blocks, bytes of data in them, and the SHA-256 and the bytes of its map."""

    blocks: int
    data: int
    map_hash: str
    map_size: int


def hash_of(data: bytes | None) -> bytes:
    """The hash of a block's bytes, as it stands in a map. Zeros at its end do not count: the last block of a disk that
    grows gets some."""
    stripped = b"" if data is None else data.rstrip(b"\0")
    return hashlib.sha256(stripped).digest()[:16] if stripped else ZEROS  # which processors compute themselves


def write(header: Header, rows: t.Iterable[Block], out: t.BinaryIO, into_map: t.BinaryIO) -> Written:
    """Write the object of these blocks to `out`, and its map. Raises OSError."""
    map_hash = hashlib.sha256()
    count = size = 0
    out.write(header.line())
    for block in rows:
        entry = _ENTRY.pack(block.number, hash_of(block.data))
        map_hash.update(entry)
        into_map.write(entry)
        out.write(_RECORD.pack(block.number, _ZERO if block.data is None else _DATA))
        if block.data is not None:
            out.write(block.data)
            size += len(block.data)
        count += 1
    out.write(_RECORD.pack(count, _END))
    out.flush()
    into_map.flush()
    return Written(count, size, map_hash.hexdigest(), count * _ENTRY.size)


def size_of(header: Header, written: Written) -> int:
    """Bytes of an object that was written."""
    return len(header.line()) + (written.blocks + 1) * _RECORD.size + written.data


def read(stream: Readable, header: Header, name: str, is_last: bool = True) -> t.Iterator[Block]:
    """Read an object, which has to be that of `header`, and the last one in its stream, or not. Raises NovaliteError,
    which says `name`, for any other."""
    if stream.readline(_LONGEST_LINE) != header.line():
        raise NovaliteError(f"{name}: the store has another object in its place")
    return blocks.ascending(_records(stream, header.size, name, is_last), header.size, name)


def _records(stream: Readable, size: int, name: str, is_last: bool) -> t.Iterator[Block]:
    count = 0
    while True:
        number, kind = _RECORD.unpack(_exactly(stream, _RECORD.size, name))
        if kind == _END:
            break
        if kind not in (_DATA, _ZERO) or number >= blocks.count_of(size):
            raise NovaliteError(f"{name}: record {count} is not a block of this disk: it is damaged")
        yield Block(number, None if kind == _ZERO else _exactly(stream, blocks.length_of(number, size), name))
        count += 1
    if number != count or (is_last and stream.read(1)):
        raise NovaliteError(f"{name}: it holds {count} blocks and says {number}: it is damaged")


def read_map(stream: Readable, written: Written, size: int, name: str) -> t.Iterator[Entry]:
    """Read the map of an object of a disk of `size` bytes. Raises NovaliteError, which says `name`, unless it is the
    one that was written."""
    return blocks.ascending(_entries(stream, written, name), size, name)


def _entries(stream: Readable, written: Written, name: str) -> t.Iterator[Entry]:
    map_hash = hashlib.sha256()
    for _entry in range(written.blocks):
        row = _exactly(stream, _ENTRY.size, name)
        map_hash.update(row)
        yield Entry(*_ENTRY.unpack(row))
    if map_hash.hexdigest() != written.map_hash:
        raise NovaliteError(f"{name}: its map is not the one that was written: it is damaged")


def checked(rows: t.Iterable[Block], entries: t.Iterable[Entry], name: str) -> t.Iterator[Block]:
    """Pass blocks on, each of which has to be the next one of the map. Raises NovaliteError, which says `name`."""
    hashes = iter(entries)
    for block in rows:
        if next(hashes, None) != (block.number, hash_of(block.data)):
            raise NovaliteError(f"{name}: block {block.number} is not as its map says: it is damaged")
        yield block
    if next(hashes, None) is not None:
        raise NovaliteError(f"{name}: its map has blocks that it lacks: it is damaged")


def _exactly(stream: Readable, size: int, name: str) -> bytes:
    data = stream.read(size)
    if len(data) != size:
        raise NovaliteError(f"{name}: it ends too early: it is damaged")
    return data
