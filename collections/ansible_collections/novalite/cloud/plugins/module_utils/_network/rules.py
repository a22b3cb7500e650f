# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The chains in which novalite routes and translates, as data: read, compared, and the `iptables-restore` text between.

They are few and have fixed names, so that a rule says in a comment which bridge it is for. Rules are written in the
words of `iptables-save`, and a chain that is there already compares equal. Nothing else in the tables is touched. Pure.
"""

from __future__ import annotations

import re
import shlex
import typing as t

PREROUTING, OUTPUT, POSTROUTING = "nova-prerouting", "nova-output", "nova-postrouting"
FLOAT_SNAT, SNAT = "nova-float-snat", "nova-snat"
FORWARD, INPUT = "nova-forward", "nova-input"

# table -> chain -> the built-in chain that it is called from
CHAINS = {
    "nat": {PREROUTING: "PREROUTING", OUTPUT: "OUTPUT", POSTROUTING: "POSTROUTING", FLOAT_SNAT: None, SNAT: None},
    "filter": {FORWARD: "FORWARD", INPUT: "INPUT"},
}  # type: dict[str, dict[str, str | None]]
# The security groups judge first what is for a guest, and what guests send to their host.
_BEFORE = ("-j nova-local", "-j nova-host")
_PLAIN = re.compile(r"[A-Za-z0-9_-]+")

Table = t.Mapping[str, t.Sequence[str]]  # chain -> its rules, without `-A <chain> `
Tables = t.Mapping[str, Table]


def comment(bridge: str) -> str:
    """The part of a rule that says which bridge it is for, quoted as iptables-save quotes it."""
    return f"-m comment --comment {bridge}" if _PLAIN.fullmatch(bridge) else f'-m comment --comment "{bridge}"'


def owner(rule: str) -> str | None:
    """The bridge that a rule of ours is for; None for one that is for all of them."""
    return option(rule, "--comment")


def option(rule: str, name: str) -> str | None:
    """The value of an option in a rule."""
    words = shlex.split(rule)
    return next((value for word, value in zip(words, words[1:]) if word == name), None)


def parse(text: str) -> dict[str, list[str]]:
    """The output of `iptables-save -t <table>` as rules by chain."""
    chains = {}  # type: dict[str, list[str]]
    for line in text.splitlines():
        if line.startswith(":"):
            chains.setdefault(line[1:].split(" ")[0], [])
        elif line.startswith("-A "):
            _dash, name, rule = (line + " ").split(" ", 2)
            chains.setdefault(name, []).append(rule.rstrip())
    return chains


def owned(table: str, current: Table) -> dict[str, list[str]]:
    """Return those of novalite's chains that are in the table."""
    return {name: list(current[name]) for name in CHAINS[table] if name in current}


def delta(table: str, current: Table, desired: Table) -> str:
    """The `iptables-restore --noflush` text that makes our chains `desired` (a chain without rules: none); "" when
    nothing is to be done. Chains are deleted in a second transaction: nftables wants them unreferenced when it starts.
    """
    lines, flushed = [], []  # type: list[str], list[str]
    have = owned(table, current)
    kept = [name for name in CHAINS[table] if desired.get(name)]
    gone = [name for name in have if name not in kept]
    for name in kept:
        if have.get(name) != list(desired[name]):
            flushed.append(name)
            lines += [f"-A {name} {rule}" for rule in desired[name]]
    for name, built_in in CHAINS[table].items():
        if built_in is not None:
            lines += _hook(table, built_in, name, current.get(built_in, ()), name in kept)
    flushed += gone
    if not flushed and not lines:
        return ""
    text = [f"*{table}", *(f":{name} - [0:0]" for name in flushed), *lines, "COMMIT"]
    if gone:
        text += [f"*{table}", *(f"-X {name}" for name in gone), "COMMIT"]
    return "\n".join(text) + "\n"


def difference(table: str, current: Table, desired: Table) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Chains of ours that `delta` changes, before and after."""
    have = owned(table, current)
    before, after = {}, {}  # type: dict[str, list[str]], dict[str, list[str]]
    for name, built_in in CHAINS[table].items():
        was, shall = have.get(name, []), list(desired.get(name, ()))
        calling = current.get(built_in, ()) if built_in is not None else ()
        hooked = built_in is not None and bool(_hook(table, built_in, name, calling, bool(shall)))
        if was != shall or hooked:
            before[name] = [*(rule for rule in calling if hooked and rule == f"-j {name}"), *was]
            after[name] = [f"-j {name}", *shall] if hooked and shall else shall
    return before, after


def _hook(table: str, built_in: str, name: str, rules: t.Sequence[str], is_desired: bool) -> list[str]:
    """Lines that put the jump into a built-in chain once: in the filter table in front, where no other program's
    ACCEPT comes before it, but behind the security groups."""
    jump = f"-j {name}"
    places = [place for place, rule in enumerate(rules) if rule == jump]
    if not is_desired:
        return [f"-D {built_in} {jump}"] * len(places)
    front = 1 if rules[:1] and rules[0] in _BEFORE else 0
    if len(places) == 1 and (table != "filter" or places[0] <= front):
        return []
    # What is deleted was behind, or, where it was in front, is one of several.
    return [f"-D {built_in} {jump}"] * len(places) + [f"-I {built_in} {front + 1} {jump}"]
