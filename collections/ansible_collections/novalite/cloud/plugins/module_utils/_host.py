# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Basics of every room that touches a host: locks, files, threads that keep order."""

from __future__ import annotations

import concurrent.futures
import contextlib
import fcntl
import os
import tempfile
import time
import typing as t

from ._errors import ConflictError, NovaliteError
from ._own_directory import opened_own, own_entry

# Not in /run/lock: on Debian anybody may make a directory there, and hold what lies in it. Not below /run/novalite
# either, which injections hide from their threads (_guest/session.py).
LOCK_DIR = "/run/novalite-locks"
STATE_DIR = "/var/lib/novalite"  # on a compute host: _base/ (image cache) and instances/<uuid>/

T = t.TypeVar("T")
R = t.TypeVar("R")


@contextlib.contextmanager
def locked(name: str, timeout: float = 60.0, directory: str = LOCK_DIR, *, together: bool = False) -> t.Iterator[None]:
    """Hold the host-wide lock `name`, one for every playbook and job that works on this host; with `together`, beside
    others that hold it so.

    The kernel drops an flock with its last descriptor, so `kill -9` leaves none behind. The file stays: removing
    it would let two holders lock two different inodes of one name. Raises ConflictError after `timeout` seconds,
    NotOwnError where somebody else could hold, or replace, the file.
    """
    how = fcntl.LOCK_SH if together else fcntl.LOCK_EX
    with opened_own(directory, make=True) as fd, own_entry(name, os.O_RDWR | os.O_CREAT, fd) as lock:
        _wait_for(lock, os.path.join(directory, name), timeout, how)
        yield


@contextlib.contextmanager
def locked_file(path: str, timeout: float) -> t.Iterator[None]:
    """Hold a lock on the file `path`, which is made, in a directory of the controller. Raises ConflictError."""
    with opened(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW) as fd:
        _wait_for(fd, path, timeout)
        yield


@contextlib.contextmanager
def locked_directory(path: str, timeout: float = 60.0) -> t.Iterator[None]:
    """Hold a lock on the directory `path` itself: it goes with the directory, and check mode leaves no file there."""
    with opened(path, os.O_RDONLY | os.O_DIRECTORY) as fd:
        _wait_for(fd, path, timeout)
        yield


def _wait_for(fd: int, path: str, timeout: float, how: int = fcntl.LOCK_EX) -> None:
    """Take the flock of `fd`, which the kernel drops with it. Raises ConflictError after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            fcntl.flock(fd, how | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise ConflictError(
                    f"another run has held the lock {path} for {timeout:g} s; wait for it to finish and run again"
                ) from None
            time.sleep(0.02)


def read_text(path: str) -> str | None:
    """The text of a file; None where there is none, or it cannot be read."""
    with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as handle:
        return handle.read()
    return None


def write_atomically(path: str, data: str | bytes, mode: int = 0o644) -> None:
    """Replace `path` by `data` so that a reader, or a crash, sees the old or the new content, never a part."""
    directory = os.path.dirname(path)
    fd, temporary = tempfile.mkstemp(prefix=f".{os.path.basename(path)}.", dir=directory)
    try:
        with os.fdopen(fd, "wb") as handle:
            handle.write(data.encode() if isinstance(data, str) else data)
            os.fchmod(handle.fileno(), mode)
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


@contextlib.contextmanager
def closing(fd: int) -> t.Iterator[int]:
    """Close the descriptor `fd`, which it yields, at the end."""
    try:
        yield fd
    finally:
        os.close(fd)


def opened(path: str, flags: int = os.O_RDONLY) -> t.ContextManager[int]:
    """Open `path`, with mode 0600 if it is made; yields its descriptor, which no program inherits."""
    return closing(os.open(path, flags | os.O_CLOEXEC, 0o600))


def sync(path: str, mode: int | None = None) -> None:
    """Return when the file, or directory, `path` is on the disk, with this `mode` if there is one."""
    with opened(path) as fd:
        if mode is not None:
            os.fchmod(fd, mode)
        os.fsync(fd)


def remove_file(path: str) -> None:
    """Remove the file `path`, if it is there."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def remove_stale(directory: str, seconds: float, prefix: str = "") -> None:
    """Remove the files in `directory` with this `prefix` that nobody has written to for so long."""
    for name in os.listdir(directory):
        path = os.path.join(directory, name)
        with contextlib.suppress(OSError):
            if name.startswith(prefix) and time.time() - os.lstat(path).st_mtime > seconds:
                os.unlink(path)


def make_private(path: str) -> None:
    """Make the file `path` anew, empty, and nobody's but ours from the start."""
    remove_file(path)
    with opened(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL):
        pass


def wait_until(done: t.Callable[[], object], timeout: float, complaint: str, pause: float = 0.02) -> None:
    """Return when `done`, asked every `pause` seconds, is true. Raises NovaliteError after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while not done():
        if time.monotonic() > deadline:
            raise NovaliteError(complaint)
        time.sleep(pause)


def retried(call: t.Callable[[], R], passing: int, timeout: float, pause: float = 0.02) -> R:
    """Return what `call` does; while it raises the OSError `passing`, it is called again, for `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            return call()
        except OSError as error:
            if error.errno != passing or time.monotonic() > deadline:
                raise
        time.sleep(pause)


def in_threads(work: t.Callable[[T], R], items: t.Sequence[T], workers: int = 8) -> list[R]:
    """`[work(item) for item in items]` with up to `workers` threads; the first error is raised after all ended.

    For work that waits on commands and libvirt, not on Python: every item is finished (or failed) on return, so
    that the caller's undo never races a thread that is still building.
    """
    if len(items) <= 1:
        return [work(item) for item in items]
    with concurrent.futures.ThreadPoolExecutor(min(workers, len(items))) as pool:
        return [future.result() for future in [pool.submit(work, item) for item in items]]
