# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Merging after any history of requests: what is there is what one request would have made."""

from __future__ import annotations

import pathlib
import tempfile
import typing as t

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import part_of
from tests.unit._firewall.host_model import Host, request
from tests.unit._firewall.test_merge import EGRESS, GROUPS, RULES, apply, foreign, instance

STEP = st.tuples(
    st.sampled_from(["present", "absent", "exclusive"]),
    st.sets(st.integers(1, 12), max_size=4),
    st.sets(st.integers(1, 4), max_size=3),
)
KNOWN: list[dict[str, t.Any]] = [
    *GROUPS[:2],
    {"id": 3, "rules": [*RULES, {"protocol": "udp", "remote_group_id": 1}]},
    *EGRESS,
]
ZONES = {"br1": 1, "br2": 2}


def member(number: int, groups: t.Iterable[int]) -> dict[str, t.Any]:
    """Two of three are on an isolated network, every fifth is on another one too, every second shares an address."""
    own = f"10.0.0.{number // 3}"
    place: dict[str, t.Any] = {"addresses": [own]}
    if number % 3:
        place = {"addresses": [], "scoped": [{"bridge": f"br{number % 3}", "addresses": [own]}]}
    if number % 5 == 0:
        place.setdefault("scoped", []).append({"bridge": f"br{2 - number % 2}", "addresses": [f"10.0.1.{number}"]})
    if number % 2:
        place["allowed_pairs"] = [{"bridge": f"br{number % 3}" if number % 3 else None, "cidr": "10.0.0.200"}]
    if number % 4:  # so many that some hosts have a tree, and their names differ early and late
        place["devices"] = [f"tap{number * part:04x}" for part in (1, 97, 389)][: 1 + number % 3]
    return {"id": number, "security_groups": sorted(groups), **place}


@pytest.mark.parametrize("zoned", [False, True])
def test_without_sets_who_joins_or_leaves_is_in_the_rules(host: Host, zoned: bool) -> None:
    """Also when nothing but the members is told, as other hosts are when an instance comes or goes."""
    groups: list[dict[str, t.Any]] = [
        {
            "id": 1,
            "rules": [
                {"protocol": "tcp", "port_min": 90, "remote_group_id": 2},
                {"direction": "egress", "protocol": "udp", "remote_group_id": 2},
            ],
        },
        {"id": 2, "members": [], "scoped_members": [], "rules": []},
    ]
    place: dict[str, t.Any] = {"scoped": [{"bridge": "br1", "addresses": ["10.0.0.1"]}], "addresses": []}

    def members(*addresses: str) -> dict[str, t.Any]:
        scoped = [{"bridge": "br1", "addresses": list(addresses)}] if zoned else []
        return {"id": 2, "members": [] if zoned else list(addresses), "scoped_members": scoped}

    apply(host, instance(1, **(place if zoned else {})), groups=groups, zones=ZONES if zoned else {}, sets=False)
    for now in (["10.0.0.7", "10.0.0.8"], ["10.0.0.8"], [], ["10.0.0.9"]):
        host.apply(request(groups=[members(*now)]))
        fresh_host = Host()
        apply(
            fresh_host,
            instance(1, **(place if zoned else {})),
            groups=[groups[0], {**members(*now), "rules": []}],
            zones=ZONES if zoned else {},
            sets=False,
        )
        assert host.owned() == fresh_host.owned()
        opened = [rule for rules in host.owned().values() for rule in rules if "10.0.0." in rule and "ACCEPT" in rule]
        assert len(opened) == 4 * len(now)  # in, out, and the answers to each


@settings(max_examples=part_of(60), deadline=None)
@given(st.lists(STEP, min_size=1, max_size=6), st.booleans(), st.sampled_from(["IPv4", "IPv4", "IPv6"]))
def test_any_history_leads_to_what_is_wanted(
    steps: list[tuple[str, set[int], set[int]]], kept: bool, family: str
) -> None:
    """After any sequence of requests the host has the chains of one that was told everything at once, whether each
    read the tables or trusted the one before; foreign rules are as they were."""
    with tempfile.TemporaryDirectory() as directory:
        host = Host(foreign(), family, directory=pathlib.Path(directory) if kept else None)
        groups_by_instance: dict[int, set[int]] = {}
        for verb, numbers, groups in steps:
            apply(
                host,
                *(member(number, groups) for number in sorted(numbers)),
                groups=KNOWN,
                zones=ZONES,
                state="absent" if verb == "absent" else "present",
                exclusive=verb == "exclusive",
            )
            if verb == "exclusive":
                groups_by_instance = {}
            for number in numbers:
                groups_by_instance.pop(number, None)
                if verb != "absent":
                    groups_by_instance[number] = groups
        fresh_host = Host(foreign(), family)
        apply(
            fresh_host,
            *(member(number, groups) for number, groups in sorted(groups_by_instance.items())),
            groups=KNOWN,
            zones=ZONES,
        )
    assert host.meant() == fresh_host.meant()
    for name, rules in foreign()["filter"].items():
        assert tuple(rule for rule in host.filter[name] if rule not in ("-j nova-local", "-j nova-host")) == rules


def test_the_first_and_the_last_egress_rule_reach_who_is_not_given(host: Host) -> None:
    """A host learns of a group's rules from any request that gives them, such as a launch."""
    plain: list[dict[str, t.Any]] = [{"id": 1, "rules": RULES}, {"id": 2, "rules": RULES}]
    egress = [{"id": 1, "rules": [*RULES, {"direction": "egress", "ethertype": "IPv6", "protocol": "tcp"}]}, plain[1]]
    apply(
        host,
        instance(1, security_groups=[1], dhcp_servers=["10.0.0.250"]),
        instance(2, security_groups=[1, 2]),
        instance(3, security_groups=[2]),
        groups=plain,
    )
    before = host.owned()
    apply(host, instance(4, security_groups=[2]), groups=egress)
    assert {f"nova-out-{number}" for number in (1, 2)} <= host.owned().keys() and "nova-out-3" not in host.owned()
    assert host.rules("security", "nova-eg-1") == ("-j RETURN",)  # the rule is of the other family
    fresh_host = Host(foreign())
    apply(
        fresh_host,
        instance(1, security_groups=[1], dhcp_servers=["10.0.0.250"]),
        instance(2, security_groups=[1, 2]),
        instance(3, security_groups=[2]),
        instance(4, security_groups=[2]),
        groups=egress,
    )
    assert host.owned() == fresh_host.owned()
    apply(host, groups=plain[:1])
    apply(host, instance(4), state="absent")
    assert host.owned() == before
