# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Policies to try: some that are chosen, and as many random ones as are asked for."""

from __future__ import annotations

import ipaddress
import random
import typing as t

from tests.packets.bed import HOST, HOST6, HOST_LINK, Place

Policy = dict[str, t.Any]
Rule = dict[str, t.Any]

SSH: Rule = {"protocol": "tcp", "port_min": 22, "port_max": 22, "cidr": "0.0.0.0/0"}


def v6(**rule: t.Any) -> Rule:
    return {"ethertype": "IPv6", **rule}


def policy(
    places: t.Mapping[str, Place],
    groups: t.Mapping[int, t.Sequence[Rule]],
    carriers: t.Mapping[int, t.Sequence[int]],
    **instance: t.Any,
) -> Policy:
    """`carriers`: instance -> its groups. Instance n is at the place guest-n; a group's members follow from that."""
    instances = []
    members: dict[int, list[str]] = {number: [] for number in groups}
    for number, its_groups in carriers.items():
        place = places[f"guest-{number}"]
        addresses = [place.ip, place.ip6, place.link_local]
        for group in its_groups:
            members[group] += addresses
        instances.append(
            {
                "id": number,
                "addresses": addresses,
                "dhcp_servers": [HOST, HOST_LINK],
                "ra_servers": [],
                "security_groups": list(its_groups),
                **instance,
            }
        )
    return {
        "instances": instances,
        "security_groups": [
            {"id": number, "rules": [dict(rule) for rule in rules], "members": members[number]}
            for number, rules in groups.items()
        ],
    }


def fixed(places: t.Mapping[str, Place]) -> dict[str, Policy]:
    """The policies that every run tries."""
    every: dict[int, list[int]] = {1: [1], 2: [1], 3: [1], 4: [1]}
    return {
        "closed": policy(places, {1: []}, every),
        "no groups": policy(places, {}, {1: [], 2: [], 3: [], 4: []}),
        "web": policy(
            places,
            {
                1: [SSH, v6(**{**SSH, "cidr": "::/0"}), {"protocol": "icmp", "port_min": 8}],
                2: [
                    {"protocol": "tcp", "port_min": 8000, "port_max": 8080, "cidr": "198.18.4.0/22"},
                    v6(protocol="tcp", port_min=8000, port_max=8080, cidr="2001:db8:40::/44"),
                ],
                3: [
                    {"protocol": "udp", "port_min": 53, "port_max": 53, "remote_group_id": 1},
                    v6(protocol="any", remote_group_id=2),
                ],
            },
            {1: [1], 2: [1, 2], 3: [3], 4: [2, 3]},
        ),
        "everything": policy(
            places, {1: [{"protocol": "any"}, v6(protocol="any")], 2: []}, {1: [1], 2: [2], 3: [1, 2]}
        ),
        "numbers": policy(
            places,
            {
                1: [
                    {"protocol": "47"},
                    {"protocol": "50", "cidr": "198.18.0.0/31"},
                    v6(protocol="253"),
                    {"protocol": "6", "port_min": 65535, "port_max": 65535},
                ],
                2: [
                    {"protocol": "17", "port_min": 1, "port_max": 1},
                    {"protocol": "6", "port_min": 1, "port_max": 65535, "cidr": "198.18.0.0/31"},
                    {"protocol": "253", "remote_group_id": 1},
                    v6(protocol="47", cidr="2001:db8::/127"),
                ],
            },
            {1: [1], 2: [2], 3: [1, 2], 4: []},
        ),
        # as Nova and EC2 write "all ports" and one ICMP type: port 0 is none of 1 to 65535, code 255 is one code
        "whole ranges": policy(
            places,
            {
                1: [
                    {"protocol": "tcp", "port_min": 1, "port_max": 65535},
                    {"protocol": "icmp", "port_min": 1, "port_max": 255},
                    v6(protocol="udp", port_min=1, port_max=65535),
                ],
                2: [
                    {"protocol": "udp", "port_min": 1, "port_max": 65535, "cidr": "198.18.0.0/31"},
                    {"protocol": "icmp", "port_min": 255, "port_max": 1},
                ],
            },
            {1: [1], 2: [2]},
        ),
        "icmp": policy(
            places,
            {
                1: [{"protocol": "icmp"}, v6(protocol="icmpv6")],
                2: [
                    {"protocol": "icmp", "port_min": 8, "port_max": 0},
                    v6(protocol="icmpv6", port_min=128, port_max=0),
                ],
                3: [{"protocol": "icmp", "port_min": 13}, v6(protocol="icmp", port_min=139)],
                4: [{"protocol": "icmp", "port_min": 3, "port_max": 4}, v6(protocol="icmpv6", port_min=130)],
            },
            {1: [1], 2: [2], 3: [3], 4: [4]},
        ),
        "groups": policy(
            places,
            {
                1: [{"protocol": "any", "remote_group_id": 1}, v6(protocol="any", remote_group_id=1)],
                2: [
                    {"protocol": "tcp", "port_min": 3306, "remote_group_id": 1},
                    v6(protocol="tcp", port_min=3306, remote_group_id=1),
                    {"protocol": "icmp", "remote_group_id": 3},
                ],
                3: [{"protocol": "udp", "remote_group_id": 4}],
                4: [],
            },
            {1: [1], 2: [1], 3: [2], 4: [3]},
        ),
        "routers": policy(
            places,
            {1: [v6(protocol="icmpv6", port_min=128)]},
            every,
            ra_servers=[HOST_LINK],
            dhcp_servers=[HOST, HOST6],
        ),
        "egress": policy(
            places,
            {
                1: [
                    {"protocol": "any"},
                    v6(protocol="any"),
                    {
                        "direction": "egress",
                        "protocol": "tcp",
                        "port_min": 443,
                        "port_max": 445,
                        "cidr": "198.18.4.0/22",
                    },
                    {"direction": "egress", "protocol": "udp", "port_min": 53},
                    v6(direction="egress", protocol="icmpv6", port_min=128),
                    v6(direction="egress", protocol="tcp", port_min=80, remote_group_id=2),
                ],
                2: [SSH, {"direction": "egress", "protocol": "any", "remote_group_id": 2}],
                3: [{"protocol": "icmp"}, v6(protocol="tcp", port_min=22, cidr="fd99::/64")],
                4: [{"direction": "egress", "protocol": "any", "cidr": "0.0.0.0/0"}],
            },
            {1: [1], 2: [2, 3], 3: [3], 4: [3, 4]},
        ),
        "shared": shared(places),
    }


def shared(places: t.Mapping[str, Place]) -> Policy:
    """Addresses that several instances may use: what all of them allow reaches these."""
    desired_policy = policy(
        places,
        {
            1: [SSH, v6(**{**SSH, "cidr": "::/0"})],
            2: [{"protocol": "udp", "port_min": 53}, v6(protocol="udp", port_min=53)],
            3: [{"protocol": "icmp"}],
        },
        {1: [1, 2], 2: [1], 3: [2, 3], 4: []},
    )
    first, second, third, _fourth = desired_policy["instances"]
    for instance in (first, second):
        instance["allowed_pairs"] = [{"cidr": "10.99.0.100"}, {"cidr": "fd99::100/128"}, {"cidr": "10.99.1.0/24"}]
    second["allowed_pairs"].append({"cidr": "10.99.0.101/32"})
    third["allowed_pairs"] = [{"cidr": "10.99.0.100/32"}, {"cidr": "10.99.0.102"}]
    return desired_policy


def random_policy(places: t.Mapping[str, Place], seed: int, everybody: bool = False) -> Policy:
    """The same one for the same seed. `everybody`: each guest is an instance, otherwise some are not."""
    chance = random.Random(seed)
    numbers = chance.sample(range(1, 10 ** chance.randint(1, 9) + 10), chance.randint(1, 4))
    groups = {number: [_rule(chance, numbers) for _ in range(chance.randint(0, 5))] for number in numbers}
    guests = [int(name.partition("-")[2]) for name in places if name.startswith("guest-")]
    carriers = {
        guest: chance.sample(numbers, chance.randint(0, min(3, len(numbers))))
        for guest in sorted(chance.sample(guests, len(guests) if everybody else chance.randint(1, len(guests))))
    }
    desired_policy = policy(places, groups, carriers)
    for instance in desired_policy["instances"]:
        if chance.random() < 0.2:
            instance["ra_servers"] = [HOST_LINK]
        if chance.random() < 0.2:
            instance["dhcp_servers"] = []
        if chance.random() < 0.15:
            address = chance.choice(("10.99.0.100", "10.99.0.101/32", "fd99::100", "10.99.0.96/29", "fd99::100/124"))
            instance["allowed_pairs"] = [{"cidr": address}]
    return desired_policy


def _rule(chance: random.Random, groups: t.Sequence[int]) -> Rule:
    family = chance.choice(("IPv4", "IPv6"))
    icmp = chance.choice(("icmp", "icmpv6")) if family == "IPv6" else "icmp"
    protocol = chance.choice(("tcp", "tcp", "tcp", "udp", "udp", icmp, "any", "TCP", "47", "50", "6", "17", "253"))
    rule: Rule = {"ethertype": family, "protocol": protocol}
    if chance.random() < 0.12:
        rule["direction"] = "egress"
    if protocol.lower() in ("tcp", "udp", "6", "17") and chance.random() < 0.85:
        low = chance.choice((0, 1, 22, 80, 1023, 1024, 65534, 65535, chance.randint(0, 65535)))
        high = min(65535, low + chance.choice((0, 0, 1, 2, 9, chance.randint(0, 65535))))
        rule.update(port_min=low, port_max=high)
        if low == high and chance.random() < 0.3:
            rule.pop(chance.choice(("port_min", "port_max")))
    elif protocol in ("icmp", "icmpv6") and chance.random() < 0.7:
        rule["port_min"] = chance.choice((8, 13, 17, 3, 0) if family == "IPv4" else (128, 139, 130, 1, 129))
        if chance.random() < 0.4:
            rule["port_max"] = chance.choice((0, 0, 1))
    kind = chance.random()
    if kind < 0.35:
        rule["remote_group_id"] = chance.choice(groups)
    elif kind < 0.85:
        rule["cidr"] = _cidr(chance, family)
    return rule


def _cidr(chance: random.Random, family: str) -> str:
    if family == "IPv4":
        inside, lengths = chance.choice(("198.18.0.0/15", "10.99.0.0/24")), (32, 31, 30, 29, 27, 25, 24, 23, 20, 17)
    else:
        inside, lengths = chance.choice(("2001:db8::/33", "fd99::/64")), (128, 127, 126, 120, 112, 97, 65, 64, 63, 48)
    if chance.random() < 0.15:
        return "0.0.0.0/0" if family == "IPv4" else "::/0"
    around = ipaddress.ip_network(inside)
    length = chance.choice([prefixlen for prefixlen in lengths if prefixlen >= around.prefixlen])
    address = around[chance.randrange(around.num_addresses)]
    return f"{address}/{length}"  # with host bits, as people write them
