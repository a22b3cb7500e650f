# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ports whose security is off: nobody judges what they send and what reaches them, and everybody else is judged as
before. What they ask of the host stays limited, and frames of other VLANs are dropped."""

from __future__ import annotations

import dataclasses
import shutil
import struct
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._network import nwfilter
from ansible_collections.novalite.cloud.plugins.module_utils._plan import host_plan
from tests.packets import frames
from tests.packets.bed import HOST, HOST6, Bed
from tests.packets.policies import policy
from tests.packets.test_by_device import around_addresses
from tests.packets.test_libvirt_filters import Libvirt, binding
from tests.packets.test_spoofing import ANYTHING, Frame, of_ipv4, of_ipv6, packet, reached, udp

pytestmark = pytest.mark.root


def planned(bed: Bed, opened: t.Collection[int], antispoof: str = "chains") -> dict[str, t.Any]:
    """Guests 1 (no groups at all), 2 (closed) and 3 (open to all), as a plan tells them to a host; the ports of those
    in `opened` have no security."""
    desired_policy = policy(bed.places, {2: [], 3: ANYTHING}, {1: [], 2: [2], 3: [3]})
    network: dict[str, t.Any] = {
        "cidr": "10.99.0.0/24",
        "cidr_v6": "fd99::/64",
        "gateway": HOST,
        "gateway_v6": HOST6,
        "bridge": "br0",
    }
    network |= {"dhcp": True, "manager": "flat_dhcp", "ipv6_mode": "eui64", "snat": False}
    instances: list[t.Any] = []
    for instance in desired_policy["instances"]:
        place = bed.places[f"guest-{instance['id']}"]
        nic = {"id": bed.tap(place.name)[3:], "mac": place.mac, "ip": place.ip, "ipv6": place.ip6, "dhcp_server": HOST}
        secured = {"port_security_enabled": instance["id"] not in opened}
        nics = [{**nic, **secured, "network": network, "allowed_address_pairs": []}]
        groups = [{"id": number, "rules": []} for number in instance["security_groups"]]
        uuid = f"00000000-0000-4000-8000-{instance['id']:012}"
        instances.append({"id": instance["id"], "uuid": uuid, "nics": nics, "security_groups": groups})
    plan = host_plan.firewall_plan(instances, {"antispoof": antispoof})
    return {**desired_policy, "instances": plan["instances"], "bridges": ["br0"], "serving": ["br0"]}


def said(bed: Bed, honest: bool | None) -> list[Frame]:
    """What guest-1 may say under its own name and under others'; `honest`: whether all of it passes (None: as usual).
    VLAN tags never do."""
    me, other, near = (bed.places[name] for name in ("guest-1", "guest-3", "bystander"))
    usual = [*of_ipv4(me, other, near), *of_ipv6(me, other, near)]
    tagged = [
        Frame(
            "service VLAN tag",
            False,
            lambda tag: struct.pack("!HH", 5, frames.IPV4) + frames.ip(me.ip, near.ip, 17, frames.udp(1, 9, tag)),
            0x88A8,
        ),
        *(frame for frame in usual if frame.what == "VLAN tag"),
    ]
    others = [frame for frame in usual if frame.what != "VLAN tag"]
    return tagged + [frame if honest is None else dataclasses.replace(frame, honest=honest) for frame in others]


def to_host(bed: Bed) -> list[Frame]:
    """What a guest asks of the host, under its address and one that is not its own."""
    me = bed.places["guest-1"]
    asked = [
        Frame(f"{what} from {source}", honest, packet(source, HOST, 17, udp(40000, port)))
        for source in (me.ip, "10.99.0.77")
        for what, port, honest in (("names", 53, True), ("a port of the host", 9999, False))
    ]
    return [*asked, Frame("IPv6", False, packet(me.ip6, HOST6, 17, udp(40000, 9999)), frames.IPV6)]


def around(bed: Bed, spoofing: bool | None = True) -> list[str]:
    """What goes wrong where the port of guest-1 has no security."""
    first, closed, third, near = (bed.places[name] for name in ("guest-1", "guest-2", "guest-3", "bystander"))
    problems = reached(bed, "guest-1", "bystander", said(bed, spoofing))
    for sender in (near, third):
        problems += reached(bed, sender.name, "guest-1", around_addresses(sender, first, closed, 7001, True))
    for sender in (near, first):
        problems += reached(bed, sender.name, "guest-2", around_addresses(sender, closed, first, 7001, False))
    lie = packet(third.ip, closed.ip, 17, udp(40000, 7001))
    problems += reached(bed, "guest-1", "guest-2", [Frame("under another's address", False, lie)])
    return problems + reached(bed, "guest-1", "host", to_host(bed))


def test_a_port_without_security_is_judged_by_nobody(bed: Bed) -> None:
    desired_policy = planned(bed, {1})
    bed.enforce(**desired_policy)
    problems = around(bed)
    assert not problems, "\n".join(problems)
    assert not bed.enforce(**desired_policy)["changed"]
    bed.forget_notes()
    assert not bed.enforce(**desired_policy)["changed"]
    assert not bed.enforce(**desired_policy, exclusive=True)["changed"]
    bed.enforce(instances=desired_policy["instances"], bridges=["br0"], state="absent")
    assert "nova" not in bed.saved("IPv4") + bed.saved("IPv6")


def test_security_comes_and_goes_while_the_guest_runs(bed: Bed) -> None:
    """As a job tells the host: the one server, whose port has changed."""
    bed.enforce(**planned(bed, ()))
    first, closed, near = (bed.places[name] for name in ("guest-1", "guest-2", "bystander"))

    def usual() -> list[str]:
        problems = reached(bed, "guest-1", "bystander", said(bed, None))
        problems += reached(bed, near.name, "guest-1", around_addresses(near, first, closed, 7001, False))
        return problems + reached(bed, "guest-1", "host", to_host(bed)[:2])

    before = usual()
    for opened in ({1}, set[int](), {1}):
        desired_policy = planned(bed, opened)
        desired_policy["instances"] = desired_policy["instances"][:1]
        bed.enforce(**desired_policy)
        problems = around(bed) if opened else usual()
        assert not problems, "\n".join(problems)
        assert not bed.enforce(**desired_policy)["changed"]
    assert not before, "\n".join(before)
    bed.enforce(instances=planned(bed, {1})["instances"][:1], state="absent")
    assert "nova-free" not in bed.saved("IPv4") + bed.saved("IPv6")
    assert "nova-inst-2" in bed.saved("IPv4")


@pytest.mark.skipif(shutil.which("libvirtd") is None or shutil.which("virsh") is None, reason="needs libvirtd")
def test_the_filter_of_a_port_without_security_drops_vlan_tags_alone(bed: Bed) -> None:
    place, device = bed.places["guest-1"], bed.tap("guest-1")
    (filter_,) = nwfilter.parse([{"name": "nova-instance-guest-1", "beside": [nwfilter.OPEN_FILTER]}])
    with Libvirt(bed) as libvirt:
        for name in filter_.beside:
            libvirt.virsh("nwfilter-define", "/dev/stdin", text=nwfilter.to_xml(nwfilter.STATIC[name]))
        xml = binding(device, place.mac, nwfilter.OPEN_FILTER, {})
        libvirt.virsh("nwfilter-binding-create", "/dev/stdin", text=xml)
        try:
            bed.enforce(**planned(bed, {1}, antispoof="nwfilter"))
            problems = around(bed)
            assert not problems, "\n".join(problems)
        finally:
            libvirt.virsh("nwfilter-binding-delete", device)
