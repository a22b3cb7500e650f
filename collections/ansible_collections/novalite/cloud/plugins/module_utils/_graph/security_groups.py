# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Security groups and what they let through, as a graph for graphviz. Pure: data in, text in the DOT language out."""

from __future__ import annotations

import html
import typing as t

from .._firewall.rules import Rule, parse_rule
from .._json import JsonMapping
from .._model.plain_text import without_controls
from .._plan.reach import subject

SHOWN = 8  # members of a group that are named; more of them are counted
ANYONE = "anyone"
EVERYWHERE = ("0.0.0.0/0", "::/0", None)
_STYLE = """  graph [rankdir=LR, nodesep=0.35, ranksep=1.4, pad=0.3, fontname="Helvetica"];
  node [fontname="Helvetica", fontsize=11, shape=plain];
  edge [fontname="Helvetica", fontsize=10, color="#555555", arrowsize=0.7];"""


def dot(groups: t.Iterable[JsonMapping]) -> str:
    """A box for each group with the names of its instances, an arrow for what may come in, a dashed one for what may
    go out where that is said.

    `groups`: `{"id", "name", "project", "rules", "servers": [names]}`.
    """
    groups = sorted(groups, key=lambda group: (str(group.get("project")), str(group["name"])))
    known = {int(group["id"]) for group in groups}
    arrows: dict[tuple[str, str, bool], dict[str, set[str]]] = {}
    outside: dict[str, str] = {}
    for group in groups:
        own = f"group{group['id']}"
        for value in group["rules"]:
            rule = parse_rule(int(group["id"]), value)
            if rule.remote_group_id is not None:
                if rule.remote_group_id not in known:
                    outside[f"group{rule.remote_group_id}"] = f"group {rule.remote_group_id}"
                far = f"group{rule.remote_group_id}"
            else:
                # Those who come in and those who are spoken to are drawn apart: nothing passes through them.
                name = ANYONE if rule.cidr in EVERYWHERE else _short(str(rule.cidr))
                far = f"{rule.direction} {name}"
                outside[far] = name
            egress = rule.direction == "egress"
            ends = (own, far, True) if egress else (far, own, False)
            arrows.setdefault(ends, {}).setdefault(subject(rule), set()).add(_family(rule))
    lines = ["digraph security_groups {", _STYLE]
    lines += outside_boxes(outside)
    several = len({group.get("project") for group in groups}) > 1
    lines += [_box(group, f"{group.get('project')}: " * several + str(group["name"])) for group in groups]
    for (tail, head, egress), subjects in sorted(arrows.items()):
        label = "\\n".join(_label(what, subjects[what]) for what in sorted(subjects, key=_by_number))
        style = ", style=dashed" if egress else ""
        lines.append(f'  {quoted(tail)} -> {quoted(head)} [label="{label}"{style}];')
    return "\n".join([*lines, "}", ""])


def _short(cidr: str) -> str:
    address, _slash, length = cidr.partition("/")
    return address if length == ("128" if ":" in address else "32") else cidr


def _by_number(what: str) -> tuple[str, int, str]:
    words = what.split(" ")
    number = words[-1].partition("-")[0]
    return words[0], int(number) if number.isdecimal() else -1, what


def _family(rule: Rule) -> str:
    # ICMP and ICMPv6 have their family in their name; of a range one can see it.
    open_to_all = rule.cidr in EVERYWHERE
    return rule.ethertype if open_to_all or rule.remote_group_id is not None else ""


def _label(what: str, families: t.Collection[str]) -> str:
    return f"{what} (IPv6)" if set(families) == {"IPv6"} and not what.startswith("icmpv6") else what


def _box(group: JsonMapping, title: str) -> str:
    servers = [str(name) for name in group["servers"]]
    rows = servers[:SHOWN] + ([f"and {len(servers) - SHOWN} more"] if len(servers) > SHOWN else [])
    members = "".join(f'{escaped(name)}<br align="left"/>' for name in rows or ["no instance"])
    return (
        f'  "group{group["id"]}" [label=<<table border="0" cellborder="1" cellspacing="0" cellpadding="5" '
        f'color="#336699"><tr><td bgcolor="#d6e4f0"><b>{escaped(title)}</b></td></tr>'
        f'<tr><td align="left">{members}</td></tr></table>>];'
    )


def outside_boxes(outside: t.Mapping[str, str], more: str = "") -> list[str]:
    """The nodes (name -> label) for those who are no group of the picture."""
    return [
        f'  {quoted(name)} [shape=box, style="rounded,filled", fillcolor="#f2f2f2", color="#999999", '
        f"label={quoted(label)}{more}];"
        for name, label in sorted(outside.items())
    ]


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def escaped(text: str) -> str:
    return html.escape(without_controls(text))
