# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Turns of balancing in the ledger: what they are judged by, whose turn it is, and the plan that was told last."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._healing.balancing import Situation
from ..._healing.nouns import HostRow
from ..._json import JsonObject
from ..db import clock
from ..db.tables import compute_host
from ..db.tables_migrations import OPEN, host_watch, migration, watch
from ..placement import rolling
from . import watch_rows

BALANCE = "balance"  # the reason of moves for it, and the event in the journal


def situation(connection: sa.Connection, lock: bool = False) -> Situation:
    """Return the situation of now; with `lock`, nobody else has a turn until the transaction ends."""
    held = watch_rows.lease(connection, lock)
    hosts = connection.execute(
        sa.select(host_watch.c.host, host_watch.c.state, host_watch.c.armed)
        .join(compute_host, compute_host.c.name == host_watch.c.host)
        .order_by(host_watch.c.host)
    ).all()
    c = migration.c
    moving = sa.select(sa.func.count()).select_from(migration).where(c.reason == BALANCE, c.status.in_(OPEN))
    row = connection.execute(sa.select(watch.c.balance_at, watch.c.balance).where(watch.c.id == 1)).first()
    suggestion: JsonObject = (row.balance if row is not None else None) or {}
    return Situation(
        lease=held,
        states={host.host: host.state for host in hosts},
        armed=watch_rows.is_armed(connection) and all(host.armed for host in hosts),
        rolling=rolling.is_under_way(connection),
        moving=connection.scalar(moving) or 0,
        at=row.balance_at if row is not None else 0.0,
        plan=str(suggestion.get("plan") or ""),
    )


def take(connection: sa.Connection, before: float, now: float) -> bool:
    """Take the turn, unless another run took it since the last one began at `before`."""
    changed = sa.update(watch).where(watch.c.id == 1, watch.c.balance_at == before).values(balance_at=now)
    return connection.execute(changed).rowcount == 1


def forget(connection: sa.Connection) -> None:
    """Forget the plan that was told last: there is none now."""
    connection.execute(sa.update(watch).where(watch.c.balance.is_not(None)).values(balance=sa.null()))


def keep(connection: sa.Connection, plan: str, moves: int, text: str) -> None:
    """Keep the plan that is suggested, as people and notices are told of it."""
    suggestion: dict[str, t.Any] = {"plan": plan, "at": clock.now(connection), "moves": moves, "text": text}
    connection.execute(sa.update(watch).where(watch.c.id == 1).values(balance=suggestion))


def note(connection: sa.Connection, controller: str, why: str) -> None:
    """Write what was decided into the journal, as a line about all hosts."""
    watch_rows.note(connection, HostRow(""), BALANCE, controller, why)
