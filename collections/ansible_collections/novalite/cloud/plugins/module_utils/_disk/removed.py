# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The bin of a compute host: what repairs took from instances, by day, until it is emptied.

A repair may be wrong, and a disk is not made twice: `<state_dir>/removed/<YYYY-MM-DD>/<uuid>` has the files as they
were, with `disk.info` that says what they are. Directories are opened one by one, without following links.
"""

from __future__ import annotations

import contextlib
import datetime
import errno
import itertools
import os
import re
import shutil
import typing as t

from .._errors import NovaliteError
from .._host.files import INSTANCES, instance_dir
from .._host.own_directory import NotOwnError, opened_own, own_entry
from .sparse import wipe_files

REMOVED = "removed"
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_PERCENT = 100


class Day(t.NamedTuple):
    """Removals of one `day`: so many instances' `disks`, which take so many `bytes`."""

    day: str
    disks: int
    bytes: int


def days(state_dir: str) -> list[Day]:
    """List what is in the bin, the oldest day first."""
    found_days = []
    with contextlib.suppress(FileNotFoundError), _opened(state_dir) as root, _directory(root, REMOVED) as bin_fd:
        for name in sorted(filter(_DAY.fullmatch, os.listdir(bin_fd))):
            with _directory(bin_fd, name) as day:
                sizes = [_size(day, entry) for entry in os.listdir(day)]
            found_days.append(Day(name, len(sizes), sum(sizes)))
    return found_days


def instances(state_dir: str) -> list[str]:
    """The directories of all instances that are in the bin."""
    base = os.path.join(state_dir, REMOVED)
    names = [os.path.join(base, day.day) for day in days(state_dir)]
    return [os.path.join(directory, entry) for directory in names for entry in sorted(os.listdir(directory))]


def put(state_dir: str, uuid: str, names: t.Collection[str] | None = None) -> None:
    """Move the instance's directory into the bin, or keep some of its files (`names`) there, too, whatever becomes of
    them in their places. Raises NovaliteError."""
    instance_dir(state_dir, uuid)  # refuses what is not a UUID
    today = datetime.date.today().isoformat()
    with contextlib.ExitStack() as stack:
        root = stack.enter_context(_opened(state_dir))
        source = stack.enter_context(_directory(root, INSTANCES))
        bin_fd = stack.enter_context(_directory(root, REMOVED, make=True))
        day = stack.enter_context(_directory(bin_fd, today, make=True))
        try:
            if names is None:
                os.rename(uuid, _free(day, uuid), src_dir_fd=source, dst_dir_fd=day)
                return
            source = stack.enter_context(_directory(source, uuid))
            target = stack.enter_context(_directory(day, uuid, make=True))
            for name in sorted(names):
                with contextlib.suppress(FileNotFoundError):
                    os.link(name, _free(target, name), src_dir_fd=source, dst_dir_fd=target, follow_symlinks=False)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            where = os.path.join(state_dir, INSTANCES, uuid)
            raise NovaliteError(
                f"{where} is on another file system than {os.path.join(state_dir, REMOVED)}, where removed disks are "
                f"kept: move it away by hand, or mount one file system for all of {state_dir}"
            ) from error


def empty(state_dir: str, names: t.Iterable[str], wipe: str = "none") -> list[str]:
    """Remove these days for good, wiped as `wipe` says; returns those that there were. Raises NovaliteError."""
    emptied = []
    with contextlib.suppress(FileNotFoundError), _opened(state_dir) as root, _directory(root, REMOVED) as bin_fd:
        for name in sorted(names):
            if not _DAY.fullmatch(name):
                raise NovaliteError(f"'{name}' is not a day of {os.path.join(state_dir, REMOVED)}")
            with contextlib.suppress(FileNotFoundError), _directory(bin_fd, name) as day:
                path = f"/proc/self/fd/{day}"
                for entry in sorted(os.listdir(day)):
                    if wipe != "none":
                        wipe_files(wipe, os.path.join(path, entry))
                    shutil.rmtree(os.path.join(path, entry))
                os.rmdir(name, dir_fd=bin_fd)
                emptied.append(name)
    return emptied


def too_many(state_dir: str, min_free: int) -> list[str]:
    """The days, the oldest first, without which at least `min_free` percent of the file system would be free."""
    filesystem = os.statvfs(state_dir)
    missing = filesystem.f_frsize * (filesystem.f_blocks * min_free // _PERCENT - filesystem.f_bavail)
    chosen = []
    for day in days(state_dir):
        if missing <= 0:
            break
        chosen.append(day.day)
        missing -= day.bytes
    return chosen


def expired(names: t.Iterable[str], now: float, keep_days: int) -> list[str]:
    """List the days of `names` that are more than `keep_days` before `now` (seconds since the epoch)."""
    last = datetime.date.fromtimestamp(now) - datetime.timedelta(days=keep_days)
    return [name for name in sorted(names) if name < last.isoformat()]


def _opened(state_dir: str) -> t.ContextManager[int]:
    return opened_own(state_dir, links=True)


@contextlib.contextmanager
def _directory(parent: int, name: str, make: bool = False) -> t.Iterator[int]:
    """Open the directory `name` in `parent`, which is nobody else's to write to."""
    if make:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=parent)
    with own_entry(name, os.O_RDONLY | os.O_DIRECTORY, parent) as fd:
        yield fd


def _free(directory: int, name: str) -> str:
    """The name, or with a number behind it where something has it already."""
    there, numbered = set(os.listdir(directory)), (f"{name}.{number}" for number in itertools.count(2))
    return next(free for free in itertools.chain([name], numbered) if free not in there)


def _size(directory: int, name: str) -> int:
    """Bytes that the instance's files take on the disk."""
    with contextlib.suppress(OSError, NotOwnError), _directory(directory, name) as fd:
        return sum(os.stat(file, dir_fd=fd, follow_symlinks=False).st_blocks * 512 for file in os.listdir(fd))
    return 0
