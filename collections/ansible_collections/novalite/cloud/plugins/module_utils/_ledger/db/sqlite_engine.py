# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Setup of SQLite for the ledger: transactions, and files that vanish or change under a process that has them open."""

from __future__ import annotations

import os
import sqlite3
import typing as t

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.util import LRUCache

from ..._errors import NovaliteError
from .sqlite_files import Immutable, connect, damage

DEFERRED = {"novalite_deferred": True}  # a connection's execution option: on SQLite, take no write lock
REHEARSAL = "novalite_rehearsal"  # another one: all of its transaction is taken back
_LOOK = "novalite_look"  # whom the connection was first given to
# With WAL, NORMAL loses no consistency: a power cut may take the last commits, never tear one
SYNCHRONOUS = "NORMAL"
_FILE = "novalite_file"  # which file a connection is to, in the record that the pool has of it


class _Statements(LRUCache[t.Any, t.Any]):
    """Compiled statements of all engines of a process, and of those that it forks.

    SQLAlchemy keeps those of one engine, by its dialect, and each task opens an engine: to compile takes a quarter of
    the time of a launch's tasks. All engines of SQLite have the same dialect here.
    """

    def get(self, key: tuple[object, ...], default: t.Any = None) -> t.Any:
        return super().get(key[1:], default)

    def __setitem__(self, key: tuple[object, ...], compiled: object) -> None:
        super().__setitem__(key[1:], compiled)


STATEMENTS = _Statements(2000)


def of_file(path: str, timeout: float, verify: t.Callable[[sqlite3.Connection | None], None]) -> sa.Engine:
    """Return an engine of the ledger in the file `path`, which it never makes.

    `verify` is shown each new connection, and None where the file is gone; what it raises is raised for whoever asked
    for one. A connection to a file that was replaced meanwhile is given up: it would write where nobody reads.
    """
    url = sa.URL.create("sqlite", database=path)

    engine = prepared(sa.create_engine(url, creator=lambda: connect(path, timeout)))

    def there() -> tuple[int, int] | None:
        try:
            status = os.stat(path)
        except FileNotFoundError:
            verify(None)
            return None
        return status.st_dev, status.st_ino

    @event.listens_for(engine, "connect")
    def connected(connection: t.Any, record: t.Any) -> None:
        record.info[_FILE] = there()
        verify(connection)

    @event.listens_for(engine, "checkout")
    def checked_out(connection: t.Any, record: t.Any, proxy: t.Any) -> None:
        if record.info[_FILE] != there():
            raise sa.exc.InvalidatePoolError(f"{path} was replaced")  # the pool opens the new one
        if isinstance(connection, Immutable) and record.info.setdefault(_LOOK, proxy) is not proxy:
            raise sa.exc.InvalidatePoolError(f"{path} may have changed")

    return engine


def file_of(engine: sa.Engine) -> str:
    """The path of the ledger's file; empty where there is none."""
    return str(engine.url.database or "") if engine.dialect.name == "sqlite" else ""


def check_whole(engine: sa.Engine) -> None:
    """Raise NovaliteError for a ledger in a damaged file, of which all is read. PostgreSQL looks after its own."""
    if (path := file_of(engine)) and (what := damage(path)):
        raise NovaliteError(f"the ledger cannot be used: {what}")


def prepared(engine: sa.Engine) -> sa.Engine:
    """Set up what every SQLite connection of this engine needs."""
    engine.update_execution_options(compiled_cache=STATEMENTS)

    @event.listens_for(engine, "connect")
    def connected(connection: t.Any, record: t.Any) -> None:
        # The driver would open deferred transactions of its own, at the first write only: two runs then read the same
        # free address and both take it. From here on SQLAlchemy's "begin" below is the only one.
        connection.isolation_level = None
        cursor = connection.cursor()
        cursor.execute("PRAGMA foreign_keys=ON")
        cursor.execute(f"PRAGMA synchronous={SYNCHRONOUS}")
        cursor.close()

    @event.listens_for(engine, "begin")
    def begun(connection: sa.Connection) -> None:
        deferred = DEFERRED.items() <= connection.get_execution_options().items()
        if isinstance(connection.connection.driver_connection, Immutable):  # who writes is told why not
            deferred = True
        connection.exec_driver_sql("BEGIN" if deferred else "BEGIN IMMEDIATE")

    return engine
