# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bringing backups back, and proving them: a disk is put together of its full copy and what changed since, every block
compared with its map on the way, and all of them again on the new disk."""

from __future__ import annotations

import contextlib
import os
import secrets
import typing as t

from .._errors import NovaliteError
from .._host.files import remove_file, sync
from . import blocks, manifest, objects, stopped
from .blocks import BLOCK, Block
from .catalog import Catalog
from .domain_xml import QCOW2, Disk
from .export import Export
from .manifest import Manifest, SavedDisk
from .objects import ZEROS, Entry

_Layers = t.Sequence["tuple[Manifest, SavedDisk]"]


def restore(catalog: Catalog, backup: str, disks: t.Mapping[str, str]) -> None:
    """Restore disks of a backup: their names, with the paths of the files to be made, qcow2 that stand on no other.

    Raises NovaliteError, which names backup and disk, when anything does not fit. No file is there then."""
    for path in disks.values():
        if os.path.lexists(path):
            raise NovaliteError(f"{path} is there already: move it away, or restore to another file")
    needed = catalog.chain(backup)
    made: list[str] = []
    temporary = {name: f"{path}.{secrets.token_hex(4)}" for name, path in disks.items()}
    try:
        for name in disks:
            made.append(temporary[name])
            _restore(catalog, manifest.disk_chain(needed, name), temporary[name])
            sync(temporary[name])
        for name, path in disks.items():
            os.link(temporary[name], path)  # fails where a file came there meanwhile
            made.append(path)
        for directory in {os.path.dirname(os.path.abspath(path)) for path in disks.values()}:
            sync(directory)
    except BaseException:
        for path in made:
            remove_file(path)
        raise
    for path in temporary.values():
        remove_file(path)


def verify(catalog: Catalog, backup: str, directory: str) -> list[str]:
    """Restore all disks of a backup, one at a time, to a file in `directory` that is thrown away; returns why disks
    cannot be restored, which is nothing for a good backup."""
    complaints = []
    try:
        needed = catalog.chain(backup)
    except NovaliteError as error:
        return [str(error)]
    for disk in needed[-1].disks:
        path = os.path.join(directory, f".verify-{secrets.token_hex(8)}")
        try:
            _restore(catalog, manifest.disk_chain(needed, disk.name), path)
        except NovaliteError as error:
            name = f"backup {backup}, disk {disk.name}"
            complaints.append(str(error) if str(error).startswith(name) else f"{name} cannot be restored: {error}")
        finally:
            remove_file(path)
    return complaints


def _restore(catalog: Catalog, layers: _Layers, path: str) -> None:
    newest, saved = layers[-1]
    stopped.make(path, saved.size)
    disk = Disk(saved.name, saved.identity, path, QCOW2)
    with contextlib.ExitStack() as stack:
        rows = put_together(catalog, layers, stack)
        opened = stack.enter_context(stopped.opened(disk, None, write=True))
        opened.write(rows)
    with contextlib.ExitStack() as stack:
        maps = [stack.enter_context(catalog.map_of(*layer)) for layer in layers]
        opened = stack.enter_context(stopped.opened(disk, None))
        _compare(opened, blocks.newest(maps), f"backup {newest.backup}, disk {saved.name}")


def put_together(catalog: Catalog, layers: _Layers, stack: contextlib.ExitStack) -> t.Iterator[Block]:
    """The blocks of a disk made of these layers, the oldest first. Each block is compared with its layer's map."""
    size = layers[-1][1].size
    for block in blocks.newest([stack.enter_context(catalog.blocks_of(*layer)) for layer in layers]):
        if block.data is not None and len(block.data) < BLOCK:  # once it was the last one, and the disk has grown
            yield Block(block.number, block.data.ljust(blocks.length_of(block.number, size), b"\0"))
        else:
            yield block


def _compare(opened: Export, entries: t.Iterator[Entry], name: str) -> None:
    there = (Entry(block.number, objects.hash_of(block.data)) for block in opened.blocks())
    wanted = (entry for entry in entries if entry.digest != ZEROS)
    for found in (entry for entry in there if entry.digest != ZEROS):
        expected = next(wanted, None)
        if found != expected:
            raise NovaliteError(f"{name}: block {found.number} was restored to something else than what was saved")
    for expected in wanted:
        raise NovaliteError(f"{name}: block {expected.number} was not restored")
