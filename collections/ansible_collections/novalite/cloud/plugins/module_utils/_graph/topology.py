# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The cloud as a picture: hosts and how full they are, instances, networks, and what security groups let through.

Pure: data in, text in graphviz's language out. Instances are not wired to their networks and groups, which is a
tangle from the tenth on: they carry the networks' letters and the groups' numbers, in their colours.
"""

from __future__ import annotations

import math
import typing as t

from .._firewall.rules import parse_rule
from .._json import JsonMapping
from .._plan.reach import subject
from .security_groups import ANYONE, EVERYWHERE, escaped, outside_boxes, quoted

SHOWN = 12  # instances that a host's card names; more of them are counted
_BAR, _CARD = 90, 235  # points
# a font whose letters are wide: in a picture that is looked at without it, what it was measured for still fits
_FONT = "DejaVu Sans,Verdana,sans-serif"
_STYLE = f"""  graph [rankdir=LR, nodesep=0.12, ranksep="0.12", pad=0.3, fontname="{_FONT}", bgcolor="white"];
  node [fontname="{_FONT}", fontsize=10, shape=plain];
  edge [fontname="{_FONT}", fontsize=9, color="#555555", arrowsize=0.7];"""
_STATES = {
    "active": "#3a9d5d",
    "building": "#d99a1c",
    "error": "#c8373a",
    "paused": "#7a6fb8",
    "suspended": "#7a6fb8",
    "stopped": "#9a9a9a",
}
_OTHER = "#4d7ea8"
# told apart by most people who see colours differently, and by their letters and numbers by everybody
_NETWORKS = ("#0072b2", "#8c510a", "#01665e", "#762a83", "#666666")
_GROUPS = ("#cfe3f3", "#fbe0bd", "#d3ecd3", "#ecd3e6", "#fff3b0", "#dcdcdc")

Record = JsonMapping


def dot(
    hosts: t.Sequence[Record], networks: t.Sequence[Record], servers: t.Sequence[Record], groups: t.Sequence[Record]
) -> str:
    """The picture of these records, as the module `cloud_info` returns them."""
    signs = _Signs(networks, groups)
    several = len({server["project"] for server in servers}) > 1
    lines = ["digraph cloud {", _STYLE]
    lines.append(f"  label=<{_title(hosts, servers)}>; labelloc=t; labeljust=l;")
    if networks:
        lines.append(f"  networks [label=<{_networks(networks, signs)}>];")
    lines += _flows(groups, signs, len({group["project"] for group in groups}) > 1)
    cards = _cards(hosts, servers, signs, several)
    lines += [f"  card{number} [label=<{card}>];" for number, card in enumerate(cards)]
    left = [f"group{group['id']}" for group in groups] + ["networks"] * bool(networks)
    lines += _grid(len(cards), left)
    return "\n".join([*lines, "}", ""])


class _Signs:
    """The letter of each network, the number of each group, and their colours."""

    def __init__(self, networks: t.Sequence[Record], groups: t.Sequence[Record]) -> None:
        self.networks = {
            network["id"]: _badge(_letters(number), _NETWORKS[number % len(_NETWORKS)], "white")
            for number, network in enumerate(networks)
        }
        self.groups = {
            group["id"]: _badge(str(number + 1), _GROUPS[number % len(_GROUPS)], "black")
            for number, group in enumerate(groups)
        }


def _letters(number: int) -> str:
    return ("" if number < 26 else _letters(number // 26 - 1)) + chr(ord("A") + number % 26)


def _badge(text: str, background: str, colour: str) -> str:
    size = f'width="{9 + 6 * len(text)}" height="13" fixedsize="true"'
    return f'<td bgcolor="{background}" {size}><font point-size="8" color="{colour}">{text}</font></td>'


def _row_of(badges: t.Iterable[str]) -> str:
    cells = "".join(badges)
    return f'<table border="0" cellspacing="2" cellpadding="0"><tr>{cells}</tr></table>' if cells else ""


# --- hosts ---


def _cards(hosts: t.Sequence[Record], servers: t.Sequence[Record], signs: _Signs, several: bool) -> list[str]:
    on: dict[str | None, list[Record]] = {}
    for server in servers:
        on.setdefault(server["host"], []).append(server)
    cards = [_card(host, on.pop(host["name"], []), signs, several) for host in hosts]
    homeless = [server for some in on.values() for server in some]
    if homeless:
        cards.append(_frame("on no host", "", "#f4f4f4", _instances(homeless, signs, several)))
    return cards


def _grid(cards: int, left: t.Sequence[str]) -> list[str]:
    """Put the cards in columns, from the top to the bottom and from the left to the right, right of all `left`."""
    rows = max(1, round(math.sqrt(cards * 1.5)))
    columns = [range(first, min(first + rows, cards)) for first in range(0, cards, rows)]
    lines = []
    for column in columns:
        names = [f"card{number}" for number in column]
        lines.append(f"  {{rank=same; {' -> '.join(names)} [style=invis];}}" if len(names) > 1 else "")
    for before, after in zip(columns, columns[1:]):
        lines += [f"  card{number} -> card{other} [style=invis, weight=20];" for number, other in zip(before, after)]
    if columns:
        lines += [f"  {node} -> card{columns[0][len(columns[0]) // 2]} [style=invis, minlen=3];" for node in left]
    return [line for line in lines if line]


def _title(hosts: t.Sequence[Record], servers: t.Sequence[Record]) -> str:
    states = [server["vm_state"] for server in servers]
    order = [*_STATES, *sorted(set(states) - set(_STATES))]
    legend = "".join(
        f'<td bgcolor="{_STATES.get(state, _OTHER)}" width="10" height="10" fixedsize="true"></td>'
        f'<td align="left" {_wide(f"{states.count(state)} {state}  ")}>{states.count(state)} {escaped(state)}</td>'
        for state in order
        if state in states
    )
    counts = f"{_count(len(hosts), 'host')}, {_count(len(servers), 'instance')}"
    return (
        f'<table border="0" cellspacing="3" cellpadding="2"><tr><td><font point-size="14"><b>{counts}</b></font></td>'
        f'<td width="12"></td>{legend}<td width="12"></td>'
        f"<td>{_small('letters: networks, numbers: security groups')}</td></tr></table>"
    )


def _card(host: Record, servers: t.Sequence[Record], signs: _Signs, several: bool) -> str:
    state, colour = "", "#d6e4f0"
    if not host["up"]:
        state, colour = "down", "#f3c9c9"
    elif not host["enabled"]:
        state, colour = "disabled", "#e4e4e4"
    beside = " · ".join(part for part in (host["zone"], state) if part)
    bars = "".join(
        _bar(name, host[key][0], host[key][1], unit)
        for name, key, unit in (("vCPU", "vcpus", ""), ("memory", "memory_mb", "MiB"), ("disk", "disk_gb", "GiB"))
    )
    fill = f'<tr><td><table border="0" cellspacing="3" cellpadding="0">{bars}</table></td></tr>'
    return _frame(host["name"], beside, colour, fill + _instances(servers, signs, several))


def _frame(title: str, beside: str, colour: str, body: str) -> str:
    return (
        f'<table border="1" color="#8aa0b4" cellborder="0" cellspacing="0" cellpadding="3" width="{_CARD}">'
        f'<tr><td bgcolor="{colour}"><table border="0" cellspacing="0" cellpadding="1"><tr>'
        f'<td align="left" {_wide(title, 11)}><b>{escaped(title)}</b></td>'
        f'<td align="right" {_wide(beside)}>{_small(beside)}</td>'
        f"</tr></table></td></tr>{body}</table>"
    )


def _bar(name: str, used: float, total: float, unit: str) -> str:
    share = min(used / total, 1.0) if total > 0 else float(used > 0)
    colour = "#4f9d69" if share < 0.7 else "#d99a1c" if share < 0.9 else "#c8373a"
    share = max(share, 0.02 if used > 0 else 0.0)
    # a colour up to a part of the cell and another from there on, so that the cell may be of any width
    fill = colour if share >= 1 else "#e6e6e6" if share <= 0 else f"{colour};{share:.3f}:#e6e6e6"
    if unit == "MiB" and total >= 10240:
        used, total, unit = used / 1024, total / 1024, "GiB"
    usage_text = f"{_number(used)} of {_number(total)} {unit}".strip()
    return (
        f'<tr><td align="left" {_wide(name)}>{_small(name)}</td>'
        f'<td width="{_BAR}" height="9" fixedsize="true" bgcolor="{fill}"></td>'
        f'<td align="right" {_wide(usage_text)}>{_small(usage_text)}</td></tr>'
    )


def _number(value: float) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".") if value < 100 else f"{value:.0f}"


def _instances(servers: t.Sequence[Record], signs: _Signs, several: bool) -> str:
    rows = ""
    for server in servers[:SHOWN]:
        name = _cut(f"{server['project']}: {server['name']}" if several else server["name"])
        state = server["task_state"] or server["vm_state"]
        state_text = "" if state == "active" else f" {state}"
        grey = f'&#160;<font color="#777777" point-size="9">{escaped(state)}</font>' if state_text else ""
        address = " ".join([server["ip"] or "", *server["floating_ips"][:1]]).strip()
        badges = _row_of(
            [
                *(signs.networks[key] for key in server["networks"] if key in signs.networks),
                *(signs.groups[key] for key in server["security_groups"] if key in signs.groups),
            ]
        )
        rows += (
            f'<tr><td width="8" height="8" fixedsize="true" bgcolor="{_STATES.get(server["vm_state"], _OTHER)}"></td>'
            f'<td align="left" {_wide(name + state_text)}>{escaped(name)}{grey}</td>'
            f'<td align="left" {_wide(address)}>{_small(address)}</td>'
            f'<td align="right">{badges}</td></tr>'
        )
    if len(servers) > SHOWN:
        rows += f'<tr><td></td><td align="left" colspan="3"><i>and {len(servers) - SHOWN} more</i></td></tr>'
    if not rows:
        rows = '<tr><td align="left"><font color="#999999"><i>no instance</i></font></td></tr>'
    return f'<tr><td align="left"><table border="0" cellspacing="1" cellpadding="1">{rows}</table></td></tr>'


# --- networks and flows ---


def _networks(networks: t.Sequence[Record], signs: _Signs) -> str:
    rows = ""
    for network in networks:
        wire = f"VLAN {network['vlan']}" if network["vlan"] is not None else ""
        wire = wire or (f"VNI {network['vni']}" if network["vni"] is not None else network["bridge"])
        where = f"{network['cidr']}, {wire}" + (", isolated" if network["isolated"] else "")
        rows += (
            f"<tr><td>{_row_of([signs.networks[network['id']]])}</td>"
            f'<td><table border="0" cellspacing="0" cellpadding="1"><tr><td align="left">'
            f"<b>{escaped(_cut(network['name']))}</b></td></tr>"
            f'<tr><td align="left" {_wide(where)}>{_small(where)}</td></tr></table></td>'
            '<td><table border="0" cellspacing="1" cellpadding="1">'
            f"{_bar('', network['used'], network['size'], '')}</table></td></tr>"
        )
    return (
        '<table border="1" color="#8aa0b4" cellborder="0" cellspacing="0" cellpadding="3">'
        '<tr><td bgcolor="#e9eef3" colspan="3" align="left"><b>networks</b>  <font point-size="10" color="#444444">'
        f"addresses in use</font></td></tr>{rows}</table>"
    )


def _flows(groups: t.Sequence[Record], signs: _Signs, several: bool) -> list[str]:
    known = {group["id"]: group for group in groups}
    outside: dict[str, str] = {}
    arrows: dict[tuple[str, str, bool], dict[str, None]] = {}
    lines = []
    for group in groups:
        among: list[str] = []
        for value in group["rules"]:
            rule = parse_rule(int(group["id"]), value)
            what = subject(rule)
            far = rule.remote_group_id
            if far == group["id"]:
                among.append(what)
                continue
            if far is None:
                shown = ANYONE if rule.cidr in EVERYWHERE else str(rule.cidr)
                name = f"outside {shown}"
                outside[name] = shown
            else:
                name = f"group{far}"
                outside.update({} if far in known else {name: f"group {far}"})
            arrows.setdefault((name, f"group{group['id']}", rule.direction == "egress"), {})[what] = None
        lines.append(f"  group{group['id']} [label=<{_group(group, among, signs, several)}>];")
    lines += outside_boxes(outside, ', margin="0.1,0.05"')
    for (there, own, egress), subjects in sorted(arrows.items()):
        label = quoted("\n".join(subjects)).replace("\n", "\\n")
        # what goes out is drawn to the left as well: on the right are the hosts
        style = ", style=dashed, dir=back" if egress else ""
        lines.append(f"  {quoted(there)} -> {quoted(own)} [label={label}, minlen=4{style}];")
    return lines


def _group(group: Record, among: t.Sequence[str], signs: _Signs, several: bool) -> str:
    name = f"{group['project']}: {group['name']}" if several else group["name"]
    inside = ", ".join(dict.fromkeys(among))
    lines = [_count(group["members"], "instance")] + ([f"among themselves: {inside}"] if inside else [])
    body = "".join(f'{_small(line)}<br align="left"/>' for line in lines)
    return (
        '<table border="1" color="#8aa0b4" cellborder="0" cellspacing="0" cellpadding="3"><tr>'
        f'<td align="left">{_row_of([signs.groups[group["id"]]])}</td>'
        f'<td align="left" {_wide(_cut(name), 11)}><b>{escaped(_cut(name))}</b></td></tr>'
        f'<tr><td colspan="2" align="left" {_wide(max(lines, key=len))}>{body}</td></tr></table>'
    )


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _wide(text: str, size: float = 10) -> str:
    """The width of a cell for a text. graphviz takes letters for narrower than viewers draw small ones."""
    return f'width="{math.ceil(len(text) * size * 0.64)}"'


def _small(text: str) -> str:
    # graphviz takes no empty font
    return f'<font point-size="10" color="#444444">{escaped(text)}</font>' if text else ""


def _cut(text: str) -> str:
    return text if len(text) <= 32 else text[:31] + "…"
