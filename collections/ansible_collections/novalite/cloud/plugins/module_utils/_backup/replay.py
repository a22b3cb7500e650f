# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bringing backups back, and proving them: a disk is put together of its full copy and what changed since, every block
compared with its map on the way. Then the new disk is read, and has to be what the backup says that the whole disk was:
that was carried along when backups were taken, and owes nothing to how they are put together."""

from __future__ import annotations

import contextlib
import os
import secrets
import typing as t

from .._errors import NovaliteError
from .._host.files import remove_file, sync
from . import blocks, manifest, stopped
from .blocks import BLOCK, Block
from .catalog import Catalog
from .domain_xml import QCOW2, Disk
from .manifest import Manifest, SavedDisk
from .whole import Whole

_Layers = t.Sequence["tuple[Manifest, SavedDisk]"]


def restore(catalog: Catalog, backup: str, disks: t.Mapping[str, str]) -> None:
    """Restore disks of a backup: their names, with the paths of the files to be made, qcow2 that stand on no other.

    Raises NovaliteError, which names backup and disk, when anything does not fit. No file is there then."""
    for path in disks.values():
        if os.path.lexists(path):
            raise NovaliteError(f"{path} is there already: move it away, or restore to another file")
    needed, saved = catalog.chain(backup), catalog.load(backup)
    made: list[str] = []
    temporary = {name: f"{path}.{secrets.token_hex(4)}" for name, path in disks.items()}
    try:
        for name in disks:
            made.append(temporary[name])
            _restore(catalog, saved, saved.disk(name), needed, temporary[name])
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
        saved = catalog.load(backup)
    except NovaliteError as error:
        return [f"backup {backup}, all disks cannot be restored: {error}"]
    try:
        needed = catalog.chain(backup)
    except NovaliteError as error:
        return [f"backup {backup}, disk {disk.name} cannot be restored: {error}" for disk in saved.disks]
    for disk in saved.disks:
        path = os.path.join(directory, f".verify-{secrets.token_hex(8)}")
        try:
            _restore(catalog, saved, disk, needed, path)
        except NovaliteError as error:
            name = f"backup {backup}, disk {disk.name}"
            complaints.append(str(error) if str(error).startswith(name) else f"{name} cannot be restored: {error}")
        finally:
            remove_file(path)
    return complaints


def _restore(catalog: Catalog, backup: Manifest, disk: SavedDisk, needed: t.Sequence[Manifest], path: str) -> None:
    stopped.make(path, disk.size)
    file = Disk(disk.name, disk.identity, path, QCOW2)
    with contextlib.ExitStack() as stack:
        rows = put_together(catalog, manifest.disk_chain(needed, disk.name), stack)
        opened = stack.enter_context(stopped.opened(file, None, write=True))
        opened.write(rows)
    whole = Whole(disk.size)
    with stopped.opened(file, None) as opened:
        whole.change_blocks(opened.blocks())
    if whole.hash() != disk.whole:
        name = f"backup {backup.backup}, disk {disk.name}"
        raise NovaliteError(f"{name}: what is put together is not what was saved: restore another one")


def put_together(catalog: Catalog, layers: _Layers, stack: contextlib.ExitStack) -> t.Iterator[Block]:
    """The blocks of a disk made of these layers, the oldest first. Each block is compared with its layer's map."""
    size = layers[-1][1].size
    for block in blocks.newest([stack.enter_context(catalog.blocks_of(*layer)) for layer in layers]):
        if block.data is not None and len(block.data) < BLOCK:  # once it was the last one, and the disk has grown
            yield Block(block.number, block.data.ljust(blocks.length_of(block.number, size), b"\0"))
        else:
            yield block
