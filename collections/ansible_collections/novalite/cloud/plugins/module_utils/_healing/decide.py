# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Decision of the watcher: from what a round has found, the rows of the ledger and its clock to what is to be done.

It reads and changes nothing. Whoever carries its actions out asks `actions.refusal` before each of them, in the
transaction that records it, and decides again after each round: an order is short-lived.
"""

from __future__ import annotations

import dataclasses
import typing as t

from . import evidence, recovery, states
from .actions import Action, Arrive, GiveUp, Hold, List, Off, Place, Start, Tell, Write
from .nouns import AGENT, SWITCH, Clock, Facts, Guest, HostRow, Lease, Look, Settings, Wishes

LONGEST_PAUSE = 8  # between attempts at fencing, in times of the first


def decide(facts: Facts, rows: t.Mapping[str, HostRow], clock: Clock, settings: Settings) -> tuple[Action, ...]:
    """Return what to do, in order. Without the lease that is to take it, once nobody holds it, and nothing else.

    Of an owner that is gone it is taken before it expires. The owner may live, and only its session with the database
    have ended; nor is anybody sure that an owner whose lease expired is not merely frozen. Neither does any harm: what
    it has yet to ask the guard for is refused by the term, hosts that heard of the new term refuse its orders, and what
    it was allowed before ends as it would have. A fence agent makes a host dead, which nobody takes for alive; a guest
    is started on the host where it is recorded, and leaves that only with the proof that this host is off. A look that
    is late undoes no proof: it has a dead-man's switch count from an answer that is recorded, and not from now on.
    """
    held = facts.lease
    if held is None:
        return (Hold(None, Lease(clock.controller, clock.now + settings.lease_s, 1)),)
    if facts.owner_gone or not held.is_held(clock):
        if held.expires > clock.now and not facts.owner_gone:
            return ()
        return (Hold(held, Lease(clock.controller, clock.now + settings.lease_s, held.term + 1)),)
    watch = _Watch(facts, rows, {**rows}, clock, settings, held)
    actions: list[Action] = [Hold(held, dataclasses.replace(held, expires=clock.now + settings.lease_s))]
    watch.rows.update({host: _noted(row, watch) for host, row in rows.items()})
    for host in sorted(rows):
        actions += _of_host(rows[host], watch.rows[host], watch)
    return (*actions, *_of_guests(watch))


@dataclasses.dataclass(frozen=True)
class _Watch:
    """Round of a watcher that holds the lease; `rows` are those of `before` with what its looks leave there."""

    facts: Facts
    before: t.Mapping[str, HostRow]
    rows: dict[str, HostRow]
    clock: Clock
    settings: Settings
    lease: Lease

    def look(self, host: str) -> Look | None:
        return evidence.look_at(host, self.facts, self.clock, self.settings)

    def wishes(self, host: str) -> Wishes:
        return self.facts.wishes.get(host, Wishes())

    def armed(self, host: str) -> bool:
        return self.settings.armed and self.wishes(host).armed

    def guests(self, host: str) -> list[Guest]:
        return recovery.in_order(guest for guest in self.facts.guests if guest.host == host and guest.ha)

    def order(self, row: HostRow) -> tuple[str, str, int, int, float]:
        """Return what each act says of the row that it was decided on."""
        return row.host, row.state, row.epoch, self.lease.term, self.clock.now + self.settings.fresh_s


def _noted(row: HostRow, watch: _Watch) -> HostRow:
    """Return the row with what a look of now leaves in it. A look counts once: a round decides again when its steps
    left something to do."""
    look = watch.look(row.host)
    if look is None or look.at == row.looked_at:
        return row
    row = dataclasses.replace(row, looked_at=look.at)
    if not look.answered:
        term, since = watch.lease.term, look.at if row.silent_since is None else row.silent_since
        missed = row.missed + 1 if row.missed_in_term == term or _counts_on(look, watch) else 1
        if row.missed_in_term != term:  # what became of an attempt may never have been recorded
            row = dataclasses.replace(row, attempts=0)
        return dataclasses.replace(row, missed=missed, missed_in_term=term, silent_since=since)
    return dataclasses.replace(
        row,
        missed=0,
        silent_since=None,
        answered_at=look.at,
        heard=row.heard + 1,
        boot_id=row.boot_id or look.boot_id,
        stopping=look.stopping,
        switch_armed=look.switch_s > 0,
        switch_s=look.switch_s,
        reading=look.reading or row.reading,
    )


def _counts_on(look: Look, watch: _Watch) -> bool:
    """Tell whether the misses of another controller count: the last one is of just now, and it was not that controller
    which was cut off, for the same round of its looks got an answer of another host."""
    at = watch.before[look.host].looked_at
    return 0 <= look.at - at <= watch.settings.lease_s and any(
        other.missed == 0 and other.answered_at == at for other in watch.before.values()
    )


def _of_host(before: HostRow, row: HostRow, watch: _Watch) -> list[Action]:
    """Return the next step of a host."""
    look = watch.look(row.host)
    if look is None:
        return []  # nothing was seen, which says nothing
    if look.answered:
        return _answered(before, row, look, watch)
    if row.state in (states.UP, states.BACK):
        return [_step(before, row, "silence", "a look got no answer", watch)]
    if row.state in (states.SUSPECT, states.FENCING):
        return _silent(before, row, watch)
    return _proven(before, row, watch)


def _proven(before: HostRow, row: HostRow, watch: _Watch) -> list[Action]:
    """Return the next step of a host that is proven dead."""
    if row.state == states.FENCED:
        words = row.proof.words if row.proof else ""
        armed = watch.armed(row.host)
        return [_step(before, row, "start of the evacuation", words, watch)] if armed else _kept(before, row, watch)
    word = evidence.proof_by_person(row, watch.wishes(row.host), watch.facts, watch.clock, watch.settings)
    if word is not None and row.proof is not None and row.proof.kind == SWITCH:  # which is not enough for all guests
        return [_step(before, row, "word of a person", word.words, watch, proof=word)]
    if row.state == states.EVACUATING and not _waiting(row, watch):
        return [_step(before, row, "end of the evacuation", "no guest waits for another host", watch)]
    if row.state == states.EMPTY and _waiting(row, watch):
        return [_step(before, row, "guest that waits", "a guest waits for another host", watch)]
    return _kept(before, row, watch)


def _answered(before: HostRow, row: HostRow, look: Look, watch: _Watch) -> list[Action]:
    """Return the next step of a host that answers: it gives up what was moved, before it counts as up."""
    if row.state in states.PROVEN:
        step = _step(before, row, "answer", "it answers again", watch)
        if row.proof is not None and look.boot_id == row.boot_id:
            words = f"{row.host} was not dead: it has not booted since, although {row.proof.words}"
            return [step, Tell(row.host, words, loud=True)]
        return [step]
    if row.state in (states.SUSPECT, states.FENCING):
        event = "answer, with guests to give up" if row.moved else "answer"
        return [_step(before, row, event, "it answers again", watch)]
    if not look.libvirt:  # so nobody knows what it has
        return _said(before, row, f"libvirt of {row.host} does not answer; its guests run on, unwatched", True, watch)
    if row.state == states.BACK:
        left = tuple(sorted(look.guests.intersection(row.moved)))
        if left:
            return [*_kept(before, row, watch), GiveUp(*watch.order(row), left)]
        row = dataclasses.replace(row, moved=())
        return [_step(before, row, "guests given up", "it has none of what was moved", watch)]
    if look.boot_id != row.boot_id and look.running.issuperset(guest.uuid for guest in watch.guests(row.host)):
        row = dataclasses.replace(row, boot_id=look.boot_id)  # all that it bears run since this boot
    return _kept(before, dataclasses.replace(row, note=""), watch)


def _silent(before: HostRow, row: HostRow, watch: _Watch) -> list[Action]:
    """Return the next step towards the proof of a death, or what keeps from it."""
    facts, clock, settings, wishes = watch.facts, watch.clock, watch.settings, watch.wishes(row.host)
    by_kind = evidence.verdicts(row, facts, clock, settings)
    seen = ", ".join(f"{kind}: {verdict}" for kind, verdict in by_kind.items())
    if row.missed >= settings.missed and (word := evidence.proof_by_person(row, wishes, facts, clock, settings)):
        return [_step(before, row, "word of a person", f"{word.words} ({seen})", watch, proof=word)]
    if row.state == states.FENCING:
        if evidence.alive(by_kind):
            return [_step(before, row, "sign of life", seen, watch)]
        if (proof := evidence.proof(row, wishes, facts, clock, settings)) is not None:
            return [_step(before, row, "proof of death", f"{proof.words} ({seen})", watch, proof=proof)]
    kept_back = _kept_back(row, by_kind, watch)
    if kept_back:
        return _said(before, row, f"{kept_back} ({seen})", row.missed >= settings.missed, watch)
    if row.state == states.SUSPECT:
        return [_step(before, row, "evidence of two kinds", seen, watch)]
    pause = settings.attempt_every_s * min(2**row.attempts, LONGEST_PAUSE) if row.attempts else 0
    if AGENT not in wishes.means or clock.now - row.attempted_at < pause:
        return _kept(before, row, watch)
    trying = dataclasses.replace(row, attempts=row.attempts + 1, attempted_at=clock.now)
    return [Write(*watch.order(before), trying), Off(*watch.order(row))]


def _kept_back(row: HostRow, by_kind: t.Mapping[str, str], watch: _Watch) -> str:
    """Return why a silent host is not fenced now, "" if it is to be."""
    wishes = watch.wishes(row.host)
    if not evidence.believed(by_kind):
        return f"{row.host} is silent, but there is no proof of its death"
    if reason := evidence.expected(row, wishes):
        return reason
    if not watch.guests(row.host):
        return f"{row.host} is silent, and bears no guest with ha: true"
    if not watch.armed(row.host):
        return f"{row.host} is silent, and healing is disarmed"
    if reason := evidence.too_many(row, watch.rows, watch.facts, watch.clock, watch.settings):
        return f"nobody is fenced: {reason}"
    if not wishes.means:
        return f"{row.host} is silent, and nothing can switch it off: run novalite host confirm-dead {row.host}"
    return ""


def _step(before: HostRow, row: HostRow, event: str, why: str, watch: _Watch, **changes: t.Any) -> Write:
    """Return the write that takes `event` from a row; a new epoch has no proof and no attempts."""
    edge = states.edge(row.state, event)
    after = dataclasses.replace(row, state=edge.target, since=watch.clock.now, **changes)
    if edge.raises:
        after = dataclasses.replace(after, epoch=row.epoch + 1, attempts=0, attempted_at=0)
        if after.proof is not None:
            after = dataclasses.replace(after, proof=dataclasses.replace(after.proof, epoch=after.epoch))
    if event == "evidence of two kinds":
        after = dataclasses.replace(after, proof=None)
    return Write(*watch.order(before), after, event, why)


def _kept(before: HostRow, row: HostRow, watch: _Watch) -> list[Action]:
    """Return the write of what is known anew, without a step."""
    return [Write(*watch.order(before), row)] if row != before else []


def _said(before: HostRow, row: HostRow, text: str, loud: bool, watch: _Watch) -> list[Action]:
    """Return the write of what is known anew, and say `text` unless that was said last."""
    news = [] if row.note == text else [Tell(row.host, text, loud)]
    return [*_kept(before, dataclasses.replace(row, note=text), watch), *news]


def _waiting(row: HostRow, watch: _Watch) -> list[Guest]:
    """List the guests of a proven death that are to get a place elsewhere, in the order of their recovery."""
    proof = row.proof
    if proof is None or proof.epoch != row.epoch:
        return []
    return [guest for guest in watch.guests(row.host) if not recovery.refused(guest, proof)]


def _of_guests(watch: _Watch) -> list[Action]:
    """Return what is to be done for guests: places for those of the dead, starts for those that have a place."""
    running = recovery.running_at(watch.facts, watch.clock, watch.settings)
    takers = recovery.takers(watch.rows, watch.facts, watch.clock, watch.settings)
    actions: list[Action] = []
    waiting = {row.host: _waiting(row, watch) for row in watch.rows.values() if row.state == states.EVACUATING}
    for guest in recovery.in_order(guest for guest in watch.facts.guests if guest.ha):
        row = watch.rows.get(guest.host)
        look = watch.look(guest.host)
        if row is None or look is None:
            continue
        hosts = running.get(guest.uuid, set())
        if hosts == {guest.host}:
            actions += [Arrive(guest.uuid)] if guest.moving else []
            actions += [List(guest.uuid, "")] if guest.listed else []
            continue
        reason = _why_not(guest, row, hosts, watch)
        if reason:
            actions += [List(guest.uuid, reason)] if reason != guest.listed else []
        elif not look.answered and guest in waiting.get(row.host, ()):
            actions.append(Place(*watch.order(row), guest, takers))
        elif row.host in takers and (guest.moving or look.boot_id != row.boot_id):
            actions.append(Start(*watch.order(row), guest))
    return actions


def _why_not(guest: Guest, row: HostRow, hosts: t.Collection[str], watch: _Watch) -> str:
    """Return the reason for which a guest is not started anywhere now, "" if it may be."""
    if hosts:
        return f"it runs on {', '.join(sorted(hosts))}, and is recorded on {guest.host}"
    if row.state in states.PROVEN and row.proof is not None and (reason := recovery.refused(guest, row.proof)):
        return reason
    if row.state in (states.SUSPECT, states.FENCING):
        if row.missed < watch.settings.missed:
            return ""  # which is soon over, or not
        by_kind = evidence.verdicts(row, watch.facts, watch.clock, watch.settings)
        return _kept_back(row, by_kind, watch) or f"the death of {row.host} is not proven yet"
    if reason := evidence.expected(row, watch.wishes(row.host)):
        return reason
    return "" if watch.armed(row.host) else f"healing of {row.host} is disarmed"
