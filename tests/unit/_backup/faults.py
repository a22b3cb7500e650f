# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Faults to be planted in the engine: each makes backups that look well, and are not what the disks were."""

from __future__ import annotations

import contextlib
import dataclasses
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._backup import (
    blocks,
    compact,
    domain_xml,
    export,
    live,
    manifest,
    replay,
    stopped,
    writing,
)
from ansible_collections.novalite.cloud.plugins.module_utils._backup.blocks import BLOCK, Block, Run, Span

Function = t.Callable[..., t.Any]


def _instead(module: t.Any, name: str, make: t.Callable[[Function], Function]) -> t.Callable[[], None]:
    """A fault that puts a function made of the true one in its place."""
    return lambda: setattr(module, name, make(getattr(module, name)))


def _of_runs(change: t.Callable[[list[Run]], list[Run]]) -> t.Callable[[], None]:
    return _instead(blocks, "changed", lambda true: lambda *args: change(true(*args)))


def _of_export(change: t.Callable[[export.Export, t.Iterator[Block]], t.Iterator[Block]]) -> t.Callable[[], None]:
    return _instead(export.Export, "blocks", lambda true: lambda self: change(self, true(self)))


def _inward(start: int, length: int, spans: t.Iterable[Span]) -> bytearray:
    marks = bytearray(blocks.count_of(length))
    for span in spans:
        first, end = -(-(span.offset - start) // BLOCK), (span.offset + span.length - start) // BLOCK
        if span.flag and end > first:
            marks[first:end] = b"\1" * (end - first)
    return marks


def _torn(true: Function) -> Function:
    def answered(self: export.Export, run: Run, wait: t.Any) -> t.Iterator[Block]:
        rows = list(true(self, run, wait))
        yield from [row._replace(data=rows[0].data) if row.number == run.first + 1 else row for row in rows]

    return answered


def _late(true: Function) -> Function:
    def begun(domain: t.Any, plans: t.Any, since: t.Any, checkpoint: t.Any, *more: t.Any) -> t.Any:
        @contextlib.contextmanager
        def job() -> t.Iterator[t.Any]:
            with true(domain, plans, since, None, *more) as running:
                yield running
            domain.checkpointCreateXML(domain_xml.checkpoint_xml(checkpoint, plans), 0)

        return job()

    return begun


def _first_size(true: Function) -> Function:
    return lambda self, disk, header, rows, whole=None: true(
        self,
        dataclasses.replace(disk, size=min(disk.size, 6 << 20)),
        dataclasses.replace(header, size=min(header.size, 6 << 20)),
        (row for row in rows if row.number < 96),
        whole,
    )


def _of_layers(change: t.Callable[[list[t.Any]], list[t.Any]]) -> t.Callable[[], None]:
    return _instead(
        replay, "put_together", lambda true: lambda cat, layers, stack: true(cat, change(list(layers)), stack)
    )


MERGING = (
    *("older layers win", "the oldest layer is left out", "the newest layer is left out", "a layer is left out"),
    *("a layer is put on twice", "two layers change places", "a backup is removed without a merge"),
    *("a merge forgets the newer one", "a merge of two is called full"),
)  # those in how backups are put together

FAULTS: dict[str, t.Callable[[], None]] = {
    "the last run of a window is cut off": _of_runs(lambda runs: runs[:-1] if len(runs) > 1 else runs),
    "the first run of a window is cut off": _of_runs(lambda runs: runs[1:] if len(runs) > 1 else runs),
    "a run loses its last block": _of_runs(
        lambda runs: [run._replace(length=run.length - 1) if run.length > 2 else run for run in runs]
    ),
    "zeros are not written down": _of_runs(lambda runs: [run for run in runs if run.is_data]),
    "data that is dirty is taken for zeros": _of_runs(
        lambda runs: [run._replace(is_data=run.length > 1) for run in runs]
    ),
    "extents are cut to whole blocks": _instead(blocks, "_marked", lambda true: _inward),
    "the last block of a disk is forgotten": _instead(blocks, "count_of", lambda true: lambda size: size // BLOCK),
    "the second block of a run is the first": _instead(export.Export, "_answered", _torn),
    "older layers win": _instead(blocks, "newest", lambda true: lambda layers: true(list(layers)[::-1])),
    "the oldest layer is left out": _instead(manifest, "disk_chain", lambda true: lambda *args: true(*args)[-2:]),
    "the newest layer is left out": _of_layers(lambda layers: layers[:-1] or layers),
    "a layer is left out": _of_layers(lambda layers: [*layers[:1], *layers[2:]]),
    "a layer is put on twice": _of_layers(lambda layers: [*layers, *layers[-2:-1]]),
    "two layers change places": _of_layers(lambda layers: [*layers[:-2], *layers[-2:][::-1]]),
    "bitmaps in use are believed": _instead(
        stopped, "look", lambda true: lambda *args: [dataclasses.replace(each, is_sound=True) for each in true(*args)]
    ),
    "the checkpoint is made at the end": _instead(live, "job", _late),
    "a disk that grew keeps its size": _instead(writing.Writing, "add", _first_size),
    "a backup is removed without a merge": _instead(compact, "_rewrite", lambda true: lambda cat, needed: needed[-1]),
    "a merge forgets the newer one": _instead(
        compact, "_layers", lambda true: lambda needed, name: true(needed, name)[:1]
    ),
    "a merge of two is called full": _instead(
        writing.Writing,
        "add",
        lambda true: (
            lambda self, disk, header, rows, whole=None: true(
                self,
                dataclasses.replace(disk, kind=manifest.FULL),
                dataclasses.replace(header, parent=None),
                rows,
                whole,
            )
        ),
    ),
    "a raw disk has a bitmap": _instead(
        domain_xml,
        "_plan",
        lambda true: (
            lambda disk, parent, reason: domain_xml.DiskPlan(
                disk, manifest.FULL if parent is None else manifest.INCREMENTAL, reason
            )
        ),
    ),
    "a write is lost": _of_export(lambda opened, rows: (row for row in rows if row.number % 16 != 7)),
    "blocks are shifted by one": _of_export(
        lambda opened, rows: (row._replace(number=max(row.number - 1, 0)) for row in rows if row.number != 1)
    ),
}


OFTEN = {"bitmaps in use are believed": "kill_qemu"}  # the step of a life that a fault shows after


def plant(name: str | None) -> None:
    """Plant a fault in this process."""
    if name:
        FAULTS[name]()
