# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rows of the watch: health of hosts, the lease, people's wishes and the journal. Every write that an earlier decision
asks for is guarded: by the lease, and by the host's state and epoch, in its own transaction."""

from __future__ import annotations

import dataclasses
import typing as t

import sqlalchemy as sa

from ..._healing import actions
from ..._healing.nouns import Clock, FenceAnswer, Guest, HostRow, Lease, Proof, Reading, Wishes, Word
from ..._json import JsonObject
from ..db import clock
from ..db.tables import compute_host
from ..db.tables_migrations import host_watch, watch, watch_event

_FIELDS = tuple(field.name for field in dataclasses.fields(HostRow))
_KEPT_EVENTS = 10000  # of the journal


def ensure(connection: sa.Connection, hosts: t.Iterable[str] = ()) -> None:
    """Make the rows that are missing: that of the watch, and of each of `hosts`."""
    _insert_missing(connection, watch, watch.c.id, [1])
    _insert_missing(connection, host_watch, host_watch.c.host, sorted(set(hosts)))


def _insert_missing(connection: sa.Connection, table: sa.Table, key: sa.Column[t.Any], values: list[t.Any]) -> None:
    there = set(connection.scalars(sa.select(key).where(key.in_(values))))
    for value in values:
        if value not in there:
            try:
                with connection.begin_nested():
                    connection.execute(sa.insert(table).values({key.name: value}))
            except sa.exc.IntegrityError:
                pass  # another controller was faster


def rows(connection: sa.Connection, hosts: t.Collection[str] | None = None) -> dict[str, HostRow]:
    """Return the health of the hosts (None: of all that are watched), by name."""
    query = sa.select(*(host_watch.c[name] for name in _FIELDS)).order_by(host_watch.c.host)
    if hosts is not None:
        query = query.where(host_watch.c.host.in_(sorted(set(hosts))))
    return {row["host"]: _row(dict(row)) for row in connection.execute(query).mappings()}


def _row(columns: JsonObject) -> HostRow:
    proof, reading = columns["proof"], columns["reading"]
    nouns = {"proof": Proof(**proof) if proof else None, "reading": Reading(**reading) if reading else None}
    return HostRow(**{**columns, **nouns, "moved": tuple(columns["moved"])})


def wishes(connection: sa.Connection) -> dict[str, Wishes]:
    """Return people's wishes for each host. One that is disabled is in maintenance: its silence is expected."""
    c = host_watch.c
    query = sa.select(c.host, c.armed, c.means, c.confirmed_by, c.confirmed_heard, compute_host.c.enabled).join(
        compute_host, compute_host.c.name == c.host, isouter=True
    )
    return {
        row.host: Wishes(
            row.armed,
            row.enabled is False,
            tuple(row.means),
            None if row.confirmed_by is None else Word(row.confirmed_by, row.confirmed_heard),
        )
        for row in connection.execute(query)
    }


def is_armed(connection: sa.Connection) -> bool:
    """Tell whether anything is healed at all."""
    return connection.scalar(sa.select(watch.c.armed).where(watch.c.id == 1)) is not False


def lease(connection: sa.Connection, lock: bool = False) -> Lease | None:
    """Return the lease, None when nobody ever had it; with `lock`, nobody changes it until the transaction ends."""
    c = watch.c
    query = sa.select(c.controller, c.expires, c.term).where(c.id == 1)
    row = connection.execute(query.with_for_update() if lock else query).first()
    return None if row is None or row.controller is None else Lease(*row)


def hold(connection: sa.Connection, action: actions.Hold) -> bool:
    """Take the lease, or hold it longer, unless it is another one by now. The round of another term is over."""
    c, before, after = watch.c, action.before, action.after
    same: tuple[sa.ColumnElement[bool], ...] = (c.controller.is_(None),)
    if before is not None:
        same = (c.controller == before.owner, c.term == before.term, c.expires == before.expires)
    changed = sa.update(watch).where(c.id == 1, *same)
    values = {"controller": after.owner, "expires": after.expires, "term": after.term}
    if before is None or after.term != before.term:
        values["round"] = None
    return connection.execute(changed.values(**values)).rowcount == 1


def begin_round(connection: sa.Connection, number: str, seconds: float) -> bool:
    """Begin a round of watching, unless another one is under way. One that was killed is over after `seconds`."""
    now, c = clock.now(connection), watch.c
    free = sa.or_(c.round.is_(None), c.round == number, c.round_until <= now, c.round_until > now + 10 * seconds)
    changed = sa.update(watch).where(c.id == 1, free).values(round=number, round_until=now + seconds)
    return connection.execute(changed).rowcount == 1


def end_round(connection: sa.Connection, number: str) -> None:
    """End the round, so that the next one begins at once."""
    connection.execute(sa.update(watch).where(watch.c.round == number).values(round=None))


def refusal(
    connection: sa.Connection, act: actions.Act, controller: str, guest: Guest | None = None
) -> tuple[str, HostRow]:
    """Return why `act` must not be carried out now ("" if it may), and the host's row. What this was judged by stays as
    it is until the transaction ends."""
    held = lease(connection, lock=True)
    query = sa.select(*(host_watch.c[name] for name in _FIELDS)).where(host_watch.c.host == act.host)
    row = _row(dict(connection.execute(query.with_for_update()).mappings().one()))
    wished = wishes(connection).get(act.host, Wishes())
    recorded = actions.Recorded(held, row, wished, is_armed(connection), guest)
    return actions.refusal(act, recorded, Clock(clock.now(connection), controller)), row


def write(connection: sa.Connection, action: actions.Write, controller: str) -> str:
    """Replace a host's row; returns why that must not be, "" when it was done. Its event goes into the journal."""
    why_not, _row_now = refusal(connection, action, controller)
    if why_not:
        return why_not
    after = dataclasses.asdict(action.after)
    after["moved"] = list(after["moved"])
    c = host_watch.c
    same = (c.host == action.host, c.state == action.state, c.epoch == action.epoch)
    if connection.execute(sa.update(host_watch).where(*same).values(**after)).rowcount != 1:
        return f"{action.host} was changed by another controller"
    if action.event:
        note(connection, action.after, action.event, controller, action.why)
    return ""


def move(connection: sa.Connection, row: HostRow, uuid: str) -> None:
    """Record that a guest was given to another host: this one gives it up when it is back."""
    moved = [*(other for other in row.moved if other != uuid), uuid]
    connection.execute(sa.update(host_watch).where(host_watch.c.host == row.host).values(moved=moved))


def note(connection: sa.Connection, row: HostRow, event: str, actor: str, why: str, loud: bool = False) -> None:
    """Write a line into the journal; the oldest ones go."""
    values = {"at": clock.now(connection), "host": row.host, "event": event, "state": row.state, "epoch": row.epoch}
    line = connection.execute(sa.insert(watch_event).values(**values, actor=actor, why=why, loud=loud))
    number = line.inserted_primary_key[0] if line.inserted_primary_key else 0
    connection.execute(sa.delete(watch_event).where(watch_event.c.id <= number - _KEPT_EVENTS))


def journal(connection: sa.Connection, host: str | None = None, limit: int = 50) -> list[JsonObject]:
    """Return the newest lines of the journal, newest first."""
    query = sa.select(watch_event).order_by(watch_event.c.id.desc()).limit(limit)
    if host is not None:
        query = query.where(watch_event.c.host == host)
    return [dict(row) for row in connection.execute(query).mappings()]


def fences(connection: sa.Connection) -> dict[str, FenceAnswer]:
    """Return what fence agents answered last, by host."""
    query = sa.select(host_watch.c.host, host_watch.c.fence).where(host_watch.c.fence.is_not(None))
    return {row.host: FenceAnswer(row.host, **row.fence) for row in connection.execute(query)}


def record_fence(connection: sa.Connection, host: str, epoch: int, off: bool, status: str, at: float) -> None:
    """Record what a fence agent answered, of the epoch in which it was asked."""
    answer = {"epoch": epoch, "at": at, "off": off, "status": status}
    connection.execute(sa.update(host_watch).where(host_watch.c.host == host).values(fence=answer))


def silent_ticks(
    connection: sa.Connection, answered: t.Mapping[str, bool], ticks: float, ticks_of: str
) -> dict[str, float]:
    """Return for how long nothing was heard of each host, by the monotonic clock `ticks_of` of this controller's boot,
    and keep it; `answered` says which answered now. Another controller begins at 0: it cannot know."""
    c = host_watch.c
    kept = sa.select(c.host, c.ticks).where(c.host.in_(sorted(answered)), c.ticks_of == ticks_of)
    silent = {row.host: max(0.0, ticks - row.ticks) for row in connection.execute(kept).all() if not answered[row.host]}
    anew = sorted(set(answered) - set(silent))
    connection.execute(sa.update(host_watch).where(c.host.in_(anew)).values(ticks=ticks, ticks_of=ticks_of))
    return {**dict.fromkeys(anew, 0.0), **silent}


def set_switches(connection: sa.Connection, switches: t.Mapping[str, float]) -> None:
    """Record the seconds of dead-man's switches before looks bring them to hosts, which may act on a look that is not
    answered: until the next answer the longest one counts, and none counts any more where one is disarmed."""
    c = host_watch.c
    rows = connection.execute(sa.select(c.host, c.switch_s, c.switch_armed).where(c.host.in_(sorted(switches))))
    for row in rows.all():
        seconds = switches[row.host]
        longest, armed = max(row.switch_s, seconds), row.switch_armed and seconds > 0
        if (longest, armed) != (row.switch_s, row.switch_armed):
            changed = sa.update(host_watch).where(c.host == row.host)
            connection.execute(changed.values(switch_s=longest, switch_armed=armed))


def set_means(connection: sa.Connection, means: t.Mapping[str, t.Sequence[str]]) -> None:
    """Record what the inventory has to prove the death of each host."""
    c = host_watch.c
    rows = connection.execute(sa.select(c.host, c.means).where(c.host.in_(sorted(means))))
    for row in rows.all():
        if row.means != list(means[row.host]):
            connection.execute(sa.update(host_watch).where(c.host == row.host).values(means=list(means[row.host])))
