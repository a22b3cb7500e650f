# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ledger, as the application's processes use it."""

from __future__ import annotations

import contextlib
import threading
import typing as t

from flask import current_app

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import (
    Connection,
    Engine,
    open_ledger,
    place_of,
    reading,
    transaction,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.sealing import Seal, seal_of
from ansible_collections.novalite.cloud.plugins.module_utils._samples.rings import Samples
from ansible_collections.novalite.cloud.plugins.module_utils._secret_file import ensure_secret

from ..settings import Settings


class Ledger:
    """Opened at the first use: a connection must not be carried over the server's fork into its workers."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._engine: Engine | None = None
        self._seal: Seal | None = None
        self._writing = threading.Lock()

    @property
    def engine(self) -> Engine:
        """Raises NovaliteError when the ledger cannot be opened; the next use tries again."""
        with self._lock:
            if self._engine is None:
                self._engine = open_ledger(self._settings.home, self._settings.ledger_url)
            return self._engine

    @property
    def seal(self) -> Seal:
        """The seal of EC2's secrets. Raises NovaliteError when this machine has not the ledger's key."""
        engine = self.engine
        with self._lock:
            if self._seal is None:
                root = ensure_secret(self._settings.credentials_file)
                with transaction(engine, while_behind=True) as connection:
                    self._seal = seal_of(connection, root)
            return self._seal

    def one_writer(self) -> t.ContextManager[t.Any]:
        """Return the lock at which this process's threads queue up to write. SQLite lets one write at a time, and a
        second writer retries after pauses that grow to 0.1 s; here the next one goes on at once."""
        return self._writing if self.engine.dialect.name == "sqlite" else contextlib.nullcontext()

    def close(self) -> None:
        with self._lock:
            if self._engine is not None:
                self._engine.dispose()
                self._engine = None


@contextlib.contextmanager
def reading_ledger() -> t.Iterator[Connection]:
    """Open one consistent view of the current application's ledger, for reading only."""
    ledger: Ledger = current_app.extensions["ledger"]
    with reading(ledger.engine) as connection:
        yield connection


@contextlib.contextmanager
def writing_ledger(while_behind: bool = False) -> t.Iterator[Connection]:
    """Open one transaction of the current application's ledger: at its end, all of it is written, or nothing.
    `while_behind` is for what belongs to looking, and goes on while the ledger is behind its hosts
    (engine.transaction())."""
    ledger: Ledger = current_app.extensions["ledger"]
    with ledger.one_writer(), transaction(ledger.engine, while_behind=while_behind) as connection:
        yield connection


def credentials_seal() -> Seal:
    """Return the seal of the current application's EC2 secrets. To be asked for outside of a transaction."""
    ledger: Ledger = current_app.extensions["ledger"]
    return ledger.seal


def samples() -> Samples:
    """Return what was measured of hosts and guests, which lies in the home of the current application's ledger."""
    settings: Settings = current_app.extensions["settings"]
    return Samples(place_of(settings.home, settings.ledger_url).home)


def home() -> str | None:
    """Return the current application's directory, where images are stored."""
    settings: Settings = current_app.extensions["settings"]
    return settings.home
