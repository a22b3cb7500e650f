# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Evidence for the death of a host: three kinds, of which none is enough alone, and each can speak for its life."""

from __future__ import annotations

import typing as t

from .nouns import AGENT, OFF, PERSON, SWITCH, Clock, Facts, HostRow, Look, Proof, Settings, Wishes

DEAD, ALIVE, UNKNOWN = "dead", "alive", "unknown"


def fresh(at: float, clock: Clock, settings: Settings) -> bool:
    """Tell whether something of `at` is of now; a clock that was set back does not make old things new."""
    return abs(clock.now - at) <= settings.fresh_s


def look_at(host: str, facts: Facts, clock: Clock, settings: Settings) -> Look | None:
    """Return the look at a host if it is of now."""
    look = facts.looks.get(host)
    return look if look is not None and fresh(look.at, clock, settings) else None


def answers(host: str, facts: Facts, clock: Clock, settings: Settings) -> bool:
    """Tell whether a host answered a look of now."""
    look = look_at(host, facts, clock, settings)
    return look is not None and look.answered


def of_look(row: HostRow, facts: Facts, clock: Clock, settings: Settings) -> str:
    """Judge by ssh: some looks in turn got no answer."""
    look = look_at(row.host, facts, clock, settings)
    if look is None:
        return UNKNOWN
    if look.answered:
        return ALIVE
    return DEAD if row.missed >= settings.missed else UNKNOWN


def of_peers(host: str, facts: Facts, clock: Clock, settings: Settings) -> str:
    """Judge by what other hosts reach, which themselves answer the controller."""
    words = [
        word
        for word in facts.words
        if word.host == host
        and word.peer != host
        and fresh(word.at, clock, settings)
        and answers(word.peer, facts, clock, settings)
    ]
    if any(word.reached for word in words):
        return ALIVE
    return DEAD if len({word.peer for word in words}) >= settings.peers else UNKNOWN


def of_storage(host: str, facts: Facts, clock: Clock, settings: Settings) -> str:
    """Judge by the heartbeat on shared storage. If nobody's heart beats there, the storage is ill, not the hosts."""
    beats = {name: beat for name, beat in facts.heartbeats.items() if fresh(beat.at, clock, settings)}
    beating = {name for name, beat in beats.items() if beat.age_s <= settings.heartbeat_s}
    if host in beating:
        return ALIVE
    return DEAD if host in beats and beating else UNKNOWN


def verdicts(row: HostRow, facts: Facts, clock: Clock, settings: Settings) -> dict[str, str]:
    """Judge by each kind of evidence."""
    return {
        "look": of_look(row, facts, clock, settings),
        "peers": of_peers(row.host, facts, clock, settings),
        "storage": of_storage(row.host, facts, clock, settings),
    }


def believed(by_kind: t.Mapping[str, str]) -> bool:
    """Tell whether the evidence is enough to fence: no answer, one more kind, and nothing that speaks for life."""
    others = (by_kind["peers"], by_kind["storage"])
    return by_kind["look"] == DEAD and DEAD in others and ALIVE not in others


def alive(by_kind: t.Mapping[str, str]) -> bool:
    """Tell whether anything speaks for life."""
    return ALIVE in by_kind.values()


def fell_silent_with(row: HostRow, rows: t.Mapping[str, HostRow], facts: Facts, settings: Settings) -> list[str]:
    """List the hosts whose silence began within a window of that of `row`, without those that were expected to.

    They are counted from the beginning of their silence for as long as it lasts: a cut network does not become a death
    by waiting.
    """
    if row.silent_since is None:
        return []
    return sorted(
        other.host
        for other in rows.values()
        if other.silent_since is not None
        and _together(row, other, settings)
        and not expected(other, facts.wishes.get(other.host, Wishes()))
    )


def _together(row: HostRow, other: HostRow, settings: Settings) -> bool:
    """Tell whether two silences began within a window, by the ledger's clock or by looks: clocks are set at times."""
    by_looks = row.missed_in_term == other.missed_in_term and abs(row.missed - other.missed) <= settings.window_looks
    return by_looks or abs((row.silent_since or 0) - (other.silent_since or 0)) <= settings.window_s


def too_many(row: HostRow, rows: t.Mapping[str, HostRow], facts: Facts, clock: Clock, settings: Settings) -> str:
    """Return why the silence is no host's but the network's or the controller's own, "" if it may be the host's."""
    watched = [other for other in rows.values() if not expected(other, facts.wishes.get(other.host, Wishes()))]
    silent = fell_silent_with(row, rows, facts, settings)
    if len(silent) > max(1, settings.share * len(watched)):
        return f"{len(silent)} of {len(watched)} hosts fell silent together: {', '.join(silent)}"
    if not any(answers(host, facts, clock, settings) for host in rows):
        return "no host answers: it may be this controller that is cut off"
    return ""


def expected(row: HostRow, wishes: Wishes) -> str:
    """Return why the silence of a host is no wonder, "" if it is one."""
    if row.stopping:
        return f"{row.host} was shut down"
    if wishes.maintenance:
        return f"{row.host} is in maintenance"
    return ""


def proof(row: HostRow, wishes: Wishes, facts: Facts, clock: Clock, settings: Settings) -> Proof | None:
    """Return the proof of the death of a silent host that is there now, for the epoch of `row`.

    Unknown is not off: both the agent's `off` and the `status` after it have to say so, in this epoch.
    """
    if alive(verdicts(row, facts, clock, settings)):
        return None
    answer = facts.fences.get(row.host)
    if (
        AGENT in wishes.means
        and answer is not None
        and answer.epoch == row.epoch
        and answer.off
        and answer.status == OFF
        and answer.at >= row.since
        and fresh(answer.at, clock, settings)
    ):
        return Proof(AGENT, row.epoch, clock.now, "the fence agent switched it off, and its status says off")
    look, wait = look_at(row.host, facts, clock, settings), row.switch_s + settings.margin_s
    if (
        SWITCH in wishes.means
        and row.switch_armed
        and look is not None
        and look.silent_ticks > wait
        and clock.now - row.answered_at > wait
    ):
        words = f"its dead-man's switch was armed, and its last answer is {wait:.0f} s ago by two clocks"
        return Proof(SWITCH, row.epoch, clock.now, words)
    return None


def proof_by_person(row: HostRow, wishes: Wishes, facts: Facts, clock: Clock, settings: Settings) -> Proof | None:
    """Return the proof that a person's word is, if the host has not answered since and nothing speaks for life."""
    word = wishes.confirmed
    if word is None or word.heard != row.heard:
        return None
    if alive(verdicts(row, facts, clock, settings)):
        return None
    return Proof(PERSON, row.epoch, clock.now, f"{word.by} confirmed its death")
