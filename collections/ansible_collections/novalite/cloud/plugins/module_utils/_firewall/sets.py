# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The members of groups that rules name, as kernel sets of addresses: a change costs the same however many there are.

Only this file and apply.py run commands. A set must be there before a rule that compares with it, and goes after it.
"""

from __future__ import annotations

import dataclasses
import re
import typing as t

from .._host.command import CommandError, run
from .policy import SET, SET_SUFFIX, Content, set_name
from .rules import FAMILIES

SWAP_ABOVE = 20  # changes; more of them are made in a new set, which then takes the old one's place in one step
_TYPE = {"IPv4": "hash:ip family inet maxelem 1048576", "IPv6": "hash:ip family inet6 maxelem 1048576"}
_OURS = re.compile(rf"{SET}(?:0|[1-9][0-9]*)(?:\.[1-9][0-9]*)?(?:{'|'.join(SET_SUFFIX.values())})(?:-new)?")
_MISSING = 1

Members = frozenset[str]


@dataclasses.dataclass
class Plan:
    """`before` the rules are written and `after`: texts for `ipset restore`; the differences by name, for the user."""

    before: list[str] = dataclasses.field(default_factory=list)
    after: list[str] = dataclasses.field(default_factory=list)
    was: dict[str, list[str]] = dataclasses.field(default_factory=dict)
    shall: dict[str, list[str]] = dataclasses.field(default_factory=dict)


def usable() -> bool:
    """Tell whether this host has ipset and its kernel ip_set."""
    return names() is not None


def names() -> set[str] | None:
    """Novalite's sets on this host; None where they are not usable()."""
    try:
        return {name for name in run(["ipset", "list", "-name"]).stdout.split() if _OURS.fullmatch(name)}
    except CommandError:
        return None


def members(name: str) -> Members | None:
    """The addresses in a set; None when there is no such set."""
    try:
        text = run(["ipset", "save", name]).stdout
    except CommandError as error:
        if error.rc == _MISSING:
            return None
        raise
    start = f"add {name} "
    return frozenset(line[len(start) :] for line in text.splitlines() if line.startswith(start))


def plan(
    needed: t.Mapping[str, t.Collection[str]],
    members_of: t.Mapping[str, Content],
    unneeded: t.Iterable[str],
    read: t.Callable[[str], Members | None] = members,
) -> Plan:
    """The plan that makes the sets of the groups `needed` (by family; `3`, `3.7`) hold `members_of` them; a group of
    whose members nothing is said keeps those it has. `unneeded` are the names of sets that go."""
    made = Plan()
    for family in FAMILIES:
        for group in sorted(needed.get(family, ())):
            name = set_name(group, family)
            there = read(name)
            shall = members_of.get(group, Content()).of(there or frozenset(), family)
            if there == shall:
                continue
            if there is not None:
                made.was[name] = sorted(there)
            made.shall[name] = sorted(shall)
            made.before += changes(name, family, there, shall)
    for name in unneeded:
        there = read(name)
        if there is not None:
            made.was[name] = sorted(there)
            made.after.append(f"destroy {name}")
    return made


def changes(name: str, family: str, there: Members | None, shall: Members) -> list[str]:
    """The lines for `ipset restore` that make the set hold exactly `shall`."""
    gone, new = sorted((there or frozenset()) - shall), sorted(shall - (there or frozenset()))
    if there is not None and len(gone) + len(new) <= SWAP_ABOVE:
        return [
            *(f"add {name} {address} -exist" for address in new),
            *(f"del {name} {address} -exist" for address in gone),
        ]
    create = f"{_TYPE[family]} -exist"
    if there is None:
        return [f"create {name} {create}", *(f"add {name} {address} -exist" for address in new)]
    fresh = f"{name}-new"  # a run that was cut off may have left one
    return [
        f"create {fresh} {create}",
        f"flush {fresh}",
        *(f"add {fresh} {address}" for address in sorted(shall)),
        f"swap {fresh} {name}",
        f"destroy {fresh}",
    ]


def restore(lines: t.Sequence[str]) -> None:
    if lines:
        run(["ipset", "restore"], stdin="\n".join(lines) + "\n")
