# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""How probes look on the wire."""

from __future__ import annotations

import ipaddress
import itertools
import struct
import typing as t

from tests.packets import frames
from tests.packets.bed import HOST_MAC, UPLINK_MAC, Bed, Packet
from tests.packets.oracle import Probe

MALFORMED = {
    "syn+ack": frames.SYN | frames.ACK,
    "rst": frames.RST,
    "fin+ack": frames.FIN | frames.ACK,
    "syn+fin": frames.SYN | frames.FIN,
    "no flags": 0,
    "all flags": 0x3F,
}
PORTS = itertools.cycle(range(10000, 65000))  # of the sender: each packet is a connection of its own


# ---- how it looks on the wire


def addressed(
    bed: Bed, serial: int, sender: str, receiver: str, packets: t.Sequence[bytes], *, routed: bool = False
) -> Packet:
    """IP packets as frames for the next hop; `routed`: over the host also where the bridge would do."""
    if sender == "host":
        return Packet(serial, sender, receiver, tuple(packets))
    to = bed.places[receiver].mac
    if sender == "outside":
        to = UPLINK_MAC
    elif receiver == "outside" or routed:
        to = HOST_MAC
    kind = frames.IPV4 if packets[0][0] >> 4 == 4 else frames.IPV6
    own = bed.places[sender].mac
    return Packet(serial, sender, receiver, tuple(frames.ethernet(to, own, kind, packet) for packet in packets))


class Wire:
    """Makes packets of probes."""

    def __init__(self, bed: Bed) -> None:
        self._bed = bed
        self._sent: dict[Probe, bytes] = {}  # IP packet by probe, for what quotes it

    def packet(self, probe: Probe) -> Packet:
        serial = self._bed.serial()
        packets = self._packets(probe, frames.tag(serial))
        return addressed(self._bed, serial, probe.sender, probe.receiver, packets, routed=probe.style == "routed")

    def _packets(self, probe: Probe, tag: bytes) -> list[bytes]:
        body = self._body(probe, tag)
        ends = (probe.source, probe.destination, probe.protocol, body)
        ident = self._bed.serial()
        if probe.style in ("fragments", "lone fragment"):
            pieces = frames.fragments(*ends, ident=ident)
            return pieces if probe.style == "fragments" else pieces[1:]
        # Neighbour discovery counts from a neighbour only, whose packets have met no router.
        packet = frames.ip(*ends, ident=ident, hops=255 if probe.protocol == 58 else 64)
        if probe.style == "bad checksum":
            place = (20 if probe.version == 4 else 40) + 2
            packet = packet[:place] + bytes([packet[place] ^ 0xFF]) + packet[place + 1 :]
        self._sent[probe] = packet
        return [packet]

    def _body(self, probe: Probe, tag: bytes) -> bytes:
        if probe.protocol == frames.TCP:
            flags = MALFORMED.get(probe.style, frames.ACK if probe.style == "ack" else frames.SYN)
            ack = 0 if flags == frames.SYN else 1001
            return frames.tcp(probe.sport or 0, probe.port or 0, flags, tag, ack=ack)
        if probe.protocol == frames.UDP:
            # Long enough to be cut; the mark is at the end, in what a lone fragment holds.
            filler = bytes(40) if probe.style.endswith("fragment") or probe.style == "fragments" else b""
            return frames.udp(probe.sport or 0, probe.port or 0, filler + tag)
        if probe.protocol in (frames.ICMP, frames.ICMPV6) and probe.port is not None:
            return self._icmp(probe, tag)
        if probe.protocol == 47:
            return struct.pack("!HH", 0, frames.MARKER_TYPE) + tag
        return struct.pack("!II", 1, 1) + tag

    def _icmp(self, probe: Probe, tag: bytes) -> bytes:
        kind, code = probe.port or 0, probe.sport or 0
        if probe.error_about is not None:
            quoted = self._sent.get(probe.error_about)
            if quoted is None:  # about a packet that its receiver never sent
                about = probe.error_about
                body = frames.udp(about.sport or 0, about.port or 0, b"")
                quoted = frames.ip(about.destination, about.source, 17, body)
            return frames.icmp(kind, code, quoted[: 28 if probe.version == 4 else 48] + tag)
        if probe.style.startswith("echo "):
            return frames.icmp(kind, code, tag, word=int(probe.style[5:]) << 16)
        if kind in (135, 136):
            target = ipaddress.ip_address(probe.destination if kind == 135 else probe.source).packed
            return frames.icmp(kind, code, target + tag)
        return frames.icmp(kind, code, tag, word=next(PORTS) << 16)
