# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Knowledge of the ledger about a host before a trip, and the marks of trips there, by the databases' drivers alone.

Each trip leaves a new mark, which is in the ledger before it is on its way. So a host carries `mark`, the last one that
is known to be there, or one of those `sent` since, whatever became of their trips. A host with another one was
changed by another ledger of the same identity: this one is a copy that is older.

A process of its own for each host does this twice in each trip: SQLAlchemy's engine would cost it more than the rest.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import json
import os
import secrets
import sqlite3
import time
import typing as t

from ..._errors import NovaliteError
from ..._host.mark import Identity, same
from ..._json import JsonObject
from ..db import sqlite_files
from ..db.known import File, LostError, Place, verifier
from ..db.known import known as known_at
from ..db.revisions import BUSY_TIMEOUT, FILE_NAME, HEAD

MOST = 16  # marks sent to a host that does not answer; then the last one is sent again, alone, until it does
_BATCH = 500  # UUIDs in one statement
MACHINES_LOCK = 0x6E6F7662  # PostgreSQL advisory lock: who writes an identity has seen all others

Rows = list[t.Sequence[t.Any]]
Execute = t.Callable[..., Rows]


@dataclasses.dataclass(frozen=True)
class Known:
    """Knowledge of the ledger `ledger` about a host. `behind` says why the ledger may not be trusted; `recorded`, that
    it knows the host at all. `token` is the mark for this trip to leave; `own`, that no other trip leaves it."""

    ledger: str
    behind: str | None
    recorded: bool = False
    identity: Identity | None = None
    mark: str | None = None
    sent: tuple[str, ...] = ()
    token: str | None = None
    own: bool = False

    @property
    def marks(self) -> tuple[str, ...]:
        """Marks that the host may carry."""
        return (*((self.mark,) if self.mark else ()), *self.sent)

    @property
    def by_others(self) -> tuple[str, ...]:
        """Marks that this trip has no part in."""
        return tuple(mark for mark in self.marks if not (self.own and mark == self.token))


@dataclasses.dataclass(frozen=True)
class Driver:
    """A way to a database: a driver's connections, to the ledger that is known to be there, what it raises, and the
    ledger's name in messages."""

    connect: t.Callable[[], t.Any]
    error: type[Exception]
    shown: str
    postgresql: bool = False


class HostMarks:
    """The marks of the hosts of one ledger, until it is closed. Everything raises NovaliteError where the ledger cannot
    be used."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._connection: t.Any = None

    def close(self) -> None:
        """Close the connection; the next use opens another."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def begin(self, host: str, leaves: bool, instead_of: Known | None = None) -> Known | None:
        """Return what is known of `host`, with a new mark to leave if it `leaves` one; that of a trip that was refused,
        `instead_of` which this one is, is no more. None for a ledger of another revision, and for an empty one: the
        first operation migrates it. None, too, for one that is lost, and a trip that leaves nothing: what hosts have is
        read to make it again."""
        try:
            return self._begin(host, leaves, instead_of)
        except LostError:
            if leaves:
                raise
            return None

    def _begin(self, host: str, leaves: bool, instead_of: Known | None) -> Known | None:
        with self._transaction(leaves) as execute:
            known = self._known(execute, host, leaves)
            if known is None or not known.recorded or not leaves:
                return known
            sent = known.sent
            if instead_of is not None and instead_of.own:
                sent = tuple(mark for mark in sent if mark != instead_of.token)
            if len(sent) >= MOST:
                return dataclasses.replace(known, token=sent[-1])
            token = secrets.token_hex(16)
            sent = (*sent, token)
            execute("UPDATE compute_host SET marks_sent = ? WHERE name = ?", json.dumps(sent), host)
            return dataclasses.replace(known, sent=sent, token=token, own=True)

    def arrived(self, host: str, token: str | None, identity: Identity, replaced: bool = False) -> None:
        """Record that a trip left `token` on the host, which is the machine `identity`: what of it is not known yet, or
        all of it, when it has `replaced` another one.

        A late answer says nothing of what came after it: of a mark that is no longer among those sent, a later one
        is known to be there. Raises NovaliteError, and records nothing, for a machine that is another host."""
        with self._transaction(True) as execute:
            known = self._known(execute, host, True)
            if known is None or not known.recorded:
                return
            changes: dict[str, str] = {}
            if token in known.sent:
                later = known.sent[known.sent.index(token) + 1 :]
                changes = {"mark": str(token), "marks_sent": json.dumps(later)}
            merged = identity if replaced else {**identity, **(known.identity or {})}
            if merged != known.identity:
                if self._driver.postgresql:
                    execute("SELECT pg_advisory_xact_lock(?)", MACHINES_LOCK)
                if others := self._same_machine(execute, host, merged):
                    raise SameMachineError(host, others)
                changes["identity"] = json.dumps(merged)
            if changes:
                columns = ", ".join(f"{column} = ?" for column in changes)
                execute(f"UPDATE compute_host SET {columns} WHERE name = ?", *changes.values(), host)

    def forget(self, host: str, known: Known) -> None:
        """Forget the mark of a trip that was refused."""
        with self._transaction(True) as execute:
            now = self._known(execute, host, True)
            if now is not None and known.own:
                sent = json.dumps([mark for mark in now.sent if mark != known.token])
                execute("UPDATE compute_host SET marks_sent = ? WHERE name = ?", sent, host)

    def same_machine(self, host: str, identity: Identity) -> list[str]:
        """The names of the other hosts that are recorded as this machine."""
        with self._transaction(False) as execute:
            return self._same_machine(execute, host, identity)

    def age_of_orders(self, host: str) -> JsonObject | None:
        """Return the age of orders about guests of a host that is healed: its `epoch`, the watcher's `term`, and
        `booted`, whether the host may have heard of neither since its boot, for nobody watches now. None for one that
        is not watched, or where healing is disarmed."""
        now = "extract(epoch FROM clock_timestamp())" if self._driver.postgresql else str(time.time())
        with self._transaction(False) as execute:
            if not self._is_ours(execute):
                return None
            rows = execute(
                f"SELECT host_watch.epoch, watch.term, watch.expires <= {now} FROM host_watch, watch "
                "WHERE watch.id = 1 AND watch.controller IS NOT NULL AND watch.armed "
                "AND host_watch.armed AND host_watch.host = ?",
                host,
            )
        return {"epoch": rows[0][0], "term": rows[0][1], "booted": bool(rows[0][2])} if rows else None

    def give_sign_of_life(self, ids: t.Sequence[str]) -> None:
        """Record that a run is at work on these instances and volumes (UUIDs), as far as something is under way with
        them, and on all that its requests are about: others of them wait for their turn.

        See steps/ledger_heal.py: what gives no sign for long is taken for abandoned."""
        postgresql = self._driver.postgresql
        now = "floor(extract(epoch FROM clock_timestamp()))" if postgresql else str(int(time.time()))
        skip = " ORDER BY id FOR NO KEY UPDATE SKIP LOCKED" if postgresql else ""  # who holds a row is at work on it
        is_open = "SELECT {} FROM instance_action WHERE finished_at IS NULL AND {}"
        with self._transaction(True) as execute:
            for begin in range(0, len(ids) if self._is_ours(execute) else 0, _BATCH):
                some = ids[begin : begin + _BATCH]
                these = f"({', '.join('?' * len(some))})"
                requests = is_open.format("request_id", f"instance_uuid IN {these}")
                of_them = is_open.format("1", f"instance_uuid = instance.uuid AND request_id IN ({requests})")
                busy = (
                    "deleted = 0 AND (task_state IS NOT NULL OR vm_state = 'building') "
                    f"AND (uuid IN {these} OR EXISTS ({of_them}))"
                )
                moving = f"id IN {these} AND status NOT IN ('available', 'in-use', 'reserved') AND status NOT LIKE ?"
                for table, where, values in (
                    ("instance", busy, (*some, *some)),
                    ("volume", moving, (*some, "error%")),
                    ("volume_snapshot", moving, (*some, "error%")),
                ):
                    rows = f"SELECT id FROM {table} WHERE updated_at < {now} AND {where}{skip}"
                    execute(f"UPDATE {table} SET updated_at = {now} WHERE id IN ({rows})", *values)

    def fall_behind(self, reason: str) -> None:
        """Record why nothing may be changed until all hosts have been asked; the first reason stays."""
        with self._transaction(True) as execute:
            execute(
                "UPDATE ledger_identity SET behind = ?, behind_since = ? WHERE behind IS NULL", reason, int(time.time())
            )

    def _is_ours(self, execute: Execute) -> bool:
        """Tell whether the ledger has the tables of this revision."""
        tables = "pg_tables WHERE tablename" if self._driver.postgresql else "sqlite_master WHERE name"
        if not execute(f"SELECT 1 FROM {tables} = 'alembic_version'"):
            return False
        return execute("SELECT version_num FROM alembic_version") == [(HEAD,)]

    def _known(self, execute: Execute, host: str, lock: bool) -> Known | None:
        if not self._is_ours(execute):
            return None
        ((ledger, behind),) = execute("SELECT uuid, behind FROM ledger_identity") or [(None, None)]
        if ledger is None:
            return None
        rows = execute(
            "SELECT CAST(identity AS TEXT), mark, CAST(marks_sent AS TEXT) FROM compute_host WHERE name = ?"
            + (" FOR UPDATE" if lock and self._driver.postgresql else ""),
            host,
        )
        if not rows:
            return Known(ledger, behind)
        identity, mark, sent = rows[0]
        return Known(ledger, behind, True, json.loads(identity or "null"), mark, tuple(json.loads(sent)))

    @staticmethod
    def _same_machine(execute: Execute, host: str, identity: Identity) -> list[str]:
        rows = execute(
            "SELECT name, CAST(identity AS TEXT) FROM compute_host WHERE identity IS NOT NULL AND name <> ?", host
        )
        return sorted(name for name, text in rows if same(identity, json.loads(text)))

    @contextlib.contextmanager
    def _transaction(self, writes: bool) -> t.Iterator[Execute]:
        """Open a transaction; yield what runs a statement in it, with a "?" for each value, and returns its rows."""
        driver = self._driver
        try:
            if self._connection is None:
                self._connection = driver.connect()
            connection = self._connection

            def execute(statement: str, *values: object) -> Rows:
                words = statement.replace("?", "%s") if driver.postgresql else statement
                cursor = connection.execute(words, values)
                return list(cursor.fetchall()) if cursor.description is not None else []

            if not driver.postgresql:  # where the driver begins one by itself
                connection.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
            try:
                yield execute
            except BaseException:
                connection.rollback()
                raise
            connection.commit()
        except driver.error as error:
            self.close()
            raise NovaliteError(f"{driver.shown} cannot be used: {str(error).strip().splitlines()[0]}") from error


class SameMachineError(NovaliteError):
    """A machine is recorded as another host; `names` are those of the others."""

    def __init__(self, host: str, names: list[str]) -> None:
        self.names = names
        super().__init__(f"{host} is the machine that the ledger has as {', '.join(names)}")


def open_marks(home: str, url: str | None) -> HostMarks | None:
    """Open the marks in the ledger of this home, or at this URL; None where there is no ledger, and never was.

    Raises NovaliteError for a URL that is none."""
    place: Place = File(home, os.path.join(home, FILE_NAME))
    if url is not None:
        from ..db.engine import place_of  # SQLAlchemy, which reads URLs

        at_url = place_of(home, url)
        if at_url.libpq_url is not None:
            return HostMarks(_postgresql(at_url.libpq_url, at_url))
        place = at_url
    path = place.path
    if not os.path.exists(path) and known_at(place) is None:
        return None
    verify = verifier(place)

    def connect() -> sqlite3.Connection:
        if not os.path.exists(path):
            verify(None)
        connection = sqlite_files.connect(path, BUSY_TIMEOUT)
        connection.isolation_level = None
        connection.execute("PRAGMA synchronous=NORMAL")  # as in db/sqlite_engine.py
        verify(connection)
        return connection

    return HostMarks(Driver(connect, sqlite3.Error, place.shown))


def import_driver(url: str | None) -> None:
    """Import what open_marks() needs for this URL: the parent of many workers does it once for all of them."""
    if url is not None and url.startswith("postgresql"):
        with contextlib.suppress(ImportError):  # open_marks() says so
            importlib.import_module("psycopg")


def _postgresql(url: str, place: Place) -> Driver:
    try:
        import psycopg
    except ModuleNotFoundError as error:
        raise NovaliteError(f"{place.shown} needs the Python package {error.name}: pip install it") from None
    options = f"-c lock_timeout={round(BUSY_TIMEOUT * 1000)}"
    verify = verifier(place)

    def connect() -> psycopg.Connection[t.Any]:
        connection = psycopg.connect(url, options=options)
        verify(connection)
        return connection

    return Driver(connect, psycopg.Error, place.shown, postgresql=True)
