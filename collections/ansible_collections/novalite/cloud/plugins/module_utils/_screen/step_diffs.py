# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Differences that the steps of a host make, as Ansible shows them: each with a title, and as text for people. Pure."""

from __future__ import annotations

import collections.abc as c
import re
import shlex

from .._json import Json, JsonMapping, JsonObject

_PROGRAM = "--bytecode"
_FAMILIES = ("IPv4", "IPv6")
_HOOKS = ("PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING")  # in the order in which packets come by
_SIMPLE = re.compile(r"[\w./:,+-]+")


def titled(host: str, step: JsonMapping) -> list[JsonObject]:
    """The differences of a step, which is as a trip returns it: its own `name` and the `result` of its module."""
    diffs = step["result"].get("diff") or []
    shown = []
    for diff in diffs if isinstance(diffs, list) else [diffs]:
        if diff.get("before") == diff.get("after"):
            continue
        title = f"{host}: {step['name']}"
        if diff.get("after_header"):
            title += f": {diff['after_header']}"
        sides = {side: _text(step["module"], diff.get(side)) for side in ("before", "after")}
        shown.append({"before_header": title, "after_header": title, **sides})
    return shown


def _text(module: str, value: Json) -> str:
    if isinstance(value, dict) and module == "firewall":
        value = {part: _in_order(chains) if part in _FAMILIES else chains for part, chains in value.items()}
    lines = list(_lines(value, ""))
    return "\n".join([*lines, ""]) if lines else ""


def _lines(value: Json, indent: str) -> c.Iterator[str]:
    """The lines of a value: names with what belongs to them below, and texts, such as XML, as they are."""
    if isinstance(value, dict):
        for name, part in value.items():
            if isinstance(part, (dict, list)) or "\n" in str(part):
                yield f"{indent}{name}:"
                yield from _lines(part, f"{indent}  ")
            else:
                yield f"{indent}{name}: {_word(part)}"
    elif isinstance(value, list):
        for part in value:
            if isinstance(part, dict):
                yield f"{indent}{_word(part)}"
            else:
                yield from _lines(part, indent)
    elif value not in (None, ""):
        yield from (f"{indent}{line}".rstrip() for line in _word(value).splitlines())


def _word(value: Json) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{name} {_word(part)}" for name, part in value.items())
    return "none" if value is None else str(value)


def _in_order(chains: c.Mapping[str, c.Sequence[str]]) -> dict[str, list[str]]:
    """The chains in the order in which a packet comes to them, from where the kernel begins; then those that no other
    one of them leads to."""
    rules = {name: [shlex.split(rule) for rule in chain] for name, chain in chains.items()}
    targets = {
        name: [word for rule in chain for option, word in zip(rule, rule[1:]) if option in ("-j", "-g")]
        for name, chain in rules.items()
    }
    led_to = {target for name, words in targets.items() for target in words if target != name}
    order: dict[str, list[str]] = {}

    def visit(name: str) -> None:
        if name in rules and name not in order:
            order[name] = [_rule(words) for words in rules[name]]
            for target in targets[name]:
                visit(target)

    for name in (*_HOOKS, *(name for name in rules if name not in led_to), *rules):
        visit(name)
    return order


def _rule(words: c.Sequence[str]) -> str:
    """A rule as iptables takes it; a program for the kernel is named, not printed."""
    shown = ["(compares the address)" if before == _PROGRAM else word for before, word in zip(["", *words], words)]
    return " ".join(word if before == _PROGRAM else _quoted(word) for before, word in zip(["", *words], shown))


def _quoted(word: str) -> str:
    return word if _SIMPLE.fullmatch(word) or word == "!" else f'"{word}"'
