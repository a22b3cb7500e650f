# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The test of the tests: wrong rules are noticed."""

from __future__ import annotations

import os
import random
import typing as t

import pytest

from tests.packets.bed import BATCH, Bed, Packet
from tests.packets.flows import flows_of, flows_of_rules, going_on, opening
from tests.packets.mutants import mutants
from tests.packets.policies import SSH, policy, v6
from tests.packets.probes import phases, prepared, probes_of
from tests.packets.test_flows import open_policy

pytestmark = pytest.mark.root

FAMILIES = ("IPv4", "IPv6")


def rich_policy(bed: Bed) -> dict[str, t.Any]:
    """A little of everything."""
    return policy(
        bed.places,
        {
            1: [
                {**SSH, "cidr": "198.18.4.0/22"},
                {"protocol": "icmp", "port_min": 8},
                v6(protocol="icmpv6", port_min=128),
            ],
            2: [{"protocol": "udp", "port_min": 5000, "port_max": 5010}, v6(protocol="tcp", port_min=80, port_max=90)],
            3: [
                {"protocol": "tcp", "port_min": 3306, "remote_group_id": 1},
                v6(protocol="any", cidr="2001:db8:40::/44"),
            ],
            4: [
                {"direction": "egress", "protocol": "tcp", "port_min": 443, "cidr": "198.18.8.0/22"},
                v6(direction="egress", protocol="tcp", port_min=443, cidr="2001:db8:80::/44"),
                v6(direction="egress", protocol="tcp", port_min=85, remote_group_id=2),
            ],
        },
        {1: [1], 2: [1, 2], 3: [3], 4: [2, 3, 4]},
    )


class Battery:
    """All probes of the rich policy, made once and sent at each mutant."""

    def __init__(self, bed: Bed) -> None:
        self.bed = bed
        desired_policy = rich_policy(bed)
        bed.enforce(**open_policy(bed))
        self.open = {family: bed.saved(family) for family in FAMILIES}
        bed.clear()
        bed.enforce(**desired_policy)
        self.right = {family: bed.saved(family) for family in FAMILIES}
        self.probes = prepared(bed, desired_policy, probes_of(desired_policy, bed.places))
        flows = [*flows_of(bed, (22,)), *flows_of_rules(desired_policy, bed.places)]
        self.opening = opening(bed, flows)
        self.flows = [
            (packet, flow.allowed(desired_policy, by_client))
            for flow, by_client, packet in going_on(bed, flows, client_first=True)
        ]

    def notices(self, rules: dict[str, str]) -> bool:
        """Tell whether a packet tells these rules from the right ones."""
        self._load(rules)
        for part in phases(self.probes):
            self.bed.forget_connections()
            if self._differs([(probe.packet, probe.expected) for probe in part]):
                return True
        self._load(self.open)
        self.bed.forget_connections()
        self.bed.send(self.opening)
        self._load(rules)
        return self._differs(self.flows)

    def mutants(self, sample: int = 0) -> t.Iterator[tuple[str, dict[str, str]]]:
        """(what was done, the rules with it), `sample` of them or all."""
        mutations = [(family, what, text) for family in FAMILIES for what, text in mutants(self.right[family])]
        if sample:
            mutations = random.Random(self.bed.backend).sample(mutations, min(sample, len(mutations)))
        for family, what, text in mutations:
            yield f"{family} {what}", {**self.right, family: text}

    def _load(self, rules: dict[str, str]) -> None:
        for family, text in rules.items():
            self.bed.restore(family, text)

    def _differs(self, packets: list[tuple[Packet, bool]]) -> bool:
        for start in range(0, len(packets), BATCH):
            part = packets[start : start + BATCH]
            arrived = self.bed.send(packet for packet, _expected in part)
            if any((packet.serial in arrived) != expected for packet, expected in part):
                return True
        return False


# Of some 400 mutants those that a quick run tries; NOVALITE_PACKET_MUTANTS=0 for all.
SAMPLE = int(os.environ.get("NOVALITE_PACKET_MUTANTS", "30"))


def test_wrong_rules_are_noticed(bed: Bed) -> None:
    battery = Battery(bed)
    survived = [what for what, rules in battery.mutants(SAMPLE) if not battery.notices(rules)]
    assert not survived, "\n".join(["nothing noticed that the rules were wrong:", *survived])


def test_right_rules_are_not(bed: Bed) -> None:
    battery = Battery(bed)
    assert not battery.notices(battery.right)
