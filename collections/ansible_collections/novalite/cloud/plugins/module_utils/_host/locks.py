# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Locks between the processes that work on a host, or in a directory of the controller."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
import typing as t

from .._errors import ConflictError
from .files import opened
from .own_directory import opened_own, own_entry

# Not in /run/lock: on Debian anybody may make a directory there, and hold what lies in it. Not below /run/novalite
# either, which injections hide from their threads (_guest/session.py).
LOCK_DIR = "/run/novalite-locks"


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
