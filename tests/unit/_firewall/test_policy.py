# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules as text: what `iptables-save` prints for them, and nothing that opens more than was asked."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._firewall import arguments, policy

HERE = {"": None}  # on networks that share one range of addresses


def group_rules(
    family: str, *rules: dict[str, t.Any], prefix: str = "nova-sg-", sources: t.Sequence[str] = ()
) -> list[str]:
    (group,) = arguments.parse_groups([{"id": 1, "rules": list(rules)}])
    return list(policy.group_chain(prefix, group, None, family, lambda _group: sources).rules)


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ({"protocol": "tcp", "port_min": 22, "cidr": "0.0.0.0/0"}, "-p tcp -m tcp --dport 22 -j ACCEPT"),
        ({"protocol": "TCP", "port_min": 22, "port_max": 22}, "-p tcp -m tcp --dport 22 -j ACCEPT"),
        ({"protocol": "6", "port_min": 1, "port_max": 2}, "-p tcp -m tcp --dport 1:2 -j ACCEPT"),
        ({"protocol": "udp", "port_min": 1, "port_max": 65535}, "-p udp -m udp --dport 1:65535 -j ACCEPT"),
        ({"protocol": "udp", "port_min": 0, "port_max": 65535}, "-p udp -j ACCEPT"),
        ({"protocol": "udp", "port_min": 0, "port_max": 0}, "-p udp -m udp --dport 0 -j ACCEPT"),
        ({"protocol": "udp", "port_min": 53}, "-p udp -m udp --dport 53 -j ACCEPT"),
        ({"protocol": "udp", "port_min": -1, "port_max": -1}, "-p udp -j ACCEPT"),
        ({"protocol": "tcp", "cidr": "10.1.2.3/8"}, "-s 10.0.0.0/8 -p tcp -j ACCEPT"),
        ({"protocol": "icmp"}, "-p icmp -j ACCEPT"),
        ({"protocol": "icmp", "port_min": -1, "port_max": -1}, "-p icmp -j ACCEPT"),
        ({"protocol": "icmp", "port_min": 8, "port_max": -1}, "-p icmp -m icmp --icmp-type 8 -j ACCEPT"),
        ({"protocol": "icmp", "port_min": 8}, "-p icmp -m icmp --icmp-type 8 -j ACCEPT"),
        ({"protocol": "icmp", "port_min": 3, "port_max": 4}, "-p icmp -m icmp --icmp-type 3/4 -j ACCEPT"),
        ({"protocol": "47", "cidr": "10.0.0.1"}, "-s 10.0.0.1/32 -p 47 -j ACCEPT"),
        ({"protocol": "GRE"}, "-p 47 -j ACCEPT"),
        ({"protocol": "esp"}, "-p 50 -j ACCEPT"),
        ({"protocol": "sctp", "port_min": 5}, "-p sctp -m sctp --dport 5 -j ACCEPT"),
        ({"protocol": "any"}, "-j ACCEPT"),
        ({"protocol": None, "cidr": "192.0.2.0/24"}, "-s 192.0.2.0/24 -j ACCEPT"),
    ],
)
def test_ipv4_rule(rule: dict[str, t.Any], text: str) -> None:
    assert group_rules("IPv4", {"ethertype": "IPv4", **rule}) == [text]
    assert group_rules("IPv6", {"ethertype": "IPv4", **rule}) == []


@pytest.mark.parametrize("protocol", ["icmp", "icmpv6", "ipv6-icmp", "58", "ICMPv6"])
def test_the_type_of_an_icmpv6_rule_is_kept(protocol: str) -> None:
    # Nova rendered `-p icmpv6` here and opened every type.
    assert group_rules("IPv6", {"ethertype": "IPv6", "protocol": protocol, "port_min": 128}) == [
        "-p ipv6-icmp -m icmp6 --icmpv6-type 128 -j ACCEPT"
    ]


def test_ipv6_source_is_spelled_as_iptables_does() -> None:
    rule = {"ethertype": "IPv6", "protocol": "tcp", "port_min": 80, "cidr": "2001:DB8:0::1/64"}
    assert group_rules("IPv6", rule) == ["-s 2001:db8::/64 -p tcp -m tcp --dport 80 -j ACCEPT"]
    mapped = {"ethertype": "IPv6", "protocol": "any", "cidr": "::ffff:1.2.3.4/128"}
    assert group_rules("IPv6", mapped) == ["-s ::ffff:1.2.3.4/128 -j ACCEPT"]


@pytest.mark.parametrize("rule", [{"protocol": "0"}, {"protocol": "icmp", "port_min": 255}])
def test_what_iptables_takes_for_any_stays_closed(rule: dict[str, t.Any]) -> None:
    assert group_rules("IPv4", rule) == []
    assert len(policy.unsupported(arguments.parse_groups([{"id": 1, "rules": [rule]}]))) == 1


EGRESS = [
    (
        {"protocol": "tcp", "port_min": 80, "port_max": 90, "cidr": "192.0.2.0/24"},
        "-d 192.0.2.0/24 -p tcp -m tcp --dport 80:90 -j ACCEPT",
        "-s 192.0.2.0/24 -p tcp -m tcp --sport 80:90 -j ACCEPT",
    ),
    (
        {"protocol": "icmp", "port_min": 8, "port_max": 0},
        "-p icmp -m icmp --icmp-type 8/0 -j ACCEPT",
        "-p icmp -m icmp --icmp-type 0 -j ACCEPT",
    ),
    ({"protocol": "47"}, "-p 47 -j ACCEPT", "-p 47 -j ACCEPT"),
    ({"protocol": "any"}, "-j ACCEPT", "-j ACCEPT"),
    (
        {"protocol": "udp", "remote_group_id": 2},
        "-p udp -m set --match-set S dst -j ACCEPT",
        "-p udp -m set --match-set S src -j ACCEPT",
    ),
]


@pytest.mark.parametrize(("rule", "out", "answer"), EGRESS)
def test_an_egress_rule_is_seen_from_both_sides(rule: dict[str, t.Any], out: str, answer: str) -> None:
    egress = {**rule, "direction": "egress"}
    source = ["-m set --match-set S"]
    assert group_rules("IPv4", egress) == group_rules("IPv4", egress, prefix="nova-ri-") == []
    assert group_rules("IPv4", egress, prefix="nova-eg-", sources=source) == [out]
    assert group_rules("IPv4", egress, prefix="nova-re-", sources=source) == [answer]
    # An ingress rule is the same with the ends turned.
    turned = {"-d": "-s", "-s": "-d", "dst": "src", "src": "dst"}
    there, back = (" ".join(turned.get(word, word) for word in text.split()) for text in (out, answer))
    assert group_rules("IPv4", rule, sources=source) == [there]
    assert group_rules("IPv4", rule, prefix="nova-ri-", sources=source) == [back]


def test_what_has_no_answer_has_no_rule_for_one() -> None:
    rule = {"protocol": "icmp", "port_min": 3}
    assert group_rules("IPv4", rule, prefix="nova-ri-") == []
    six = {"ethertype": "IPv6", "protocol": "icmpv6", "port_min": 128}
    assert group_rules("IPv6", six, prefix="nova-ri-") == ["-p ipv6-icmp -m icmp6 --icmpv6-type 129 -j ACCEPT"]


def test_order_and_repetition_of_rules_are_no_difference() -> None:
    first = {"protocol": "tcp", "port_min": 22}
    second = {"protocol": "udp", "port_min": 53}
    assert group_rules("IPv4", first, second, first) == group_rules("IPv4", second, first)


def test_a_remote_group_is_a_set_or_its_members() -> None:
    rule = {"protocol": "tcp", "port_min": 5, "remote_group_id": 2}
    assert group_rules("IPv4", rule, sources=["-m set --match-set nova-g-2-v4"]) == [
        "-p tcp -m tcp --dport 5 -m set --match-set nova-g-2-v4 src -j ACCEPT"
    ]
    label = "-m comment --comment nova-g-2"
    assert group_rules("IPv4", rule, sources=[label, "10.0.0.9/32", "10.0.0.10/32"]) == [
        f"-p tcp -m tcp --dport 5 {label}",  # does nothing, and says what lines the next members get
        f"-s 10.0.0.10/32 -p tcp -m tcp --dport 5 {label} -j ACCEPT",
        f"-s 10.0.0.9/32 -p tcp -m tcp --dport 5 {label} -j ACCEPT",
    ]
    # Nobody is in it: nobody may come in, rather than anybody.
    assert group_rules("IPv4", rule, sources=[label]) == [f"-p tcp -m tcp --dport 5 {label}"]


@pytest.mark.parametrize(
    ("rule", "named"),
    [
        ({"protocol": "tcpp"}, "tcpp"),
        ({"protocol": "256"}, "256"),
        ({"protocol": "gre", "port_min": 1}, "gre"),
        ({"protocol": "²"}, "²"),
        ({"protocol": "47", "port_min": 1}, "47"),
        ({"protocol": "tcp", "port_min": 10, "port_max": 9}, "10:9"),
        ({"protocol": "tcp", "port_min": 1, "port_max": 65536}, "65536"),
        ({"protocol": "icmp", "port_min": 256}, "256"),
        ({"protocol": "icmp", "port_max": 3}, "3"),
        ({"protocol": "icmpv6"}, "icmpv6"),
        ({"protocol": "tcp", "cidr": "10.0.0.0/33"}, "10.0.0.0/33"),
        ({"protocol": "tcp", "cidr": "fd00::/64"}, "fd00::/64"),
        ({"protocol": "tcp", "cidr": "10.0.0.0/8 -j ACCEPT"}, "-j ACCEPT"),
        ({"protocol": "tcp", "port_min": 0, "port_max": 65536}, "65536"),
        ({"protocol": "tcp", "port_min": -2}, "-2"),
        ({"protocol": "tcp", "cidr": "10.0.0.1", "remote_group_id": 2}, "not both"),
        ({"protocol": "tcp", "cidr": "fe80::%1/64", "ethertype": "IPv6"}, "fe80::%1"),
        ({"ethertype": "IPv5", "protocol": "tcp"}, "IPv5"),
        ({"direction": "sideways", "protocol": "tcp"}, "sideways"),
    ],
)
def test_an_impossible_rule_is_refused_by_its_value(rule: dict[str, t.Any], named: str) -> None:
    with pytest.raises(NovaliteError, match=named.replace("+", r"\+")):
        arguments.parse_groups([{"id": 1, "rules": [rule]}])


def test_instance_chains_are_novas() -> None:
    judged = (
        "-j nova-sg-1",
        "-j nova-sg-3",
        "-s 10.20.0.2/32 -p udp -m udp --sport 67 --dport 68 -j ACCEPT",
        "-j nova-ipv4-fallback",
    )
    assert policy.inbound_chains("7", "IPv4", [1, 3], HERE, False, ["10.20.0.2", "fd00::2"]) == [
        (
            "nova-inst-7",
            (
                "-m conntrack --ctstate INVALID -j DROP",
                "-m conntrack --ctstate ESTABLISHED --ctdir ORIGINAL -j nova-new-7",
                "-m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
                *judged,
            ),
        ),
        ("nova-new-7", judged),
    ]


def test_where_egress_rules_apply_no_answer_is_taken_unjudged() -> None:
    inbound, _new = policy.inbound_chains("7", "IPv4", [1, 3], HERE, True)
    accepts = [rule for rule in inbound.rules if "ACCEPT" in rule]
    assert accepts == ["-m conntrack --ctstate RELATED -j ACCEPT"]
    answers = "-m conntrack --ctstate ESTABLISHED --ctdir REPLY -j "
    assert [rule for rule in inbound.rules if "REPLY" in rule] == [f"{answers}nova-re-1", f"{answers}nova-re-3"]
    for family in ("IPv4", "IPv6"):
        out = policy.outbound_chain("7", family, [1, 3], HERE)
        assert out.name == "nova-out-7"
        place = out.rules.index("-m conntrack --ctstate INVALID -j DROP")
        assert out.rules[place + 1 :] == (
            "-m conntrack --ctstate RELATED -j ACCEPT",
            f"{answers}nova-ri-1",
            f"{answers}nova-ri-3",
            "-j nova-eg-1",
            "-j nova-eg-3",
            "-j DROP",
        )


def test_an_isolated_network_has_group_chains_of_its_own() -> None:
    (inbound, _new) = policy.inbound_chains("7", "IPv4", [1], {"br1": 5}, False)
    assert inbound.rules[-2:] == ("-j nova-sg-1.5", "-j nova-ipv4-fallback")
    both = policy.inbound_chains("7", "IPv4", [1, 3], {"": None, "br1": 5}, True, ["10.0.0.2"])[0].rules
    answers = "-m conntrack --ctstate ESTABLISHED --ctdir REPLY -j nova-re"
    dhcp = "-s 10.0.0.2/32 -p udp -m udp --sport 67 --dport 68 -j ACCEPT"
    assert both[3:] == (
        dhcp,
        f"-o br1 {answers}-1.5",
        f"-o br1 {answers}-3.5",
        "-o br1 -j nova-sg-1.5",
        "-o br1 -j nova-sg-3.5",
        "-o br1 -j nova-ipv4-fallback",  # here ends what is on that network, before the other one's members are met
        f"{answers}-1",
        f"{answers}-3",
        "-j nova-sg-1",
        "-j nova-sg-3",
        "-j nova-ipv4-fallback",
    )
    out = policy.outbound_chain("7", "IPv4", [1], {"": None, "br1": 5}).rules
    answers = "-m conntrack --ctstate ESTABLISHED --ctdir REPLY -j nova-ri-1"
    assert out[-6:] == (
        f"-i br1 {answers}.5",
        "-i br1 -j nova-eg-1.5",
        "-i br1 -j DROP",
        answers,
        "-j nova-eg-1",
        "-j DROP",
    )


def test_neighbour_discovery_comes_before_invalid() -> None:
    rules = policy.inbound_chains("7", "IPv6", [], HERE, False, ra_servers=["fe80::1"])[0].rules
    invalid = rules.index("-m conntrack --ctstate INVALID -j DROP")
    assert list(rules[:invalid]) == [
        "-p ipv6-icmp -m icmp6 --icmpv6-type 135 -j ACCEPT",
        "-p ipv6-icmp -m icmp6 --icmpv6-type 136 -j ACCEPT",
        "-s fe80::1/128 -p ipv6-icmp -m icmp6 --icmpv6-type 134 -j ACCEPT",
    ]
    anyone = policy.inbound_chains("7", "IPv6", [], HERE, False)[0].rules
    assert "-s fe80::/10 -p ipv6-icmp -m icmp6 --icmpv6-type 134 -j ACCEPT" in anyone


@pytest.mark.parametrize("zone", [0, 65536])
def test_a_conntrack_zone_has_16_bits(zone: int) -> None:
    with pytest.raises(NovaliteError, match=f"{zone} of bridge br7"):
        arguments.parse_zones([{"bridge": "br7", "zone": zone}])


@pytest.mark.parametrize(
    ("instances", "named"),
    [
        ([{"id": 1}, {"id": 1}], "instance 1 "),
        ([{"id": 1, "addresses": ["10.0.0.5"]}, {"id": 2, "addresses": ["10.0.0.5"]}], "10.0.0.5"),
        ([{"id": 1, "addresses": ["fd00::5"]}, {"id": 2, "addresses": ["FD00:0::5"]}], "fd00::5"),
        ([{"id": 1, "addresses": ["10.0.0.500"]}], "10.0.0.500"),
        ([{"id": 1, "addresses": ["10.0.0.0/24"]}], "10.0.0.0/24"),
        ([{"id": 1, "scoped": [{"bridge": "br 7", "addresses": []}]}], "br 7"),
        (
            [
                {"id": 1, "scoped": [{"bridge": "br7", "addresses": ["10.0.0.5"]}]},
                {"id": 2, "scoped": [{"bridge": "br7", "addresses": ["10.0.0.5"]}]},
            ],
            "10.0.0.5",
        ),
        ([{"id": -1}], "-1"),
    ],
)
def test_impossible_instances_are_refused(instances: list[dict[str, t.Any]], named: str) -> None:
    with pytest.raises(NovaliteError, match=named):
        arguments.parse_instances(instances)


def test_isolated_networks_may_have_the_same_addresses() -> None:
    first, second = arguments.parse_instances(
        [
            {"id": 1, "addresses": ["10.0.0.5"], "scoped": [{"bridge": "br7", "addresses": ["10.0.0.5", "fd00::5"]}]},
            {"id": 2, "scoped": [{"bridge": "br8", "addresses": ["10.0.0.5"]}]},
        ]
    )
    assert first.of("IPv4") == [("", "10.0.0.5/32"), ("br7", "10.0.0.5/32")]
    assert first.of("IPv6") == [("br7", "fd00::5/128")]
    assert second.of("IPv4") == [("br8", "10.0.0.5/32")]
