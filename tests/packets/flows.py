# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Connections that are open while the rules under them change."""

from __future__ import annotations

import dataclasses
import itertools
import typing as t

from tests.packets import frames
from tests.packets.bed import Bed, Packet, Place
from tests.packets.oracle import Policy, Probe, passes
from tests.packets.probes import DHCP_SERVERS, STRANGER, of_rules
from tests.packets.wire import PORTS, addressed

SYN_PAYLOAD = len(frames.tag(0))  # every packet carries its mark, also a SYN
PINGS = ((8, 0), (128, 0))  # type and code
CLIENT_SEQ, SERVER_SEQ = 1000, 5000


@dataclasses.dataclass(frozen=True)
class Flow:
    """`client` opened it, towards `server`'s `port` (for ping: 0)."""

    client: str
    server: str
    client_ip: str
    server_ip: str
    protocol: int
    port: int
    sport: int

    def __str__(self) -> str:
        return f"{self.client} {self.client_ip} -> {self.server} {self.server_ip} {self.protocol}:{self.port}"

    def allowed(self, policy: Policy, by_client: bool) -> bool:
        """Tell whether a packet of it, from the client or else from the server, shall come out.

        The client's are judged by the rules as they are now; the server's are answers to what the client opened.
        """
        pings = self.protocol in (1, 58)
        request, reply = (8, 0) if self.protocol == 1 else (128, 129)
        port, sport = (request, 0) if pings else (self.port, self.sport)
        probe = Probe("flow", self.client, self.server, self.client_ip, self.server_ip, self.protocol, port, sport)
        if by_client:
            return passes(policy, probe)
        port, sport = (reply, 0) if pings else (self.sport, self.port)
        answer = Probe(
            "flow",
            self.server,
            self.client,
            self.server_ip,
            self.client_ip,
            self.protocol,
            port,
            sport,
            answers=probe,
            established=True,
        )
        return passes(policy, answer)

    def packet(self, bed: Bed, by_client: bool, opening: bool = False) -> Packet:
        serial = bed.serial()
        tag = frames.tag(serial)
        ends = (self.client_ip, self.server_ip) if by_client else (self.server_ip, self.client_ip)
        ports = (self.sport, self.port) if by_client else (self.port, self.sport)
        if self.protocol == frames.TCP:
            seq, ack = CLIENT_SEQ, SERVER_SEQ + 1 + SYN_PAYLOAD
            if not by_client:
                seq, ack = SERVER_SEQ, CLIENT_SEQ + 1 + SYN_PAYLOAD
            flags = frames.SYN if opening else frames.PSH | frames.ACK
            if opening and by_client:
                ack = 0
            elif opening:
                flags |= frames.ACK
            else:
                seq += 1 + SYN_PAYLOAD
            body = frames.tcp(*ports, flags, tag, seq=seq, ack=ack)
        elif self.protocol == frames.UDP:
            body = frames.udp(*ports, tag)
        else:
            request, reply = (8, 0) if self.protocol == frames.ICMP else (128, 129)
            body = frames.icmp(request if by_client else reply, 0, tag, word=self.sport << 16)
        names = (self.client, self.server) if by_client else (self.server, self.client)
        return addressed(bed, serial, *names, [frames.ip(*ends, self.protocol, body, ident=serial)])


def flows_of(bed: Bed, ports: t.Iterable[int]) -> list[Flow]:
    """From everybody to each guest and from each guest to everybody, IPv4 and IPv6, TCP, UDP and ping."""
    flows = []  # type: list[Flow]
    pairs = [
        (client, server)
        for client, server in itertools.permutations([*bed.guests, "bystander", "outside"], 2)
        if client in bed.guests or server in bed.guests
    ]
    ports = list(ports)
    for (client, server), version in itertools.product(pairs, (4, 6)):
        ends = [
            STRANGER[version] if name == "outside" else getattr(bed.places[name], "ip" if version == 4 else "ip6")
            for name in (client, server)
        ]
        ping = 1 if version == 4 else 58
        for protocol, port in (*((6, port) for port in ports), *((17, port) for port in ports), (ping, 0)):
            flows.append(Flow(client, server, ends[0], ends[1], protocol, port, next(PORTS)))
    for name, attribute in itertools.product(bed.guests, ("ip", "ip6")):
        sport, *around = (67, 67, 68, 69) if attribute == "ip" else (547, 545, 546, 547)
        for source, port in itertools.product(DHCP_SERVERS[attribute], around):
            flows.append(Flow("bystander", name, source, getattr(bed.places[name], attribute), 17, port, sport))
    return flows


def flows_of_rules(policy: Policy, places: t.Mapping[str, Place]) -> list[Flow]:
    """A connection, or an attempt at one, for each probe of the policy's rules that can be one."""
    return [
        Flow(probe.sender, probe.receiver, probe.source, probe.destination, probe.protocol, port, next(PORTS))
        for probe in dict.fromkeys(of_rules(policy, places))
        for port in ([probe.port] if probe.protocol in (6, 17) else [0] if (probe.port, probe.sport) in PINGS else [])
        if port is not None and not probe.style
    ]


Step = tuple[Flow, bool, Packet]  # of the flow, by the client, this packet


def opening(bed: Bed, flows: t.Iterable[Flow]) -> list[Packet]:
    """Return the packets that open them."""
    return [
        flow.packet(bed, by_client, opening)
        for flow in flows
        for by_client, opening in ((True, True), (False, True), (True, False))
    ]


def going_on(bed: Bed, flows: t.Iterable[Flow], client_first: bool) -> list[Step]:
    """Both sides of every flow speak twice, in turn."""
    order = (True, False, True, False) if client_first else (False, True, False, True)
    return [(flow, by_client, flow.packet(bed, by_client)) for flow in flows for by_client in order]


def open_all(bed: Bed, flows: t.Sequence[Flow]) -> None:
    """Open them; a rule must allow each."""
    steps = opening(bed, flows)
    lost = len(steps) - len(bed.send(steps))
    assert not lost, f"{lost} of {len(steps)} packets of connections that everything allows were lost"


def wrong_packets(bed: Bed, policy: Policy, flows: t.Sequence[Flow], client_first: bool) -> list[str]:
    """Both sides of every flow speak; what came out though it should not, or the other way round."""
    steps = going_on(bed, flows, client_first)
    arrived = bed.send([packet for _flow, _by_client, packet in steps])
    return [
        f"{flow}, {'client' if by_client else 'server'} speaks, {'client' if client_first else 'server'} was first: "
        + ("was lost" if flow.allowed(policy, by_client) else "came through")
        for flow, by_client, packet in steps
        if (packet.serial in arrived) != flow.allowed(policy, by_client)
    ]
