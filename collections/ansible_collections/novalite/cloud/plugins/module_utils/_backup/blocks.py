# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Blocks of a disk: which of them a backup takes, and what several backups make together."""

from __future__ import annotations

import heapq
import itertools
import typing as t

from .._errors import NovaliteError

BLOCK = 65536  # bytes: the granularity of QEMU's bitmaps over qcow2's usual clusters
WINDOW = 4096 * BLOCK  # bytes that one look at a disk's extents covers


class Block(t.NamedTuple):
    """The block `number` of a disk with its bytes, or None where all of them are zero."""

    number: int
    data: t.Optional[bytes]


class Span(t.NamedTuple):
    """Bytes of a disk: whether an extent's flag is set there."""

    offset: int
    length: int
    flag: bool


class Run(t.NamedTuple):
    """Blocks of a disk, one after the other, which are to be read, or else are zero."""

    first: int
    length: int
    is_data: bool


def count_of(size: int) -> int:
    """Number of blocks of a disk of `size` bytes."""
    return -(-size // BLOCK)


def length_of(number: int, size: int) -> int:
    """Bytes in the block `number` of a disk of `size` bytes: the last one may be shorter."""
    return min(BLOCK, size - number * BLOCK)


def changed(start: int, length: int, data: t.Iterable[Span], dirty: t.Iterable[Span] | None) -> list[Run]:
    """List the runs that a backup takes of the window at `start`, which is a multiple of BLOCK: those that are `dirty`,
    zero ones among them, or, without a bitmap, those that hold `data`. Blocks are whole."""
    holds = _marked(start, length, data)
    takes = holds if dirty is None else _marked(start, length, dirty)
    runs = []
    number = start // BLOCK
    for (is_taken, is_data), group in itertools.groupby(zip(takes, holds)):
        count = sum(1 for _block in group)
        if is_taken:
            runs.append(Run(number, count, bool(is_data)))
        number += count
    return runs


def _marked(start: int, length: int, spans: t.Iterable[Span]) -> bytearray:
    marks = bytearray(count_of(length))
    for span in spans:
        if span.flag:
            first, end = (span.offset - start) // BLOCK, count_of(span.offset + span.length - start)
            marks[first:end] = b"\1" * (end - first)
    return marks


T = t.TypeVar("T", bound="tuple[t.Any, ...]")


def newest(layers: t.Sequence[t.Iterable[T]]) -> t.Iterator[T]:
    """Merge layers of rows that begin with a block's number and ascend by it, the oldest layer first: of each block the
    row of the newest layer that has one."""
    ranked = [_aged(layer, -age) for age, layer in enumerate(layers)]
    last = -1
    for number, _age, row in heapq.merge(*ranked, key=lambda entry: entry[:2]):
        if number != last:
            last = number
            yield row


def _aged(layer: t.Iterable[T], age: int) -> t.Iterator[tuple[int, int, T]]:
    for row in layer:
        yield row[0], age, row


def ascending(rows: t.Iterable[T], size: int, name: str) -> t.Iterator[T]:
    """Pass rows on that begin with a block's number. Raises NovaliteError, which says `name`, when they do not ascend,
    or lie outside of a disk of `size` bytes."""
    last, end = -1, count_of(size)
    for row in rows:
        if not last < row[0] < end:
            raise NovaliteError(f"{name}: block {row[0]} follows block {last} on a disk of {end}: it is damaged")
        last = row[0]
        yield row
