# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hosts that drop what nobody accepts, as Docker makes them: what guests send passes, what is not theirs does not."""

from __future__ import annotations

import typing as t

import pytest

from tests.packets.bed import HOST, HOST6, Bed, Failed, run
from tests.packets.oracle import Probe
from tests.packets.policies import SSH, policy, v6
from tests.packets.probes import STRANGER, mismatches, probes_of
from tests.packets.test_drift import state
from tests.packets.wire import PORTS, Wire

pytestmark = pytest.mark.root

FAMILIES = ("IPv4", "IPv6")
METADATA = "169.254.169.254"
UPLINK = "203.0.113.1"  # another address of the host
OURS = {"bridges": ["br0"], "serving": ["br0"]}


def docker(bed: Bed) -> None:
    """Do to the tables what dockerd does: chains of its own in front, and a policy."""
    for family in FAMILIES:
        for line in (
            "-N DOCKER-USER",
            "-N DOCKER",
            "-I FORWARD 1 -o docker0 -j DOCKER",
            "-I FORWARD 1 -j DOCKER-USER",
            "-P FORWARD DROP",
        ):
            bed.iptables(family, *line.split(" "))


def reject(bed: Bed) -> None:
    """As administrators write it."""
    for family in FAMILIES:
        bed.iptables(family, "-A", "FORWARD", "-j", "REJECT")


def probes(bed: Bed, desired_policy: dict[str, t.Any]) -> list[Probe]:
    """All but those whose way is none of a guest's: these the host is free to drop."""
    guests = {f"guest-{instance['id']}" for instance in desired_policy["instances"]}
    return [
        probe
        for probe in probes_of(desired_policy, bed.places, 200)
        if probe.sender != "outside" or probe.receiver in guests or (probe.answers and probe.valid)
    ]


def comes(bed: Bed, *probe: t.Any) -> bool:
    return bool(bed.send([Wire(bed).packet(Probe("", *probe))]))


@pytest.mark.parametrize("drop", [docker, reject], ids=["docker", "reject"])
@pytest.mark.parametrize("before", [True, False], ids=["first", "later"])
def test_what_guests_send_passes(bed: Bed, drop: t.Callable[[Bed], None], before: bool) -> None:
    desired_policy = {**state(bed), **OURS}
    out = ("guest-1", "outside", bed.places["guest-1"].ip, STRANGER[4], 17, 53, next(PORTS))
    if before:
        drop(bed)
    bed.enforce(**desired_policy, exclusive=True)
    if not before:
        drop(bed)
        assert not comes(bed, *out)
        seen = bed.enforce(check=True, **desired_policy)
        assert all("nova-sent" in seen["diff"]["after"][family] for family in FAMILIES)
        assert not comes(bed, *out)
        assert bed.enforce(**desired_policy)["diff"] == seen["diff"]
    assert comes(bed, *out)
    problems = mismatches(bed, desired_policy, probes(bed, desired_policy))
    assert not problems, "\n".join(map(str, problems[:20]))
    strangers = ("outside", "bystander", STRANGER[4], bed.places["bystander"].ip, 17, 53, next(PORTS))
    assert not comes(bed, *strangers), "what nobody accepts is not a guest's"
    assert not bed.enforce(**desired_policy, exclusive=True)["changed"]
    assert not bed.enforce(**desired_policy)["changed"]


def test_it_is_there_as_long_as_it_is_needed(bed: Bed) -> None:
    docker(bed)
    desired_policy = {**state(bed), **OURS}
    bed.enforce(**desired_policy)
    first = desired_policy["instances"][0]
    bed.enforce(instances=[first], state="absent")
    assert "-A nova-sent -i br0 -j ACCEPT" in bed.saved("IPv4")
    bed.enforce(instances=[], bridges=["br0"], state="absent")
    assert "nova-sent" not in bed.saved("IPv4")
    bed.enforce(**desired_policy)
    for family in FAMILIES:
        bed.iptables(family, "-D", "FORWARD", "-j", "nova-sent")
    seen = bed.enforce(check=True, **desired_policy)
    assert "-A FORWARD -j nova-sent" in seen["diff"]["after"]["IPv4"]["FORWARD"]
    assert bed.enforce(**desired_policy)["changed"]
    for family in FAMILIES:
        bed.iptables(family, "-P", "FORWARD", "ACCEPT")
    assert bed.enforce(**desired_policy)["changed"]
    assert "nova-sent" not in bed.saved("IPv4") + bed.saved("IPv6")
    bed.enforce(instances=desired_policy["instances"], state="absent")
    assert "nova-" not in bed.saved("IPv4") + bed.saved("IPv6")


def test_what_bridges_of_others_carry_is_theirs(bed: Bed) -> None:
    """An operator keeps what bridges carry from a packet filter that drops: guests are judged, others not even seen."""
    desired_policy = {**state(bed), **OURS}
    docker(bed)
    place, other = bed.places["twin-1"], bed.places["twin-bystander"]
    switches = [f"net.bridge.bridge-nf-call-{name}" for name in ("iptables", "ip6tables")]
    with bed.on_host():
        run("sysctl", "-q", *(f"{switch}=0" for switch in switches))
    try:
        assert bed.enforce(**desired_policy, check=True)["diff"]["before"]["sysctl"] == {
            "br0/nf_call_iptables": "0",
            "br0/nf_call_ip6tables": "0",
        }
        bed.enforce(**desired_policy, exclusive=True)
        with bed.on_host():
            assert run("sysctl", "-n", *switches).split() == ["0", "0"]
        for kind in ("ip", "ip6"):
            assert comes(
                bed, "twin-1", "twin-bystander", getattr(place, kind), getattr(other, kind), 17, 53, next(PORTS)
            )
        assert not mismatches(bed, desired_policy, probes(bed, desired_policy))
        assert not bed.enforce(**desired_policy)["changed"]
    finally:
        with bed.on_host():
            run("sysctl", "-q", *(f"{switch}=1" for switch in switches))
            run("ip", "link", "set", "br0", "type", "bridge", "nf_call_iptables", "0", "nf_call_ip6tables", "0")


def test_an_isolated_network_is_not_routed(bed: Bed) -> None:
    docker(bed)
    place, other = bed.places["twin-1"], bed.places["twin-bystander"]
    bed.enforce(
        instances=[{"id": 1, "scoped": [{"bridge": "br1", "addresses": [place.ip, place.ip6]}], "security_groups": []}],
        zones=[{"bridge": "br1", "zone": 7}],
        bridges=["br1"],
        serving=["br1"],
    )
    for kind, version in (("ip", 4), ("ip6", 6)):
        own = getattr(place, kind)
        assert comes(bed, "twin-1", "twin-bystander", own, getattr(other, kind), 17, 53, next(PORTS))
        # br0's host takes a frame from br1 for one of its own
        assert not comes(bed, "twin-1", "outside", own, STRANGER[version], 17, 53, next(PORTS))


@pytest.mark.parametrize("serving", [True, False], ids=["serving", "not serving"])
def test_what_guests_ask_of_the_host(bed: Bed, serving: bool) -> None:
    """On a host whose INPUT drops: their metadata always, DHCP and names where the host has them, nothing else."""
    desired_policy = policy(bed.places, {1: [SSH, v6(protocol="icmpv6")]}, {1: [1]})
    with bed.on_host():
        run("ip", "addr", "add", f"{METADATA}/32", "dev", "br0")
    for family in FAMILIES:
        bed.iptables(family, "-P", "INPUT", "DROP")
    try:
        guest = bed.places["guest-1"]
        asked = [
            *((METADATA, 6, port, port == 80) for port in (80, 22)),
            (HOST, 6, 80, False),
            (HOST, 6, 22, False),
            (HOST, 17, 69, False),
            *((HOST, protocol, port, serving) for protocol, port in ((17, 67), (17, 53), (6, 53))),
            *((HOST6, protocol, port, serving) for protocol, port in ((17, 547), (17, 53), (6, 53))),
            (HOST6, 6, 22, False),
            (HOST6, 17, 67, False),
            (HOST6, 58, 133, True),
            (HOST6, 58, 135, True),
            (HOST6, 58, 128, False),
        ]

        def answers() -> list[tuple[t.Any, ...]]:
            return [
                (
                    to,
                    protocol,
                    port,
                    comes(
                        bed,
                        "guest-1",
                        "host",
                        guest.ip6 if ":" in to else guest.ip,
                        to,
                        protocol,
                        port,
                        0 if protocol == 58 else next(PORTS),
                    ),
                )
                for to, protocol, port, _expected in asked
            ]

        bed.enforce(**desired_policy, bridges=[], exclusive=True)
        assert not any(arrived for *_what, arrived in answers())
        bed.enforce(**desired_policy, bridges=["br0"], serving=["br0"] if serving else [], exclusive=True)
        assert answers() == asked
        assert not comes(bed, "outside", "host", STRANGER[4], HOST, 17, 53, next(PORTS))
        assert not bed.enforce(**desired_policy, bridges=["br0"], serving=["br0"] if serving else [])["changed"]
    finally:
        with bed.on_host():
            run("ip", "addr", "del", f"{METADATA}/32", "dev", "br0")


def test_the_host_is_no_neighbour_of_its_guests(bed: Bed) -> None:
    """On a host whose INPUT accepts everything, as most do. What others on the bridge ask is no matter of ours."""
    desired_policy = policy(bed.places, {1: [SSH, v6(protocol="icmpv6")]}, {1: [1]})
    desired_policy["instances"][0]["devices"] = [bed.tap("guest-1")]
    with bed.on_host():
        run("ip", "addr", "add", f"{METADATA}/32", "dev", "br0")
    asked = [
        (METADATA, 6, 80, True),
        (METADATA, 6, 22, False),
        (HOST, 6, 22, False),
        (HOST, 6, 80, False),
        (UPLINK, 6, 22, False),
        (HOST, 17, 67, True),
        (HOST, 17, 53, True),
        (HOST, 6, 53, True),
        (HOST, 6, 3128, False),
        (HOST, 6, 3129, False),
        (HOST, 17, 5004, False),
        (HOST, 1, 8, False),
        (HOST6, 6, 22, False),
        (HOST6, 17, 547, True),
        (HOST6, 6, 53, True),
        (HOST6, 6, 3128, False),
        (HOST6, 58, 133, True),
        (HOST6, 58, 135, True),
        (HOST6, 58, 128, False),
    ]

    def answers(sender: str, opened: t.Container[tuple[int, int]] = ()) -> list[tuple[t.Any, ...]]:
        place = bed.places[sender]
        deviations = []
        for to, protocol, port, expected in asked:
            source = place.ip6 if ":" in to else place.ip
            arrived = comes(bed, sender, "host", source, to, protocol, port, 0 if protocol in (1, 58) else next(PORTS))
            if arrived != (expected or (protocol, port) in opened):
                deviations.append((sender, to, protocol, port, arrived))
        return deviations

    everything = [(protocol, port) for _to, protocol, port, _expected in asked]
    try:
        bed.enforce(**desired_policy, exclusive=True)
        assert answers("guest-1") == [] and answers("bystander", everything) == []
        # what the host asks of a guest, the guest may answer
        guest = bed.places["guest-1"]
        asks = Probe("", "host", "guest-1", HOST, guest.ip, 6, 22, next(PORTS))
        assert bed.send([Wire(bed).packet(asks)])
        assert comes(bed, "guest-1", "host", guest.ip, HOST, 6, asks.sport, 22, True, asks)
        # also when its host has forgotten who asked, as at a live migration; a port that is not open is not found so
        for style, arrives in (("ack", True), ("syn+fin", False), ("no flags", False)):
            middle = Probe("", "guest-1", "host", guest.ip, HOST, 6, asks.sport, next(PORTS), style=style)
            assert bool(bed.send([Wire(bed).packet(middle)])) == arrives, style
        assert not bed.enforce(**desired_policy)["changed"]
        bed.enforce(**desired_policy, open_to_guests=["tcp/3128", "udp/5000-5009", "icmp"])
        assert answers("guest-1", [(6, 3128), (17, 5004), (1, 8), (58, 128)]) == []
        assert not bed.enforce(**desired_policy)["changed"], "who says nothing changes nothing"
        assert bed.enforce(**desired_policy, open_to_guests=["any"])["changed"]
        assert answers("guest-1", everything) == []
        assert bed.enforce(**desired_policy, open_to_guests=[])["changed"]
        assert answers("guest-1") == []
        bed.enforce(instances=desired_policy["instances"], state="absent")
        assert "nova" not in bed.saved("IPv4") + bed.saved("IPv6")
        with pytest.raises(Failed, match="open_to_guests: 'ssh' is not"):
            bed.enforce(**desired_policy, open_to_guests=["ssh"])
    finally:
        with bed.on_host():
            run("ip", "addr", "del", f"{METADATA}/32", "dev", "br0")
