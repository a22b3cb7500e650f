# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What happens to the disks of instances that go, and to those of a rescue that ends."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import typing as t

from .._errors import NovaliteError
from .._host import in_threads, locked
from .._json import JsonObject
from . import layout
from .overlay import LOCK, LOCK_TIMEOUT, RESCUE_FILES, Disk
from .records import read_records, write_records
from .sparse import check_wipe, wipe_file, wipe_files


def remove_disks(disks: t.Sequence[Disk], state_dir: str, check_mode: bool = False, wipe: str = "none") -> JsonObject:
    """Remove the directories of these instances, and nothing else; of a rescue, its files alone.

    Returns `changed`, `disks`, `diff`. `wipe` is what happens to the content of their files first: "none", "discard" or
    "zero" (see wipe_file). What cannot be wiped is not removed. Raises NovaliteError.
    """
    check_wipe(wipe)
    if any(disk.rescue for disk in disks):
        return _remove_rescues(disks, state_dir, check_mode, wipe)
    directories = {disk.uuid: layout.instance_dir(state_dir, disk.uuid) for disk in disks}
    present = {
        uuid: sorted(os.listdir(directory)) for uuid, directory in directories.items() if layout.is_directory(directory)
    }
    if present and not check_mode:
        going = [directories[uuid] for uuid in present]
        if wipe != "none":
            in_threads(functools.partial(wipe_files, wipe), going, workers=4)
        with locked(LOCK, timeout=LOCK_TIMEOUT):
            for directory in going:
                _touch_bases(directory, state_dir)
                with contextlib.suppress(FileNotFoundError):
                    shutil.rmtree(directory)
    return {
        "changed": bool(present),
        "disks": [{"uuid": uuid, "removed": present.get(uuid, [])} for uuid in directories],
        "diff": {"before": present, "after": dict.fromkeys(present)},
    }


def _remove_rescues(disks: t.Sequence[Disk], state_dir: str, check_mode: bool, wipe: str) -> JsonObject:
    present: dict[str, list[str]] = {}
    for disk in disks:
        directory = layout.instance_dir(state_dir, disk.uuid)
        rescues = [name for name in RESCUE_FILES if os.path.lexists(os.path.join(directory, name))]
        if rescues:
            present[disk.uuid] = rescues
    for uuid, names in () if check_mode else present.items():
        directory = layout.instance_dir(state_dir, uuid)
        with locked(LOCK, timeout=LOCK_TIMEOUT):
            for name in names:
                if wipe != "none":
                    wipe_file(os.path.join(directory, name), wipe)
                os.unlink(os.path.join(directory, name))
            records = read_records(directory)
            write_records(directory, {name: record for name, record in records.items() if name not in RESCUE_FILES})
    return {
        "changed": bool(present),
        "disks": [{"uuid": disk.uuid, "removed": present.get(disk.uuid, [])} for disk in disks],
        "diff": {"before": present, "after": dict.fromkeys(present)},
    }


def _touch_bases(directory: str, state_dir: str) -> None:
    """The time of a file in the cache is that of its last use, which is now."""
    with contextlib.suppress(NovaliteError, OSError):
        for record in read_records(directory).values():
            if record.base:
                os.utime(layout.base_path(state_dir, os.path.basename(record.base)))
