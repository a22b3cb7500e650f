# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The file that knows which ledger a home has: `ledger.known` beside ledger.sqlite, or in the home of a PostgreSQL one.

A ledger that was deleted, emptied or replaced by another one is not taken for a new one: all that its hosts have would
be nobody's. Only who restores it, or makes it again from the hosts, goes on without it. By the drivers alone, as trips
to hosts read the ledger.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sqlite3
import typing as t

from ..._errors import NovaliteError
from ..._host.files import read_text, write_atomically

_NAME = "ledger.known"
_SQLITE = "SELECT name FROM sqlite_master WHERE name IN ('alembic_version', 'ledger_identity')"
_SERVER = (
    "SELECT name FROM unnest(ARRAY['alembic_version', 'ledger_identity']) name WHERE to_regclass(name) IS NOT NULL"
)
_MODE = 0o600


class LostError(NovaliteError):
    """The ledger that is known to be at a place is not there."""


class Place(t.Protocol):
    """Location of a ledger: engine.Place."""

    @property
    def home(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def shown(self) -> str: ...


@dataclasses.dataclass(frozen=True)
class File:
    """The place of a ledger in its home."""

    home: str
    path: str

    @property
    def shown(self) -> str:
        return f"the ledger {self.path}"


def path_of(place: Place) -> str:
    """Return the path of the file that knows the ledger at `place`."""
    return f"{os.path.splitext(place.path)[0]}.known" if place.path else os.path.join(place.home, _NAME)


def known(place: Place) -> str | None:
    """Return the identity of the ledger that is to be at `place`; None where there was none yet."""
    return (read_text(path_of(place)) or "").strip() or None


def keep(place: Place, identity: str) -> None:
    """Remember that the ledger at `place` has this identity. A user who may not write there leaves it to others."""
    if known(place) != identity:
        with contextlib.suppress(OSError):
            write_atomically(path_of(place), f"{identity}\n", _MODE)


def check(place: Place, identity: str | None) -> None:
    """Raise LostError unless the ledger found at `place` may be the one that is to be there. `identity`: its own;
    None where there is no ledger, or an empty database."""
    expected = known(place)
    if expected in (None, identity):
        return
    path = path_of(place)
    if identity is None:
        raise LostError(
            f"{place.shown} is gone or empty, and {path} knows that it was {expected}: bring it back with "
            f"ledger_restore.yml, or make it again from the hosts with ledger_rebuild.yml; remove {path} if a new, "
            "empty one is meant"
        )
    raise LostError(
        f"{place.shown} is {identity}, and {path} knows that {expected} is to be here: put that one back, or restore "
        f"this one with ledger_restore.yml; remove {path} if this one is meant"
    )


class Verifier(t.Protocol):
    """Checks that what a driver's new connection leads to is the ledger of its place; None stands for no ledger."""

    def __call__(self, connection: t.Any) -> None: ...


def verifier(place: Place, anew: bool = False, verify: bool = True) -> Verifier:
    """Return the check of the ledger at `place`, as engine.open_ledger() is told to make it."""

    def look(connection: t.Any) -> None:
        identity, is_empty = (None, True) if connection is None else _looked_up(connection)
        if verify and (identity is not None or (is_empty and not anew)):
            try:
                check(place, identity)
            except LostError:
                if connection is not None:
                    connection.close()  # the pool has not taken it yet
                raise

    return look


def _looked_up(connection: t.Any) -> tuple[str | None, bool]:
    """The identity of the ledger that the driver's `connection` leads to, and whether there is none at all. One that is
    older than identities has none, and is not empty."""
    names = {name for (name,) in connection.execute(_SQLITE if isinstance(connection, sqlite3.Connection) else _SERVER)}
    row = connection.execute("SELECT uuid FROM ledger_identity").fetchone() if "ledger_identity" in names else None
    return (str(row[0]) if row else None), not names
