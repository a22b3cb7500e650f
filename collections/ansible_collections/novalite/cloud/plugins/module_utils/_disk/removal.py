# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Removal of the disks of instances that go, and of those of a rescue that ends."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import typing as t

from .._errors import NovaliteError
from .._host.files import instance_dir, remove_file
from .._host.locks import locked
from .._host.waiting import in_threads
from .._json import JsonObject
from . import layout, removed
from .overlay import LOCK, LOCK_TIMEOUT, RESCUE_FILES, Disk
from .records import read_records, write_records
from .sparse import check_wipe, wipe_file, wipe_files


def remove_disks(
    disks: t.Sequence[Disk], state_dir: str, check_mode: bool = False, wipe: str = "none", to_bin: t.Container[str] = ()
) -> JsonObject:
    """Remove the directories of these instances, and nothing else; of a rescue, its files alone. Those of `to_bin`
    (UUIDs) are moved to the bin, as they are.

    Returns `changed`, `disks`, `diff`. What is in the files is treated as `wipe` says (one of WIPES) first; what cannot
    be wiped is not removed. Raises NovaliteError.
    """
    check_wipe(wipe)
    rescue = any(disk.rescue for disk in disks)
    directories = {disk.uuid: instance_dir(state_dir, disk.uuid) for disk in disks}
    present = {
        uuid: sorted(os.listdir(directory)) for uuid, directory in directories.items() if layout.is_directory(directory)
    }
    if rescue:
        rescues = ((uuid, [name for name in RESCUE_FILES if name in names]) for uuid, names in present.items())
        present = {uuid: names for uuid, names in rescues if names}
    if present and not check_mode:
        going = [directories[uuid] for uuid in present if uuid not in to_bin]
        if wipe != "none" and not rescue:
            in_threads(functools.partial(wipe_files, wipe), going, workers=4)
        with locked(LOCK, timeout=LOCK_TIMEOUT):
            for uuid in present:
                if uuid in to_bin:
                    _touch_bases(directories[uuid], state_dir)
                    removed.put(state_dir, uuid)
            for directory in going:
                if rescue:
                    _remove_rescue(directory, wipe)
                    continue
                _touch_bases(directory, state_dir)
                with contextlib.suppress(FileNotFoundError):
                    shutil.rmtree(directory)
    return {
        "changed": bool(present),
        "disks": [{"uuid": uuid, "removed": present.get(uuid, [])} for uuid in directories],
        "diff": {"before": present, "after": dict.fromkeys(present)},
    }


def empty_bin(
    state_dir: str, days: t.Collection[str], min_free: int, check_mode: bool = False, wipe: str = "none"
) -> JsonObject:
    """Remove for good what repairs removed on these `days`, and of the oldest days as much as it takes to have
    `min_free` percent of the file system free. Returns `changed`, `disks` (none), `emptied`, `diff`. Raises
    NovaliteError."""
    check_wipe(wipe)
    with locked(LOCK, timeout=LOCK_TIMEOUT):
        going = {*days, *removed.too_many(state_dir, min_free)}
        emptied = [day for day in removed.days(state_dir) if day.day in going]
        if not check_mode:
            removed.empty(state_dir, going, wipe)
    before = {day.day: f"{day.disks} disks, {day.bytes} bytes" for day in emptied}
    result = {"changed": bool(emptied), "disks": [], "emptied": [day._asdict() for day in emptied]}
    return {**result, "diff": {"before": before, "after": dict.fromkeys(before)}}


def _remove_rescue(directory: str, wipe: str) -> None:
    for path in (os.path.join(directory, name) for name in RESCUE_FILES):
        if wipe != "none":
            wipe_file(path, wipe)  # which leaves alone what is not there
        remove_file(path)
    records = read_records(directory)
    write_records(directory, {name: record for name, record in records.items() if name not in RESCUE_FILES})


def _touch_bases(directory: str, state_dir: str) -> None:
    """The time of a file in the cache is that of its last use, which is now."""
    with contextlib.suppress(NovaliteError, OSError):
        for record in read_records(directory).values():
            if record.base:
                os.utime(layout.base_path(state_dir, os.path.basename(record.base)))
