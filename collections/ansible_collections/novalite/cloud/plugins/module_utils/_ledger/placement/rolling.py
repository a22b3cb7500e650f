# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A rolling maintenance: hosts that have their turn one after another, and how far it came with each.

There is one at a time. Its rows are there from its beginning to its end, so that a run that was killed, or that stopped
at a host, is taken up again where it was, on any controller.
"""

from __future__ import annotations

import dataclasses
import typing as t

import sqlalchemy as sa

from ..._errors import ConflictError
from ..._model.plain_text import natural
from ..db.tables import compute_host
from ..db.tables_migrations import rolling_host

WAITING, UNDER_WAY, WORKED, DONE = "waiting", "under way", "worked", "done"


@dataclasses.dataclass(frozen=True)
class Rolling:
    """Hosts whose turn is still to come, that which is under way first; those of them that only have to be looked at
    and refilled, since their task `worked`; those that are done; and those that are left out, with the reason."""

    waiting: tuple[str, ...]
    worked: tuple[str, ...]
    done: tuple[str, ...]
    left_out: t.Mapping[str, str]


def begin(connection: sa.Connection, task: str, hosts: t.Iterable[str], anew: bool) -> Rolling:
    """Begin the maintenance `task` of these hosts, or take it up again; `anew` forgets one that was not finished.

    A host that an operator had disabled before is left alone: nobody asked for its return into service. Raises
    ConflictError while another maintenance is not finished.
    """
    if anew:
        connection.execute(sa.delete(rolling_host))
    states = _states(connection)
    other = connection.scalars(sa.select(rolling_host.c.task).where(rolling_host.c.task != task)).first()
    if other is not None:
        left = ", ".join(name for name, state in states.items() if state != DONE)
        raise ConflictError(
            f"the rolling maintenance '{other}' is not finished: {left} are left. Take it up again with the same task, "
            "or give rolling_anew=true to forget it"
        )
    columns = compute_host.c
    query = sa.select(columns.name, columns.enabled, columns.disabled_reason).where(columns.name.in_(list(hosts)))
    rows = {row.name: row for row in connection.execute(query)}
    left_out = dict.fromkeys(set(hosts) - set(rows), "the ledger does not know it: run compute_nodes.yml")
    for name, row in rows.items():
        if not row.enabled and states.get(name) is None:
            left_out[name] = f"it was disabled before: {row.disabled_reason or 'without a reason'}"
    new = [name for name in rows if name not in states and name not in left_out]
    if new:
        connection.execute(
            sa.insert(rolling_host), [{"host": name, "task": task, "state": WAITING} for name in sorted(new)]
        )
    states = _states(connection)
    waiting = sorted(
        (name for name in rows if states.get(name, DONE) != DONE),
        key=lambda name: (states[name] not in (UNDER_WAY, WORKED), natural(name)),
    )
    done = sorted((name for name in rows if states.get(name) == DONE), key=natural)
    worked = tuple(name for name in waiting if states[name] == WORKED)
    return Rolling(tuple(waiting), worked, tuple(done), left_out)


def is_under_way(connection: sa.Connection) -> bool:
    """Tell whether a maintenance has begun, and not ended."""
    return connection.execute(sa.select(rolling_host.c.host).limit(1)).first() is not None


def note(connection: sa.Connection, host: str, state: str) -> None:
    """Note how far the maintenance came with a host."""
    connection.execute(sa.update(rolling_host).where(rolling_host.c.host == host).values(state=state))


def end(connection: sa.Connection) -> list[str]:
    """End the maintenance; return the hosts that had their turn. With one that has not, it is not over: []."""
    states = _states(connection)
    if any(state != DONE for state in states.values()):
        return []
    connection.execute(sa.delete(rolling_host))
    return sorted(states, key=natural)


def _states(connection: sa.Connection) -> dict[str, str]:
    return {row.host: row.state for row in connection.execute(sa.select(rolling_host.c.host, rolling_host.c.state))}
