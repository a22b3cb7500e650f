# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rounds of the watch: what was seen becomes facts, the decision is asked, and its actions are carried out, each in a
transaction of its own. What hosts and fence agents have to do is returned."""

from __future__ import annotations

import dataclasses
import typing as t

import sqlalchemy as sa

from ..._healing import actions, decide, states
from ..._healing.nouns import AGENT, SWITCH, Clock, Facts, Heartbeat, HostRow, Lease, Look, PeerWord, Reading, Settings
from ..._json import JsonMapping
from ..db import clock
from ..db.engine import reading, transaction
from . import acts, watch_lock, watch_rows
from .guests import guests

MOST_STEPS = 12  # decisions in a round: from silence to a start are fewer
SECONDS_A_HOST = 0.3  # that a round may take longer: a controller with one busy processor takes a third of that
RECOVER = "watch.recover"  # file in the ledger's home: there is something to start for the run that recovers
_RECOVERY = (actions.Start, actions.GiveUp)  # what takes as long as hosts need to build, to start and to remove


@dataclasses.dataclass(frozen=True)
class Watcher:
    """Controller that watches: its name, and its monotonic clock `ticks` with the boot `ticks_of` that it counts.
    `lock` is the number of the lock that its processes hold."""

    controller: str
    ticks: float
    ticks_of: str
    settings: Settings
    lock: int | None = None


@dataclasses.dataclass(frozen=True)
class Seen:
    """Sight of a round, from the time `at` on: the look at each host (None: it did not answer), and words of peers."""

    at: float
    looks: t.Mapping[str, JsonMapping | None]
    words: t.Sequence[JsonMapping] = ()


@dataclasses.dataclass
class Orders:
    """Orders for what is outside of the ledger, and lines for people."""

    off: dict[str, actions.Off] = dataclasses.field(default_factory=dict)
    starts: dict[str, actions.Start] = dataclasses.field(default_factory=dict)
    give_up: dict[str, actions.GiveUp] = dataclasses.field(default_factory=dict)
    left: bool = False  # there are starts, or guests to give up, for the run that recovers
    lines: list[str] = dataclasses.field(default_factory=list)


def settings_of(numbers: JsonMapping, hosts: int) -> Settings:
    """Return the settings of the watch over so many hosts: what a round finds is worth something, and the lease lasts,
    until it has looked at all of them. Raises TypeError for a name that the settings do not have."""
    usual, longer = Settings(), SECONDS_A_HOST * hosts
    return dataclasses.replace(
        usual, **{"fresh_s": usual.fresh_s + longer, "lease_s": usual.lease_s + longer, **numbers}
    )


def begin(
    engine: sa.Engine,
    watcher: Watcher,
    number: str,
    means: t.Mapping[str, t.Sequence[str]],
    switches: t.Mapping[str, float],
) -> Lease | None:
    """Begin a round over the hosts of `means`, if this controller has the lease, or gets it; return that. `switches`
    has the seconds of the dead-man's switches that its looks bring to hosts."""
    with transaction(engine) as connection:
        watch_rows.ensure(connection, means)
        watch_rows.set_means(connection, means)
        held = watch_rows.lease(connection, lock=True)
        now = Clock(clock.now(connection), watcher.controller)
        server = connection.dialect.name == "postgresql"
        facts = Facts(held, {}, {}, owner_gone=server and watch_lock.owner_is_gone(connection))
        for action in decide.decide(facts, {}, now, watcher.settings):
            if isinstance(action, actions.Hold) and watch_rows.hold(connection, action):
                held = action.after
        if held is None or not held.is_held(now):
            return None
        if server:
            watch_lock.record(connection, watcher.lock)
        watch_rows.set_switches(connection, switches)
        return held if watch_rows.begin_round(connection, number, watcher.settings.lease_s) else None


def means_of(agent: str | None, switch_s: float) -> tuple[str, ...]:
    """Return what proves a host's death, by its fence agent and the seconds of its switch (None, 0: it has none)."""
    return (*((AGENT,) if agent is not None else ()), *((SWITCH,) if switch_s > 0 else ()))


def peers_of(looks: t.Mapping[str, object], count: int) -> dict[str, list[str]]:
    """Return which hosts each peer is to look for: of each silent one, the next `count` that answer ask."""
    names, asked = sorted(looks), dict[str, list[str]]()
    for number, name in enumerate(names):
        if looks[name] is None:
            answering = [peer for peer in names[number + 1 :] + names[:number] if looks[peer] is not None]
            for peer in answering[:count]:
                asked.setdefault(peer, []).append(name)
    return asked


def decide_and_act(
    engine: sa.Engine, watcher: Watcher, seen: Seen, options: JsonMapping, recovers: bool = True
) -> Orders:
    """Decide, and carry out what the ledger can, until nothing is left that follows from what was seen. Unless this run
    `recovers`, what hosts have to start and to give up is left to another one, which asks `recover`."""
    orders = Orders()
    looks = _looks(engine, watcher, seen)
    for _step in range(MOST_STEPS):
        decided = _decided(engine, watcher, seen, looks)
        if not recovers:
            orders.left = any(isinstance(action, _RECOVERY) for action in decided)
            decided = [action for action in decided if not isinstance(action, _RECOVERY)]
        goes_on = [_carry_out(engine, watcher, action, options, orders) for action in decided]
        if not any(goes_on) or orders.off:
            break
    return orders


def lease_of(connection: sa.Connection, watcher: Watcher) -> Lease | None:
    """Return the lease if this controller has it. It is held no longer for that: whoever looks does so."""
    held = watch_rows.lease(connection)
    return held if held is not None and held.is_held(Clock(clock.now(connection), watcher.controller)) else None


def up_or_back(connection: sa.Connection, hosts: t.Collection[str]) -> dict[str, HostRow]:
    """Return those of `hosts` that may have something to start or to give up."""
    rows = watch_rows.rows(connection, hosts)
    return {host: row for host, row in rows.items() if row.state in (states.UP, states.BACK)}


def recover(engine: sa.Engine, watcher: Watcher, seen: Seen) -> Orders:
    """Decide by looks at hosts that may start guests what these have to start and to give up, and nothing else.

    A run of its own asks, beside the rounds: its looks are counted nowhere, so that no host is silent sooner for them.
    """
    orders = Orders()
    looks = {host: _look(host, seen.at, look, 0) for host, look in seen.looks.items() if look is not None}
    for action in _decided(engine, watcher, seen, looks):
        if isinstance(action, _RECOVERY):
            _carry_out(engine, watcher, action, {}, orders)
    return orders


def _decided(
    engine: sa.Engine, watcher: Watcher, seen: Seen, looks: t.Mapping[str, Look]
) -> t.Sequence[actions.Action]:
    with reading(engine) as connection:
        rows = watch_rows.rows(connection, seen.looks)
        now = clock.now(connection)
        facts = Facts(
            watch_rows.lease(connection),
            looks,
            watch_rows.wishes(connection),
            guests(connection),
            tuple(PeerWord(word["host"], word["peer"], seen.at, bool(word["reached"])) for word in seen.words),
            _heartbeats(seen),
            watch_rows.fences(connection),
        )
        settings = dataclasses.replace(watcher.settings, armed=watch_rows.is_armed(connection))
    return decide.decide(facts, rows, Clock(now, watcher.controller), settings)


def _looks(engine: sa.Engine, watcher: Watcher, seen: Seen) -> dict[str, Look]:
    answered = {host: look is not None for host, look in seen.looks.items()}
    with transaction(engine) as connection:
        silent = watch_rows.silent_ticks(connection, answered, watcher.ticks, watcher.ticks_of)
    return {host: _look(host, seen.at, look, silent[host]) for host, look in seen.looks.items()}


def _look(host: str, at: float, look: JsonMapping | None, silent: float) -> Look:
    if look is None:
        return Look(host, at, answered=False, silent_ticks=silent)
    boot, uptime = str(look.get("boot_id") or ""), look.get("uptime")
    return Look(
        host,
        at,
        True,
        boot,
        bool(look.get("libvirt", True)),
        bool(look.get("stopping")),
        float(look.get("switch_s") or 0),
        frozenset(look.get("guests") or ()),
        frozenset(look.get("running") or ()),
        reading=None if uptime is None else Reading(boot, float(uptime)),
    )


def _heartbeats(seen: Seen) -> dict[str, Heartbeat]:
    """Return the youngest heartbeat of each host that anybody read."""
    ages: dict[str, float] = {}
    for look in seen.looks.values():
        for host, age in ((look or {}).get("heartbeats") or {}).items():
            ages[host] = min(float(age), ages.get(host, float(age)))
    return {host: Heartbeat(host, seen.at, age) for host, age in ages.items()}


def _carry_out(
    engine: sa.Engine, watcher: Watcher, action: actions.Action, options: JsonMapping, orders: Orders
) -> bool:
    """Carry out what is the ledger's part of an action; tell whether it leads to another decision at once."""
    controller = watcher.controller
    if isinstance(action, actions.Off):
        orders.off[action.host] = action
        return False
    if isinstance(action, actions.GiveUp):
        orders.give_up[action.host] = action
        return False
    with transaction(engine) as connection:
        if isinstance(action, actions.Hold):
            watch_rows.hold(connection, action)
        elif isinstance(action, actions.List):
            acts.list_reason(connection, action.uuid, action.reason)
        elif isinstance(action, actions.Arrive):
            acts.arrive(connection, action.uuid)
        elif isinstance(action, actions.Tell):
            row = watch_rows.rows(connection, [action.host])[action.host]
            watch_rows.note(connection, row, "said", controller, action.text, action.loud)
            orders.lines.append(action.text)
        elif isinstance(action, actions.Write):
            why_not = watch_rows.write(connection, action, controller)
            orders.lines += [why_not or f"{action.host} is {action.after.state}: {action.why}"] if action.event else []
            return bool(action.event) and not why_not
        elif isinstance(action, actions.Place):
            why_not = acts.place_guest(connection, action, controller, options)
            orders.lines += [f"{action.guest.uuid} stays where it was: {why_not}"] if why_not else []
            return not why_not
        elif isinstance(action, actions.Start) and action.guest.uuid not in orders.starts:
            why_not = acts.begin_start(connection, action, controller)
            if not why_not:
                orders.starts[action.guest.uuid] = action
            orders.lines += [f"{action.guest.uuid} is not started: {why_not}"] if why_not else []
    return False


def permit_off(engine: sa.Engine, watcher: Watcher, off: JsonMapping) -> str:
    """Return why a host must not be switched off now, "" if it may."""
    act = actions.Off(off["host"], off["state"], off["epoch"], off["term"], off["until"])
    with transaction(engine) as connection:
        return watch_rows.refusal(connection, act, watcher.controller)[0]


def record_fence(engine: sa.Engine, watcher: Watcher, answer: JsonMapping) -> None:
    """Record what a fence agent answered."""
    with transaction(engine) as connection:
        row = watch_rows.rows(connection, [answer["host"]])[answer["host"]]
        at = clock.now(connection)
        watch_rows.record_fence(connection, row.host, answer["epoch"], answer["off"], answer["status"], at)
        why = f"{answer['words']} (off: {answer['off']}, status: {answer['status']})"
        watch_rows.note(connection, row, "fence agent", watcher.controller, why)
