# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""How SQLite is set up for the ledger: transactions, and files that vanish or change under a process that has them
open."""

from __future__ import annotations

import os
import pathlib
import sqlite3
import typing as t

import sqlalchemy as sa
from sqlalchemy import event

DEFERRED = {"novalite_deferred": True}  # a connection's execution option: on SQLite, take no write lock
_FILE = "novalite_file"  # which file a connection is to, in the record that the pool has of it


def of_file(path: str, timeout: float, verify: t.Callable[[sqlite3.Connection | None], None]) -> sa.Engine:
    """Return an engine of the ledger in the file `path`, which it never makes.

    `verify` is shown each new connection, and None where the file is gone; what it raises is raised for whoever asked
    for one. A connection to a file that was replaced meanwhile is given up: it would write where nobody reads.
    """
    uri = f"{pathlib.Path(path).as_uri()}?mode=rw"
    url = sa.URL.create("sqlite", database=path)

    def connect() -> sqlite3.Connection:
        # check_same_thread as SQLAlchemy has it for files: its pool gives a connection to one thread at a time
        return sqlite3.connect(uri, uri=True, timeout=timeout, check_same_thread=False)

    engine = prepared(sa.create_engine(url, creator=connect))

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

    return engine


def prepared(engine: sa.Engine) -> sa.Engine:
    """Set up what every SQLite connection of this engine needs."""

    @event.listens_for(engine, "connect")
    def connected(connection: t.Any, record: t.Any) -> None:
        # The driver would open deferred transactions of its own, at the first write only: two runs then read the same
        # free address and both take it. From here on SQLAlchemy's "begin" below is the only one.
        connection.isolation_level = None
        cursor = connection.cursor()
        cursor.execute("PRAGMA foreign_keys=ON")
        # With WAL, NORMAL loses no consistency: a power cut may take the last commits, never tear one
        cursor.execute("PRAGMA synchronous=NORMAL")
        cursor.close()

    @event.listens_for(engine, "begin")
    def begun(connection: sa.Connection) -> None:
        deferred = DEFERRED.items() <= connection.get_execution_options().items()
        connection.exec_driver_sql("BEGIN" if deferred else "BEGIN IMMEDIATE")

    return engine
