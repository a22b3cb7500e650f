# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""How a packet finds the chain of its instance: by address, linearly for few, through a prefix tree for many. Pure.

Up to LINEAR addresses it is Nova's way, one rule each in the root chain. Each rule costs every packet 5 to 6 ns, so
for more of them the root leads by prefix to chains of at most LEAF addresses each::

    nova-local        -d 10.0.1.0/24 -g nova-l-0a0001
    nova-l-0a0001     -d 10.0.1.16/28 -g nova-l-0a00011
    nova-l-0a00011    -d 10.0.1.17/32 -j nova-inst-17

Addresses are hexadecimal texts of fixed length ("0a000111"), so that a prefix is a prefix and their order is that of
the alphabet. What a chain of the tree holds follows from the addresses under its prefix alone: whichever way a host
came to its addresses, it has the same chains, and a change rewrites those on the way to the changed address only.

The network of an isolated bridge may use addresses that another one uses too, so it has a root of its own, and packets
on that bridge meet no other.
"""

from __future__ import annotations

import bisect
import functools
import hashlib
import re
import socket
import typing as t

LINEAR = 256  # addresses; above it, a tree
LEAF = 16

Entries = dict[str, str]  # address, hexadecimal -> what it leads to (`<target prefix><rest>`, an instance's id)
Chains = dict[str, tuple[str, ...]]
Head = tuple[str, ...]

SHIELD = "-j RETURN"
EVERYWHERE = ""  # the scope of addresses that are no isolated network's


class Side(t.NamedTuple):
    """Dispatch by the destination (what comes in), or by the source (what goes out)."""

    root: str
    network: str  # prefix of the roots of isolated bridges
    node: str  # prefix of the tree's chains
    address: str  # the option that compares an address
    device: str  # the option that compares a bridge
    jump: str  # -j, or -g where the chain's end is a verdict
    target: str  # prefix of the chains it leads to


IN = Side("nova-local", "nova-net-", "nova-l-", "-d", "-o", "-j", "nova-inst-")
OUT = Side("nova-out", "nova-from-", "nova-m-", "-s", "-i", "-j", "nova-out-")

_PREFIXED = re.compile(r"-[ds] (\S+)/([0-9]+) -([jg]) (\S+)")


def to_hex(cidr: str) -> str:
    """`10.0.0.5/32` -> `0a000005`."""
    address = cidr.partition("/")[0]
    return socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address).hex()


def to_cidr(prefix: str, family: str) -> str:
    """The range of all addresses that begin with `prefix`: `0a0000` -> `10.0.0.0/24`."""
    if family == "IPv4":
        text = socket.inet_ntop(socket.AF_INET, bytes.fromhex(prefix.ljust(8, "0")))
    else:
        text = socket.inet_ntop(socket.AF_INET6, bytes.fromhex(prefix.ljust(32, "0")))
    return f"{text}/{4 * len(prefix)}"


def root_of(side: Side, scope: str) -> str:
    return side.root if scope == EVERYWHERE else f"{side.network}{scope}"


def chains(side: Side, scopes: t.Mapping[str, Entries], family: str, head: Head = ()) -> Chains:
    """All chains that dispatch, with the roots. What the first root begins with is not dispatch's: `head`."""
    return changed(side, {}, scopes, family, heads=((), head))[0]


def changed(
    side: Side,
    old: t.Mapping[str, Entries],
    new: t.Mapping[str, Entries],
    family: str,
    keys: t.Mapping[str, t.Collection[str]] | None = None,
    heads: tuple[Head, Head] = ((), ()),
) -> tuple[Chains, list[str]]:
    """The chains that differ between `old` and `new` (or are new), and the names of those that are in `old` only.

    `keys` are the addresses by scope that differ, and perhaps some that do not; None: compare them all.
    """
    found: Chains = {}
    gone: list[str] = []
    for scope in {EVERYWHERE: None, **dict.fromkeys(old), **dict.fromkeys(new)}:
        before, after = old.get(scope, {}), new.get(scope, {})
        if keys is None:
            changes = sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))
        else:
            changes = sorted(keys.get(scope, ()))
        first = scope == EVERYWHERE
        jumps = ([*heads[0], *_scope_jumps(side, old)], [*heads[1], *_scope_jumps(side, new)]) if first else ([], [])
        if not changes and jumps[0] == jumps[1] and (not first or old or heads[0]):
            continue
        work = _Work(side, scope, family, changes)
        tops = [_children(sorted(entries)) if len(entries) > LINEAR else None for entries in (before, after)]
        texts = [(*jump, *(work.jumps(top, entries) if top else work.lines(entries, entries)))
                 for jump, top, entries in zip(jumps, tops, (before, after))]
        root = root_of(side, scope)
        if not after and not (first and (any(new.values()) or heads[1])):
            work.gone.append(root)
        elif texts[0] != texts[1] or not (before or (first and heads[0])):
            work.found[root] = texts[1]
        work.compare(tops[0] or {}, tops[1] or {}, before, after)
        found.update(work.found)
        gone += [name for name in work.gone if name not in work.found]
    return found, gone


def _scope_jumps(side: Side, scopes: t.Mapping[str, Entries]) -> list[str]:
    """The first rules of the first root. Goto: a packet on an isolated bridge never meets other networks' addresses,
    nor where nothing is to be found on that bridge itself (RETURN)."""
    return [f"{side.device} {scope} -g {side.network}{scope}" if scopes[scope] else f"{side.device} {scope} {SHIELD}"
            for scope in sorted(scopes) if scope != EVERYWHERE and (scopes[scope] or side == OUT)]


def read(side: Side, root: str, rules_of: t.Callable[[str], t.Sequence[str]]) -> Entries:
    """The entries under a root, from the rules that a host has; the first of two for one address, as packets do."""
    entries: Entries = {}
    seen = set()  # type: set[str]

    def walk(name: str) -> None:
        if name in seen:  # a loop; iptables refuses one, a broken answer may still show it
            return
        seen.add(name)
        for rule in rules_of(name):
            match = _PREFIXED.fullmatch(rule)
            if match is None:
                continue
            target = match[4]
            if target.startswith(side.target):
                entries.setdefault(to_hex(match[1]), target[len(side.target):])
            elif target.startswith(side.node):
                walk(target)

    walk(root)
    return entries


class _Work:
    def __init__(self, side: Side, scope: str, family: str, changes: list[str]) -> None:
        self.side, self.scope, self.family, self.changes = side, scope, family, changes
        self.found: Chains = {}
        self.gone: list[str] = []

    def compare(
        self, old: dict[str, list[str]], new: dict[str, list[str]], before: Entries, after: Entries
    ) -> None:
        """Walk both trees at once, into what differs. `old` and `new`: the sorted addresses under each prefix."""
        for prefix in {**old, **new}:
            then, now = old.get(prefix, []), new.get(prefix, [])
            is_there, shall_be = len(then) > 1, len(now) > 1  # a lone address stands in the chain above
            if not (is_there or shall_be) or (is_there and shall_be and not self._touched(prefix)):
                continue
            name = _node(self.side, self.scope, prefix)
            old_children = _children(then) if len(then) > LEAF else {}
            new_children = _children(now) if len(now) > LEAF else {}
            if shall_be:
                text = self._text(now, new_children, after)
                if not is_there or text != self._text(then, old_children, before):
                    self.found[name] = text
            else:
                self.gone.append(name)
            if old_children or new_children:
                self.compare(old_children, new_children, before, after)

    def _text(self, keys: list[str], children: dict[str, list[str]], entries: Entries) -> tuple[str, ...]:
        return self.jumps(children, entries) if children else self.lines(keys, entries)

    def lines(self, keys: t.Iterable[str], entries: Entries) -> tuple[str, ...]:
        side, family = self.side, self.family
        return tuple(f"{side.address} {to_cidr(key, family)} {side.jump} {side.target}{entries[key]}" for key in keys)

    def jumps(self, children: t.Mapping[str, list[str]], entries: Entries) -> tuple[str, ...]:
        # Goto: no other range holds the address, so that a packet that finds nothing is through with the tree.
        return tuple(
            self.lines(keys, entries)[0] if len(keys) == 1
            else f"{self.side.address} {to_cidr(prefix, self.family)} -g {_node(self.side, self.scope, prefix)}"
            for prefix, keys in children.items()
        )

    def _touched(self, prefix: str) -> bool:
        place = bisect.bisect_left(self.changes, prefix)
        return place < len(self.changes) and self.changes[place].startswith(prefix)


def _children(keys: list[str]) -> dict[str, list[str]]:
    """Sorted addresses by the first digit in which they differ."""
    first, last = keys[0], keys[-1]
    start = next(place for place, digit in enumerate(first) if digit != last[place])
    found: dict[str, list[str]] = {}
    place = 0
    while place < len(keys):
        prefix = keys[place][: start + 1]
        end = bisect.bisect_left(keys, prefix + "g", place)  # behind every digit
        found[prefix] = keys[place:end]
        place = end
    return found


@functools.lru_cache(maxsize=65536)
def _node(side: Side, scope: str, prefix: str) -> str:
    # A chain's name has 28 characters, and two isolated networks may have the same addresses.
    if scope == EVERYWHERE and len(prefix) <= 20:
        return f"{side.node}{prefix}"
    return f"{side.node}x{hashlib.sha1(f'{scope} {prefix}'.encode(), usedforsecurity=False).hexdigest()[:19]}"
