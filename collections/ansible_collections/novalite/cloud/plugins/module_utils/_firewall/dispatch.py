# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Dispatch of a packet to its instance's chain: by address, linearly for few, through a prefix tree for many. Pure.

Up to LINEAR addresses it is Nova's way, one rule each in the root chain. Each rule costs every packet 5 to 6 ns, so
for more of them the root leads by prefix to chains of at most LEAF addresses each::

    nova-local        -d 10.0.1.0/24 -g nova-l-0a0001
    nova-l-0a0001     -d 10.0.1.16/28 -g nova-l-0a00011
    nova-l-0a00011    -d 10.0.1.17/32 -j nova-inst-17

Addresses are hexadecimal texts of fixed length ("0a000111"), so that a prefix is a prefix and their order is that of
the alphabet (tree.py).

The network of an isolated bridge may use addresses that another one uses too, so it has a root of its own, and packets
on that bridge meet no other.
"""

from __future__ import annotations

import functools
import hashlib
import re
import socket
import typing as t

from . import tree

LINEAR = 64  # addresses; above it, a tree
LEAF = 16

Entries = tree.Entries  # address, hexadecimal -> what it leads to (`<target prefix><rest>`, an instance's id)
Chains = tree.Chains
Head = tree.Rules

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

PREFIXED = re.compile(r"-[ds] (\S+)/[0-9]+ -[jg] (\S+)")


def to_hex(cidr: str) -> str:
    """`10.0.0.5/32` -> `0a000005`."""
    address = cidr.partition("/")[0]
    return socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address).hex()


def to_cidr(prefix: str, family: str) -> str:
    """The range of all addresses that begin with `prefix`: `0a0000` -> `10.0.0.0/24`."""
    kind, digits = (socket.AF_INET, 8) if family == "IPv4" else (socket.AF_INET6, 32)
    return f"{socket.inet_ntop(kind, bytes.fromhex(prefix.ljust(digits, '0')))}/{4 * len(prefix)}"


def chains(side: Side, scopes: t.Mapping[str, Entries], family: str, head: Head = ()) -> Chains:
    """Return all chains that dispatch, with the roots. `head`: what the first root begins with, and not dispatch's."""
    return changed(side, {}, scopes, family, heads=((), head)).chains


def changed(
    side: Side,
    old: t.Mapping[str, Entries],
    new: t.Mapping[str, Entries],
    family: str,
    keys: t.Mapping[str, t.Collection[str]] | None = None,
    heads: tuple[Head, Head] = ((), ()),
) -> tree.Difference:
    """The chains that differ between `old` and `new`.

    `keys` are the addresses by scope that differ, and perhaps some that do not; None: compare them all. The first root
    is there where anything begins it (`heads`) or any address is known.
    """
    difference = tree.Difference()
    for scope in {EVERYWHERE: None, **dict.fromkeys(old), **dict.fromkeys(new)}:
        then, now = (_state(side, scope, scopes, head) for scopes, head in zip((old, new), heads))
        of_scope = None if keys is None else keys.get(scope, ())
        if of_scope is None or of_scope or then.head != now.head:
            difference.add(tree.changed(_form(side, scope, family), then, now, of_scope))
    return difference


def _state(side: Side, scope: str, scopes: t.Mapping[str, Entries], head: Head) -> tree.State:
    entries = scopes.get(scope, {})
    if scope != EVERYWHERE:
        return tree.State(entries) if entries else tree.NOTHING
    if not head and not any(scopes.values()):
        return tree.NOTHING
    return tree.State(entries, (*head, *_scope_jumps(side, scopes)))


def _form(side: Side, scope: str, family: str) -> tree.Form:
    return tree.Form(
        side.root if scope == EVERYWHERE else f"{side.network}{scope}",
        LINEAR,
        LEAF,
        lambda prefix: _node(side, scope, prefix),
        lambda key, who: f"{side.address} {to_cidr(key, family)} {side.jump} {side.target}{who}",
        # Goto: no other range holds the address, so that a packet that finds nothing is through with the tree.
        lambda prefix, node: f"{side.address} {to_cidr(prefix, family)} -g {node}",
    )


def _scope_jumps(side: Side, scopes: t.Mapping[str, Entries]) -> list[str]:
    """The first rules of the first root. Goto: a packet on an isolated bridge never meets other networks' addresses,
    nor where nothing is to be found on that bridge itself (RETURN)."""
    return [
        f"{side.device} {scope} -g {side.network}{scope}" if scopes[scope] else f"{side.device} {scope} {SHIELD}"
        for scope in sorted(scopes)
        if scope != EVERYWHERE and (scopes[scope] or side == OUT)
    ]


def read(side: Side, root: str, rules_of: t.Callable[[str], t.Sequence[str]]) -> Entries:
    """The entries under a root, from the rules that a host has."""
    return tree.read(root, rules_of, PREFIXED, side.target, side.node, to_hex)


@functools.lru_cache(maxsize=65536)
def _node(side: Side, scope: str, prefix: str) -> str:
    # A chain's name has 28 characters, and two isolated networks may have the same addresses.
    if scope == EVERYWHERE and len(prefix) <= 20:
        return f"{side.node}{prefix}"
    return f"{side.node}x{hashlib.sha1(f'{scope} {prefix}'.encode(), usedforsecurity=False).hexdigest()[:19]}"
