# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules of `iptables-save` as data, and chains to be changed as one `iptables-restore` text. Pure.

Chains are compared and named exactly: Nova searched for `-j nova-compute-inst-1` as a substring, so that removing
instance 1 also took the jumps of 10, 11, ... and left those instances open.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import shlex
import socket
import typing as t

from .._errors import NovaliteError
from . import devices, passage, policy
from .dispatch import IN, OUT, PREFIXED
from .rules import NUMBERS

FILTER, RAW, SECURITY = "filter", "raw", "security"
TABLES = (RAW, FILTER, SECURITY)


class Hook(t.NamedTuple):
    """A jump from a built-in chain to a root: its first rule, or the last one before everything is dropped."""

    table: str
    chain: str
    root: str
    first: bool = True

    @property
    def rule(self) -> str:
        return f"-j {self.root}"

    @property
    def name(self) -> str:
        """Name of the chain for the user, with the table unless that is filter."""
        return self.chain if self.table == FILTER else f"{self.table} {self.chain}"


# OUTPUT too: the host itself is no more trusted than the network. What comes last is written first: where it goes
# depends on the rules that are there.
HOOKS = (
    *(Hook(FILTER, chain, root, first=False) for root, chain in passage.CALLED_FROM.items()),
    Hook(RAW, "PREROUTING", policy.ZONES),
    Hook(FILTER, "FORWARD", policy.LOCAL),
    Hook(FILTER, "INPUT", devices.ASKING.root),
    Hook(FILTER, "OUTPUT", policy.LOCAL),
    Hook(SECURITY, "FORWARD", policy.OUTGOING),
    Hook(SECURITY, "INPUT", policy.OUTGOING),
)
_HOOKED = {(hook.table, hook.chain, hook.rule) for hook in HOOKS}

_WHO = r"(?:0|[1-9][0-9]*)(?:\+(?:0|[1-9][0-9]*))*"
_GROUP = r"(?:0|[1-9][0-9]*)(?:\.[1-9][0-9]*)?"
_UNDER = r"(?:-[0-9a-zA-Z_.-]{1,15})?"
_OURS = {
    RAW: re.compile(re.escape(policy.ZONES)),
    FILTER: re.compile(
        rf"{policy.LOCAL}|{'|'.join(passage.CALLED_FROM)}|{'|'.join(policy.FALLBACK_NAMES)}"
        rf"|(?:{policy.INSTANCE}|{policy.NEW}){_WHO}|(?:{policy.GROUP}|{policy.EGRESS_ANSWERS}){_GROUP}"
        rf"|(?:{devices.TO.root}|{devices.OPEN.root}|{devices.ASKING.root}){_UNDER}|{devices.ASKED}"
        rf"|{devices.OPEN.target}{_WHO}"
        rf"|{IN.node}(?:[0-9a-f]{{1,20}}|x[0-9a-f]{{19}})|{IN.network}[0-9a-zA-Z_.-]{{1,15}}"
    ),
    SECURITY: re.compile(
        rf"{policy.OUTGOING}|{policy.OUT_OF}{_WHO}|(?:{policy.EGRESS}|{policy.INGRESS_ANSWERS}){_GROUP}"
        rf"|(?:{devices.FROM.root}|{devices.ND.root}){_UNDER}|{devices.TARGETS}{_WHO}"
        rf"|{OUT.node}(?:[0-9a-f]{{1,20}}|x[0-9a-f]{{19}})|{OUT.network}[0-9a-zA-Z_.-]{{1,15}}"
    ),
}
# OUT_OF begins as OUTGOING does
_OF_SECURITY = (
    policy.OUTGOING,
    policy.EGRESS,
    policy.INGRESS_ANSWERS,
    OUT.node,
    OUT.network,
    devices.FROM.root,
    devices.ND.root,
    devices.TARGETS,
)
# of chains that lead to instances
_DISPATCHING = ("nova-l", IN.network, OUT.node, OUT.network, *(side.root for side in (*devices.SIDES, devices.ASKING)))
# Of use where /etc/protocols is missing or calls them otherwise; iptables has these built in.
_PROTOCOLS = {
    **{name: str(number) for name, number in NUMBERS.items()},
    **{"udplite": "136", "dccp": "33", "igmp": "2"},
    **dict.fromkeys(("mobility-header", "ipv6-mh", "mh"), "135"),
}


@dataclasses.dataclass
class Ruleset:
    """Tables of one family: table -> chain -> rules (without `-A <chain> `), and the policies of filter's chains."""

    tables: dict[str, dict[str, tuple[str, ...]]]
    policies: dict[str, str] = dataclasses.field(default_factory=dict)

    def owned(self) -> policy.Chains:
        """The chains that are novalite's, by exact name; no name is in two tables."""
        return {
            name: rules
            for table in TABLES
            for name, rules in self.tables.get(table, {}).items()
            if is_owned(table, name)
        }

    def foreign(self) -> t.Iterator[tuple[str, str, tuple[str, ...]]]:
        """(table, chain, rules) of the chains that are not novalite's, the built-in ones among them."""
        for table in TABLES:
            for name, rules in self.tables.get(table, {}).items():
                if not is_owned(table, name):
                    yield table, name, rules

    def misplaced_hooks(self, roots: t.Container[str]) -> list[Hook]:
        """List misplaced hooks: each belongs in its place once, or nowhere if its root is none of `roots`."""
        return [hook for hook in HOOKS if not self._is_placed(hook, hook.root in roots)]

    def _is_placed(self, hook: Hook, is_desired: bool) -> bool:
        places = self.hook_places(hook)
        if hook.first or not is_desired:
            return places == ([0] if is_desired else [])
        end = passage.end_of(self.built_in(hook))
        return len(places) == 1 and (end is None or places[0] < end)

    def built_in(self, hook: Hook) -> tuple[str, ...]:
        return self.tables.get(hook.table, {}).get(hook.chain, ())

    def hook_places(self, hook: Hook) -> list[int]:
        return [place for place, rule in enumerate(self.built_in(hook)) if rule == hook.rule]

    def hook_to_be(self, hook: Hook) -> str:
        """The line that puts the hook in, once it is nowhere."""
        if hook.first:
            return f"-I {hook.chain} 1 {hook.rule}"
        end = passage.end_of([rule for rule in self.built_in(hook) if rule != hook.rule])
        return f"-A {hook.chain} {hook.rule}" if end is None else f"-I {hook.chain} {end + 1} {hook.rule}"


def is_hook(table: str, chain: str, rule: str) -> bool:
    return (table, chain, rule) in _HOOKED


def is_owned(table: str, name: str) -> bool:
    return name.startswith("nova-") and _OURS[table].fullmatch(name) is not None


def table_of(name: str) -> str:
    """The table of one of novalite's chains."""
    if name == policy.ZONES:
        return RAW
    return SECURITY if name.startswith(_OF_SECURITY) else FILTER


def parse(text: str) -> Ruleset:
    """Read the output of `iptables-save`. Raises NovaliteError when it cannot be complete.

    iptables-nft exits with 0 and prints a comment where it cannot show a table: taking that for an empty table
    once made Calico write its rules again and again.
    """
    tables = {}  # type: dict[str, dict[str, list[str]]]
    policies = {}  # type: dict[str, str]
    chains = {}  # type: dict[str, list[str]]
    table = last = ""
    rules = []  # type: list[str]
    for line in text.split("\n"):
        if line.startswith("-A "):
            _dash, name, rule = line.split(" ", 2) if line.count(" ") > 1 else (*line.split(" "), "")
            if name != last:
                rules, last = chains.setdefault(name, []), name
            rules.append(rule.rstrip())
        elif line.startswith(":"):
            name, policy = line[1:].split(" ")[:2]
            chains.setdefault(name, [])
            if policy != "-" and table == FILTER:
                policies[name] = policy
        elif line.startswith("*"):
            table, last = line[1:].strip(), ""
            chains = tables.setdefault(table, {}) if table in TABLES else {}
        elif line.startswith("#") and "is incompatible, use 'nft' tool" in line:
            incompatible = next((name for name in TABLES if f"`{name}'" in line), None)
            if incompatible is not None:
                raise NovaliteError(
                    f"iptables cannot show the table {incompatible}: another program has put native nftables rules "
                    f"into it; move those rules to a table of their own (nft list table ip {incompatible})"
                )
    return Ruleset(
        {name: {chain: tuple(lines) for chain, lines in of_table.items()} for name, of_table in tables.items()},
        policies,
    )


def dispatches(name: str) -> bool:
    """Tell whether a chain leads to instances by address or device (tree.py)."""
    return name.startswith(_DISPATCHING) or name == OUT.root


def same(name: str, lines: t.Sequence[str], other: t.Sequence[str]) -> bool:
    """Tell whether two states of a chain mean the same.

    A protocol's name may differ, which each host spells its own way, and the order of rules that lead to instances, of
    which no two match the same packet; what is before these may not.
    """
    if lines == other:
        return True
    if dispatches(name):
        (head, entries), (other_head, other_entries) = map(_parts, (lines, other))
        return sorted(entries) == sorted(other_entries) and _spelled_alike(head, other_head)
    return _spelled_alike(lines, other)


def _spelled_alike(lines: t.Sequence[str], other: t.Sequence[str]) -> bool:
    return len(lines) == len(other) and all(a == b or canonical(a) == canonical(b) for a, b in zip(lines, other))


def _parts(rules: t.Sequence[str]) -> tuple[t.Sequence[str], t.Sequence[str]]:
    """The rules before the first one that leads to an instance, or to the chain of a prefix, and the others."""
    place = next((place for place, rule in enumerate(rules) if _leads(rule)), len(rules))
    return rules[:place], rules[place:]


def _leads(rule: str) -> bool:
    return bool(PREFIXED.fullmatch(rule) or devices.ENTRY.fullmatch(rule))


@functools.lru_cache(maxsize=16384)
def canonical(rule: str) -> str:
    """The rule with its protocol as a number."""
    words = rule.split(" ")
    if "-p" in words[:-1]:
        place = words.index("-p") + 1
        words[place] = _protocol_number(words[place])
        if words[place + 1 : place + 2] == ["-m"] and words[place + 2 : place + 3]:
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


def restore_text(
    chains: policy.Chains,
    gone: t.Collection[str],
    hooks: t.Sequence[str] = (),
    edits: t.Mapping[str, t.Sequence[str]] | None = None,
) -> str:
    """The `iptables-restore --noflush` text that writes the `chains`, removes those `gone` and, in between, does
    the lines `hooks` (`<table> -I FORWARD 1 ...`). `edits` are the lines for chains that need not be rewritten.

    Whatever is somebody else's is not named in the text. What chains hold comes first, then the jumps to them, all in
    one transaction: at no moment does a packet meet a jump into a chain that does not yet end in DROP. Chains are
    deleted in a second one, because nftables wants them unreferenced when it starts.
    """
    edits = edits or {}
    blocks = []  # type: list[str]
    leaving = {table: [name for name in gone if table_of(name) == table] for table in TABLES}
    for table in TABLES:
        names = [name for name in chains if table_of(name) == table]
        lines = [f":{name} - [0:0]" for name in (*names, *leaving[table]) if name not in edits]
        for name in names:
            lines += edits[name] if name in edits else [f"-A {name} {rule}" for rule in chains[name]]
        lines += [line.partition(" ")[2] for line in hooks if line.startswith(f"{table} ")]
        if lines:
            blocks += [f"*{table}", *lines, "COMMIT"]
    for table, names in leaving.items():
        if names:
            blocks += [f"*{table}", *(f"-X {name}" for name in names), "COMMIT"]
    return "\n".join(blocks) + "\n" if blocks else ""


def delta(current: Ruleset, chains: policy.Chains, roots: t.Container[str]) -> str:
    """The text that makes `chains` all that is there of novalite's, hooked in at the `roots`; "" when it is so."""
    owned = current.owned()
    gone = [name for name in owned if name not in chains]
    refuse_foreign_users(current, gone)
    return restore_text(differing(chains, owned), gone, lines_of_hooks(current, roots))


def lines_of_hooks(current: Ruleset, roots: t.Container[str]) -> list[str]:
    return [line for hook in current.misplaced_hooks(roots) for line in hook_lines(current, hook, hook.root in roots)]


def shown(chains: t.Mapping[str, t.Iterable[str]]) -> dict[str, list[str]]:
    """The chains for the user, by name."""
    return {name: [f"-A {name} {rule}".rstrip() for rule in rules] for name, rules in chains.items()}


def hook_lines(current: Ruleset, hook: Hook, is_desired: bool) -> list[str]:
    """Lines that put the jump to the root where it belongs in a built-in chain, exactly once (or not at all)."""
    lines = [f"{hook.table} -D {hook.chain} {hook.rule}"] * len(current.hook_places(hook))
    return lines + ([f"{hook.table} {current.hook_to_be(hook)}"] if is_desired else [])


def edits(name: str, old: t.Sequence[str] | None, new: t.Sequence[str]) -> list[str] | None:
    """Deletions and appends that turn `old` into what is the same as `new`; None where the chain is written anew.

    A chain that is written anew is emptied first, and whoever takes a rule out of a table of nftables waits until no
    packet is in it (10 to 20 ms, synchronize_rcu); one that only gets more is not.
    """
    if old is None or not dispatches(name) or len(set(old)) != len(old):
        return None
    (head, entries), (new_head, new_entries) = map(_parts, (old, new))
    keep, known = set(new_entries), set(entries)
    removed = [rule for rule in entries if rule not in keep]
    added = [rule for rule in new_entries if rule not in known]
    # iptables-nft looks for a rule to delete through the whole chain, so many deletions cost more than a rewrite.
    if not _spelled_alike(head, new_head) or (removed and len(removed) + len(added) > len(new) // 2):
        return None
    if not all(map(_leads, removed)):
        return None  # somebody else's, of which it is not known whether iptables takes it back as it printed it
    return [f"-D {name} {rule}" for rule in removed] + [f"-A {name} {rule}" for rule in added]


def in_order(name: str, old: t.Sequence[str], new: tuple[str, ...]) -> tuple[str, ...]:
    """`new` as edits() leaves it: in a chain that leads to instances, what stays keeps its place."""
    if not old or not dispatches(name):
        return new
    place = {rule: number for number, rule in enumerate(old)}
    head, entries = _parts(new)
    return (*head, *sorted(entries, key=lambda rule: place.get(rule, len(old))))


def differing(chains: t.Mapping[str, tuple[str, ...]], there: t.Mapping[str, tuple[str, ...]]) -> policy.Chains:
    """Return those of the `chains` that are missing, or mean something else; what stays keeps its place."""
    return {
        name: in_order(name, there.get(name, ()), rules)
        for name, rules in chains.items()
        if name not in there or not same(name, there[name], rules)
    }


def refuse_foreign_users(current: Ruleset, gone: t.Collection[str]) -> None:
    """Raises NovaliteError when a rule that is not novalite's jumps to a chain that is to go."""
    leaving = set(gone)
    for table, name, rules in current.foreign() if leaving else ():
        for rule in rules:
            if "nova-" in rule and target(rule) in leaving and not is_hook(table, name, rule):
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
