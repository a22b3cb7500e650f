# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules that are loaded and changed while packets come in: nothing forbidden passes, nothing allowed is lost."""

from __future__ import annotations

import os
import typing as t

import pytest

from tests.packets.bed import Bed, Packet
from tests.packets.flows import Flow, open_all
from tests.packets.oracle import Probe, passes
from tests.packets.policies import SSH, policy, v6
from tests.packets.probes import STRANGER
from tests.packets.wire import PORTS, Wire

pytestmark = pytest.mark.root

ROUNDS = int(os.environ.get("NOVALITE_PACKET_SOAK", "12"))  # changes under traffic
ALWAYS = [SSH, v6(**{**SSH, "cidr": "::/0"})]


def states(bed: Bed) -> list[dict[str, t.Any]]:
    """All let ssh in and nothing at port 23; the rest, and who is there beside guest-1 and guest-2, differs."""
    udp = [{"protocol": "udp", "port_min": low, "port_max": low + 3} for low in range(1000, 1400, 4)]
    return [
        policy(bed.places, {1: ALWAYS}, {1: [1], 2: [1]}),
        policy(bed.places, {1: [*ALWAYS, *udp], 2: []}, {1: [1, 2], 2: [1], 3: [1]}),
        policy(bed.places, {3: [*udp[50:], *ALWAYS], 4: []}, {1: [4, 3], 2: [3], 3: [4], 4: [3]}),
        policy(bed.places, {1: [{"protocol": "tcp", "remote_group_id": 2}], 2: ALWAYS}, {1: [1, 2], 2: [2]}),
    ]


def traffic(bed: Bed, wire: Wire, flows: t.Sequence[Flow]) -> tuple[list[Packet], list[Packet]]:
    """(packets that every state allows, packets that none does), a few of each kind."""
    good, bad = [], []  # type: list[Packet], list[Packet]
    for version, attribute in ((4, "ip"), (6, "ip6")):
        for sender, name in (("outside", "guest-1"), ("bystander", "guest-2"), ("host", "guest-1")):
            source = STRANGER[version] if sender == "outside" else getattr(bed.places[sender], attribute)
            for port, packets in ((22, good), (23, bad)):
                own = getattr(bed.places[name], attribute)
                packets.append(wire.packet(Probe("soak", sender, name, source, own, 6, port, next(PORTS))))
    good += [flow.packet(bed, by_client) for flow in flows for by_client in (True, False)]
    return good, bad


def flows_through(bed: Bed) -> list[Flow]:
    """Connections that every state allows: to ssh, and from the guests."""
    return [
        Flow(client, server, *ends, 6, 22 if server == "guest-1" else 443, next(PORTS))
        for client, server in (("bystander", "guest-1"), ("guest-2", "outside"))
        for ends in (
            (bed.places[client].ip, STRANGER[4] if server == "outside" else bed.places[server].ip),
            (bed.places[client].ip6, STRANGER[6] if server == "outside" else bed.places[server].ip6),
        )
    ]


def test_changes_under_traffic(bed: Bed) -> None:
    desired_policies = states(bed)
    for state in desired_policies:
        wire = Wire(bed)
        assert passes(state, Probe("", "outside", "guest-1", STRANGER[4], bed.places["guest-1"].ip, 6, 22, 1))
        assert not passes(state, Probe("", "outside", "guest-1", STRANGER[4], bed.places["guest-1"].ip, 6, 23, 1))
    bed.enforce(**desired_policies[0])
    flows = flows_through(bed)
    open_all(bed, flows)
    sent = lost = leaked = 0
    with bed.runner() as runner:
        for number in range(1, ROUNDS + 1):
            runner.start(backend=bed.backend, exclusive=True, **desired_policies[number % len(desired_policies)])
            while not runner.done():
                good, bad = traffic(bed, wire, flows)
                arrived = bed.send([*good, *bad])
                lost += sum(packet.serial not in arrived for packet in good)
                leaked += sum(packet.serial in arrived for packet in bad)
                sent += len(good) + len(bad)
            assert runner.finish()["changed"]
    assert sent > 10 * ROUNDS
    assert (lost, leaked) == (0, 0), f"{lost} allowed packets lost and {leaked} forbidden ones passed, of {sent}"


def test_the_first_load_under_traffic(bed: Bed) -> None:
    """Nothing allowed is lost; once a family's rules are there they stay."""
    wire = Wire(bed)
    came: dict[tuple[str, str], list[bool]] = {}
    with bed.runner() as runner:
        number, end = 0, 0
        while not end or number < end:
            number += 1
            if number == 5:
                runner.start(backend=bed.backend, **states(bed)[2])
            if not end and number > 5 and runner.done():
                end = number + 5
            good, bad = traffic(bed, wire, [])
            arrived = bed.send([*good, *bad])
            assert all(packet.serial in arrived for packet in good)
            for index, packet in enumerate(bad):
                came.setdefault((packet.sender, str(index)), []).append(packet.serial in arrived)
        assert runner.finish()["changed"]
    for sequence in came.values():
        assert sequence[0] and not sequence[-1]
        assert sequence == sorted(sequence, reverse=True), "rules came and went while they were loaded"
