# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Frames a guest may put on the wire: what is its own, and nothing under another's name. Beside each lie, the honest
packet that differs from it in the lie alone."""

from __future__ import annotations

import dataclasses
import struct
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._plan import host_plan
from tests.packets import frames
from tests.packets.bed import HOST, HOST6, UPLINK_MAC, Bed, Packet, Place, run
from tests.packets.policies import policy, v6

pytestmark = pytest.mark.root

BROADCAST = "ff:ff:ff:ff:ff:ff"
ALL_NODES, ALL_ROUTERS = "33:33:00:00:00:01", "33:33:00:00:00:02"
ANYTHING = [{"protocol": "any"}, v6(protocol="any")]


@dataclasses.dataclass(frozen=True)
class Frame:
    """`body(tag)` makes what follows the Ethernet header."""

    what: str
    honest: bool
    body: t.Callable[[bytes], bytes]
    kind: int = frames.IPV4
    sender_mac: str | None = None  # instead of its own
    to: str | None = None  # instead of the bystander's


def packet(
    source: str, destination: str, protocol: int, body: t.Callable[[bytes], bytes], hops: int = 64
) -> t.Callable[[bytes], bytes]:
    return lambda tag: frames.ip(source, destination, protocol, body(tag), hops=hops)


def udp(sport: int, port: int) -> t.Callable[[bytes], bytes]:
    return lambda tag: frames.udp(sport, port, tag)


def neighbour(kind: int, target: str) -> t.Callable[[bytes], bytes]:
    packed = frames.address(target)
    return lambda tag: frames.icmp(kind, 0, packed + tag)


def icmp6(kind: int) -> t.Callable[[bytes], bytes]:
    return lambda tag: frames.icmp(kind, 0, tag)


def arp(operation: int, mac: str, address: str, target: str) -> t.Callable[[bytes], bytes]:
    return lambda tag: frames.arp(operation, mac, address, "00:00:00:00:00:00", target) + tag


def of_ipv4(me: Place, other: Place, near: Place) -> list[Frame]:
    ours = udp(40000, 9)
    return [
        Frame("its own address", True, packet(me.ip, near.ip, 17, ours)),
        Frame("another guest's address", False, packet(other.ip, near.ip, 17, ours)),
        Frame("the host's address", False, packet("10.99.0.1", near.ip, 17, ours)),
        Frame("nobody's address", False, packet("192.0.2.1", near.ip, 17, ours)),
        Frame("no address", False, packet("0.0.0.0", near.ip, 17, ours)),
        Frame("another MAC", False, packet(me.ip, near.ip, 17, ours), sender_mac=other.mac),
        Frame("another MAC and address", False, packet(other.ip, near.ip, 17, ours), sender_mac=other.mac),
        Frame("ARP: who has", True, arp(1, me.mac, me.ip, near.ip), frames.ARP, to=BROADCAST),
        Frame("ARP: I have", True, arp(2, me.mac, me.ip, near.ip), frames.ARP),
        Frame("ARP: I have another's", False, arp(2, me.mac, other.ip, near.ip), frames.ARP),
        Frame("ARP: I have the host's", False, arp(2, me.mac, "10.99.0.1", near.ip), frames.ARP, to=BROADCAST),
        Frame("ARP: another MAC has mine", False, arp(2, other.mac, me.ip, near.ip), frames.ARP),
        Frame("ARP under another MAC", False, arp(2, me.mac, me.ip, near.ip), frames.ARP, sender_mac=other.mac),
        Frame("DHCP request", True, packet("0.0.0.0", "255.255.255.255", 17, udp(68, 67)), to=BROADCAST),
        Frame("DHCP renewal", True, packet(me.ip, near.ip, 17, udp(68, 67))),
        Frame(
            "DHCP request, another MAC",
            False,
            packet("0.0.0.0", "255.255.255.255", 17, udp(68, 67)),
            to=BROADCAST,
            sender_mac=other.mac,
        ),
        Frame("DHCP answer", False, packet(me.ip, near.ip, 17, udp(67, 68))),
        Frame("DHCP answer to all", False, packet(me.ip, "255.255.255.255", 17, udp(67, 68)), to=BROADCAST),
        Frame("DHCP answer from another port", False, packet(me.ip, near.ip, 17, udp(6767, 68))),
        Frame(
            "VLAN tag",
            False,
            lambda tag: struct.pack("!HH", 5, frames.IPV4) + frames.ip(me.ip, near.ip, 17, frames.udp(1, 9, tag)),
            0x8100,
        ),
        Frame("no IP at all", False, lambda tag: tag, frames.MARKER_TYPE + 1),
    ]


def of_ipv6(me: Place, other: Place, near: Place) -> list[Frame]:
    ours = udp(40000, 9)
    solicitation, advertisement = neighbour(135, me.ip6), neighbour(136, me.ip6)
    nodes, routers = "ff02::1", "ff02::2"
    kind = frames.IPV6
    return [
        Frame("its own address", True, packet(me.ip6, near.ip6, 17, ours), kind),
        Frame("its link-local address", True, packet(me.link_local, near.link_local, 17, ours), kind),
        Frame("another guest's address", False, packet(other.ip6, near.ip6, 17, ours), kind),
        Frame("another guest's link-local address", False, packet(other.link_local, near.link_local, 17, ours), kind),
        Frame("the host's link-local address", False, packet("fe80::1", near.link_local, 17, ours), kind),
        Frame("no address", False, packet("::", near.ip6, 17, ours), kind),
        Frame("another MAC", False, packet(me.ip6, near.ip6, 17, ours), kind, sender_mac=other.mac),
        Frame("neighbour solicitation", True, packet(me.ip6, near.ip6, 58, neighbour(135, near.ip6), 255), kind),
        Frame("neighbour advertisement", True, packet(me.ip6, near.ip6, 58, advertisement, 255), kind),
        Frame("another's advertisement", False, packet(other.ip6, near.ip6, 58, neighbour(136, other.ip6), 255), kind),
        Frame(
            "duplicate address detection",
            True,
            packet("::", "ff02::1:ff00:b", 58, solicitation, 255),
            kind,
            to="33:33:ff:00:00:0b",
        ),
        Frame(
            "detection under another MAC",
            False,
            packet("::", "ff02::1:ff00:b", 58, solicitation, 255),
            kind,
            sender_mac=other.mac,
            to="33:33:ff:00:00:0b",
        ),
        Frame("router solicitation", True, packet(me.link_local, routers, 58, icmp6(133), 255), kind, to=ALL_ROUTERS),
        Frame("router advertisement", False, packet(me.link_local, nodes, 58, icmp6(134), 255), kind, to=ALL_NODES),
        Frame("router advertisement to one", False, packet(me.link_local, near.link_local, 58, icmp6(134), 255), kind),
        Frame("router advertisement of nobody", False, packet("::", nodes, 58, icmp6(134), 255), kind, to=ALL_NODES),
        Frame("redirect", False, packet(me.link_local, near.link_local, 58, icmp6(137), 255), kind),
        Frame("ping", True, packet(me.ip6, near.ip6, 58, icmp6(128)), kind),
        Frame(
            "DHCPv6 request", True, packet(me.link_local, "ff02::1:2", 17, udp(546, 547)), kind, to="33:33:00:01:00:02"
        ),
        Frame("DHCPv6 answer", False, packet(me.link_local, near.link_local, 17, udp(547, 546)), kind),
    ]


def ports(bed: Bed, desired_policy: dict[str, t.Any], addresses: t.Callable[[Place], list[str]]) -> dict[str, t.Any]:
    """The policy, enforced by our own chains."""
    for instance in desired_policy["instances"]:
        place = bed.places[f"guest-{instance['id']}"]
        instance["ports"] = [{"device": bed.tap(place.name), "mac": place.mac, "addresses": addresses(place)}]
    return desired_policy


def wrong(bed: Bed, sender: str, sent: t.Sequence[Frame]) -> list[str]:
    return reached(bed, sender, "bystander", sent)


def reached(bed: Bed, sender: str, receiver: str, sent: t.Sequence[Frame]) -> list[str]:
    """The frames that did not arrive although they are honest, and those that did although they are not."""
    me, near = bed.places[sender], bed.places[receiver]
    packets = []
    for frame in sent:
        serial = bed.serial()
        body = frame.body(frames.tag(serial))
        whole = frames.ethernet(frame.to or near.mac, frame.sender_mac or me.mac, frame.kind, body)
        packets.append(Packet(serial, sender, receiver, (whole,)))
    arrived = bed.send(packets)
    return [
        f"{sender}, {frame.what}: {'was lost' if frame.honest else 'came through'}"
        for frame, carrier in zip(sent, packets, strict=True)
        if (carrier.serial in arrived) != frame.honest
    ]


def test_a_guest_speaks_for_itself_only(bed: Bed) -> None:
    every: dict[int, list[int]] = {1: [1], 2: [1], 3: [1]}
    near = bed.places["bystander"]
    desired_policy = ports(
        bed, policy(bed.places, {1: ANYTHING}, every), lambda place: [place.ip, place.ip6, place.link_local]
    )
    bed.enforce(**desired_policy)
    problems = []
    for name, victim in (("guest-1", "guest-2"), ("guest-3", "guest-1")):
        me, other = bed.places[name], bed.places[victim]
        problems += wrong(bed, name, [*of_ipv4(me, other, near), *of_ipv6(me, other, near)])
    assert not problems, "\n".join(problems)
    assert not bed.enforce(**desired_policy)["changed"]


def test_everything_is_a_lie_without_the_chains(bed: Bed) -> None:
    """The frames are such that nothing else stops them."""
    me, other, near = (bed.places[name] for name in ("guest-1", "guest-2", "bystander"))
    sent = [*of_ipv4(me, other, near), *of_ipv6(me, other, near)]
    unnoticed = wrong(bed, "guest-1", sent)
    assert len(unnoticed) == sum(not frame.honest for frame in sent)
    assert all(line.endswith("came through") for line in unnoticed)


def test_who_is_no_instance_says_what_it_likes(bed: Bed) -> None:
    """Only the guests' own ports are filtered, not what other machines on the bridge send."""
    bed.enforce(**ports(bed, policy(bed.places, {1: []}, {1: [1]}), lambda place: [place.ip]))
    me, other, near = (bed.places[name] for name in ("guest-4", "guest-2", "bystander"))
    for line in wrong(bed, "guest-4", of_ipv4(me, other, near)):
        assert line.endswith("came through")


def test_no_ipv6_without_an_address(bed: Bed) -> None:
    bed.enforce(**ports(bed, policy(bed.places, {1: ANYTHING}, {1: [1], 2: [1]}), lambda place: [place.ip]))
    me, other, near = (bed.places[name] for name in ("guest-1", "guest-2", "bystander"))
    silenced = [dataclasses.replace(frame, honest=False) for frame in of_ipv6(me, other, near)]
    problems = wrong(bed, "guest-1", [*of_ipv4(me, other, near), *silenced])
    assert not problems, "\n".join(problems)


def test_allowed_pairs(bed: Bed) -> None:
    desired_policy = ports(
        bed, policy(bed.places, {1: ANYTHING}, {1: [1], 2: [1]}), lambda place: [place.ip, place.ip6]
    )
    virtual = "00:00:5e:00:01:07"
    desired_policy["instances"][0]["ports"][0]["allowed_pairs"] = [
        {"mac": virtual, "cidr": "10.99.0.100"},
        {"mac": bed.places["guest-1"].mac, "cidr": "10.99.1.0/24"},
        {"mac": virtual, "cidr": "fd99::100/128"},
    ]
    bed.enforce(**desired_policy)
    me, near = bed.places["guest-1"], bed.places["bystander"]
    ours = udp(40000, 9)
    problems = wrong(
        bed,
        "guest-1",
        [
            Frame("the pair", True, packet("10.99.0.100", near.ip, 17, ours), sender_mac=virtual),
            Frame("ARP of the pair", True, arp(2, virtual, "10.99.0.100", near.ip), frames.ARP, sender_mac=virtual),
            Frame("the pair's address under its own MAC", False, packet("10.99.0.100", near.ip, 17, ours)),
            Frame("its own address under the pair's MAC", False, packet(me.ip, near.ip, 17, ours), sender_mac=virtual),
            Frame("the next address", False, packet("10.99.0.101", near.ip, 17, ours), sender_mac=virtual),
            Frame("in the range", True, packet("10.99.1.200", near.ip, 17, ours)),
            Frame("ARP of the range", True, arp(1, me.mac, "10.99.1.200", near.ip), frames.ARP),
            Frame("behind the range", False, packet("10.99.2.0", near.ip, 17, ours)),
            Frame("IPv6", True, packet("fd99::100", near.ip6, 17, ours), frames.IPV6, sender_mac=virtual),
            Frame(
                "IPv6, the next one", False, packet("fd99::101", near.ip6, 17, ours), frames.IPV6, sender_mac=virtual
            ),
        ],
    )
    assert not problems, "\n".join(problems)
    assert wrong(
        bed, "guest-2", [Frame("another's pair", True, packet("10.99.0.100", near.ip, 17, ours), sender_mac=virtual)]
    )


def planned(
    bed: Bed,
    desired_policy: dict[str, t.Any],
    *pairs: str,
    antispoof: str = "chains",
    further: t.Mapping[int, str] | None = None,
) -> dict[str, t.Any]:
    """The policy as a plan tells it to a host, of instances whose ports have these address pairs.

    `further`: instance -> an address that it has besides its first one.
    """
    network: dict[str, t.Any] = {
        "cidr": "10.99.0.0/24",
        "cidr_v6": "fd99::/64",
        "gateway": HOST,
        "gateway_v6": HOST6,
        "bridge": "br0",
        "dns": [],
    }
    network |= {"dhcp": True, "manager": "flat_dhcp", "ipv6_mode": "eui64", "snat": False}
    instances: list[t.Any] = []
    for instance in desired_policy["instances"]:
        place = bed.places[f"guest-{instance['id']}"]
        nic = {"id": bed.tap(place.name)[3:], "mac": place.mac, "ip": place.ip, "ipv6": place.ip6, "dhcp_server": HOST}
        more = {"more_ips": [further[instance["id"]]]} if further and instance["id"] in further else {}
        asked = [{"ip_address": cidr, "mac_address": None} for cidr in pairs]
        groups = [{"id": number, "rules": []} for number in instance["security_groups"]]
        nics = [{**nic, **more, "network": network, "allowed_address_pairs": asked}]
        uuid = f"00000000-0000-4000-8000-{instance['id']:012}"
        instances.append({"id": instance["id"], "uuid": uuid, "nics": nics, "security_groups": groups})
    return {**desired_policy, "instances": host_plan.firewall_plan(instances, {"antispoof": antispoof})["instances"]}


SECOND = "10.99.0.77"


def of_second(me: Place, near: Place, honest: bool) -> list[Frame]:
    """Return what an instance says under the address SECOND."""
    return [
        Frame("the second address", honest, packet(SECOND, near.ip, 17, udp(40000, 9))),
        Frame("ARP: who has, from the second", honest, arp(1, me.mac, SECOND, near.ip), frames.ARP, to=BROADCAST),
        Frame("ARP: I have the second", honest, arp(2, me.mac, SECOND, near.ip), frames.ARP),
        Frame("the next address", False, packet("10.99.0.78", near.ip, 17, udp(40000, 9))),
        Frame("ARP: I have the next address", False, arp(2, me.mac, "10.99.0.78", near.ip), frames.ARP),
    ]


@pytest.mark.parametrize("rules", [[], ANYTHING], ids=["closed", "open"])
def test_a_second_address_is_its_owners_and_judged_by_its_groups(bed: Bed, rules: list[dict[str, t.Any]]) -> None:
    desired_policy = planned(bed, policy(bed.places, {1: rules, 2: ANYTHING}, {1: [1], 2: [2]}), further={1: SECOND})
    bed.enforce(**desired_policy)
    me, other, near = (bed.places[name] for name in ("guest-1", "guest-2", "bystander"))
    problems = wrong(bed, "guest-1", [*of_ipv4(me, other, near), *of_second(me, near, True)])
    problems += wrong(bed, "guest-2", of_second(other, near, False))
    stolen = Frame("under its owner's MAC", False, packet(SECOND, near.ip, 17, udp(1, 9)), sender_mac=me.mac)
    problems += wrong(bed, "guest-2", [stolen])
    to_second = Frame("to the second address", bool(rules), packet(near.ip, SECOND, 17, udp(40000, 80)))
    problems += reached(bed, "bystander", "guest-1", [to_second])
    assert not problems, "\n".join(problems)
    assert not bed.enforce(**desired_policy)["changed"]


PAIRS = ("10.99.0.0/28", "fd99::/124")  # around the gateway's addresses and all guests'


def of_attacker(me: Place, owner: Place, near: Place) -> list[Frame]:
    """Return what an instance with PAIRS says."""
    ours, kind, host = udp(40000, 9), frames.IPV6, "fe80::1"
    return [
        Frame("nobody's, of its pair", True, packet("10.99.0.9", near.ip, 17, ours)),
        Frame("nobody's IPv6, of its pair", True, packet("fd99::9", near.ip6, 17, ours), kind),
        Frame("ARP: I have the gateway's", False, arp(2, me.mac, HOST, near.ip), frames.ARP),
        Frame("ARP to all: I have the gateway's", False, arp(2, me.mac, HOST, near.ip), frames.ARP, to=BROADCAST),
        Frame("ARP as the gateway", False, arp(1, me.mac, HOST, HOST), frames.ARP, to=BROADCAST),
        Frame("the gateway's address", False, packet(HOST, near.ip, 17, ours)),
        Frame("the gateway's IPv6 address", False, packet(HOST6, near.ip6, 17, ours), kind),
        Frame("it is the router", False, packet(me.ip6, near.ip6, 58, neighbour(136, HOST6), 255), kind),
        Frame("router, link-local", False, packet(me.link_local, near.ip6, 58, neighbour(136, host), 255), kind),
        Frame("the owner's MAC", False, packet(owner.ip, near.ip, 17, ours), sender_mac=owner.mac),
        Frame("ARP: the owner's MAC", False, arp(2, owner.mac, owner.ip, near.ip), frames.ARP, sender_mac=owner.mac),
        Frame("owner's MAC, IPv6", False, packet(owner.ip6, near.ip6, 17, ours), kind, sender_mac=owner.mac),
    ]


def to_owner(sender: Place, owner: Place, honest: bool) -> list[Frame]:
    ours, what, router = udp(40000, 80), f"for {owner.name}", None if sender.bridge else UPLINK_MAC
    return [
        Frame(what, honest, packet(sender.ip, owner.ip, 17, ours), to=router),
        Frame(f"{what}, IPv6", honest, packet(sender.ip6, owner.ip6, 17, ours), frames.IPV6, to=router),
    ]


def around_owners(bed: Bed, attacker_is_open: bool) -> list[str]:
    """Return what goes wrong for guest-1, open to all, and guest-2, closed to all, beside guest-3 with PAIRS."""
    first, closed, attacker, near = (bed.places[name] for name in ("guest-1", "guest-2", "guest-3", "bystander"))
    problems = wrong(bed, "guest-1", [*of_ipv4(first, closed, near), *of_ipv6(first, closed, near)])
    problems += wrong(bed, "guest-3", of_attacker(attacker, first, near))
    for sender in (near, bed.places["outside"]):  # what is bridged is judged by device, what is routed by address
        problems += reached(bed, sender.name, "guest-1", to_owner(sender, first, True))
        problems += reached(bed, sender.name, "guest-2", to_owner(sender, closed, False))
    if not attacker_is_open:  # as from somebody who was told that it has the owner's address
        problems += reached(bed, "bystander", "guest-3", to_owner(near, first, False))
    return problems


OWNERS = {1: ANYTHING, 2: []}
ATTACKERS = pytest.mark.parametrize("rules", [[], ANYTHING], ids=["closed attacker", "open attacker"])


@ATTACKERS
def test_a_pair_changes_nothing_for_owners_who_are_not_given(bed: Bed, rules: list[dict[str, t.Any]]) -> None:
    """As a launch tells a host: the instances that come, and nobody else's. Nor is a pair for the gateway's address."""
    bed.enforce(**planned(bed, policy(bed.places, OWNERS, {1: [1], 2: [2]})))
    attacker = planned(bed, policy(bed.places, {3: rules}, {3: [3]}), *PAIRS)
    bed.enforce(**attacker)
    problems = around_owners(bed, bool(rules))
    assert not problems, "\n".join(problems)
    assert not bed.enforce(**attacker)["changed"]


def test_a_guest_that_goes_takes_its_chain(bed: Bed) -> None:
    desired_policy = ports(bed, policy(bed.places, {1: ANYTHING}, {1: [1], 2: [1]}), lambda place: [place.ip])
    bed.enforce(**desired_policy)
    bed.enforce(instances=desired_policy["instances"][:1], state="absent")
    me, other, near = (bed.places[name] for name in ("guest-2", "guest-1", "bystander"))
    problems = wrong(bed, "guest-2", of_ipv4(me, other, near))
    assert not problems, "\n".join(problems)
    bed.enforce(instances=desired_policy["instances"][1:], state="absent")
    with bed.on_host():
        assert "nova" not in run("ebtables-save")


def test_wrong_chains_are_noticed(bed: Bed) -> None:
    desired_policy = policy(bed.places, {1: ANYTHING}, {1: [1]})
    bed.enforce(**ports(bed, desired_policy, lambda place: [place.ip, place.ip6, place.link_local]))
    me, other, near = (bed.places[name] for name in ("guest-1", "guest-2", "bystander"))
    sent = [*of_ipv4(me, other, near), *of_ipv6(me, other, near)]
    right = bed.saved_bridge()
    unnoticed = []
    for number, line in enumerate(right):
        if not line.startswith("-A "):
            continue
        target = line.rpartition(" ")[2]
        for mistake in ([], [line.replace(target, {"ACCEPT": "DROP", "DROP": "ACCEPT"}.get(target, "ACCEPT"))]):
            text = "\n".join([*right[:number], *mistake, *right[number + 1 :], ""])
            with bed.on_host():
                run("ebtables-restore", text=text)
            if not wrong(bed, "guest-1", sent):
                unnoticed.append(f"{line} became {mistake}")
    assert not unnoticed, "\n".join(unnoticed)
