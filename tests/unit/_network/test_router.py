# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules of routers: for each network its own, nobody else's touched, in one text."""

from __future__ import annotations

import copy
import dataclasses
import typing as t

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._network import namespaces, router, rules
from ansible_collections.novalite.cloud.plugins.module_utils._network.router import Floating, Router

Chains = dict[str, list[str]]
FLAT = {"network": "private", "bridge": "br100", "cidr": "10.20.0.0/24", "address": "10.20.0.1"}
FLOATING = {"fixed": "10.20.0.5", "floating": "203.0.113.9", "interface": "eth0"}
BUILT_IN = {"nat": ("PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"), "filter": ("INPUT", "FORWARD", "OUTPUT")}
FOREIGN = {
    "nat": {"PREROUTING": ["-m addrtype --dst-type LOCAL -j DOCKER"], "DOCKER": ["-i docker0 -j RETURN"]},
    "filter": {
        "FORWARD": ["-j nova-local", "-j DOCKER-USER", "-o docker0 -j ACCEPT"],
        "nova-local": [],
        "DOCKER-USER": ["-j RETURN"],
    },
}


def restored(table: str, current: t.Mapping[str, t.Sequence[str]], text: str) -> Chains:
    """Return what iptables-restore --noflush makes of a table; it fails where iptables would."""
    chains = {name: list(lines) for name, lines in current.items()}
    for line in text.splitlines():
        if line.startswith(":"):
            chains[line[1:].split(" ")[0]] = []
            continue
        words = line.split(" ")
        name, rule = ([*words, ""])[1], " ".join(words[2:])
        if words[0] == "-A":
            assert rules.option(rule, "-j") in (*chains, "ACCEPT", "DROP", "RETURN", "DNAT", "SNAT", "MASQUERADE")
            chains[name].append(rule)
        elif words[0] == "-I":
            place, rule = int(words[2]), " ".join(words[3:])
            assert place <= len(chains[name]) + 1
            chains[name].insert(place - 1, rule)
        elif words[0] == "-D":
            chains[name].remove(rule)
        elif words[0] == "-X":
            assert not chains[name]
            assert not any(f"-j {name}" in rule for chain in chains.values() for rule in chain)
            del chains[name]
        else:
            assert line in (f"*{table}", "COMMIT")
    return chains


def host() -> dict[str, Chains]:
    return {
        table: {**{name: [] for name in names}, **copy.deepcopy(FOREIGN[table])} for table, names in BUILT_IN.items()
    }


def applied(current: dict[str, Chains], desired_tables: router.TablesOf) -> dict[str, Chains]:
    return {
        table: restored(table, current[table], rules.delta(table, current[table], desired_tables[table]))
        for table in current
    }


def of_nobody(tables: dict[str, Chains]) -> dict[str, Chains]:
    """Without what is a router's."""
    return {
        table: {
            name: [rule for rule in chain if rules.option(rule, "-j") not in rules.CHAINS[table]]
            for name, chain in chains.items()
            if name not in rules.CHAINS[table]
        }
        for table, chains in tables.items()
    }


def test_a_network_with_a_floating_ip() -> None:
    (gateway,) = router.parse([{**FLAT, "snat": True, "floating": [FLOATING]}])
    tag = "-m comment --comment br100"
    assert router.merged({}, [router.root_rules(gateway, None)]) == {
        "nat": {
            "nova-prerouting": [f"-d 203.0.113.9/32 {tag} -j DNAT --to-destination 10.20.0.5"],
            "nova-output": [f"-d 203.0.113.9/32 {tag} -j DNAT --to-destination 10.20.0.5"],
            "nova-postrouting": [
                "-s 10.20.0.0/24 -d 10.20.0.0/24 -o br100 -m conntrack --ctstate DNAT "
                f"{tag} -j SNAT --to-source 10.20.0.1",
                "-m physdev --physdev-is-bridged -j RETURN",
                "-j nova-float-snat",
                "-j nova-snat",
            ],
            "nova-float-snat": [f"-s 10.20.0.5/32 -o eth0 {tag} -j SNAT --to-source 203.0.113.9"],
            "nova-snat": [f"-s 10.20.0.0/24 ! -d 10.20.0.0/24 ! -o br100 {tag} -j MASQUERADE"],
        },
        "filter": {
            "nova-input": [f"-d 203.0.113.9/32 -m conntrack ! --ctstate DNAT {tag} -j DROP"],
            "nova-forward": [
                f"-i br100 -p udp -m physdev ! --physdev-is-bridged -m udp --dport 4789 {tag} -j DROP",
                f"-i br100 {tag} -j ACCEPT",
                f"-o br100 -m conntrack --ctstate RELATED,ESTABLISHED {tag} -j ACCEPT",
            ],
        },
    }


def test_security_groups_judge_before_a_router_accepts() -> None:
    (gateway,) = router.parse([{**FLAT, "snat": True}])
    tables = applied(host(), router.merged({}, [router.root_rules(gateway, None)]))
    assert tables["filter"]["FORWARD"][:2] == ["-j nova-local", "-j nova-forward"]
    # Docker came after us, and put itself in front.
    tables["filter"]["FORWARD"].insert(0, "-j DOCKER-FORWARD")
    desired_tables = router.merged(tables, [router.root_rules(gateway, None)], lambda bridge: True)
    again = applied(tables, desired_tables)
    assert again["filter"]["FORWARD"][:2] == ["-j nova-forward", "-j DOCKER-FORWARD"]
    assert applied(again, router.merged(again, [], lambda bridge: False)) == again


def test_a_router_leaves_the_front_of_input_to_the_firewall() -> None:
    (gateway,) = router.parse([{**FLAT, "floating": [FLOATING]}])
    tables = host()
    tables["filter"]["INPUT"] = ["-j nova-host", "-j f2b-sshd"]
    tables["filter"]["nova-host"] = []
    tables = applied(tables, router.merged(tables, [router.root_rules(gateway, None)]))
    assert tables["filter"]["INPUT"] == ["-j nova-host", "-j nova-input", "-j f2b-sshd"]
    # where the firewall came second, both are content with their places, too
    desired_tables = router.merged(tables, [router.root_rules(gateway, None)])
    assert rules.delta("filter", tables["filter"], desired_tables["filter"]) == ""


ROUTERS = st.builds(
    lambda number, isolated, snat, floating: Router(
        f"net{number}",
        f"br{number}",
        f"10.{number}.0.0/24",
        f"nova-br{number}" if isolated else None,
        f"10.{number}.0.1",
        snat,
        tuple(Floating(f"10.{number}.0.{each}", f"203.0.{number}.{each}", "eth0") for each in sorted(floating)),
    ),
    st.integers(1, 4),
    st.booleans(),
    st.booleans(),
    st.sets(st.integers(2, 5), max_size=3),
)
ONE_EACH = st.lists(ROUTERS, max_size=4, unique_by=lambda gateway: gateway.bridge)


def tables_of(routers: t.Sequence[Router]) -> list[router.TablesOf]:
    return [router.root_rules(record, f"169.254.192.{2 * int(record.bridge[2:]) + 1}") for record in routers]


@given(ONE_EACH, ONE_EACH)
def test_each_run_changes_its_own_networks_only(first: list[Router], second: list[Router]) -> None:
    start = host()
    tables = applied(start, router.merged({}, tables_of(first)))
    names = {gateway.bridge for gateway in second}
    desired_tables = router.merged(tables, tables_of(second), lambda bridge: bridge in names)
    after = applied(tables, desired_tables)
    assert of_nobody(after) == of_nobody(start)
    # It is what a run with all of them would have made, and the same again is nothing.
    both = [*(gateway for gateway in first if gateway.bridge not in names), *second]
    assert after == applied(start, router.merged({}, tables_of(both)))
    for table in after:
        assert rules.delta(table, after[table], desired_tables[table]) == ""
        assert rules.difference(table, after[table], desired_tables[table]) == ({}, {})
    for gateway in both:
        expected = {each.floating: each.fixed for each in gateway.floating} if gateway.namespace is None else {}
        assert router.floating_of(after["nat"], gateway.bridge) == expected
    assert applied(after, router.merged(after, [], lambda bridge: True)) == start


def test_an_isolated_network_lets_nothing_past_its_namespace() -> None:
    (gateway,) = router.parse([{**FLAT, "namespace": "nova-br100", "floating": [FLOATING]}])
    root = router.root_rules(gateway, "169.254.192.3")
    assert not any("10.20.0" in rule for chains in root.values() for chain in chains.values() for rule in chain)
    inside = router.merged({}, [router.inner_rules(gateway, "169.254.192.2", "169.254.192.3")], bridges=False)
    assert not any("physdev" in rule for rule in inside["nat"]["nova-postrouting"])
    tag = "-m comment --comment br100"
    assert inside["filter"]["nova-forward"][-2:] == [
        f"-s 10.20.0.5/32 -o transit {tag} -j ACCEPT",
        f"-o transit {tag} -j DROP",
    ], "without SNAT, who has a floating IP reaches out, and nobody else"


def test_transits_are_the_same_each_time_and_never_shared() -> None:
    outer, inner = router.transit_pair("br100", None, ())
    assert router.transit_pair("br100", None, ()) == (outer, inner)
    other, _inner = router.transit_pair("br100", None, {outer})
    assert router.transit_pair("br100", outer, {other}) == (outer, inner)
    assert router.transit_pair("br100", outer, {outer})[0] == other, "two networks have one pair"
    assert other != outer
    assert router.transit_pair("br100", "192.0.2.1", ()) == (outer, inner), "somebody else's address is none of ours"
    with pytest.raises(ConflictError, match="taken"):
        router.transit_pair("br100", None, range_of_all())


def range_of_all() -> t.Container[str]:
    class All(list[str]):
        def __contains__(self, item: object) -> bool:
            return True

    return All()


@given(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,14}", fullmatch=True))
def test_names_of_devices_fit(bridge: str) -> None:
    names = {namespaces.port_name(bridge), namespaces.transit_name(bridge)}
    assert len(names) == 2 and all(len(name) <= 15 for name in names)
    assert rules.owner(f"-i x {rules.comment(bridge)} -j ACCEPT") == bridge


@pytest.mark.parametrize(
    "values",
    [
        {"cidr": "10.20.0.1/24"},
        {"bridge": "br 1"},
        {"address": "10.21.0.1"},
        {"namespace": "../x"},
        {"namespace": "other"},
        {"floating": [{**FLOATING, "fixed": "10.21.0.5"}]},
        {"floating": [{**FLOATING, "floating": "203.0.113.9/24"}]},
        {"floating": [{**FLOATING, "interface": "a;b"}]},
        {"floating": [FLOATING, {**FLOATING, "fixed": "10.20.0.6"}]},
    ],
)
def test_impossible_arguments_are_refused(values: dict[str, t.Any]) -> None:
    with pytest.raises(NovaliteError):
        router.parse([{**FLAT, **values}])


def test_further_ranges_leave_translated_and_not_among_each_other() -> None:
    further = [{"cidr": "10.21.0.0/24", "address": "10.21.0.1"}]
    floating = [{**FLOATING, "fixed": "10.21.0.5"}]
    tag = "-m comment --comment br100"
    (gateway,) = router.parse([{**FLAT, "snat": True, "floating": floating, "further_ranges": further}])
    nat = router.root_rules(gateway, None)["nat"]
    assert nat["nova-snat"] == [
        f"-s 10.20.0.0/24 ! -d 10.20.0.0/24 ! -o br100 {tag} -j MASQUERADE",
        f"-s 10.21.0.0/24 ! -d 10.21.0.0/24 ! -o br100 {tag} -j MASQUERADE",
    ]
    # who asks for the floating IP of a neighbour, from either range, gets the answer by this host
    assert [rule for rule in nat["nova-postrouting"] if "-d 10.21.0.0/24" in rule] == [
        f"-s {source} -d 10.21.0.0/24 -o br100 -m conntrack --ctstate DNAT {tag} -j SNAT --to-source 10.21.0.1"
        for source in ("10.20.0.0/24", "10.21.0.0/24")
    ]
    isolated = dataclasses.replace(gateway, namespace="nova-br100")
    inside = router.inner_rules(isolated, "169.254.192.2", "169.254.192.3")
    assert inside["nat"]["nova-snat"] == [
        f"-s {cidr} -o transit {tag} -j SNAT --to-source 169.254.192.3" for cidr in ("10.20.0.0/24", "10.21.0.0/24")
    ]
    assert [rule for rule in inside["nat"]["nova-postrouting"] if rule.startswith("-s 169.254")] == [
        f"-s 169.254.192.2/32 -d 10.2{place}.0.0/24 -o br100 {tag} -j SNAT --to-source 10.2{place}.0.1"
        for place in (0, 1)
    ]
    for ranges in ([{**further[0], "cidr": "10.20.0.0/25"}], []):
        with pytest.raises(NovaliteError):
            router.parse([{**FLAT, "floating": floating, "further_ranges": ranges}])
