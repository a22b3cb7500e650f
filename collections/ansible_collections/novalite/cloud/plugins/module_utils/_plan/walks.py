# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Walks of a packet through the chains of the hosts on its way: which there are, and whether they agree with what
reach.py says. Pure."""

from __future__ import annotations

import dataclasses
import ipaddress
import typing as t

from .._firewall.trace import Packet
from .._json import JsonMapping, JsonObject
from .reach import Address, End, Talk

ELSEWHERE = "(elsewhere)"  # a device of the host that is no guest's
MOST = 32  # pairs of addresses that are walked


def packets(source: End, destination: End, answers: t.Sequence[JsonMapping], talk: Talk) -> dict[str, list[JsonObject]]:
    """Return, by host, the packets that module packet_trace shall walk for each of the first `answers` of reach.py."""
    hosts: dict[str, list[JsonObject]] = {}
    for number, answer in enumerate(answers[:MOST]):
        if not answer["rules"]:  # on networks between which nothing is routed
            continue
        here = _address(source, answer["source"])
        there = _address(destination, answer["destination"])
        for host, way in _ways(source, here, destination, there):
            protocol = talk.number(here.family)
            packet = dataclasses.replace(
                Packet(here.text, there.text, None if protocol < 0 else protocol, talk.port, talk.code),
                **t.cast("dict[str, t.Any]", way),
            )
            hosts.setdefault(host, []).append({"host": host, "answer": number, **dataclasses.asdict(packet)})
    return hosts


def _address(end: End, text: str) -> Address:
    return next(address for address in end.addresses if address.text == text)


def _ways(source: End, here: Address, destination: End, there: Address) -> t.Iterator[tuple[str, dict[str, str]]]:
    """Yield each host that the packet comes to, and the interfaces and devices there."""
    near = here.network == there.network if None not in (here.network, there.network) else _is_inside(here, there)
    together = source.host == destination.host
    if source.host:
        way = {"interface_in": here.bridge, "device_in": here.device}
        if together:
            way["interface_out"] = there.bridge
        else:
            way["interface_out"] = here.bridge if near else there.bridge or ELSEWHERE
        if near and not _is_routed(here, there):
            way["device_out"] = there.device if together else ELSEWHERE
        yield source.host, way
    if destination.host and not together:
        way = {"interface_in": ELSEWHERE, "interface_out": there.bridge}
        if near:
            way.update(interface_in=there.bridge, device_in=ELSEWHERE, device_out=there.device)
        yield destination.host, way


def _is_routed(here: Address, there: Address) -> bool:
    """Tell whether the sender's host, and not its bridge alone, passes on what is for the same network: in another of
    its ranges. On an isolated network, the namespace does that, and the host sees a bridge."""
    return not here.scope and bool(here.cidr and there.cidr) and here.cidr != there.cidr


def _is_inside(here: Address, there: Address) -> bool:
    """Tell whether one of the two, which is no instance's, is on the network of the other."""
    inside = there if there.network is not None else here
    outside = here if inside is there else there
    return bool(inside.cidr) and ipaddress.ip_address(outside.text) in ipaddress.ip_network(inside.cidr)


def lines(answers: t.Sequence[JsonMapping], walks: t.Sequence[JsonMapping]) -> list[str]:
    """The answers, each with its walks."""
    answer_lines = []
    for number, answer in enumerate(answers):
        answer_lines.append(str(answer["line"]))
        for walk in walks:
            if walk["answer"] == number:
                answer_lines += [f"  {walk['host']}  {line}" for line in walk["lines"]]
    return answer_lines


def disagreements(answers: t.Sequence[JsonMapping], walks: t.Sequence[JsonMapping], walk_count: int) -> list[str]:
    """Sentences about the answers that hosts contradict; `walk_count` is how many walks there should be."""
    problems = []
    for number, answer in enumerate(answers):
        own = [walk for walk in walks if walk["answer"] == number and walk["certain"]]
        refusing = [walk["host"] for walk in own if not walk["accepted"]]
        if answer["allowed"] and refusing:
            problems.append(f"the ledger allows it, and the chains of {', '.join(refusing)} do not: {answer['line']}")
        elif own and not answer["allowed"] and not refusing and len(walks) == walk_count:
            hosts = ", ".join(walk["host"] for walk in own)
            problems.append(f"the ledger does not allow it, and the chains of {hosts} do: {answer['line']}")
    return [f"{problem}; run playbooks/firewall.yml" for problem in problems]
