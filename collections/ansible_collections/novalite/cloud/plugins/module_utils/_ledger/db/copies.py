# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Copies of the ledger as files: dated ones in its home, ones at a named path, and back again."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import os
import pathlib
import re
import sqlite3
import tempfile
import time
import typing as t

import sqlalchemy as sa

from ..._errors import ConflictError, NovaliteError
from . import behind, clock, text
from .engine import DEFERRED, make_home, transaction
from .ledger_identity import ledger_id
from .made import revision_of
from .revisions import BUSY_TIMEOUT, FILE_NAME
from .tables import compute_host

DIRECTORY = "ledger-copies"
BACKUP = "backup"  # why a copy was asked for by name; others were made before something
KEPT_COPIES = 10  # of those that were made before something: the newest
_NAME = re.compile(
    r"ledger-(?P<stamp>\d{8}T\d{6}Z)(?:\.(?P<number>\d+))?-(?P<revision>\w+)-(?P<why>[a-z]+[\w-]*)\.(?:sqlite|jsonl)"
)
_SQLITE = b"SQLite format 3\0"
_BESIDE = ("-wal", "-shm", "-journal", ".lock")  # how files end that belong to an SQLite ledger
_HEAD = 1 << 16  # bytes of a text's first line, at most


@dataclasses.dataclass(frozen=True)
class Loaded:
    """Result of load_file(): the revision that the file had, the copy of what was there before, if any, the identity of
    the ledger, and why it is behind its hosts, if it has any."""

    revision: str
    copy: str | None
    identity: str
    behind: str | None


def keep_copy(engine: sa.Engine, home: str, why: str, keep: int = KEPT_COPIES, in_use: str | None = None) -> str:
    """Write a dated copy of the ledger, in use or not, below `home`, and return its path.

    `why` is a word of its name. Of the copies of a kind (those that were asked for, those that were made before
    something), `keep` (1 or more) are kept, and the one with the path `in_use`. SQLite is copied page by page;
    PostgreSQL as text, in one transaction. Mode 0600. Raises NovaliteError when it cannot be written.
    """
    directory = os.path.join(home, DIRECTORY)
    try:
        make_home(home)
        os.makedirs(directory, mode=0o700, exist_ok=True)
        path = _dated(engine, directory, why)
        write_copy(engine, path)
        for old in _of_a_kind(directory, why)[:-keep]:
            if in_use is None or not os.path.samefile(os.path.join(directory, old), in_use):
                os.unlink(os.path.join(directory, old))
    except OSError as error:
        raise NovaliteError(
            f"no copy of the ledger can be kept: {error.filename}: {error.strerror}; make room there, or name another "
            "`home` (novalite_home)"
        ) from error
    return path


def check_target(path: str, home: str, ledger: str) -> None:
    """Raise ConflictError for a file `path` that a copy may not be written to: what is there is not an earlier copy, or
    is one of those that novalite has in `home`. `ledger` is the path of an SQLite ledger, empty for PostgreSQL."""
    name = os.path.basename(path)
    directory = os.path.realpath(os.path.dirname(path) or os.curdir)
    named = ledger or os.path.join(home, FILE_NAME)
    # a link to the ledger is one, too: in its place a copy would be opened by all who come later
    files = {os.path.realpath(named), os.path.join(os.path.realpath(os.path.dirname(named)), os.path.basename(named))}
    own = set(files)
    for file in files:
        stem = os.path.splitext(file)[0]
        own |= {*(file + suffix for suffix in _BESIDE), f"{stem}.known", f"{stem}.clock"}
    of_home = directory in (os.path.realpath(home), *map(os.path.dirname, files))
    if os.path.join(directory, name) in own or (of_home and name.endswith(".secret")):
        raise ConflictError(f"{path} is one of novalite's own files, and no place for a copy: name another file")
    # what is at the end of a link stays: the link itself is replaced
    if os.path.lexists(path) and not os.path.islink(path) and not _may_be_replaced(path):
        raise ConflictError(f"{path} is there, and is not a copy of a ledger: name another file, or move that one away")


def write_copy(engine: sa.Engine, path: str) -> None:
    """Copy the ledger, in use or not, to the file `path`: an SQLite file, or text when it lies in PostgreSQL."""
    if engine.dialect.name != "sqlite":
        write_text(engine, path)
        return
    with _replacing(path) as temporary, contextlib.closing(sqlite3.connect(temporary)) as target:
        with contextlib.closing(sqlite3.connect(str(engine.url.database), timeout=BUSY_TIMEOUT)) as source:
            source.backup(target)
        target.execute("PRAGMA journal_mode=DELETE")  # one file, without the -wal and -shm of one that is in use


def write_text(engine: sa.Engine, path: str) -> None:
    """Write the ledger as text (see text.py) to the file `path`, as it is at one moment. Mode 0600."""
    with (
        _replacing(path) as temporary,
        _one_view(engine) as connection,
        open(temporary, "w", encoding="utf-8") as handle,
    ):
        for chunk in text.texts(text.lines_of(connection)):
            handle.write(chunk)
        handle.flush()
        os.fsync(handle.fileno())


def is_text_of(engine: sa.Engine, path: str) -> bool:
    """Tell whether the file `path` holds the ledger's text as it is now."""
    with (
        _one_view(engine) as connection,
        contextlib.suppress(OSError, UnicodeDecodeError),
        open(path, encoding="utf-8") as handle,
    ):
        lines = text.lines_of(connection)
        return all(f"{line}\n" == next(handle, "") for line in lines) and not next(handle, "")
    return False


def load_file(engine: sa.Engine, path: str, home: str, force: bool = False, check_mode: bool = False) -> Loaded:
    """Replace the ledger by the copy in the file `path`, either kind, whatever database each lies in.

    The copy is brought to the newest revision on its way, all in one transaction. A ledger that holds something is
    replaced with `force` only, and a dated copy of it is kept. One that has hosts is behind them from then on. Raises
    NovaliteError for a file that is no ledger, or is newer, and ConflictError without `force`; the ledger is as before
    then.
    """
    with _source(path) as lines:
        first = next(lines, "")
        head = text.read_head(first)
        with _one_view(engine) as connection:
            kept = revision_of(connection) is not None and not text.is_empty(connection)
        if kept and not force:
            raise ConflictError(
                "the ledger here is not empty, and would be replaced: say `force` (-e force=true) if that is meant; "
                "a copy of it is kept"
            )
        copy = keep_copy(engine, home, "before-restore", in_use=path) if kept and not check_mode else None
        with transaction(engine, check_mode, while_behind=True) as connection:
            text.load(connection, itertools.chain([first], lines))
            behind.end(connection)
            if connection.execute(sa.select(compute_host.c.id).limit(1)).first() is not None:
                made = behind.moment(os.stat(path).st_mtime)
                behind.begin(connection, f"restored from {path}, made at {made}", clock.seconds(connection))
            return Loaded(head.revision, copy, ledger_id(connection), behind.sentence(connection))


def copies_in(home: str) -> list[str]:
    """The paths of the dated copies below `home`, oldest first."""
    directory = os.path.join(home, DIRECTORY)
    if not os.path.isdir(directory):
        return []
    return [os.path.join(directory, name) for name in sorted(os.listdir(directory)) if _NAME.fullmatch(name)]


def default_path(home: str) -> str:
    """Return the path to which the ledger is exported when no file is named."""
    return os.path.join(home, FILE_NAME.replace(".sqlite", ".jsonl"))


def _may_be_replaced(path: str) -> bool:
    """Tell whether the file holds a copy of a ledger, of whichever revision, or nothing."""
    if not os.path.isfile(path):
        return False
    try:
        with open(path, "rb") as handle:
            head = handle.read(_HEAD)
    except OSError:  # not the caller's to read
        return False
    if not head.startswith(_SQLITE):
        with contextlib.suppress(ValueError):
            first = json.loads(head.split(b"\n", 1)[0])
            return isinstance(first, dict) and text.MARK in first
        return not head
    uri = f"{pathlib.Path(os.path.abspath(path)).as_uri()}?mode=ro&immutable=1"
    with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(uri, uri=True)) as copy:
        query = "SELECT count(*) FROM sqlite_master WHERE name IN ('alembic_version', 'compute_host', 'instance')"
        return bool(copy.execute(query).fetchone()[0] == 3)
    return False


def _dated(engine: sa.Engine, directory: str, why: str) -> str:
    with _one_view(engine) as connection:
        revision = revision_of(connection)
    suffix = "sqlite" if engine.dialect.name == "sqlite" else "jsonl"
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    # a number more than the last of this second, also where older ones are gone: the names stay in the order of time
    taken = [match for name in os.listdir(directory) if (match := _NAME.fullmatch(name)) and match["stamp"] == stamp]
    again = f".{1 + max(int(match['number'] or 0) for match in taken)}" if taken else ""
    return os.path.join(directory, f"ledger-{stamp}{again}-{revision}-{why}.{suffix}")


def _of_a_kind(directory: str, why: str) -> list[str]:
    names = [(match, name) for name in sorted(os.listdir(directory)) if (match := _NAME.fullmatch(name))]
    return [name for match, name in names if (match["why"] == BACKUP) == (why == BACKUP)]


@contextlib.contextmanager
def _one_view(engine: sa.Engine) -> t.Iterator[sa.Connection]:
    """A transaction that reads, and sees one state of the ledger throughout; it stops nobody."""
    connection = engine.connect()
    if engine.dialect.name == "sqlite":
        connection = connection.execution_options(**DEFERRED)
    else:
        connection = connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
    with connection, connection.begin():
        yield connection


@contextlib.contextmanager
def _replacing(path: str) -> t.Iterator[str]:
    """A new file, mode 0600, beside `path`, which it replaces at the end."""
    handle, temporary = tempfile.mkstemp(prefix=f".{os.path.basename(path)}.", dir=os.path.dirname(path) or ".")
    os.close(handle)
    try:
        yield temporary
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


@contextlib.contextmanager
def _source(path: str) -> t.Iterator[t.Iterator[str]]:
    """The lines of the ledger in the file `path`."""
    try:
        with open(path, "rb") as handle:
            is_sqlite = handle.read(len(_SQLITE)) == _SQLITE
    except OSError as error:
        raise NovaliteError(f"the copy {path} cannot be read: {error.strerror}") from error
    if not is_sqlite:
        with open(path, encoding="utf-8", errors="replace") as lines:
            yield (line.rstrip("\n") for line in lines)
        return
    uri = f"{pathlib.Path(os.path.abspath(path)).as_uri()}?mode=ro"
    engine = sa.create_engine("sqlite://", creator=lambda: sqlite3.connect(uri, uri=True))
    try:
        with engine.connect() as connection:
            yield text.lines_of(connection)
    finally:
        engine.dispose()
