# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Wrong passwords, counted for all processes together, so that nobody can guess at leisure, or lock others out.

A subject is `user:<id>`, `address:<IP>`, `login:<IP> user:<id>` or the like. Too many failures within the lock's time
lock it for that time (Nova's EC2 API: 5 failures, 15 minutes), or slow it down, longer with each. Names of nobody are
counted as well: a lock tells nothing. Who gave the right password from an address is known there for a while.

A user is counted by the id, never by a name: that of another may differ by its case or domain alone, and one that is
made again under the name of before is somebody else. Names of nobody are told apart as those of users are.
"""

from __future__ import annotations

import dataclasses
import typing as t

import sqlalchemy as sa

from ..db.tables_identity import auth_failure as table

_DOUBLINGS = 20  # more than any limit has seconds


@dataclasses.dataclass(frozen=True)
class Limit:
    """A limit: the number of failures that are let pass, and the length (seconds) of a lock.

    One that `grows` lasts 1 s after so many failures and twice as long with each that follows, up to `seconds`; it is
    back at nothing when there was no failure for as long as `calm` (seconds).
    """

    failures: int
    seconds: float
    grows: bool = False
    calm: float = 0.0

    @property
    def memory(self) -> float:
        """Time (seconds) for which a failure counts."""
        return self.calm if self.grows else self.seconds


def locked_for(connection: sa.Connection, subjects: t.Iterable[str], now: float, hold: bool = False) -> float:
    """Seconds for which one of `subjects` is still locked; 0 if none is. With `hold`, those who count failures now are
    waited for, and others wait for us."""
    query = sa.select(table.c.locked_until).where(table.c.subject.in_(list(subjects))).order_by(table.c.subject)
    until = connection.execute(query.with_for_update() if hold else query).scalars()
    return max(0.0, max(until, default=0.0) - now)


def count_failure(connection: sa.Connection, limits: t.Mapping[str, Limit], now: float) -> dict[str, float]:
    """Take down one failure for each subject of `limits`, and lock those that had too many.

    Returns for how many seconds each of them was locked before, 0 or less for one that was not: of guesses that came at
    once, some came too late.
    """
    locked_before = {}
    longest = max((limit.memory for limit in limits.values()), default=0.0)
    old = sa.and_(table.c.first_at < now - longest, table.c.locked_until < now)
    connection.execute(sa.delete(table).where(old))
    for name, limit in sorted(limits.items()):
        # one statement for each step: two processes that fail at once both count
        failures, until = connection.execute(
            sa.text(
                "INSERT INTO auth_failure (subject, failures, first_at, locked_until) VALUES (:subject, 1, :now, 0)"
                " ON CONFLICT (subject) DO UPDATE SET failures = auth_failure.failures + 1"
                " RETURNING failures, locked_until"
            ),
            {"subject": name, "now": now},
        ).one()
        locked_before[name] = until - now
        if failures < limit.failures:
            continue
        if limit.grows:
            seconds = min(limit.seconds, 2.0 ** min(failures - limit.failures, _DOUBLINGS))
            values = {"locked_until": now + seconds, "first_at": now}
        else:
            values = {"locked_until": now + limit.seconds, "failures": 0, "first_at": now}
        locked = sa.and_(table.c.subject == name, table.c.locked_until < now)
        connection.execute(sa.update(table).where(locked).values(values))
    return locked_before


def forget_failures(connection: sa.Connection, *subjects: str) -> None:
    """Begin anew with these subjects, after the right password."""
    connection.execute(sa.delete(table).where(table.c.subject.in_(subjects)))


def remember(connection: sa.Connection, name: str, until: float) -> None:
    """Know the subject `name`, which stands for a user at an address, as good until then."""
    connection.execute(
        sa.text(
            "INSERT INTO auth_failure (subject, failures, first_at, locked_until) VALUES (:subject, 0, 0, :until)"
            " ON CONFLICT (subject) DO UPDATE SET locked_until = :until"
        ),
        {"subject": name, "until": until},
    )


def is_known(connection: sa.Connection, name: str, now: float) -> bool:
    """Tell whether `name` was remembered until a time after `now`."""
    return locked_for(connection, [name], now) > 0
