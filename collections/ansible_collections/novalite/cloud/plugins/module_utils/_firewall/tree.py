# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Prefix tree of chains: a packet finds one of many keys, addresses or devices, in few rules. Pure.

What a chain of the tree holds follows from the keys under its prefix alone: whichever way a host came to its keys, it
has the same chains, and a change concerns those on the way to the changed keys only. No two rules of a chain match the
same packet, so that their order means nothing: what is new is appended, and the host keeps the order in which it came.
"""

from __future__ import annotations

import bisect
import dataclasses
import re
import typing as t

Entries = dict[str, str]  # key -> whom it leads to
Rules = tuple[str, ...]
Chains = dict[str, Rules]
Held = list[tuple[str, t.Optional[str]]]  # key and whom it leads to; prefix and None


class Form(t.NamedTuple):
    """The way in which one tree is written: up to `linear` keys stand in its root, up to `leaf` in any other chain."""

    root: str
    linear: int
    leaf: int
    node: t.Callable[[str], str]  # prefix -> the chain for all keys that begin so
    entry: t.Callable[[str, str], str]  # key, whom it leads to -> its rule
    branch: t.Callable[[str, str], str]  # prefix, the chain for it -> the rule that leads there


class State(t.NamedTuple):
    """The contents of a tree; None for `head`, the rules that the root begins with: there is no root."""

    entries: Entries
    head: Rules | None = ()


NOTHING = State({}, None)


@dataclasses.dataclass
class Difference:
    chains: Chains = dataclasses.field(default_factory=dict)  # those that differ, or are new
    before: Chains = dataclasses.field(default_factory=dict)  # what those of them that were there held
    gone: list[str] = dataclasses.field(default_factory=list)

    def add(self, other: Difference) -> None:
        self.chains.update(other.chains)
        self.before.update(other.before)
        self.gone += other.gone


def changed(form: Form, old: State, new: State, keys: t.Iterable[str] | None = None) -> Difference:
    """The difference between two states; `keys` are those whose entries do, and perhaps some others (None: compare)."""
    if keys is None:
        keys = {key for key, _who in old.entries.items() ^ new.entries.items()}
    if old.head is None and new.head is None:
        return Difference()
    walk = _Walk(form, old.entries, new.entries, sorted(keys))
    then, now = (None if state.head is None else sorted(state.entries) for state in (old, new))
    walk.compare(form.root, then, now, form.linear, (old.head or (), new.head or ()))
    difference = walk.difference
    # a chain may have come to hang elsewhere
    difference.gone = [name for name in difference.gone if name not in difference.chains]
    return difference


def read(
    root: str,
    rules_of: t.Callable[[str], t.Sequence[str]],
    entry: re.Pattern[str],
    target: str,
    node: str,
    key_of: t.Callable[[str], str] = str,
) -> Entries:
    """The entries under a root, from the rules that a host has; the first of two for one key, as packets do.

    `entry` matches what is compared and where that leads: to a chain whose name begins with `target`, or with `node`.
    """
    entries: Entries = {}
    seen: set[str] = set()

    def walk(name: str) -> None:
        if name in seen:  # a loop; iptables refuses one, a broken answer may still show it
            return
        seen.add(name)
        for match in filter(None, map(entry.fullmatch, rules_of(name))):
            if match[2].startswith(target):
                entries.setdefault(key_of(match[1]), match[2][len(target) :])
            elif match[2].startswith(node):
                walk(match[2])

    walk(root)
    return entries


class _Walk:
    def __init__(self, form: Form, old: Entries, new: Entries, changes: list[str]) -> None:
        self.form, self.old, self.new, self.changes = form, old, new, changes
        self.difference = Difference()

    def compare(
        self,
        name: str,
        then: list[str] | None,
        now: list[str] | None,
        limit: int,
        heads: tuple[Rules, Rules] = ((), ()),
    ) -> None:
        """Compare a chain and those below it, in both trees. `then` and `now`: its sorted keys, None if missing."""
        before, under_then = _held(then, self.old, limit)
        after, under_now = _held(now, self.new, limit)
        if now is None:
            self.difference.gone.append(name)
        elif then is None or before != after or heads[0] != heads[1]:
            self.difference.chains[name] = (*heads[1], *self._rules(after))
            if then is not None:
                self.difference.before[name] = (*heads[0], *self._rules(before))
        for prefix in {**under_then, **under_now}:
            was, is_now = under_then.get(prefix), under_now.get(prefix)
            if was is None or is_now is None or self._touched(prefix):
                self.compare(self.form.node(prefix), was, is_now, self.form.leaf)

    def _rules(self, held: Held) -> t.Iterator[str]:
        for key, who in held:
            yield self.form.branch(key, self.form.node(key)) if who is None else self.form.entry(key, who)

    def _touched(self, prefix: str) -> bool:
        place = bisect.bisect_left(self.changes, prefix)
        return place < len(self.changes) and self.changes[place].startswith(prefix)


def _held(keys: list[str] | None, entries: Entries, limit: int) -> tuple[Held, dict[str, list[str]]]:
    """The contents of a chain, and the keys of the chains that it leads to.

    Keys are told apart by the first character in which they differ. One that is the beginning of all others stands
    there itself, no other does: what joins it below is appended there, and nothing has to be taken out here.
    """
    if not keys:
        return [], {}
    if len(keys) <= limit:
        return [(key, entries[key]) for key in keys], {}
    first = keys[0]
    start = next((place for place, pair in enumerate(zip(first, keys[-1])) if pair[0] != pair[1]), len(first))
    place = int(len(first) == start)
    held: Held = [(key, entries[key]) for key in keys[:place]]
    below: dict[str, list[str]] = {}
    while place < len(keys):
        prefix = keys[place][: start + 1]
        end = bisect.bisect_left(keys, prefix + "\x7f", place)
        held.append((prefix, None))
        below[prefix] = keys[place:end]
        place = end
    return held, below
