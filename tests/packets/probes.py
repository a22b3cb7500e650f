# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Packets that tell a policy from its neighbours, and how each is put on the wire."""

from __future__ import annotations

import dataclasses
import ipaddress
import itertools
import random
import typing as t

from tests.packets.bed import HOST, HOST6, HOST_LINK, Bed, Packet, Place
from tests.packets.oracle import NUMBERS, Policy, Probe, passes, why
from tests.packets.wire import MALFORMED, PORTS, Wire

STRANGER = {4: "192.0.2.77", 6: "2001:db8:ffff::77"}
ON_THE_BRIDGE = (ipaddress.ip_network("10.99.0.0/24"), ipaddress.ip_network("fd99::/64"))
OUT = "rule, out"
ADDRESSES = ("ip", "ip6", "link_local")
# The host's, its neighbours', and others'.
DHCP_SERVERS = {
    "ip": (HOST, "10.99.0.0", "10.99.0.2", "10.99.0.250"),
    "ip6": (HOST_LINK, HOST6, "fe80::", "fe80::2:1", "febf::1", "fec0::1"),
    "link_local": (HOST_LINK, "fe80::", "fe80::2:1", "febf::1", "fec0::1"),
}


@dataclasses.dataclass(frozen=True)
class Mismatch:
    probe: Probe
    expected: bool
    reason: str

    def __str__(self) -> str:
        said = "must pass, was lost" if self.expected else "must be dropped, came through"
        return f"{self.probe}: {said} ({self.reason})"


class Prepared(t.NamedTuple):
    """A probe as a packet, and what shall become of it. It may be sent again once connections are forgotten."""

    probe: Probe
    packet: Packet
    expected: bool


def prepared(bed: Bed, policy: Policy, probes: t.Iterable[Probe]) -> list[Prepared]:
    wire = Wire(bed)
    return [Prepared(probe, wire.packet(probe), passes(policy, probe)) for probe in probes]


def mismatches(bed: Bed, policy: Policy, probes: t.Iterable[Probe]) -> list[Mismatch]:
    """Send the probes, in order, and compare what came out with what the policy means."""
    wrong = []
    for part in phases(prepared(bed, policy, probes)):
        bed.forget_connections()
        arrived = bed.send(entry.packet for entry in part)
        wrong += [
            Mismatch(entry.probe, *why(policy, entry.probe))
            for entry in part
            if (entry.packet.serial in arrived) != entry.expected
        ]
    return wrong


def phases(ready: t.Sequence[Prepared]) -> list[list[Prepared]]:
    """Egress rules' probes come by themselves: without ports, a packet there is an answer to one from there."""
    return [[entry for entry in ready if (entry.probe.what == OUT) == outwards] for outwards in (False, True)]


# ---- what to send


def probes_of(policy: Policy, places: t.Mapping[str, Place], limit: int | None = None, seed: int = 0) -> list[Probe]:
    """Everything at the edges of the policy; at most about `limit` of the probes that come from its rules."""
    from_rules = list(dict.fromkeys(of_rules(policy, places)))
    if limit is not None and len(from_rules) > limit:
        from_rules = random.Random(seed).sample(from_rules, limit)
    return [*_of_everybody(policy, places), *map(_with_own_port, from_rules)]


def _with_own_port(probe: Probe) -> Probe:
    return dataclasses.replace(probe, sport=next(PORTS)) if probe.sport is None and probe.protocol in (6, 17) else probe


def of_rules(policy: Policy, places: t.Mapping[str, Place]) -> t.Iterator[Probe]:
    """For each rule of any group and each instance: both sides of the range of ports, of the range of addresses."""
    for group in policy["security_groups"]:
        for rule in group["rules"]:
            version = int(rule.get("ethertype", "IPv4")[3])
            kinds, middle = list(_kinds(rule, version)), _middle(rule)
            outwards = rule.get("direction") == "egress"
            for name, place in places.items():
                if not name.startswith("guest-"):
                    continue
                for attribute in ("ip",) if version == 4 else ("ip6", "link_local"):
                    own = getattr(place, attribute)
                    for peer, address in _peers(rule, places, attribute):
                        if peer != name and address != own:
                            ends = (name, peer, own, address) if outwards else (peer, name, address, own)
                            yield from _edges(OUT if outwards else "rule", kinds, middle, *ends)


def _edges(
    what: str,
    kinds: t.Sequence[tuple[int, int | None, int | None]],
    middle: tuple[int, int] | None,
    sender: str,
    receiver: str,
    source: str,
    destination: str,
) -> t.Iterator[Probe]:
    ends = (sender, receiver, source, destination)
    for protocol, port, sport in kinds:
        # Without ports the answer to a packet is a packet like it: one direction only.
        if protocol in NUMBERS.values() or not (sender.startswith("guest-") and sender > receiver):
            yield Probe(what, *ends, protocol, port, sport)
        if (protocol, port, sport) in ((1, 8, 0), (58, 128, 0)) and sender != "host":  # nobody checks what he sends
            yield Probe(what, *ends, protocol, port, sport, valid=False, style="bad checksum")
    if middle is not None and middle[0] == 6:  # what may be opened may still not be claimed to be open
        yield from (Probe(what, *ends, *middle, valid=False, style=style) for style in MALFORMED)
    elif middle is not None:
        yield Probe(what, *ends, *middle, style="fragments")


def _middle(rule: Policy) -> tuple[int, int] | None:
    """A port that the rule is about, with its protocol; None for a rule without ports."""
    name = str(rule.get("protocol") or "any").lower()
    protocol = 6 if name == "any" else int(name) if name.isdecimal() else NUMBERS.get(name, -1)
    if protocol not in (6, 17):
        return None
    ports = [port for port in (rule.get("port_min"), rule.get("port_max")) if port is not None] or [0, 65535]
    return protocol, (ports[0] + ports[-1]) // 2


def _kinds(rule: Policy, version: int) -> t.Iterator[tuple[int, int | None, int | None]]:
    """(protocol, port or type, code)"""
    name = str(rule.get("protocol") or "any").lower()
    protocol = int(name) if name.isdecimal() else NUMBERS.get(name, -1)
    if name == "any":
        yield from ((protocol, port, None) for protocol, port in ((6, 1), (6, 65535), (17, 1)))
        yield from ((protocol, None, None) for protocol in (47, 50, 253))
        yield (1, 8, 0) if version == 4 else (58, 128, 0)
    elif protocol in (6, 17):
        ports = [port for port in (rule.get("port_min"), rule.get("port_max")) if port is not None] or [0, 65535]
        first, last = ports[0], ports[-1]
        for port in sorted({first - 1, first, (first + last) // 2, last, last + 1}):
            if 0 <= port <= 65535:
                yield protocol, port, None
                yield 23 - protocol, port, None
    elif protocol in (1, 58):
        icmp_type, code = rule.get("port_min"), rule.get("port_max")
        for kind in {8, 13, 17, icmp_type} if version == 4 else {128, 130, 139, icmp_type}:
            if kind is not None:
                yield from (((1 if version == 4 else 58), kind, icmp_code) for icmp_code in {0, 1, code or 0})
    else:
        yield from ((other, None, None) for other in (protocol, 47, 50, 253))


def _peers(rule: Policy, places: t.Mapping[str, Place], attribute: str) -> t.Iterator[tuple[str, str]]:
    """(place, address): whom the rule means, and his neighbours whom it does not."""
    link_local = attribute == "link_local"
    if rule.get("remote_group_id") is not None or link_local or rule.get("cidr") is None:
        for name in (*(name for name in places if name.startswith("guest-")), "bystander"):
            yield name, getattr(places[name], attribute)
        for address in next_door(places, attribute):
            yield "bystander", address
    version = 4 if attribute == "ip" else 6
    if not link_local:
        yield "outside", STRANGER[version]
    if rule.get("cidr") is None:
        return
    network = ipaddress.ip_network(rule["cidr"], strict=False)
    if network.prefixlen == 0:
        return
    first, last = int(network.network_address), int(network.broadcast_address)
    for number in sorted({first - 1, first, (first + last) // 2, last, last + 1}):
        edge = type(network.network_address)(number)
        if any(edge.version == bridged.version and edge in bridged for bridged in ON_THE_BRIDGE):
            yield "bystander", str(edge)
        elif not link_local:
            yield "outside", str(edge)


def next_door(places: t.Mapping[str, Place], attribute: str) -> list[str]:
    """The addresses before and after each guest's that are nobody's."""
    taken = [ipaddress.ip_address(getattr(place, attribute)) for place in places.values()]
    around = [
        address + step
        for address in taken[1 : 1 + sum(name.startswith("guest-") for name in places)]
        for step in (-1, 1)
    ]
    return sorted(str(address) for address in set(around) - set(taken))


def _of_everybody(policy: Policy, places: t.Mapping[str, Place]) -> t.Iterator[Probe]:
    """Yield the probes of every instance, and of everything that is none, whatever the rules are."""
    for name, place in places.items():
        if name.startswith("guest-") or name == "bystander":
            for attribute in ADDRESSES:
                yield from _of_address(policy, places, name, getattr(place, attribute), attribute)
    for attribute in ADDRESSES:
        source = getattr(places["guest-1"], attribute)
        for address in next_door(places, attribute):
            yield Probe("next door", "guest-1", "bystander", source, address, 17, 53, next(PORTS))
    yield from _conversations(policy, places)
    yield from _of_pairs(policy, places)
    for name in (name for name in places if name.startswith("guest-")):
        for attribute in ADDRESSES:
            yield from _out(places, name, attribute)
            yield from _to_dhcp_servers(places, name, attribute)
    yield Probe("out", "bystander", "outside", places["bystander"].ip, STRANGER[4], 17, 53, next(PORTS))


def _conversations(policy: Policy, places: t.Mapping[str, Place]) -> t.Iterator[Probe]:
    """Yield what each rule allows, and for each guest: opened, complained about, answered."""
    guests = [name for name in places if name.startswith("guest-")]
    for group, name in itertools.product(policy["security_groups"], guests):
        for rule in group["rules"]:
            middle, version = _middle(rule), int(rule.get("ethertype", "IPv4")[3])
            if middle is None:
                continue
            attribute = "ip" if version == 4 else "ip6"
            own = getattr(places[name], attribute)
            peers = [peer for peer in _peers(rule, places, attribute) if name not in peer and own not in peer]
            for peer, address in peers[:: max(1, len(peers) // 3)]:
                ends = [(peer, address), (name, own)]
                if rule.get("direction") == "egress":
                    ends.reverse()
                (client, theirs), (server, at) = ends
                opened = Probe("opens", client, server, theirs, at, *middle, next(PORTS))
                yield opened
                kind = (1, 3, 3) if version == 4 else (58, 1, 4)
                yield Probe("complaint", server, client, at, theirs, *kind, error_about=opened)
                answer = Probe("answer", server, client, at, theirs, middle[0], opened.sport, middle[1], answers=opened)
                tcp = middle[0] == 6
                yield dataclasses.replace(answer, style="syn+ack" if tcp else "", valid=not tcp)


def _of_pairs(policy: Policy, places: t.Mapping[str, Place]) -> t.Iterator[Probe]:
    """To the addresses that several may use, at the place of each who may; and from there."""
    for instance in policy["instances"]:
        name = f"guest-{instance['id']}"
        for pair in instance.get("allowed_pairs") or []:
            first = ipaddress.ip_network(pair["cidr"])
            address = str(first[-1] if first.num_addresses > 1 else first[0])
            version = 6 if ":" in address else 4
            neighbour = places["bystander"].ip6 if version == 6 else places["bystander"].ip
            for source, sender in ((neighbour, "bystander"), (STRANGER[version], "outside")):
                if sender == "outside" and address.startswith("10.99.1."):
                    continue  # the host has no route to it
                for protocol, port in ((6, 22), (17, 53), (6, 23)):
                    if sender == "bystander":  # the host does not know who has the address right now
                        yield Probe("shared", sender, name, source, address, protocol, port, next(PORTS))
                    yield Probe("shared, out", name, sender, address, source, protocol, port, next(PORTS))
                yield Probe("shared, out", name, sender, address, source, *((1, 8) if version == 4 else (58, 128)), 0)


def _out(places: t.Mapping[str, Place], name: str, attribute: str) -> t.Iterator[Probe]:
    """Yield what a guest sends by itself, to the host too."""
    version = 4 if attribute == "ip" else 6
    own = getattr(places[name], attribute)
    peers = [
        ("host", {"ip": HOST, "ip6": HOST6, "link_local": HOST_LINK}[attribute]),
        ("bystander", getattr(places["bystander"], attribute)),
    ]
    if attribute != "link_local":
        peers.append(("outside", STRANGER[version]))
    for peer, address in peers:
        ends = ("out", name, peer, own, address)
        for protocol, port in ((6, 22), (6, 443), (17, 53), (17, 54)):
            yield Probe(*ends, protocol, port, next(PORTS))
        if peer != "host":
            for style in MALFORMED:
                yield Probe(*ends, 6, 443, next(PORTS), valid=False, style=style)
        if version == 4:
            yield Probe(*ends, 1, 8, 0)
        else:
            yield from (Probe(*ends, 58, kind, 0) for kind in (128, 130, 131, 132, 133, 135, 136, 139, 143))


def _to_dhcp_servers(places: t.Mapping[str, Place], name: str, attribute: str) -> t.Iterator[Probe]:
    version = 4 if attribute == "ip" else 6
    client, server = (68, 67) if version == 4 else (546, 547)
    # At an address that nobody has spoken from: no answers.
    address = {"ip": "10.99.0.251", "ip6": "fd99::251", "link_local": "fe80::251"}[attribute]
    for port, sport in (
        (server, client),
        (server - 1, client),
        (server + 1, client),
        (server, server),
        (client, client),
        (client, server),
    ):
        yield Probe("to a dhcp server", name, "bystander", getattr(places[name], attribute), address, 17, port, sport)


def _of_address(
    policy: Policy, places: t.Mapping[str, Place], name: str, own: str, attribute: str
) -> t.Iterator[Probe]:
    version = 4 if attribute == "ip" else 6
    host = {"ip": HOST, "ip6": HOST6, "link_local": HOST_LINK}[attribute]
    neighbour = "bystander" if name != "bystander" else "guest-1"
    near = getattr(places[neighbour], attribute)
    peers = [(neighbour, near), ("host", host)]
    if attribute != "link_local":
        peers.append(("outside", STRANGER[version]))
    ping = (1, 8) if version == 4 else (58, 128)
    for sender, source in peers:
        for protocol, port in ((6, 22), (6, 23), (17, 53)):
            yield Probe("plain", sender, name, source, own, protocol, port, next(PORTS))
        yield Probe("plain", sender, name, source, own, *ping, 0)
        if sender != "host":
            for style in ("fragments", "lone fragment"):
                yield Probe("cut", sender, name, source, own, 17, 53, next(PORTS), style=style)
        for style in MALFORMED:
            yield Probe("malformed", sender, name, source, own, 6, 22, next(PORTS), valid=False, style=style)
        yield Probe("picked up", sender, name, source, own, 6, 22, next(PORTS), style="ack")
        yield from _answers(places, name, own, sender, source, version)
        if version == 4:
            yield from (Probe("icmp", sender, name, source, own, 1, kind, 0) for kind in (0, 3, 13, 17))
        else:
            yield from _neighbours(name, own, sender, source)
        if name != "bystander":  # whose answers they would be
            for sport in (67, 68) if version == 4 else (546, 547):
                for port in (67, 68, 69) if version == 4 else (545, 546, 547):
                    yield Probe("dhcp", sender, name, source, own, 17, port, sport)
    if attribute != "link_local":
        yield Probe("routed", neighbour, name, near, own, 6, 22, next(PORTS), style="routed")
        yield Probe("routed", neighbour, name, near, own, 17, 53, next(PORTS), style="routed")
    for server in DHCP_SERVERS[attribute]:
        # One on another host of the same network: its answers come over the bridge.
        ports = (68, 67) if version == 4 else (546, 547)
        yield Probe("dhcp over the bridge", neighbour, name, server, own, 17, *ports)


def _neighbours(name: str, own: str, sender: str, source: str) -> t.Iterator[Probe]:
    for kind in (130, 133, 135, 136, 139, 1, 2, 129, 137):
        yield Probe("icmpv6", sender, name, source, own, 58, kind, 0)
    yield Probe("advertisement", sender, name, source, own, 58, 134, 0)
    if sender == "bystander":
        for router in ("fe80::666", "febf::1", "fec0::1"):  # link-local is up to febf
            yield Probe("advertisement of somebody else", sender, name, router, own, 58, 134, 0)


def _answers(
    places: t.Mapping[str, Place], name: str, own: str, peer: str, theirs: str, version: int
) -> t.Iterator[Probe]:
    """The guest opens, the other side answers; or answers to something else, or complains."""
    if peer == "host" or not name.startswith("guest-"):
        return  # the host's own IP stack would answer, too
    for protocol, port in ((6, 443), (17, 123), (254, None)):  # no rule's probes are of 254: they would be answers
        ports = (port, next(PORTS)) if port else (None, None)
        opened = Probe("opens", name, peer, own, theirs, protocol, *ports)
        yield opened
        if protocol == 17:
            # Before the answer, which may be a connection of its own that something can be said about.
            kind = (1, 3, 3) if version == 4 else (58, 1, 4)
            yield Probe("complaint", peer, name, theirs, own, *kind, error_about=opened)
            silent = dataclasses.replace(opened, sport=next(PORTS))
            about = dataclasses.replace(silent, sender=peer, receiver=name, source=theirs, destination=own, valid=False)
            yield Probe("complaint about nothing", peer, name, theirs, own, *kind, error_about=about)
            yield Probe("other port", peer, name, theirs, own, 17, silent.sport, port)
        style = "syn+ack" if protocol == 6 else ""
        yield Probe(
            "answer",
            peer,
            name,
            theirs,
            own,
            protocol,
            ports[1],
            ports[0],
            answers=opened,
            style=style,
            valid=protocol != 6,
        )
    protocol, request, reply = (1, 8, 0) if version == 4 else (58, 128, 129)
    opened = Probe("opens", name, peer, own, theirs, protocol, request, 0, style=f"echo {next(PORTS)}")
    yield opened
    yield Probe("answer", peer, name, theirs, own, protocol, reply, 0, answers=opened, style=opened.style)
