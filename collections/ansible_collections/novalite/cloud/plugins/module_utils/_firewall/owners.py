# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whose an address is: its owner's, or of those who may share it. Pure.

An owner is one number, sharers are several with `+` between, and a single one is named twice (`3+3`). By his number
alone he would be taken for the owner, whom nobody's pair displaces, whether he is among those who are given or not.

An address of more than a chain's name has room for is closed (`0+1+2`: 0 is nobody, and has no groups), for one
project's pairs must not keep the others of a host from their chains. It stays so until all of the host is given.
"""

from __future__ import annotations

import typing as t

from .dispatch import Entries
from .policy import INSTANCE

NOBODY = "0"  # stands for those whom the name has no room for; ids of the ledger begin with 1
_MAX_NAME = 28  # characters of a chain's name


def changed(
    old: Entries, own: Entries, shared: t.Mapping[str, t.Sequence[str]], instances: t.Collection[str], exclusive: bool
) -> tuple[Entries, set[str]]:
    """The addresses of one scope after a request, and those of them that lead elsewhere than before.

    `own` and `shared` are what the `instances` have; `exclusive`: nobody else has anything.
    """
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
