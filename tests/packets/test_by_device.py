# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Packets to a guest's device are judged whatever address it has, and so is what comes from there; and a guest's
neighbour discovery is about its own addresses. Nothing here keeps a guest from sending under foreign addresses, so
that only the rules under test can."""

from __future__ import annotations

import dataclasses
import typing as t

import pytest

from tests.packets import frames
from tests.packets.bed import Bed, Place, run
from tests.packets.policies import policy, v6
from tests.packets.test_spoofing import (
    ALL_NODES,
    ANYTHING,
    BROADCAST,
    Frame,
    arp,
    icmp6,
    neighbour,
    packet,
    ports,
    reached,
    udp,
)

pytestmark = pytest.mark.root

ONE_PORT = [{"protocol": "udp", "port_min": 7001}, v6(protocol="udp", port_min=7001)]
NOBODY, NOBODY6 = "10.99.0.150", "fd99::abcd:22"


def with_devices(bed: Bed, desired_policy: dict[str, t.Any]) -> dict[str, t.Any]:
    for instance in desired_policy["instances"]:
        instance["devices"] = [bed.tap(f"guest-{instance['id']}")]
    return desired_policy


def around_addresses(sender: Place, receiver: Place, other: Place, port: int, honest: bool) -> list[Frame]:
    """UDP that reaches the receiver's device under every kind of destination."""
    ours, kind = udp(40000, port), frames.IPV6
    return [
        Frame("its address", honest, packet(sender.ip, receiver.ip, 17, ours)),
        Frame("directed broadcast", honest, packet(sender.ip, "10.99.0.255", 17, ours), to=BROADCAST),
        Frame("broadcast to its MAC", honest, packet(sender.ip, "10.99.0.255", 17, ours)),
        Frame("limited broadcast", honest, packet(sender.ip, "255.255.255.255", 17, ours), to=BROADCAST),
        Frame("multicast", honest, packet(sender.ip, "224.0.0.251", 17, ours), to="01:00:5e:00:00:fb"),
        Frame("an address of nobody", honest, packet(sender.ip, NOBODY, 17, ours)),
        Frame("an address on another device of its own", honest, packet(sender.ip, "172.17.0.1", 17, ours)),
        Frame("another guest's address", honest, packet(sender.ip, other.ip, 17, ours)),
        Frame("its IPv6 address", honest, packet(sender.ip6, receiver.ip6, 17, ours), kind),
        Frame("all nodes", honest, packet(sender.link_local, "ff02::1", 17, ours), kind, to=ALL_NODES),
        Frame("IPv6 of nobody", honest, packet(sender.ip6, NOBODY6, 17, ours), kind),
        Frame("temporary link-local", honest, packet(sender.link_local, "fe80::1234", 17, ours), kind),
        Frame("another guest's IPv6 address", honest, packet(sender.ip6, other.ip6, 17, ours), kind),
    ]


def needed(sender: Place, receiver: Place) -> list[Frame]:
    """Frames that a guest without groups gets, because nobody could speak to it otherwise."""
    kind = frames.IPV6
    return [
        Frame("ARP", True, arp(1, sender.mac, sender.ip, receiver.ip), frames.ARP, to=BROADCAST),
        Frame(
            "solicitation",
            True,
            packet(sender.link_local, "ff02::1:ff00:b", 58, neighbour(135, receiver.ip6), 255),
            kind,
            to="33:33:ff:00:00:0b",
        ),
        Frame(
            "advertisement to all",
            True,
            packet(sender.ip6, "ff02::1", 58, neighbour(136, sender.ip6), 255),
            kind,
            to=ALL_NODES,
        ),
        Frame(
            "router advertisement", True, packet(sender.link_local, "ff02::1", 58, icmp6(134), 255), kind, to=ALL_NODES
        ),
        Frame("query for listeners", True, packet(sender.link_local, "ff02::1", 58, icmp6(130), 1), kind, to=ALL_NODES),
        Frame(
            "query for listeners, IPv4",
            True,
            packet(sender.ip, "224.0.0.1", 2, lambda tag: b"\x11\0\0\0" + tag, 1),
            to="01:00:5e:00:00:01",
        ),
        Frame("DHCP answer to all", True, packet(sender.ip, "255.255.255.255", 17, udp(67, 68)), to=BROADCAST),
    ]


def test_what_reaches_a_device_is_judged_whatever_its_address(bed: Bed) -> None:
    groups = {1: [], 2: ONE_PORT, 3: ANYTHING}
    desired_policy = with_devices(bed, policy(bed.places, groups, {1: [1], 2: [2], 3: [3]}))
    near = bed.places["bystander"]
    for instance in desired_policy["instances"]:
        instance["dhcp_servers"] = [near.ip]
    bed.enforce(**desired_policy)
    first, second, third, stranger = (bed.places[name] for name in ("guest-1", "guest-2", "guest-3", "guest-4"))
    problems = []
    for sender in (near, third):
        problems += reached(bed, sender.name, "guest-1", around_addresses(sender, first, third, 7001, False))
        problems += reached(bed, sender.name, "guest-2", around_addresses(sender, second, first, 7001, True))
        problems += reached(bed, sender.name, "guest-2", around_addresses(sender, second, third, 7002, False))
    problems += reached(bed, "bystander", "guest-1", needed(near, first))
    # What is no instance's is none of the firewall's business.
    problems += reached(bed, "guest-3", "guest-4", around_addresses(third, stranger, near, 7001, True))
    assert not problems, "\n".join(problems)
    assert "diff" not in bed.enforce(**desired_policy)
    bed.enforce(instances=desired_policy["instances"], state="absent")
    assert "nova" not in bed.saved("IPv4") + bed.saved("IPv6")


def test_what_comes_from_a_device_is_judged_whatever_its_source(bed: Bed) -> None:
    out = [{"direction": "egress", **rule} for rule in ONE_PORT]
    desired_policy = with_devices(bed, policy(bed.places, {1: out, 2: []}, {1: [1], 2: [2]}))
    bed.enforce(**desired_policy)
    me, near = bed.places["guest-1"], bed.places["bystander"]
    sent = []
    for port, honest in ((7001, True), (7002, False)):
        ours, kind = udp(40000, port), frames.IPV6
        sent += [
            Frame(f"an address that it gave itself, {port}", honest, packet(NOBODY, near.ip, 17, ours)),
            Frame(f"no address, {port}", honest, packet("0.0.0.0", near.ip, 17, ours)),
            Frame(f"broadcast, {port}", honest, packet(NOBODY, "10.99.0.255", 17, ours), to=BROADCAST),
            Frame(f"IPv6 that it gave itself, {port}", honest, packet(NOBODY6, near.ip6, 17, ours), kind),
        ]
    problems = reached(
        bed,
        "guest-1",
        "bystander",
        [
            *sent,
            *(
                Frame(f"its own, {port}", port == 7001, packet(me.ip, near.ip, 17, udp(40000, port)))
                for port in (7001, 7002)
            ),
        ],
    )
    problems += reached(bed, "guest-2", "bystander", [dataclasses.replace(frame, honest=True) for frame in sent])
    assert not problems, "\n".join(problems)
    assert not bed.enforce(**desired_policy)["changed"]


def of_discovery(me: Place, other: Place, near: Place) -> list[Frame]:
    kind = frames.IPV6

    def about(target: str, source: str, honest: bool, what: str, destination: str = "", to: str | None = None) -> Frame:
        sent = packet(source, destination or near.ip6, 58, neighbour(136, target), 255)
        return Frame(what, honest, sent, kind, to=to)

    def hidden(tag: bytes) -> bytes:
        """An advertisement of another's address behind a header of options, where its own stands in its place."""
        options = b"\x3a\x01\x01\x0c" + bytes(12)
        body = frames.icmp(136, 0, frames.address(other.ip6) + tag)
        return frames.ip(me.ip6, near.ip6, 60, options + body, hops=255)

    return [
        about(me.ip6, me.ip6, True, "its address"),
        about(me.link_local, me.link_local, True, "its link-local address"),
        about(me.ip6, me.link_local, True, "its address, from link-local, to all", "ff02::1", ALL_NODES),
        about("fd99::100", me.ip6, True, "its pair"),
        about("fd99::1:2", me.ip6, True, "in the range of its pair"),
        about("fd99::1:10", me.ip6, False, "behind the range of its pair"),
        about("fd99::1", me.ip6, False, "the router's"),
        about("fd99::1", me.link_local, False, "the router's, to all", "ff02::1", ALL_NODES),
        about("fe80::1", me.link_local, False, "the router's link-local address"),
        about(other.ip6, me.ip6, False, "another guest's"),
        about(other.link_local, me.link_local, False, "another guest's link-local"),
        Frame("behind options", False, hidden, kind),
        Frame(
            "its detection of duplicates",
            True,
            packet("::", "ff02::1:ff00:b", 58, neighbour(135, me.ip6), 255),
            kind,
            to="33:33:ff:00:00:0b",
        ),
        Frame(
            "detection for another's",
            False,
            packet("::", "ff02::1:ff00:b", 58, neighbour(135, other.ip6), 255),
            kind,
            to="33:33:ff:00:00:0b",
        ),
        Frame("asks for another", True, packet(me.ip6, near.ip6, 58, neighbour(135, other.ip6), 255), kind),
    ]


OWNER = pytest.mark.parametrize("is_given", [False, True], ids=["owner not given", "owner given"])


def enforce_first(bed: Bed, desired_policy: dict[str, t.Any], is_given: bool) -> dict[str, t.Any]:
    """The policy of guest-1, with the others' or when the host has theirs already; what the last run was told."""
    if not is_given:
        bed.enforce(**{**desired_policy, "instances": desired_policy["instances"][1:]})
        desired_policy = {**desired_policy, "instances": desired_policy["instances"][:1]}
    bed.enforce(**desired_policy)
    return desired_policy


@OWNER
@pytest.mark.parametrize("chains", [False, True], ids=["devices alone", "chains"])
def test_a_guest_advertises_its_own_addresses_only(bed: Bed, is_given: bool, chains: bool) -> None:
    desired_policy = with_devices(bed, policy(bed.places, {1: ANYTHING}, {1: [1], 2: [1]}))
    pairs = [{"cidr": "fd99::100"}, {"cidr": "fd99::1:0/124"}]
    desired_policy["instances"][0]["allowed_pairs"] = pairs
    if chains:
        ports(bed, desired_policy, lambda place: [place.ip, place.ip6, place.link_local])
        (port,) = desired_policy["instances"][0]["ports"]
        port["allowed_pairs"] = [{"mac": port["mac"], **pair} for pair in pairs]
    desired_policy = enforce_first(bed, desired_policy, is_given)
    me, other, near = (bed.places[name] for name in ("guest-1", "guest-2", "bystander"))
    sent = of_discovery(me, other, near)
    problems = reached(bed, "guest-1", "bystander", sent)
    of_owner = [frame for frame in of_discovery(other, me, near) if "pair" not in frame.what]
    problems += reached(bed, "guest-2", "bystander", of_owner)
    # Others on the bridge are no guests of ours.
    problems += reached(bed, "bystander", "guest-4", [dataclasses.replace(frame, honest=True) for frame in sent])
    assert not problems, "\n".join(problems)
    with bed.on_host():
        run("ebtables", "-t", "nat", "-F")
    bed.iptables("IPv6", "-t", "security", "-F", "nova-nd")
    assert len(reached(bed, "guest-1", "bystander", sent)) == sum(not frame.honest for frame in sent)
    bed.enforce(**desired_policy)


def test_the_host_hears_of_own_addresses_only(bed: Bed) -> None:
    """It is the guests' router."""
    desired_policy = with_devices(bed, policy(bed.places, {1: ANYTHING}, {1: [1]}))
    bed.enforce(**desired_policy)
    me, other = bed.places["guest-1"], bed.places["guest-2"]
    host = bed.places["host"]
    problems = reached(
        bed,
        "guest-1",
        "host",
        [
            Frame("its own", True, packet(me.ip6, host.ip6, 58, neighbour(136, me.ip6), 255), frames.IPV6),
            Frame("another's", False, packet(me.ip6, host.ip6, 58, neighbour(136, other.ip6), 255), frames.IPV6),
        ],
    )
    assert not problems, "\n".join(problems)
