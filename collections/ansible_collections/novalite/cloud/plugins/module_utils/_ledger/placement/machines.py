# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The machines behind compute hosts' names: a host is one machine, and a machine is one host."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._errors import NovaliteError
from ..._host.mark import Identity, Seen, differs, same
from ..._json import JsonMapping
from ..._rules.machines import Meeting, refusal
from ..db.engine import take_turns
from ..db.tables import compute_host
from .host_marks import MACHINES_LOCK


def check_machines(
    connection: sa.Connection, reported: t.Mapping[str, Identity], replaced: t.Collection[str] = ()
) -> dict[str, Identity]:
    """Return the identities to record for hosts that `reported` theirs: as they were, with what is new of them; of the
    hosts whose machines were `replaced`, as they are. Raises NovaliteError for machines that are not those of their
    names, and for those that have two names."""
    c = compute_host.c
    query = sa.select(c.name, c.identity).where(c.name.in_(sorted(reported)))
    recorded: dict[str, Identity | None] = {row.name: row.identity for row in connection.execute(query)}
    before = {name: None if name in replaced else recorded.get(name) for name in reported}
    machines = {name: {**identity, **(before[name] or {})} for name, identity in reported.items()}
    new = {name for name, identity in machines.items() if identity != before[name]}
    other = {name for name, identity in reported.items() if differs(identity, before[name] or {})}
    if new or other:
        take_turns(connection, MACHINES_LOCK)
        everywhere = {**_recorded(connection), **machines}
        refusals = []
        for name in sorted(new | other):
            names = _others(everywhere, name, reported[name])
            if names or name in other:
                meeting = Meeting(name, Seen(reported[name]), name in recorded, recorded.get(name), names)
                refusals.append(refusal(meeting))
        if refusals:
            raise NovaliteError("; ".join(refusals))
    return machines


def same_machine(connection: sa.Connection, host: str, identity: Identity) -> list[str]:
    """The names of the other hosts that are recorded as the machine `identity`."""
    return _others(_recorded(connection), host, identity)


def adopt_marks(connection: sa.Connection, ledger: str, marks: t.Mapping[str, JsonMapping]) -> int:
    """Take the marks that hosts have of `ledger` for those that it left there, since they were asked what they keep;
    return how many were not known. `marks` are those on each host, by its name, and by ledger."""
    c = compute_host.c
    adopted = 0
    for host, of_ledgers in marks.items():
        mark = (of_ledgers.get(ledger) or {}).get("mark")
        row = connection.execute(sa.select(c.mark, c.marks_sent).where(c.name == host).with_for_update()).first()
        if mark is not None and row is not None and mark not in (row.mark, *row.marks_sent):
            connection.execute(sa.update(compute_host).where(c.name == host).values(mark=mark, marks_sent=[]))
            adopted += 1
    return adopted


def _others(machines: t.Mapping[str, Identity], host: str, identity: Identity) -> list[str]:
    return sorted(name for name, its in machines.items() if name != host and same(its, identity))


def _recorded(connection: sa.Connection) -> dict[str, Identity]:
    query = sa.select(compute_host.c.name, compute_host.c.identity).where(compute_host.c.identity.is_not(None))
    return {row.name: row.identity for row in connection.execute(query)}
