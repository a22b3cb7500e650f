# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules with one mistake each, as a programmer could make it: what a test of packets has to notice."""

from __future__ import annotations

import ipaddress
import re
import typing as t


def mutants(text: str) -> t.Iterator[tuple[str, str]]:
    """(what was done, the text of `iptables-save -t filter` with that mistake)"""
    lines = text.splitlines()
    empty = {line[1:].partition(" ")[0] for line in lines if line.startswith(":nova-")}
    empty -= {line.split(" ")[1] for line in lines if line.startswith("-A ")}
    lines = [line for line in lines if line.rpartition(" -j ")[2] not in empty]  # they do nothing
    for number, line in enumerate(lines):
        if not line.startswith("-A ") or _is_doubled(line, text):
            continue
        for what, changed in _of_line(line):
            yield f"{what}: {line}", "\n".join([*lines[:number], *changed, *lines[number + 1 :]])
        following = lines[number + 1] if number + 1 < len(lines) else ""
        if following.split(" ")[:2] == line.split(" ")[:2] and _order_matters(line, following):
            yield f"swap with the next: {line}", "\n".join([*lines[:number], following, line, *lines[number + 2 :]])


def _of_line(line: str) -> t.Iterator[tuple[str, list[str]]]:
    yield "leave out", []
    if line.endswith("-j ACCEPT"):
        yield "drop", [line.replace("-j ACCEPT", "-j DROP")]
    elif line.endswith("-j DROP"):
        yield "accept", [line.replace("-j DROP", "-j ACCEPT")]
    for option, mistake in (
        (" --ctstate INVALID", " --ctstate NEW"),
        (" --ctstate ESTABLISHED --ctdir ORIGINAL", " --ctstate ESTABLISHED --ctdir REPLY"),
        (" --ctstate RELATED,ESTABLISHED", " --ctstate ESTABLISHED"),
        (" --ctstate RELATED,ESTABLISHED", " --ctstate RELATED"),
        (" --ctstate RELATED,ESTABLISHED", " --ctstate NEW,RELATED,ESTABLISHED"),
        (" -p udp -m udp", " -p tcp -m tcp"),
        (" -p tcp -m tcp", " -p udp -m udp"),
    ):
        if option in line:
            yield f"{option.strip()} becomes {mistake.strip()}", [line.replace(option, mistake)]
    ports = re.search(r"--dport (\d+)(?::(\d+))?", line)
    if ports:
        low, high = int(ports[1]), int(ports[2] or ports[1])
        for what, first, last in (
            ("one port more", low, high + 1),
            ("one port before", low - 1, high),
            ("one port less", low + 1, high),
            ("one port too few", low, high - 1),
        ):
            if 0 <= first <= last <= 65535:
                yield what, [line.replace(ports[0], f"--dport {first}:{last}")]
        yield "all ports", [line.replace(" " + ports[0], "")]
    source = re.search(r" -s (\S+)/(\d+)", line)
    if source:
        for what, length in (("a wider source", int(source[2]) - 1), ("a narrower source", int(source[2]) + 1)):
            if 0 < length <= (128 if ":" in source[1] else 32):
                network = ipaddress.ip_network(f"{source[1]}/{length}", strict=False)
                yield what, [line.replace(source[0], f" -s {network}")]
        yield "any source", [line.replace(source[0], "")]
    kind = re.search(r" -m icmp6? --icmp\S* (\S+)", line)
    if kind:
        yield "any ICMP", [line.replace(kind[0], "")]
    destination = re.search(r"-A nova-(?:local -d|out -s) (\S+)/(32|128) -[jg] (\S+)", line)
    if destination:
        wider = ipaddress.ip_network(f"{destination[1]}/{int(destination[2]) - 2}", strict=False)
        yield "a wider destination", [line.replace(f"{destination[1]}/{destination[2]}", str(wider))]
    if re.search(r"-j nova-sg-\d+$", line):
        yield "accept instead of the group", [re.sub(r"-j nova-sg-\d+$", "-j ACCEPT", line)]


def _is_doubled(line: str, text: str) -> bool:
    """Rules that do again what the end of another chain does, for an instance to which egress rules apply: there is no
    wholesale ACCEPT of what is established that `nova-new` would have to come before."""
    jump = re.match(r"-A nova-inst-(\d+) .*-j nova-new-\1$", line) or re.match(
        r"-A nova-new-(\d+) -j nova-ipv[46]-fallback$", line
    )
    return bool(jump and f"-A nova-out-{jump[1]} " in text)


def _order_matters(rule: str, other: str) -> bool:
    """Not of rules that no packet meets both of, nor of those that only accept."""
    both = (rule, other)
    if all(line.endswith("-j ACCEPT") or re.search(r"-j nova-(?:sg|eg|ri|re)-\d+$", line) for line in both):
        return False
    # A packet has one state, and neighbour discovery has none.
    stateful = sum("--ctstate" in line or "--icmpv6-type 13" in line or "--sport" in line for line in both)
    exclusive = stateful == 2 and any("INVALID" in line for line in both)
    return not exclusive and not rule.startswith(("-A nova-local", "-A nova-out -s"))
