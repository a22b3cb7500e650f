# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A policy's meaning is what happens to packets: chosen policies and random ones, built anew and changed into."""

from __future__ import annotations

import os
import random
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._firewall import ruleset
from tests.packets.bed import Bed, all_places
from tests.packets.policies import fixed, random_policy
from tests.packets.probes import mismatches, probes_of

pytestmark = pytest.mark.root

RANDOM = int(os.environ.get("NOVALITE_PACKET_POLICIES", "6"))
SEED = int(os.environ.get("NOVALITE_PACKET_SEED", "0"))
Policy = dict[str, t.Any]
FIXED = list(fixed({place.name: place for place in all_places(4)}))


def check(bed: Bed, policy: dict[str, t.Any], limit: int | None = None, seed: int = 0) -> int:
    """Probe; returns with how many packets. Fails with each packet that fared otherwise than it should."""
    probes = probes_of(policy, bed.places, limit, seed)
    wrong = mismatches(bed, policy, probes)
    if wrong:
        shown = "\n".join(f"  {mismatch}" for mismatch in wrong[:20])
        pytest.fail(
            f"{len(wrong)} of {len(probes)} packets:\n{shown}\n{policy}\n{bed.saved('IPv4')}\n{bed.saved('IPv6')}",
            pytrace=False,
        )
    return len(probes)


@pytest.mark.parametrize("name", FIXED)
def test_fixed_policies(bed: Bed, name: str) -> None:
    policy = fixed(bed.places)[name]
    bed.enforce(**policy)
    assert check(bed, policy) > 500
    assert not bed.enforce(**policy)["changed"]


@pytest.mark.parametrize("seed", range(SEED, SEED + RANDOM))
def test_random_policies(bed: Bed, seed: int) -> None:
    """Built from nothing, changed into from another one, and come to step by step: the same rules, and the same fate
    of every packet."""
    policy, former = random_policy(bed.places, seed), random_policy(bed.places, seed + 1_000_000)
    bed.enforce(**policy)
    check(bed, policy, 400, seed)
    anew = canonical(bed)
    bed.clear()
    bed.enforce(**former)
    bed.enforce(**policy, exclusive=True)
    assert canonical(bed) == anew
    check(bed, policy, 400, seed)
    assert not bed.enforce(**policy, exclusive=True)["changed"]
    bed.clear()
    bed.enforce(**former)
    for step in steps(former, policy, random.Random(seed)):
        bed.enforce(**step)
    assert canonical(bed) == anew
    check(bed, policy, 400, seed)


def steps(former: Policy, policy: Policy, chance: random.Random) -> list[Policy]:
    """One instance after the other, those that go and those that come or change, as launches and ends of them do."""
    staying = [instance["id"] for instance in policy["instances"]]
    going = [
        {"instances": [instance], "state": "absent"}
        for instance in former["instances"]
        if instance["id"] not in staying
    ]
    coming = []
    for instance in policy["instances"]:
        shown = set(instance["security_groups"])
        named = {
            rule.get("remote_group_id")
            for group in policy["security_groups"]
            if group["id"] in shown
            for rule in group["rules"]
        }
        groups = [group for group in policy["security_groups"] if group["id"] in shown | named]
        coming.append({"instances": [instance], "security_groups": groups})
    chance.shuffle(coming)
    return [*going, *coming]


def canonical(bed: Bed) -> list[str]:
    """Both families' rules, and the sets; only the order of what leads to instances is no matter."""
    lines = [*bed.saved("IPv4").splitlines(), "", *bed.saved("IPv6").splitlines()]
    leads = [line.startswith(":") or (line.startswith("-A") and ruleset.dispatches(line.split()[1])) for line in lines]
    return [
        *sorted(line for line, unordered in zip(lines, leads) if unordered),
        *(line for line, unordered in zip(lines, leads) if not unordered),
        *sorted(line.partition(" hashsize")[0] for line in bed.sets().splitlines()),
    ]
