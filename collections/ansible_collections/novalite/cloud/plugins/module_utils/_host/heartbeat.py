# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Heartbeats of hosts: files in a directory on storage that they share, which each look touches.

Ages are by the storage's own clock: all files have their times from it.
"""

from __future__ import annotations

import contextlib
import os
import re

from .._errors import NovaliteError
from .files import closing

HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}")
MOST = 1024  # files that are looked at


def beat(directory: str, host: str) -> dict[str, float]:
    """Touch the file of `host` in `directory`, which has to be there: without the storage it is not made on the host's
    own disk. Return the age of each host's file, in seconds. Raises NovaliteError."""
    if not HOST.fullmatch(host):
        raise NovaliteError(f"'{host}' cannot be the name of a file: letters, digits, '.', '-' and '_' can")
    try:
        with closing(os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)) as parent:
            now = _touch(host, parent)
            names = sorted(name for name in os.listdir(parent) if HOST.fullmatch(name))[:MOST]
            ages = {}
            for name in names:
                with contextlib.suppress(OSError):
                    ages[name] = round(now - _time_of(name, parent), 3)
            return ages
    except OSError as error:
        raise NovaliteError(
            f"the heartbeat in {directory} fails: {error.strerror}; novalite_ha_heartbeat names a directory on storage "
            "that all hosts share and may write to"
        ) from error


def _touch(host: str, parent: int) -> float:
    """Give the file of `host` the storage's time, and return that. Something is written: NFS takes the time of a change
    from its server, and utimes() from the client."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with closing(os.open(host, flags, 0o644, dir_fd=parent)) as fd:
        os.pwrite(fd, b"\n", 0)
        os.fsync(fd)
        return os.fstat(fd).st_mtime


def _time_of(name: str, parent: int) -> float:
    # opened, for that is when NFS asks its server
    with closing(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)) as fd:
        return os.fstat(fd).st_mtime
