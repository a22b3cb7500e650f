# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Packets followed through the chains that this host has now; trace.py says what each rule asks."""

from __future__ import annotations

import functools
import ipaddress
import typing as t

from .._errors import NovaliteError
from .._json import JsonMapping, JsonObject
from . import sets, trace
from .tables import Tables

FIELDS = ("protocol", "port", "code", "source_port", "hook", "interface_in", "interface_out", "device_in", "device_out")


def walks(packets: t.Sequence[JsonMapping], backend: str = "auto") -> list[JsonObject]:
    """Return the walk of each packet, as module packet_trace takes and returns them. Raises NovaliteError."""
    parsed = [_packet(packet) for packet in packets]
    tables = Tables(backend)
    there = {
        family: trace.parse(tables.text(family, counters=True))
        for family in dict.fromkeys(packet.family for packet in parsed)
    }
    members = functools.lru_cache(maxsize=None)(sets.members)
    done = []
    for packet, request in zip(parsed, packets):
        way = trace.walk(there[packet.family], packet, members)
        done.append(
            {
                "host": request.get("host"),
                "answer": request.get("answer"),
                "verdict": way.verdict,
                "accepted": way.accepted,
                # what begins no connection is judged by what it belongs to
                "certain": not way.unknown and packet.state != "INVALID",
                "passed": way.passed,
                "lines": trace.lines(way),
            }
        )
    return done


def _packet(value: JsonMapping) -> trace.Packet:
    try:
        ends = [str(ipaddress.ip_address(value[name])) for name in ("source", "destination")]
    except ValueError as error:
        raise NovaliteError(f"{error}: give an address such as 10.0.0.5") from None
    if (":" in ends[0]) != (":" in ends[1]):
        raise NovaliteError(f"{ends[0]} and {ends[1]} are not of one family")
    source, destination = ends
    return trace.Packet(source, destination, **{name: value[name] for name in FIELDS if value.get(name) is not None})
