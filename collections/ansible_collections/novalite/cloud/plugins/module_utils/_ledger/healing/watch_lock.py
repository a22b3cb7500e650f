# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lock by which other controllers know that the processes of one that watches are gone: on PostgreSQL alone.

A worker holds it by a session of its own, and its rounds inherit the session's socket: the server ends the session, and
frees the lock, once the last of these processes is gone. A lock that is free proves no more than that: the server may
also have ended the session of an owner that lives, see `_healing.decide`.
"""

from __future__ import annotations

import contextlib
import secrets
import threading
import typing as t

import sqlalchemy as sa

from ..db import clock
from ..db.engine import clear_errors, open_ledger
from ..db.tables_migrations import watch

VARIABLE = "NOVALITE_WATCH_LOCK"  # in the environment of a round: the number of its worker's lock
_SPACE = 0x6E6F7677  # of numbers of PostgreSQL's advisory locks
# How soon the server ends the session of a machine that is gone: after 11 s of silence. A Unix socket has no need of it
_SILENCE = {
    "tcp_keepalives_idle": 5,
    "tcp_keepalives_interval": 2,
    "tcp_keepalives_count": 3,
    "tcp_user_timeout": 11000,
}


def is_free(connection: sa.Connection, number: int) -> bool:
    """Tell whether no other session holds the lock of this number."""
    return bool(connection.scalar(sa.select(sa.func.pg_try_advisory_xact_lock(_SPACE, number))))


def owner_is_gone(connection: sa.Connection) -> bool:
    """Tell whether the owner of the lease held a lock, which is free now."""
    number = connection.scalar(sa.select(watch.c.lock).where(watch.c.id == 1))
    return number is not None and is_free(connection, number)


def record(connection: sa.Connection, number: int | None) -> None:
    """Record which lock the owner of the lease holds, if it does."""
    held = number if number is not None and not is_free(connection, number) else None
    connection.execute(sa.update(watch).where(watch.c.id == 1, watch.c.lock.is_distinct_from(held)).values(lock=held))


class WatchLock:
    """Lock of this process, under a `number` of its own, in the ledger at `url`."""

    def __init__(self, home: str, url: str | None) -> None:
        self.number = 1 + secrets.randbelow(2**31 - 1)
        self._home, self._url = home, url
        self._session: sa.Connection | None = None
        self._using = threading.Lock()

    def hold(self) -> int:
        """Hold the lock, by another session where the one before has ended; return the descriptor of its socket.

        Raises NovaliteError for a database that does not answer.
        """
        with self._using:
            return int(t.cast(t.Any, self._held().connection.driver_connection).fileno())

    def may_watch(self) -> bool:
        """Tell whether a round of this process may get the lease: nobody has it who may live, or this process.

        Raises NovaliteError for a database that does not answer.
        """
        with self._using, clear_errors("the ledger"):
            session = self._held()
            row = session.execute(sa.select(watch.c.lock, watch.c.expires).where(watch.c.id == 1)).first()
            if row is None or row.lock in (None, self.number):
                return True  # without a lock, the name of the owner says whose it is, which a round knows
            return row.expires <= clock.now(session) or is_free(session, row.lock)

    def _held(self) -> sa.Connection:
        if self._session is not None:
            with contextlib.suppress(sa.exc.DBAPIError):
                self._session.execute(sa.select(1))
                return self._session
            self.close()
        engine = open_ledger(self._home, self._url)
        with clear_errors("the ledger"):
            session = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
            for name, value in _SILENCE.items():
                session.exec_driver_sql(f"SET {name} = {value}")
            session.execute(sa.select(sa.func.pg_advisory_lock_shared(_SPACE, self.number)))
        self._session = session
        return session

    def close(self) -> None:
        """End the session."""
        if self._session is not None:
            self._session.invalidate()
            self._session.close()
            self._session.engine.dispose()
            self._session = None
