# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Owners of addresses: one for each, or several that may share it. Pure.

An owner is one number, sharers are several with `+` between, and a single one is named twice (`3+3`). By his number
alone he would be taken for the owner, whom nobody's pair displaces, whether he is among those who are given or not.

An address of more than a chain's name has room for is closed (`0+1+2`: 0 is nobody, and has no groups), for one
project's pairs must not keep the others of a host from their chains. It stays so until all of the host is given.
"""

from __future__ import annotations

import dataclasses
import typing as t

from .dispatch import Entries, to_hex
from .policy import INSTANCE, Instance

NOBODY = "0"  # stands for those whom the name has no room for; ids of the ledger begin with 1
_MAX_NAME = 28  # characters of a chain's name


@dataclasses.dataclass
class Leads:
    """Targets of the addresses of one family after a request, by scope, and what is new in that."""

    inbound: dict[str, Entries] = dataclasses.field(default_factory=dict)
    keys: dict[str, set[str]] = dataclasses.field(default_factory=dict)  # that lead elsewhere than before
    moved: set[tuple[str, str]] = dataclasses.field(default_factory=set)  # (scope, address): elsewhere, or nowhere
    arrived: set[tuple[str, str]] = dataclasses.field(default_factory=set)  # somebody's that were nobody's
    crowded: set[str] = dataclasses.field(default_factory=set)  # closed, see is_crowded()


def merged(
    present: t.Mapping[str, Entries], instances: t.Mapping[str, Instance], staying: bool, exclusive: bool, family: str
) -> Leads:
    """The addresses that are `present` with those of the `instances`, by their numbers, which stay or go.
    `exclusive`: nobody else has anything."""
    own: dict[str, dict[str, str]] = {}
    shared: dict[str, dict[str, list[str]]] = {}
    for who, instance in instances.items() if staying else ():
        mine = instance.of(family)
        for scope, cidr in mine:
            own.setdefault(scope, {})[to_hex(cidr)] = who
        for scope, cidr in instance.shared_of(family) if mine else ():
            shared.setdefault(scope, {}).setdefault(to_hex(cidr), []).append(who)
    leads = Leads()
    for scope in {**dict.fromkeys(present), **dict.fromkeys(own), **dict.fromkeys(shared)}:
        old = present.get(scope, {})
        new, keys = changed(old, own.get(scope, {}), shared.get(scope, {}), set(instances), exclusive)
        leads.inbound[scope], leads.keys[scope] = new, keys
        leads.crowded |= {key for key in shared.get(scope, ()) if is_crowded(new[key])}
        leads.arrived |= {(scope, key) for key in keys if key not in old}
        leads.moved |= {(scope, key) for key in keys if key in old}
    return leads


def changed(
    old: Entries, own: Entries, shared: t.Mapping[str, t.Sequence[str]], instances: t.Collection[str], exclusive: bool
) -> tuple[Entries, set[str]]:
    """The addresses of one scope after a request, and those of them that lead elsewhere than before. `own` and `shared`
    are what the `instances` have; `exclusive`: nobody else has anything."""
    if exclusive:
        stale = [key for key, who in old.items() if own.get(key) != who]
    elif "+" in "".join(old.values()):
        stale = [key for key, who in old.items() if not set(instances).isdisjoint(who.split("+"))]
    else:
        stale = [key for key, who in old.items() if who in instances]
    new = dict(old)  # a changed entry keeps its place, as the linear dispatch has them in order
    keys = dict.fromkeys([*stale, *own, *shared])
    for key in keys:
        before = "" if exclusive else old.get(key, "")
        who = own.get(key)
        if who is None and before and "+" not in before and before not in instances:
            who = before
        if who is None:
            left = [part for part in before.split("+") if part and part not in instances]
            sharers = sorted({*left, *shared.get(key, ())}, key=int)
            who = _named(sharers)
        if who:
            new[key] = who
        else:
            del new[key]
    return new, {key for key in keys if old.get(key) != new.get(key)}


def is_crowded(who: str) -> bool:
    """Return whether more share an address than a chain's name has room for."""
    return who.startswith(f"{NOBODY}+")


def _named(sharers: list[str]) -> str:
    who = "+".join(sharers * 2 if len(sharers) == 1 else sharers)
    if len(f"{INSTANCE}{who}") <= _MAX_NAME:
        return who
    named = [NOBODY, *(number for number in sharers if number != NOBODY)]
    while len(INSTANCE + "+".join(named)) > _MAX_NAME:
        named.pop()
    return "+".join(named)
