# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Opening the ledger: where it lies, how SQLite is set up, migrations, and the one kind of transaction."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import sqlite3
import typing as t

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.pool import StaticPool

from ..._errors import BehindError, BusyError, ConflictError, NovaliteError, UndoneError
from ..._host.files import STATE_DIR
from ..._host.locks import locked
from . import behind, clock, known, text
from .made import make, revision_of
from .revisions import BUSY_TIMEOUT, FILE_NAME, FORMER, HEAD, REVISIONS
from .sqlite_engine import DEFERRED, REHEARSAL, file_of, of_file, prepared
from .sqlite_files import damage, trouble
from .tables import ledger_identity

# What others name of SQLAlchemy, who do not import it. DataError: of a value that the database does not take.
Connection = sa.Connection
Engine = sa.Engine
DataError = sa.exc.DataError

DEFAULT_HOME = STATE_DIR
MIGRATIONS = pathlib.Path(__file__).parent / "migrations"

MIGRATION_LOCK = 0x6E6F7661  # PostgreSQL advisory lock
UNREADABLE = (json.JSONDecodeError, UnicodeDecodeError)  # of what was not written as it is read
# PostgreSQL's SQLSTATE for a wait that was given up, and for a transaction that it ended so that others can go on
LOCK_NOT_AVAILABLE, UNDONE = "55P03", ("40001", "40P01")


def open_ledger(
    home: str | None = None, url: str | None = None, check_mode: bool = False, anew: bool = False, verify: bool = True
) -> sa.Engine:
    """Open the ledger, make it when there is none, bring it to the newest revision, and return its engine.

    `home` is the directory that holds ledger.sqlite (default: $NOVALITE_HOME, then /var/lib/novalite), `url` an
    SQLAlchemy URL that is used instead (default: $NOVALITE_LEDGER_URL). In check mode nothing is written: a ledger
    that does not exist, or is older than the code, is opened as a migrated copy in memory.

    A ledger that is gone is made `anew` for those who fill it again: it has the identity of the one that was lost, and
    is behind its hosts. `verify`: whether it has to be the one that this home knows (known.py).

    Raises NovaliteError: no usable directory, no connection, a ledger newer than the code, not a ledger, or gone.
    """
    place = place_of(home, url)
    with clear_errors(place.shown, place.path):
        if place.url is not None:
            return _open_server(place, check_mode, known.verifier(place, anew, verify))
        try:
            return _open_file(place, check_mode, known.verifier(place, anew, verify))
        except OSError as error:
            raise NovaliteError(f"cannot open the ledger: {error.filename}: {error.strerror}") from error


@dataclasses.dataclass(frozen=True)
class Place:
    """Location of a ledger: the `path` of its file, or the `url` of its PostgreSQL. Copies of it are kept in `home`."""

    home: str
    path: str
    url: sa.URL | None = None

    @property
    def shown(self) -> str:
        """The ledger's name in messages, without a password."""
        return self.url.render_as_string(hide_password=True) if self.url else f"the ledger {self.path}"

    @property
    def libpq_url(self) -> str | None:
        """The URL as psycopg takes it, with its password; None where the ledger is a file."""
        return self.url.set(drivername="postgresql").render_as_string(hide_password=False) if self.url else None


def place_of(home: str | None = None, url: str | None = None) -> Place:
    """Return where the ledger lies that open_ledger() opens. Raises NovaliteError for a URL that cannot be one."""
    url = url or (None if home else os.environ.get("NOVALITE_LEDGER_URL")) or None
    target = _parse(url) if url else None
    if target is not None and target.database in (None, "", ":memory:") and target.get_backend_name() == "sqlite":
        raise NovaliteError(f"{target} names no file: write sqlite:////absolute/path, or pass `home` instead")
    home = os.path.abspath(home or os.environ.get("NOVALITE_HOME") or DEFAULT_HOME)
    if target is None:
        return Place(home, os.path.join(home, FILE_NAME))
    if target.get_backend_name() == "sqlite":
        path = os.path.abspath(str(target.database))
        return Place(os.path.dirname(path), path)
    return Place(home, "", target)


def open_as_it_is(place: Place) -> sa.Engine:
    """Open a ledger that exists, at whatever revision it is. Raises NovaliteError when there is none there."""
    verify = known.verifier(place)
    if place.url is not None:
        return _server_engine(place.url, verify)
    if not os.path.exists(place.path):
        verify(None)
        raise NovaliteError(f"there is no ledger at {place.path}: name another `home`, or `ledger_url`")
    return of_file(place.path, BUSY_TIMEOUT, verify)


@contextlib.contextmanager
def transaction(engine: sa.Engine, check_mode: bool = False, while_behind: bool = False) -> t.Iterator[sa.Connection]:
    """Open one transaction over the ledger: committed at the end, rolled back after an error and in check mode.

    On SQLite it holds the write lock from its first statement on (BEGIN IMMEDIATE), so that what it reads cannot
    change before it writes. Raises BusyError when other writers keep the ledger for longer than 30 s, UndoneError
    when PostgreSQL took the transaction back: two that wait for each other, or one that saw what another one changed.

    One that writes while the ledger is behind its hosts ends in BehindError, unless it belongs to those that go on
    `while_behind`: logins, workers' signs of life, and whatever brings the ledger up to date.
    """
    with (
        clear_errors("the ledger", file_of(engine)),
        engine.connect().execution_options(**{REHEARSAL: check_mode}) as connection,
        connection.begin() as unit,
    ):
        refusal = None if while_behind else behind.refusal(connection)
        with contextlib.nullcontext() if refusal is None else _read_only(connection, refusal):
            yield connection
        if check_mode:
            unit.rollback()


@contextlib.contextmanager
def _read_only(connection: sa.Connection, refusal: BehindError) -> t.Iterator[None]:
    """Let nothing be written: an attempt ends in `refusal`."""
    behind.refuse_writes(connection)
    try:
        yield
    except (sa.exc.DBAPIError, sqlite3.Error) as error:
        if behind.is_refusal(error):
            raise refusal from error
        raise
    finally:
        if connection.dialect.name == "sqlite":  # the pool's next user has the same connection
            behind.refuse_writes(connection, False)


@contextlib.contextmanager
def reading(engine: sa.Engine) -> t.Iterator[sa.Connection]:
    """Open a consistent view of the ledger, for reading only; on SQLite it neither waits for writers nor stops them."""
    with clear_errors("the ledger", file_of(engine)), engine.connect().execution_options(**DEFERRED) as connection:
        yield connection


def take_turns(connection: Connection, lock: int) -> None:
    """Wait until no other transaction holds the `lock`, and hold it until this one ends.

    PostgreSQL's advisory lock of this number; on SQLite a transaction that writes has the whole ledger.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(lock)))


def remember(engine: sa.Engine, place: Place) -> None:
    """Write down which ledger this place has."""
    with engine.connect().execution_options(**DEFERRED) as connection:
        if identity := connection.execute(sa.select(ledger_identity.c.uuid)).scalar():
            known.keep(place, identity)


def _opened(engine: sa.Engine, place: Place, check_mode: bool = False) -> sa.Engine:
    """The engine of a ledger that is in use from here on; what lies beside it is brought along."""
    if not check_mode:
        if place.path:
            clock.note(place.path)
        if known.known(place) is None:
            remember(engine, place)
    return engine


@contextlib.contextmanager
def _closed_on_error(engine: sa.Engine) -> t.Iterator[None]:
    """Close the engine of a ledger that cannot be opened: nobody else has it."""
    try:
        yield
    except BaseException:
        engine.dispose()
        raise


# --- SQLite ---------------------------------------------------------------------------------------------------------


def _open_file(place: Place, check_mode: bool, verify: known.Verifier) -> sa.Engine:
    path, home = place.path, os.path.dirname(place.path)
    if os.path.exists(path):
        engine = of_file(path, BUSY_TIMEOUT, verify)
        with _closed_on_error(engine):
            if _is_current(engine, path):
                return _opened(engine, place, check_mode)
        engine.dispose()
    else:
        verify(None)
        if not os.path.isdir(home) and not os.path.isdir(os.path.dirname(home)):
            raise NovaliteError(
                f"the ledger's home {home} cannot be made, for {os.path.dirname(home)} does not exist: "
                "create it, or name another `home`"
            )
    if check_mode:
        return _copy_in_memory(place)
    make_home(home)
    # Two first runs at once: one makes and migrates, the other waits and finds it done. The switch to WAL needs the
    # file for itself as well, and SQLite reports "locked" there without waiting.
    with locked(f"{os.path.basename(path)}.lock", directory=home):
        # SQLite gives the -wal and -shm files the mode of the database itself
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        engine = of_file(path, BUSY_TIMEOUT, verify)
        with _closed_on_error(engine):
            if not _is_current(engine, path):
                # by the driver alone: within a transaction SQLite ignores this
                with contextlib.closing(sqlite3.connect(path, timeout=BUSY_TIMEOUT)) as raw:
                    raw.execute("PRAGMA journal_mode=WAL")
                _keep_copy(engine, home)
                _migrate(engine, place)
            return _opened(engine, place)


def make_home(home: str) -> None:
    """Make the ledger's home if it is missing. Raises NovaliteError when this user cannot write there."""
    if not os.path.isdir(home):
        # On a machine that is controller and hypervisor in one, the guests' directories lie in the default home too,
        # and libvirt's unprivileged QEMU must be able to pass through. The ledger's own files are 0600 anyway.
        with contextlib.suppress(FileExistsError):
            os.mkdir(home, 0o711 if home == STATE_DIR else 0o700)
    if not os.access(home, os.W_OK | os.X_OK):
        raise NovaliteError(
            f"the ledger's home {home} is not writable for this user: run as its owner, or name another `home`"
        )


def _copy_in_memory(place: Place) -> sa.Engine:
    """A migrated copy of the ledger at `place` (or a new one) that vanishes with its engine."""
    engine = prepared(sa.create_engine("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False}))
    if os.path.exists(place.path):
        with contextlib.closing(sqlite3.connect(f"{pathlib.Path(place.path).as_uri()}?mode=ro", uri=True)) as source:
            raw = engine.raw_connection()
            source.backup(t.cast(sqlite3.Connection, raw.driver_connection))
            raw.close()
    _migrate(engine, place)
    return engine


# --- PostgreSQL -----------------------------------------------------------------------------------------------------


def _parse(url: str) -> sa.URL:
    try:
        parsed = sa.make_url(url)
    except sa.exc.ArgumentError:
        raise NovaliteError("the ledger's URL cannot be read: write postgresql://user:password@host/database") from None
    backend = parsed.get_backend_name()
    if backend not in ("sqlite", "postgresql"):
        raise NovaliteError(f"the ledger cannot live in {backend}: use SQLite (`home`) or a postgresql:// URL")
    if parsed.drivername == "postgresql":
        return parsed.set(drivername="postgresql+psycopg")
    return parsed


def _open_server(place: Place, check_mode: bool, verify: known.Verifier) -> sa.Engine:
    engine = _server_engine(t.cast(sa.URL, place.url), verify)
    with _closed_on_error(engine):
        if not _is_current(engine, place.shown):
            if check_mode:
                raise NovaliteError(
                    f"the ledger at {place.shown} is to be made or migrated first: run once without --check"
                )
            _keep_copy(engine, place.home)
            _migrate(engine, place)
        return _opened(engine, place, check_mode)


def _server_engine(url: sa.URL, verify: known.Verifier) -> sa.Engine:
    shown = url.render_as_string(hide_password=True)
    try:
        # every guard in an UPDATE counts on it: a row that changed meanwhile is looked at again, and is no error
        engine = sa.create_engine(url, pool_pre_ping=True, isolation_level="READ COMMITTED")
    except ModuleNotFoundError as error:
        raise NovaliteError(f"the ledger at {shown} needs the Python package {error.name}: pip install it") from None

    @event.listens_for(engine, "connect")
    def connected(connection: t.Any, record: t.Any) -> None:
        with connection.cursor() as cursor:  # without this, who waits for a run that hangs, hangs with it
            cursor.execute(f"SET lock_timeout = {round(BUSY_TIMEOUT * 1000)}")
        verify(connection)
        connection.commit()

    return engine


# --- Migrations -----------------------------------------------------------------------------------------------------


def _is_current(engine: sa.Engine, shown: str) -> bool:
    """Tell whether the ledger is at the newest revision, not older or empty. Raises NovaliteError for a revision that
    this code does not know."""
    with engine.connect().execution_options(**DEFERRED) as connection:
        return revision_of(connection, shown) == HEAD


def _keep_copy(engine: sa.Engine, home: str) -> None:
    """Keep a dated copy of a ledger that is to be migrated; of a new one there is nothing to keep."""
    with engine.connect().execution_options(**DEFERRED) as connection:
        if revision_of(connection) is None:
            return
    from .copies import keep_copy  # needed by migrations alone

    keep_copy(engine, home, f"before-{HEAD}")


def _migrate(engine: sa.Engine, place: Place) -> None:
    """Bring the ledger to HEAD in one transaction: a crash or an error leaves it as it was."""
    with engine.begin() as connection:
        new = revision_of(connection) is None
        move_to_revision(connection, HEAD)
        lost = known.known(place) if new else None
        if lost is not None:  # until it is filled again, nobody is to take it for one that has nothing
            connection.execute(sa.update(ledger_identity).values(uuid=lost))
            behind.begin(connection, "it was lost, and this one was made in its place", clock.seconds(connection))


def move_to_revision(connection: sa.Connection, revision: str) -> None:
    """Migrate the ledger to `revision`, forth or back, in the transaction of `connection`.

    On PostgreSQL it waits for others that migrate. Raises NovaliteError for what is no revision.
    """
    if revision not in REVISIONS:
        raise NovaliteError(f"{revision!r} is not a revision of the ledger: give one from {REVISIONS[0]} to {HEAD}")
    take_turns(connection, MIGRATION_LOCK)
    before = revision_of(connection)
    if before is None:
        make(connection)
    elif before in FORMER:
        text.renew(connection)
    reached = before if before in REVISIONS else HEAD
    if reached != revision:
        _run_migrations(connection, revision, back=reached > revision)


def _run_migrations(connection: sa.Connection, revision: str, back: bool) -> None:
    try:
        import alembic.command
        import alembic.config
    except ModuleNotFoundError as error:
        raise NovaliteError(
            f"migrating the ledger needs the Python package {error.name}: pip install alembic"
        ) from None
    if not MIGRATIONS.is_dir():  # inside a zip file, as a module that was shipped to some host
        raise NovaliteError("the ledger is to be migrated first, and that is done on the controller only")
    config = alembic.config.Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    (alembic.command.downgrade if back else alembic.command.upgrade)(config, revision)


@contextlib.contextmanager
def clear_errors(shown: str, path: str = "") -> t.Iterator[None]:
    """Say in one line what the database refused; never the values of an SQL statement. `path`: the ledger's file."""
    try:
        yield
    except UNREADABLE as error:
        what = damage(path) if path else None
        if what is None:
            raise  # our own mistake
        raise NovaliteError(f"{shown} cannot be used: {what}") from error
    except (sa.exc.OperationalError, sqlite3.DatabaseError) as error:
        reason = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
        state = getattr(getattr(error, "orig", None), "sqlstate", None)
        if state in UNDONE:
            raise UndoneError(f"another run changed the same records meanwhile ({reason}); run again") from error
        if state == LOCK_NOT_AVAILABLE or "locked" in reason:
            raise BusyError(
                f"another run has held the ledger for {BUSY_TIMEOUT:g} s; wait for it to finish and run again"
            ) from error
        raise NovaliteError(f"{shown} cannot be used: {trouble(path, error) or reason}") from error
    except sa.exc.IntegrityError as error:
        reason = str(error.orig).strip().splitlines()[0]
        raise ConflictError(f"another run changed the same records meanwhile ({reason}); run again") from error
    except (sa.exc.DataError, sa.exc.InternalError, sa.exc.NotSupportedError, sa.exc.ProgrammingError):
        raise  # our own mistakes
    except sa.exc.DatabaseError as error:
        raise NovaliteError(f"{shown} cannot be used: {trouble(path, error) or error.orig}") from error


def inserted_id(result: sa.CursorResult[t.Any]) -> int:
    """The id that the database gave to the one row of an INSERT."""
    return int(t.cast("sa.Row[t.Any]", result.inserted_primary_key)[0])
