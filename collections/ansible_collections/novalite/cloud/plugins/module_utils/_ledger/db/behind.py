# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A ledger that is behind its hosts: it was restored, or a host has met a newer one. Until ledger_rebuild.yml has asked
all hosts it may be looked at, and not changed: it would give out numbers and addresses that guests have.

Every transaction that may write asks here (engine.transaction), and the database itself refuses to write in it then:
no statement, whoever wrote it and however, is left out.
"""

from __future__ import annotations

import sqlite3
import time

import sqlalchemy as sa

from ..._errors import BehindError
from .tables import ledger_identity

_READ_ONLY_TRANSACTION = "25006"  # PostgreSQL's SQLSTATE

_BEHIND = sa.select(ledger_identity.c.behind, ledger_identity.c.behind_since)  # asked at each writing, and made once


def refusal(connection: sa.Connection) -> BehindError | None:
    """Return why nothing may be changed, and the remedy; None for a ledger that is up to date."""
    row = connection.execute(_BEHIND).first()
    if row is None or row.behind is None:
        return None
    since = f"the ledger is behind its hosts since {moment(row.behind_since or 0)}"
    remedy = "nothing can be changed until ledger_rebuild.yml has asked all hosts"
    return BehindError(f"{since} ({row.behind}): {remedy}", f"{since}: {remedy}")


def sentence(connection: sa.Connection) -> str | None:
    """Return the refusal's sentence, for those who look at the ledger."""
    error = refusal(connection)
    return None if error is None else str(error)


def begin(connection: sa.Connection, reason: str, now: int) -> None:
    """Let nothing be changed from the end of this transaction on. An earlier reason stays: it is no better."""
    up_to_date = ledger_identity.c.behind.is_(None)
    connection.execute(sa.update(ledger_identity).where(up_to_date).values(behind=reason, behind_since=now))


def end(connection: sa.Connection) -> bool:
    """Record that all hosts were asked; return whether the ledger was behind them."""
    was = sa.update(ledger_identity).where(ledger_identity.c.behind.is_not(None))
    return bool(connection.execute(was.values(behind=None, behind_since=None)).rowcount)


def refuse_writes(connection: sa.Connection, refused: bool = True) -> None:
    """Have the database refuse what this transaction writes from here on, or, on SQLite, write again afterwards."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql(f"PRAGMA query_only = {int(refused)}")
    elif refused:
        connection.exec_driver_sql("SET TRANSACTION READ ONLY")


def is_refusal(error: BaseException) -> bool:
    """Tell whether `error` is the database's, of a write that refuse_writes() forbade."""
    cause = getattr(error, "orig", None) or error
    if isinstance(cause, sqlite3.Error):
        return getattr(cause, "sqlite_errorcode", None) == sqlite3.SQLITE_READONLY
    return getattr(cause, "sqlstate", None) == _READ_ONLY_TRANSACTION


def moment(seconds: float) -> str:
    """Return a time as texts about the ledger say it."""
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds))
