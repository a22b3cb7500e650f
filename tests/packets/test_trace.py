# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The walk of a packet through a host's chains ends as real packets do, and counts what they counted."""

from __future__ import annotations

import functools
import shlex
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._firewall import sets, trace
from ansible_collections.novalite.cloud.plugins.module_utils._firewall.tables import Tables
from tests.packets.bed import Bed, all_places
from tests.packets.oracle import Probe
from tests.packets.policies import fixed, random_policy
from tests.packets.probes import phases, prepared, probes_of
from tests.packets.test_by_device import with_devices

pytestmark = pytest.mark.root

POLICIES = list(fixed({place.name: place for place in all_places(4)}))
Walks = dict[str, t.Any]


def packet_of(bed: Bed, probe: Probe) -> trace.Packet:
    """The probe as the host under test meets it."""
    way: dict[str, str] = {"hook": "FORWARD"}
    if probe.sender == "host":
        way = {"hook": "OUTPUT", "interface_out": "br0"}
    elif probe.sender == "outside":
        way.update(interface_in="up0", interface_out="br0")
    else:
        way.update(interface_in="br0", device_in=bed.tap(probe.sender))
        if probe.receiver == "host":
            way["hook"] = "INPUT"
        elif probe.receiver == "outside":
            way["interface_out"] = "up0"
        else:
            way["interface_out"] = "br0"
            if probe.style != "routed":
                way["device_out"] = bed.tap(probe.receiver)
    icmp = probe.protocol in (1, 58)
    return trace.Packet(
        probe.source,
        probe.destination,
        probe.protocol,
        probe.port,
        code=probe.sport if icmp else None,
        source_port=None if icmp else probe.sport,
        **way,
    )


def tables_of(bed: Bed) -> dict[str, dict[str, trace.Table]]:
    with bed.on_host():
        return {family: trace.parse(Tables(bed.backend).text(family, counters=True)) for family in ("IPv4", "IPv6")}


@pytest.fixture(autouse=True)
def _rules_are_split_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of packets walk through the same few rules."""
    monkeypatch.setattr(shlex, "split", functools.cache(shlex.split))


def walked(
    bed: Bed,
    tables: dict[str, dict[str, trace.Table]],
    probe: Probe,
    members: t.Callable[[str], frozenset[str] | None] = sets.members,
) -> trace.Walk:
    packet = packet_of(bed, probe)
    with bed.on_host():
        return trace.walk(tables[packet.family], packet, members)


def is_first(probe: Probe) -> bool:
    """Tell whether a probe is the first packet of a connection, and whole: what the walk is about."""
    return probe.valid and probe.answers is None and probe.error_about is None and probe.style in ("", "routed")


def disagreements(bed: Bed, policy: dict[str, t.Any], limit: int, seed: int = 0) -> list[str]:
    """Send the probes of the policy; those that fared otherwise than the walk says."""
    wrong: list[str] = []
    tables, members = tables_of(bed), functools.cache(sets.members)
    for part in phases(prepared(bed, policy, filter(is_first, probes_of(policy, bed.places, limit, seed)))):
        bed.forget_connections()
        arrived = bed.send(entry.packet for entry in part)
        for entry in part:
            way = walked(bed, tables, entry.probe, members)
            if way.accepted != (entry.packet.serial in arrived):
                wrong.append(f"{entry.probe}: {way.verdict}\n    " + "\n    ".join(trace.lines(way)))
    return wrong


@pytest.mark.parametrize("name", POLICIES)
def test_the_walk_ends_as_packets_do(bed: Bed, name: str) -> None:
    policy = fixed(bed.places)[name]
    by_device = name != "shared"  # whose addresses are of several guests
    bed.enforce(**(with_devices(bed, policy) if by_device else policy))
    wrong = disagreements(bed, policy, 100)
    assert not wrong, "\n".join(wrong[:10])


@pytest.mark.parametrize("seed", range(2))
def test_the_walk_ends_as_packets_do_for_random_policies(bed: Bed, seed: int) -> None:
    policy = random_policy(bed.places, seed)
    bed.enforce(**policy)
    wrong = disagreements(bed, policy, 100, seed)
    assert not wrong, "\n".join(wrong[:10])


def test_the_rules_on_the_way_are_named_in_order_and_have_counted_the_packet(bed: Bed) -> None:
    policy = with_devices(bed, fixed(bed.places)["web"])
    bed.enforce(**policy)
    source, destination = bed.places["bystander"], bed.places["guest-1"]
    probe = Probe("", "bystander", "guest-1", source.ip, destination.ip, 6, 22, 40000)
    before = walked(bed, tables_of(bed), probe)
    chains = [step["chain"] for step in before.passed]
    assert chains[:4] == ["FORWARD", "nova-local", "nova-tap", "nova-inst-1"] and chains[-1].startswith("nova-sg-1")
    assert before.passed[-1]["rule"].endswith("--dport 22 -j ACCEPT")
    (entry,) = prepared(bed, policy, [probe])
    bed.forget_connections()
    assert entry.packet.serial in bed.send([entry.packet])
    after = walked(bed, tables_of(bed), probe)
    counts = [(then["packets"], now["packets"]) for then, now in zip(before.passed, after.passed)]
    assert [now - then for then, now in counts] == [1] * len(counts)


def test_a_hosts_own_rules_are_walked_too(bed: Bed) -> None:
    policy = fixed(bed.places)["everything"]
    bed.enforce(**policy)
    probe = Probe("", "outside", "guest-1", "192.0.2.77", bed.places["guest-1"].ip, 6, 80, 40000)
    assert walked(bed, tables_of(bed), probe).accepted
    bed.iptables(
        "IPv4", "-I", "FORWARD", "1", "-i", "up0", "-p", "tcp", "-m", "multiport", "--dports", "80,443", "-j", "DROP"
    )
    way = walked(bed, tables_of(bed), probe)
    assert (way.verdict, way.unknown) == ("DROP", [])
    (entry,) = prepared(bed, policy, [probe])
    assert entry.packet.serial not in bed.send([entry.packet])
    bed.iptables("IPv4", "-D", "FORWARD", "1")
    bed.iptables("IPv4", "-I", "FORWARD", "1", "-m", "mark", "--mark", "7", "-j", "DROP")
    assert "mark" in walked(bed, tables_of(bed), probe).unknown[0]
    bed.iptables("IPv4", "-P", "FORWARD", "DROP")
    bed.iptables("IPv4", "-F", "FORWARD")
    assert walked(bed, tables_of(bed), probe).passed[-1]["rule"] == "policy DROP"
    bed.iptables("IPv4", "-P", "FORWARD", "ACCEPT")
