# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A rule that is removed cuts the connections that it allowed, and no others, whoever speaks next."""

from __future__ import annotations

import typing as t

import pytest

from tests.packets.bed import Bed
from tests.packets.flows import flows_of, open_all, wrong_packets
from tests.packets.policies import SSH, policy, random_policy, v6

pytestmark = pytest.mark.root

ANY = [{"protocol": "any"}, v6(protocol="any")]
PING = [{"protocol": "icmp", "port_min": 8}, v6(protocol="icmpv6", port_min=128)]


def open_policy(bed: Bed) -> dict[str, t.Any]:
    return policy(bed.places, {1: ANY, 2: [], 3: []}, {1: [1], 2: [1, 2], 3: [1, 3], 4: [1, 2, 3]})


@pytest.mark.parametrize("client_first", [True, False], ids=["client first", "server first"])
@pytest.mark.parametrize("change", ["all rules", "ports", "sources", "a group's rule", "membership", "nothing"])
def test_a_removed_rule_cuts_its_flows(bed: Bed, change: str, client_first: bool) -> None:
    before = open_policy(bed)
    bed.enforce(**before)
    flows = flows_of(bed, (22, 53))
    open_all(bed, flows)
    every: dict[int, list[int]] = {1: [1], 2: [1], 3: [1], 4: [1]}
    after = {
        "all rules": policy(bed.places, {1: []}, every),
        "ports": policy(bed.places, {1: [SSH, v6(protocol="udp", port_min=53), *PING]}, every),
        "sources": policy(
            bed.places,
            {1: [{"protocol": "any", "cidr": "10.99.0.12/30"}, v6(protocol="any", cidr="fd99::c8/128")]},
            every,
        ),
        "a group's rule": policy(
            bed.places,
            {1: PING, 2: [{"protocol": "tcp", "remote_group_id": 1}, v6(protocol="udp", remote_group_id=1)]},
            {1: [1], 2: [1, 2], 3: [2], 4: []},
        ),
        "membership": policy(bed.places, {1: ANY, 2: [], 3: []}, {1: [1], 2: [2], 3: [3], 4: [1, 3]}),
        "nothing": before,
    }[change]
    bed.enforce(**after, exclusive=True)
    wrong = wrong_packets(bed, after, flows, client_first)
    assert not wrong, "\n".join([f"{len(wrong)} of {4 * len(flows)} packets", *wrong[:20]])
    # and they come back with their rule, since neither side has closed them
    bed.enforce(**before, exclusive=True)
    assert not wrong_packets(bed, before, flows, client_first)


@pytest.mark.parametrize("seed", range(2))
def test_random_changes_under_open_flows(bed: Bed, seed: int) -> None:
    bed.enforce(**open_policy(bed))
    flows = flows_of(bed, (22, 80))
    open_all(bed, flows)
    policies = [random_policy(bed.places, 1000 * seed + number, everybody=True) for number in range(6)]
    for number, after in enumerate(policies):
        bed.enforce(**after, exclusive=True)
        wrong = wrong_packets(bed, after, flows, client_first=bool(number % 2))
        assert not wrong, "\n".join([f"{len(wrong)} of {4 * len(flows)} packets", *wrong[:20], str(after)])


def test_the_next_owner_of_an_address_inherits_no_connection(bed: Bed) -> None:
    bed.enforce(**open_policy(bed))
    flows = flows_of(bed, (22,))
    open_all(bed, flows)
    leaving = policy(bed.places, {1: ANY, 2: []}, {1: [1], 2: [1, 2]})
    bed.enforce(instances=leaving["instances"], state="absent")
    theirs = [address for instance in leaving["instances"] for address in instance["addresses"]]
    tracked = [line for line in bed.connections() if any(f"src={address} " in line for address in theirs)]
    assert not tracked, "\n".join(tracked)
    closed = policy(bed.places, {5: []}, {1: [5], 2: [5], 3: [5], 4: [5]})
    bed.enforce(**closed)
    came = [
        flow
        for flow in flows
        if flow.client in ("guest-1", "guest-2") and bed.send([flow.packet(bed, by_client=False)])
    ]
    assert not came, f"answers to the former owner reach the new one: {came[0]}"
