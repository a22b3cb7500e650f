# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""What `iptables-save` says as data, the difference to what is wanted, and the one `iptables-restore` text for it.

Pure. Chains are compared and named exactly: Nova searched for `-j nova-compute-inst-1` as a substring, so that
removing instance 1 also took the jumps of 10, 11, ... and left those instances open.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import shlex
import socket
import typing as t

from .._errors import NovaliteError
from .policy import FALLBACK_NAMES, GROUP, HOOK, HOOKED, INSTANCE, LOCAL, NEW, Chains

_NUMBERED = re.compile(rf"(?:{INSTANCE}|{NEW}|{GROUP})(?:0|[1-9][0-9]*)")
_JUMP = re.compile(rf"-d (\S+) -j {INSTANCE}([0-9]+)")
# Of use where /etc/protocols is missing or calls them otherwise; iptables has these built in.
_PROTOCOLS = {"tcp": "6", "udp": "17", "icmp": "1", "icmpv6": "58", "ipv6-icmp": "58", "sctp": "132", "udplite": "136",
              "esp": "50", "ah": "51", "dccp": "33", "mobility-header": "135", "ipv6-mh": "135", "mh": "135"}


@dataclasses.dataclass
class Ruleset:
    """One family's filter table: rules by chain (without `-A <chain> `) and the policy of the built-in chains."""

    chains: dict[str, tuple[str, ...]]
    policies: dict[str, str]

    def owned(self) -> Chains:
        """The chains that are novalite's, by exact name."""
        return {name: rules for name, rules in self.chains.items() if is_owned(name)}

    def instances(self) -> dict[str, int]:
        """Address (as in the rule, `10.0.0.5/32`) -> id of the instance that nova-local sends it to."""
        owners = {}  # type: dict[str, int]
        for match in map(_JUMP.fullmatch, self.chains.get(LOCAL, ())):
            if match:
                owners.setdefault(match[1], int(match[2]))  # the first line is the one that packets meet
        return owners


def is_owned(name: str) -> bool:
    return name == LOCAL or name in FALLBACK_NAMES or _NUMBERED.fullmatch(name) is not None


def parse(text: str) -> Ruleset:
    """Read the output of `iptables-save -t filter`. Raises NovaliteError when it cannot be complete.

    iptables-nft exits with 0 and prints a comment where it cannot show the table: taking that for an empty table
    once made Calico write its rules again and again.
    """
    if "is incompatible, use 'nft' tool" in text:
        raise NovaliteError(
            "iptables cannot show the filter table: another program has put native nftables rules into it; "
            "move those rules to a table of their own (nft list table ip filter)"
        )
    chains = {}  # type: dict[str, list[str]]
    policies = {}  # type: dict[str, str]
    table = None
    for line in text.splitlines():
        if line.startswith("-A "):
            if table == "filter":
                _dash, name, rule = (line + " ").split(" ", 2)
                chains.setdefault(name, []).append(rule.rstrip())
        elif line.startswith(":"):
            if table == "filter":
                name, policy = line[1:].split(" ")[:2]
                chains.setdefault(name, [])
                if policy != "-":
                    policies[name] = policy
        elif line.startswith("*"):
            table = line[1:].strip()
    return Ruleset({name: tuple(rules) for name, rules in chains.items()}, policies)


def same(one: t.Sequence[str], other: t.Sequence[str]) -> bool:
    """Whether two chains mean the same rules; only a protocol's name may differ, which each host spells its own way."""
    if one == other:
        return True
    return len(one) == len(other) and all(a == b or canonical(a) == canonical(b) for a, b in zip(one, other))


@functools.lru_cache(maxsize=16384)
def canonical(rule: str) -> str:
    """The rule with its protocol as a number."""
    words = rule.split(" ")
    if "-p" in words[:-1]:
        place = words.index("-p") + 1
        words[place] = _protocol_number(words[place])
        if words[place + 1: place + 2] == ["-m"] and words[place + 2: place + 3]:
            words[place + 2] = _PROTOCOLS.get(words[place + 2], words[place + 2])
    return " ".join(words)


def target(rule: str) -> str | None:
    """The chain or verdict that a rule jumps or goes to."""
    try:
        words = shlex.split(rule) if '"' in rule else rule.split()
    except ValueError:
        words = rule.split()
    for option, value in zip(words, words[1:]):
        if option in ("-j", "-g", "--jump", "--goto"):
            return value
    return None


def delta(current: Ruleset, wanted: Chains) -> str:
    """The `iptables-restore --noflush` text that makes novalite's chains `wanted`; "" when there is nothing to do.

    `wanted` is all that shall be there of novalite's (empty: nothing, not even the hooks). Whatever is somebody
    else's is not named in the text. First what chains hold, then the jumps to them, all in one transaction: at no
    moment does a packet meet a jump into a chain that does not yet end in DROP. Chains are deleted in a second one,
    because nftables wants them unreferenced when it starts.
    """
    owned = current.owned()
    gone = [name for name in owned if name not in wanted]
    _refuse_foreign_users(current, gone)
    changed = [name for name in wanted if name not in owned or not same(owned[name], wanted[name])]
    flushed, lines = [], []  # type: list[str], list[str]
    for name in changed:
        if name == LOCAL:
            continue
        flushed.append(name)
        lines += [f"-A {name} {rule}" for rule in wanted[name]]
    if LOCAL in changed:
        edits = _edits(owned.get(LOCAL), wanted[LOCAL])
        if edits is None:
            flushed.append(LOCAL)
            edits = [f"-A {LOCAL} {rule}" for rule in wanted[LOCAL]]
        lines += edits
    for chain in HOOKED:
        lines += _hook(current.chains.get(chain, ()), chain, bool(wanted))
    flushed += gone
    if not flushed and not lines:
        return ""
    text = ["*filter", *(f":{name} - [0:0]" for name in flushed), *lines, "COMMIT"]
    if gone:
        text += ["*filter", *(f"-X {name}" for name in gone), "COMMIT"]
    return "\n".join(text) + "\n"


def difference(current: Ruleset, wanted: Chains) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Before and after, as rule text, of each chain that `delta` changes."""
    owned = current.owned()
    before, after = {}, {}  # type: dict[str, list[str]], dict[str, list[str]]
    for name in sorted({*owned, *wanted}, key=_place):
        if name in owned and name in wanted and same(owned[name], wanted[name]):
            continue
        if name in owned:
            before[name] = [f"-A {name} {rule}".rstrip() for rule in owned[name]]
        if name in wanted:
            after[name] = [f"-A {name} {rule}".rstrip() for rule in wanted[name]]
    for name in HOOKED:
        rules = current.chains.get(name, ())
        if _hook(rules, name, bool(wanted)):
            # The place is part of what is compared: a hook behind a foreign ACCEPT protects nothing.
            before[name] = [f"-I {name} {place} {HOOK}" for place, rule in enumerate(rules, 1) if rule == HOOK]
            after[name] = [f"-I {name} 1 {HOOK}"] if wanted else []
    return before, after


def _place(name: str) -> tuple[str, int, str]:
    prefix, _dash, number = name.rpartition("-")
    return (prefix, int(number), "") if number.isdecimal() else (name, 0, "")


def _hook(rules: t.Sequence[str], chain: str, wanted: bool) -> list[str]:
    """What makes the jump to nova-local the first rule of a built-in chain, exactly once (or not at all)."""
    places = [place for place, rule in enumerate(rules) if rule == HOOK]
    if places == ([0] if wanted else []):
        return []
    return [f"-D {chain} {HOOK}"] * len(places) + ([f"-I {chain} 1 {HOOK}"] if wanted else [])


def _edits(old: t.Sequence[str] | None, new: t.Sequence[str]) -> list[str] | None:
    """Deletions and appends that turn `old` into `new`; None when the chain is better written anew."""
    if old is None or len(set(old)) != len(old):
        return None
    keep = set(new)
    kept = tuple(rule for rule in old if rule in keep)
    removed = [rule for rule in old if rule not in keep]
    # iptables-nft looks for a rule to delete through the whole chain, so many deletions cost more than a rewrite.
    if tuple(new[: len(kept)]) != kept or len(removed) > len(kept):
        return None
    return [f"-D {LOCAL} {rule}" for rule in removed] + [f"-A {LOCAL} {rule}" for rule in new[len(kept):]]


def _refuse_foreign_users(current: Ruleset, gone: t.Collection[str]) -> None:
    if not gone:
        return
    leaving = set(gone)
    for name, rules in current.chains.items():
        if is_owned(name):
            continue
        for rule in rules:
            if "nova-" in rule and target(rule) in leaving and not (name in HOOKED and rule == HOOK):
                raise NovaliteError(
                    f"the chain {target(rule)} cannot be removed: a rule that is not novalite's uses it: "
                    f"-A {name} {rule}; remove that rule first"
                )


def _protocol_number(name: str) -> str:
    if name.isdecimal():
        return name
    if name in _PROTOCOLS:
        return _PROTOCOLS[name]
    try:
        return str(socket.getprotobyname(name))
    except OSError:
        return name
