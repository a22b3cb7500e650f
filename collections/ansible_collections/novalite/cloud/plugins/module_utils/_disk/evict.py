# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Eviction of files from the image cache that no disk stands on, by the time since their last use, and by size.

A file's time is that of its last use, as in Nova: whoever finds it cached, makes a disk on it or removes one sets it.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
import typing as t

from .._errors import ConflictError, NovaliteError
from .._host.files import INSTANCES, remove_file
from .._host.locks import locked
from .._json import JsonObject
from . import layout, removed
from .cache import STAGING_PREFIX
from .download_request import remove_part
from .overlay import LOCK, LOCK_TIMEOUT
from .records import Record, read_records

GRACE = 600.0  # seconds: an image that was just brought is about to be used
PART_MAX_AGE = 86400.0  # seconds without a byte: nobody goes on with that download


class _Cached(t.NamedTuple):
    key: str
    path: str
    size: int  # bytes that it takes on the disk
    used: float  # seconds since the epoch


def evict(state_dir: str, max_age: float, max_size: int | None = None, check_mode: bool = False) -> JsonObject:
    """Remove what was not used for `max_age` seconds, then the least recently used until `max_size` bytes (None: no
    limit) are left. What a disk's record names stays. Raises NovaliteError when one cannot be read: nobody can say then
    what is used.

    Returns `changed`, `evicted` (name: the key in the cache, bytes, age in seconds), `kept` (count and bytes), `diff`.
    """
    if not os.path.isdir(layout.base_dir(state_dir)):
        return _result([], [], time.time())
    # No disk comes or goes meanwhile.
    with locked(LOCK, timeout=LOCK_TIMEOUT):
        if not check_mode:
            layout.carry_over(state_dir)
        used = _used(state_dir)
        now = time.time()
        cached = sorted(_cached(state_dir), key=lambda image: image.used)
        unused, total = [image for image in cached if image.key not in used], sum(image.size for image in cached)
        going = _chosen(unused, total, max_age, max_size, now)
        if not check_mode:
            going = [image for image in going if _remove(image, state_dir)]
            _remove_parts(state_dir, now)
    gone = {image.key for image in going}
    return _result(going, [image for image in cached if image.key not in gone], now)


def _result(going: t.Sequence[_Cached], kept: t.Sequence[_Cached], now: float) -> JsonObject:
    gone = [image.key for image in going]
    return {
        "changed": bool(going),
        "evicted": [{"name": image.key, "bytes": image.size, "age": round(now - image.used)} for image in going],
        "kept": {"count": len(kept), "bytes": sum(image.size for image in kept)},
        "diff": {"before": {image.key: f"{image.size} bytes" for image in going}, "after": dict.fromkeys(gone)},
    }


def _used(state_dir: str) -> set[str]:
    """The keys of the files in the cache that disks here stand on: those of all instances, what is kept of them for a
    revert, what arrives of those that move, and what is in the bin."""
    names: set[str] = set()
    arriving = _entries(os.path.join(state_dir, layout.INCOMING))
    for directory in sorted([*_entries(os.path.join(state_dir, INSTANCES)), *arriving, *removed.instances(state_dir)]):
        if not os.path.isdir(directory) or os.path.islink(directory):
            continue
        if directory in arriving:
            # the record comes first, and may be there by half; where a disk's base is gone, it is not received
            with contextlib.suppress(NovaliteError, FileNotFoundError):
                names.update(record.base for record in _records(directory) if record.base)
            continue
        records = _records(directory)
        if not records and os.path.lexists(os.path.join(directory, layout.DISK)):
            raise NovaliteError(
                f"{directory} has a disk but no {layout.DISK_INFO}: nothing is evicted, since that "
                "disk may stand on any image; remove it (module disk) or bring its record back"
            )
        names.update(record.base for record in records if record.base)
    return names


def _entries(directory: str) -> list[str]:
    return [os.path.join(directory, entry) for entry in os.listdir(directory)] if os.path.isdir(directory) else []


def _records(directory: str) -> list[Record]:
    """The records of all disks in an instance's directory: its own, of what is kept for a revert, and in the bin, where
    a second one has a number."""
    named = [name for name in os.listdir(directory) if layout.RECORDS.match(name)]
    return [record for name in named for record in read_records(directory, name).values()]


def _cached(state_dir: str) -> t.Iterator[_Cached]:
    with os.scandir(layout.base_dir(state_dir)) as entries:
        for entry in entries:
            status = entry.stat(follow_symlinks=False)
            key = entry.name[: -len(layout.RAW)] if entry.name.endswith(layout.RAW) else entry.name
            # A former name that is a link goes with what it leads to.
            if layout.CACHE_KEY.match(key) and stat.S_ISREG(status.st_mode):
                yield _Cached(key, entry.path, status.st_blocks * 512, status.st_mtime)


def _chosen(unused: t.Sequence[_Cached], total: int, max_age: float, max_size: int | None, now: float) -> list[_Cached]:
    """Choose the images to remove from `unused`, which begins with the least recently used one."""
    going = []
    for image in unused:
        age = now - image.used
        if age > max_age or (max_size is not None and total > max_size and age > GRACE):
            going.append(image)
            total -= image.size
    return going


def _remove(image: _Cached, state_dir: str) -> bool:
    """Remove `image` and tell whether it went: one that somebody holds, or has used in the meantime, stays."""
    with contextlib.suppress(ConflictError, FileNotFoundError), locked(layout.lock_name(image.key), timeout=0):
        if os.stat(image.path).st_mtime == image.used:
            os.unlink(image.path)
            former = layout.former_path(state_dir, image.key)
            if os.path.islink(former):
                os.unlink(former)
            return True
    return False


def _remove_parts(state_dir: str, now: float) -> None:
    """Remove what cut-off runs left of downloads, conversions and pushes a day ago or earlier."""
    for name in sorted(os.listdir(layout.base_dir(state_dir))):
        key, dot, _kind = name.partition(".")
        path = os.path.join(layout.base_dir(state_dir), name)
        with contextlib.suppress(ConflictError, FileNotFoundError):
            if not dot or now - os.lstat(path).st_mtime < PART_MAX_AGE:
                continue
            if name.startswith((STAGING_PREFIX, layout.LINK_PREFIX)):
                os.unlink(path)
            elif layout.CACHE_KEY.match(key) and not name.endswith(layout.RAW):
                with locked(layout.lock_name(key), timeout=0):
                    for whole in (layout.base_path(state_dir, key), layout.former_path(state_dir, key)):
                        remove_part(f"{whole}.part")
                        remove_file(f"{whole}.converted")
