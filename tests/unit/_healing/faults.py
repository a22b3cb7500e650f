# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Faults to plant in the decision, each with the seed of a story that finds it.

`python -m tests.unit._healing.faults` looks for the seeds anew, when the stories have changed.
"""

from __future__ import annotations

from tests.unit._healing.code import Fault, with_fault
from tests.unit._healing.story import Broken, play

FAULTS: tuple[tuple[Fault, int], ...] = (
    (
        Fault(
            "one kind of evidence is enough",
            "evidence",
            'by_kind["look"] == DEAD and DEAD in others and',
            'by_kind["look"] == DEAD and',
        ),
        104,
    ),
    (
        Fault(
            "a missed look is enough",
            "evidence",
            "return DEAD if row.missed >= settings.missed else UNKNOWN",
            "return DEAD",
        ),
        58,
    ),
    (Fault("what peers reach is not heard", "evidence", "if any(word.reached for word in words):", "if False:"), 18),
    (
        Fault(
            "who fell silent is counted only for a while",
            "evidence",
            "        if other.silent_since is not None\n",
            "        if other.silent_since is not None and other.missed < 4\n",
        ),
        5,
    ),
    (
        Fault(
            "as many as like may fall silent",
            "evidence",
            "if len(silent) > max(1, settings.share * len(watched)):",
            "if False:",
        ),
        5,
    ),
    (
        Fault(
            "a controller that sees nobody fences",
            "evidence",
            "if not any(answers(host, facts, clock, settings) for host in rows):",
            "if False:",
        ),
        2494,
    ),
    (
        Fault(
            "unknown is off",
            "evidence",
            "        and answer.status == OFF\n",
            "        and answer.status != 'on'\n        or answer is not None\n",
        ),
        298,
    ),
    (Fault("off is believed without asking for the status", "evidence", "        and answer.status == OFF\n", ""), 298),
    (
        Fault("the silence of a switch is short", "evidence", "row.switch_s + settings.margin_s", "settings.margin_s"),
        49,
    ),
    (Fault("all switches take the same time", "evidence", "row.switch_s + settings", "60 + settings"), 369),
    (Fault("a switch that was not armed proves", "evidence", "        and row.switch_armed\n", ""), 480),
    (
        Fault(
            "a switch is enough for all disks",
            "recovery",
            "if proof.kind == SWITCH and guest.disk != LOCKED:",
            "if False:",
        ),
        5,
    ),
    (
        Fault(
            "a person's word never gets old",
            "evidence",
            "if word is None or word.heard != row.heard:",
            "if word is None:",
        ),
        21,
    ),
    (
        Fault(
            "a host that is back keeps what was moved",
            "decide",
            "left = tuple(sorted(look.guests.intersection(row.moved)))",
            "left = ()",
        ),
        5,
    ),
    (
        Fault(
            "a host whose libvirt is silent has nothing to give up",
            "decide",
            "    if not look.libvirt:  # so nobody knows what it has\n",
            "    if False:\n",
        ),
        13,
    ),
    (
        Fault(
            "a suspect that answers forgets what it owes",
            "decide",
            'event = "answer, with guests to give up" if row.moved else "answer"',
            'event, row = "answer", dataclasses.replace(row, moved=())',
        ),
        94,
    ),
    (
        Fault(
            "fencing raises no epoch",
            "states",
            'Edge(SUSPECT, "evidence of two kinds", FENCING, raises=True)',
            'Edge(SUSPECT, "evidence of two kinds", FENCING)',
        ),
        1,
    ),
    (
        Fault(
            "orders never get old, nor does a row change",
            "actions",
            "if (row.state, row.epoch) != (act.state, act.epoch):",
            "if False:",
        ),
        721,
    ),
    (
        Fault(
            "hosts take old orders",
            "actions",
            "return kept is not None and token.epoch >= kept.epoch and token.term >= kept.term",
            "return True",
        ),
        912,
    ),
    (
        Fault(
            "a clean shutdown is a death",
            "decide",
            "    if reason := evidence.expected(row, wishes):\n        return reason\n    if not watch.guests",
            "    if not watch.guests",
        ),
        13,
    ),
    (
        Fault(
            "fenced is the end of it",
            "decide",
            "if armed else _kept(before, row, watch)\n    word",
            "if not armed else _kept(before, row, watch)\n    word",
        ),
        7,
    ),
    (
        Fault(
            "who has a place is forgotten",
            "decide",
            "(guest.moving or look.boot_id != row.boot_id)",
            "look.boot_id != row.boot_id",
        ),
        5,
    ),
    (
        Fault(
            "a host that booted is left without its guests",
            "decide",
            "(guest.moving or look.boot_id != row.boot_id)",
            "guest.moving",
        ),
        1,
    ),
    (
        Fault(
            "the lease of an owner that lives is taken",
            "decide",
            "if held.expires > clock.now and not facts.owner_gone:",
            "if False:",
        ),
        0,
    ),
    (
        Fault(
            "orders outlive their lease",
            "actions",
            "if lease is None or not lease.is_held(clock) or lease.term != act.term:",
            "if lease is None:",
        ),
        89,
    ),
    (
        Fault(
            "a failed attempt is the last",
            "decide",
            "    if AGENT not in wishes.means or clock.now - row.attempted_at < pause:",
            "    if AGENT not in wishes.means or row.attempts:",
        ),
        298,
    ),
)


def seed_of(fault: Fault, seeds: range) -> int | None:
    """Return the first of `seeds` whose story finds the fault."""
    healing = with_fault(fault)
    for seed in seeds:
        try:
            play(seed, healing)
        except Broken:
            return seed
    return None


if __name__ == "__main__":
    for fault, _seed in FAULTS:
        print(f"{seed_of(fault, range(2000))}: {fault.says}", flush=True)
