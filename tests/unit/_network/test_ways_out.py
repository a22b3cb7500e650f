# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ways out of isolated networks: one for each, and none to the host, with packets."""

from __future__ import annotations

import ipaddress
import typing as t

import pytest

from tests.unit._network.test_routing_on_a_host import BANNER, CLIENT, EARLY, FLOAT, done, links, tenant, way_out

pytestmark = pytest.mark.root

LISTEN = """
import socket
frames = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x88b5))
frames.bind(("eth0", 0))
frames.settimeout(1)
print("ready", flush=True)
try:
    print(frames.recv(99)[14:].rstrip(b"\\0").decode(), flush=True)
except OSError:
    print("silence", flush=True)
"""
HEAR = """
import socket, sys
ears = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
ears.bind(("", int(sys.argv[1])))
ears.settimeout(3)
print("ready", flush=True)
print("heard" if ears.recv(99) else "", flush=True)
"""
# a frame of a network (its VXLAN identifier), wrapped up as hosts do it (RFC 7348, 5)
WRAP = """
import socket, struct, sys
frame = b"\\xff" * 6 + bytes.fromhex("02000000dead") + b"\\x88\\xb5" + b"smuggled".ljust(46, b"\\0")
wrapped = struct.pack("!B3xI", 8, int(sys.argv[2]) << 8) + frame
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(wrapped, (sys.argv[1], int(sys.argv[3])))
print("sent", flush=True)
"""


def test_each_network_has_a_way_out_of_its_own(bed: t.Any) -> None:
    """These bridges' names lead to one pair of addresses. Both at once, as after a boot, in either order; and hosts on
    which an earlier version gave it to both."""
    names = ("br171", "br192")
    bridges = [{key: value for key, value in tenant(name, 1).items() if key != "vxlan"} for name in names]
    assert done(bed.hv1.call(["bridge", bridges, "present"])) == [True]
    floats = dict(zip(names, (FLOAT, "192.0.2.71")))
    routers = [way_out(name, ("10.0.0.5", floats[name])) for name in names]
    guests = [bed.guest(bed.hv1, name, "10.0.0.5/24", "10.0.0.2") for name in names]

    def are_out() -> bool:
        assert all(guest.reaches("192.0.2.1", 5) for guest in guests)
        assert all(bed.outside.reaches(address, 5) for address in floats.values())
        local = {link["addr_info"][0]["local"] for name, link in links(bed.hv1).items() if name.startswith("nt-")}
        return len(local) == 2

    for both in (routers, routers[::-1]):
        calls = [["router", both, "present", check] for check in (True, False, False)]
        assert done(bed.hv1.call(*calls)) == [True, True, False] and are_out()
        assert done(bed.hv1.call(["router", both, "absent"])) == [True]

    assert done(bed.hv1.call(*(["router", [each], "present"] for each in routers))) == [True, True]
    (_first, own), (second, _other) = (
        (name, link["addr_info"][0]["local"]) for name, link in links(bed.hv1).items() if name.startswith("nt-")
    )
    bed.hv1.ip("addr", "flush", "dev", second)
    bed.hv1.ip("addr", "add", f"{own}/31", "dev", second)
    inside = ("-n", f"nova-{second[3:]}")
    bed.hv1.ip(*inside, "addr", "flush", "dev", "transit")
    bed.hv1.ip(*inside, "addr", "add", f"{ipaddress.ip_address(own) + 1}/31", "dev", "transit")
    bed.hv1.ip(*inside, "route", "replace", "default", "via", own, "dev", "transit")
    calls = [["router", routers, "present", check] for check in (True, False, False)]
    assert done(bed.hv1.call(*calls)) == [True, True, False] and are_out()


@pytest.mark.parametrize("snat", [True, False], ids=["translated", "under its floating IP"])
def test_the_way_out_leads_to_no_port_of_the_host(bed: t.Any, snat: bool) -> None:
    """A guest of an isolated network asks for the host's own addresses through its router, as for any others."""
    bridge = {key: value for key, value in tenant("br10000", 1).items() if key != "vxlan"}
    floating = [] if snat else [("10.0.0.5", FLOAT)]
    calls = [["bridge", [bridge], "present"], ["router", [way_out("br10000", *floating, snat=snat)], "present"]]
    assert done(bed.hv1.call(*calls)) == [True, True]
    guest = bed.guest(bed.hv1, "br10000", "10.0.0.5/24", "10.0.0.2")
    (transit,) = (link["addr_info"][0]["local"] for name, link in links(bed.hv1).items() if name.startswith("nt-"))
    (device,) = (name for name in links(bed.hv1) if name.startswith("tap"))
    rules = {
        "instances": [
            {
                "id": 1,
                "scoped": [{"bridge": "br10000", "addresses": ["10.0.0.5"]}],
                "devices": [device],
                "security_groups": [1],
            }
        ],
        "security_groups": [{"id": 1, "rules": [{"protocol": "tcp"}, {"protocol": "icmp"}]}],
        "bridges": ["br10000"],
        "zones": [{"bridge": "br10000", "zone": 7}],
        "state": "present",
    }
    assert done(bed.hv1.call(["firewall", rules])) == [True]
    assert guest.reaches("192.0.2.1", 5) and not any(guest.reaches(own) for own in ("192.0.2.11", transit))
    with bed.hv1.running(BANNER, "host") as host:
        assert host() == "ready"
        with guest.running(CLIENT, "192.0.2.11") as client:
            assert client() == "", "refused, or silence"
        assert done(bed.hv1.call(["firewall", {**rules, "open_to_guests": ["tcp/7"]}])) == [True]
        with guest.running(EARLY, "192.0.2.11") as client:
            assert (client(), client()) == ("ready", "SSH-2.0-host"), "what the operator opens is open to all guests"
    if floating:  # and the host itself gets its answers
        with guest.running(BANNER) as there:
            assert there() == "ready"
            with bed.hv1.running(EARLY, FLOAT) as client:
                assert (client(), client()) == ("ready", "SSH-2.0-guest")


@pytest.mark.parametrize("way", ["translated", "floating", "host network"])
def test_no_guest_speaks_to_the_tunnels_of_hosts(bed: t.Any, way: str) -> None:
    """Whoever reaches a host's tunnels is on each network that they carry, past its filters and under any name; and the
    other hosts' networks take a host's own address for a host."""
    for host, place in ((1, bed.hv1), (2, bed.hv2)):
        assert done(place.call(["bridge", [tenant("br10000", host, 3 - host)], "present"])) == [True]
    if way == "host network":
        bridge = {"name": "br100", "addresses": ["10.0.0.2/24"]}
        router = {"network": "x", "bridge": "br100", "cidr": "10.0.0.0/24", "address": "10.0.0.2", "snat": True}
    else:
        bridge = tenant("br10001", 1)
        floating = [("10.0.0.5", FLOAT)] if way == "floating" else []
        router = way_out("br10001", *floating, snat=not floating)
    assert done(bed.hv1.call(["bridge", [bridge], "present"], ["router", [router], "present"])) == [True, True]
    guest = bed.guest(bed.hv1, bridge["name"], "10.0.0.5/24", "10.0.0.2")
    near = bed.guest(bed.hv1, bridge["name"], "10.0.0.6/24", "10.0.0.2")
    others = {
        "192.0.2.12": bed.guest(bed.hv2, "br10000", "10.0.0.7/24"),
        "192.0.2.11": bed.guest(bed.hv1, "br10000", "10.0.0.8/24"),
    }
    assert guest.reaches("192.0.2.12", 5) and others["192.0.2.12"].reaches("10.0.0.8", 5)
    with others["192.0.2.12"].running(LISTEN) as listener:
        assert listener() == "ready"
        with guest.running(WRAP, "192.0.2.12", "10000", "4789") as attacker:
            assert attacker() == "sent"
        assert listener() == "silence"
    # to its neighbours, and to other ports, it says what it likes
    for target, place, port in (("10.0.0.6", near, 4789), ("192.0.2.1", bed.outside, 4788)):
        with place.running(HEAR, str(port)) as hearing:
            assert hearing() == "ready"
            with guest.running(WRAP, target, "10000", str(port)) as speaker:
                assert speaker() == "sent"
            assert hearing() == "heard"
