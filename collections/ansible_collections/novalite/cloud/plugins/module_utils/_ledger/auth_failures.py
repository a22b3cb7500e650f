# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""Wrong passwords, counted for all processes together, so that nobody can guess at leisure.

A subject is `user:<name>`, `address:<IP>` or the like. So many failures within the lock's time lock it for that time
(Nova's EC2 API: 5 failures, 15 minutes). Names of nobody are counted as well: a lock tells nothing.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import typing as t

import sqlalchemy as sa

from .tables_identity import auth_failure as table

LENGTH = 255


@dataclasses.dataclass(frozen=True)
class Limit:
    """How many failures are let pass, and how long (seconds) a lock lasts."""

    failures: int
    seconds: float


def subject(kind: str, name: str) -> str:
    """What to count failures under. Of an IPv6 address it is the /64, which one machine may have all of."""
    if kind == "address":
        try:
            address = ipaddress.ip_address(name.partition("%")[0])
        except ValueError:
            return "address:unknown"
        if address.version == 6:
            if address.ipv4_mapped is not None:
                return f"address:{address.ipv4_mapped}"
            return f"address:{ipaddress.ip_network((int(address), 64), strict=False)}"
        return f"address:{address}"
    return f"{kind}:{name.casefold()}"[:LENGTH]


def locked_for(connection: sa.Connection, subjects: t.Iterable[str], now: float) -> float:
    """Seconds for which one of `subjects` is still locked; 0 if none is."""
    query = sa.select(sa.func.max(table.c.locked_until)).where(table.c.subject.in_(list(subjects)))
    until = connection.execute(query).scalar()
    return max(0.0, float(until or 0) - now)


def count_failure(connection: sa.Connection, limits: t.Mapping[str, Limit], now: float) -> None:
    """Take down one failure for each subject of `limits`, and lock those that had too many."""
    longest = max((limit.seconds for limit in limits.values()), default=0.0)
    old = sa.and_(table.c.first_at < now - longest, table.c.locked_until < now)
    connection.execute(sa.delete(table).where(old))
    for name, limit in sorted(limits.items()):
        # one statement for each step: two processes that fail at once both count
        connection.execute(
            sa.text(
                "INSERT INTO auth_failure (subject, failures, first_at, locked_until) VALUES (:subject, 1, :now, 0)"
                " ON CONFLICT (subject) DO UPDATE SET failures = auth_failure.failures + 1"
            ),
            {"subject": name, "now": now},
        )
        reached = sa.and_(table.c.subject == name, table.c.failures >= limit.failures, table.c.locked_until < now)
        connection.execute(
            sa.update(table).where(reached).values(locked_until=now + limit.seconds, failures=0, first_at=now)
        )


def forget_failures(connection: sa.Connection, name: str) -> None:
    """Begin anew with a subject, after its right password."""
    connection.execute(sa.delete(table).where(table.c.subject == name))
