# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The file of an SQLite ledger where its file system is full, or its bytes are not what was written. By the driver
alone."""

from __future__ import annotations

import contextlib
import os
import pathlib
import sqlite3

from .revisions import BUSY_TIMEOUT

_LEAST_ROOM = 256 << 10  # bytes; SQLite wants 32 KiB for the index of its log before it reads anything
_FOR_LACK_OF_ROOM = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
_FOR_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
RESTORE = "bring back a copy with ledger_restore.yml, or make it again from the hosts with ledger_rebuild.yml"


class Immutable(sqlite3.Connection):
    """A connection to a ledger that nobody can write at the moment. It takes no locks and notices no change, so it is
    for one look."""


def connect(path: str, timeout: float) -> sqlite3.Connection:
    """Connect to a file that exists. On a full file system, where SQLite cannot make what it needs beside the file to
    read it, what is there is read as it is."""
    uri = pathlib.Path(path).as_uri()
    # check_same_thread as SQLAlchemy has it for files: its pool gives a connection to one thread at a time
    connection = sqlite3.connect(f"{uri}?mode=rw", uri=True, timeout=timeout, check_same_thread=False)
    try:
        connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    except sqlite3.OperationalError:
        if not is_full(path) or _has_log(path):
            return connection  # the next one who uses it gets the error
        connection.close()
        uri += "?mode=ro&immutable=1"
        return sqlite3.connect(uri, uri=True, timeout=timeout, check_same_thread=False, factory=Immutable)
    except sqlite3.DatabaseError:
        pass
    return connection


def is_full(path: str) -> bool:
    """Tell whether the file system of `path` has no room left, for data or for files."""
    with contextlib.suppress(OSError):
        there = os.statvfs(os.path.dirname(path) or ".")
        return there.f_bavail * there.f_frsize < _LEAST_ROOM or (there.f_files > 0 and there.f_favail == 0)
    return False


def trouble(path: str, error: BaseException) -> str | None:
    """Explain why SQLite could not use the file `path`, as an operator would say it; None for what is neither a full
    file system nor damage. `error` is the driver's, or SQLAlchemy's, which has that one."""
    error = getattr(error, "orig", None) or error
    code = getattr(error, "sqlite_errorcode", None)
    kind = None if code is None else code & 0xFF  # the rest says more precisely where it happened
    if kind in _FOR_LACK_OF_ROOM and is_full(path):
        return f"no space is left on the file system of {path}: make room there; what only looks needs none"
    if kind in _FOR_DAMAGE:
        return f"{error}: the file {path} is damaged, or is not a ledger: {RESTORE}"
    return None


def damage(path: str) -> str | None:
    """Return what is wrong with the file of a ledger, and what to do; None where it is whole. Reads all of it."""
    try:
        with contextlib.closing(connect(path, BUSY_TIMEOUT)) as connection:
            [(first,)] = connection.execute("PRAGMA quick_check(1)")
    except sqlite3.DatabaseError as error:
        return trouble(path, error)
    return None if first == "ok" else f"{first.splitlines()[-1]}: the file {path} is damaged: {RESTORE}"


def _has_log(path: str) -> bool:
    """Tell whether something was written that is not in the file itself yet."""
    with contextlib.suppress(OSError):
        return os.path.getsize(f"{path}-wal") > 0
    return False
