# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Recovery of guests whose host is proven dead: who may run elsewhere, in which order, and who takes them."""

from __future__ import annotations

import typing as t

from . import evidence, states
from .nouns import LOCAL, LOCKED, SWITCH, Clock, Facts, Guest, HostRow, Proof, Settings, Wishes


def refused_when_asked(ha: bool, disk: str, rebuild: bool) -> str:
    """Return why `ha` cannot be promised to a guest with such a disk, "" if it can."""
    if ha and disk == LOCAL and not rebuild:
        return (
            "ha: true needs a disk on shared storage, as a disk on one host dies with it;"
            " have a second host get copies of it (novalite replica set), or set ha_rebuild: true if a new disk from"
            " the image will do"
        )
    return ""


def refused(guest: Guest, proof: Proof) -> str:
    """Return why a guest must not run elsewhere although the death of its host is proven, "" if it may.

    A dead-man's switch proves nothing of a host that is frozen. Only locks on shared files outlive that: they lapse for
    a host that is silent, and what it writes after that is refused.
    """
    if guest.disk == LOCAL and not guest.rebuild:
        return f"its disk is on {guest.host} alone; ha_rebuild: true would build it anew from its image"
    if proof.kind == SWITCH and guest.disk != LOCKED:
        return (
            f"a dead-man's switch proves nothing of a host that is frozen, and nothing locks this guest's disk; switch"
            f" {guest.host} off, and run novalite host confirm-dead {guest.host}"
        )
    return ""


def in_order(guests: t.Iterable[Guest]) -> list[Guest]:
    """Sort guests as they are recovered: by priority, then the largest, which find room hardest."""
    return sorted(guests, key=lambda guest: (-guest.priority, -guest.memory_mb, guest.uuid))


def takers(rows: t.Mapping[str, HostRow], facts: Facts, clock: Clock, settings: Settings) -> tuple[str, ...]:
    """List the hosts that can take guests: they are up, answer now with their libvirt, and are to stay so."""
    able = []
    for host, row in sorted(rows.items()):
        look = evidence.look_at(host, facts, clock, settings)
        if row.state != states.UP or look is None or not look.answered or not look.libvirt:
            continue
        if not look.stopping and not evidence.expected(row, facts.wishes.get(host, Wishes())):
            able.append(host)
    return tuple(able)


def running_at(facts: Facts, clock: Clock, settings: Settings) -> dict[str, set[str]]:
    """Return the hosts on which each guest runs, by the looks of now."""
    hosts: dict[str, set[str]] = {}
    for host in facts.looks:
        look = evidence.look_at(host, facts, clock, settings)
        for uuid in look.running if look is not None and look.answered else ():
            hosts.setdefault(uuid, set()).add(host)
    return hosts
