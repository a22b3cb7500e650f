# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._errors import (
    ConflictError,
    NotFoundError,
    NovaliteError,
    QuotaError,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.security.security_groups import (
    ensure_default_group,
)
from ansible_collections.novalite.cloud.plugins.module_utils._rules.listed_nouns import NOBODY
from ansible_collections.novalite.cloud.plugins.module_utils._rules.rules import identity, normalised, ordered
from tests.support.rows import add_instance

if t.TYPE_CHECKING:
    from .conftest import Run

SSH = {"protocol": "tcp", "port_min": 22, "cidr": "0.0.0.0/0"}
PING = {"protocol": "icmp", "icmp_type": 8}


def shape(**rule: t.Any) -> tuple[t.Any, ...]:
    normalised_rule = normalised(rule)
    return tuple(
        normalised_rule[key] for key in ("ethertype", "protocol", "port_min", "port_max", "cidr", "remote_group")
    )


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({"protocol": "TCP", "port_min": 22}, ("IPv4", "tcp", 22, 22, "0.0.0.0/0", None)),
        ({"protocol": "6", "port_max": 22}, ("IPv4", "tcp", 22, 22, "0.0.0.0/0", None)),
        ({"protocol": 17, "port_min": 1, "port_max": 65535}, ("IPv4", "udp", 1, 65535, "0.0.0.0/0", None)),
        ({"protocol": "any", "cidr": "10.1.2.3"}, ("IPv4", "any", None, None, "10.1.2.3/32", None)),
        ({"protocol": "-1", "cidr": "2001:DB8:0::/32"}, ("IPv6", "any", None, None, "2001:db8::/32", None)),
        ({"protocol": "any", "ethertype": "IPv6"}, ("IPv6", "any", None, None, "::/0", None)),
        ({"protocol": "icmp", "icmp_type": 8, "icmp_code": 0}, ("IPv4", "icmp", 8, 0, "0.0.0.0/0", None)),
        ({"protocol": "icmp", "icmp_type": -1, "icmp_code": -1}, ("IPv4", "icmp", None, None, "0.0.0.0/0", None)),
        ({"protocol": "ipv6-icmp"}, ("IPv6", "icmpv6", None, None, "::/0", None)),
        ({"protocol": "047"}, ("IPv4", "gre", None, None, "0.0.0.0/0", None)),
        ({"protocol": "ESP"}, ("IPv4", "esp", None, None, "0.0.0.0/0", None)),
        ({"protocol": "089"}, ("IPv4", "89", None, None, "0.0.0.0/0", None)),
        ({"protocol": "vrrp"}, ("IPv4", "112", None, None, "0.0.0.0/0", None)),
        ({"protocol": "132", "port_min": 5}, ("IPv4", "sctp", 5, 5, "0.0.0.0/0", None)),
        ({"protocol": "tcp", "remote_group": "web"}, ("IPv4", "tcp", None, None, None, "web")),
        ({"protocol": "icmpv6", "remote_group": "web"}, ("IPv6", "icmpv6", None, None, None, "web")),
    ],
)
def test_a_rule_has_one_form(rule: dict[str, t.Any], expected: tuple[t.Any, ...]) -> None:
    assert shape(**rule) == expected


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"protocol": "tpc"}, "unknown protocol 'tpc'"),
        ({"protocol": "256"}, "unknown protocol '256'"),
        ({"protocol": "\N{ARABIC-INDIC DIGIT ONE}"}, "unknown protocol"),
        ({"protocol": "1_7"}, "unknown protocol"),
        ({"protocol": "tcp", "port_min": 0}, "port 0 is out of range"),
        ({"protocol": "tcp", "port_min": 22, "port_max": 65536}, "port 65536 is out of range"),
        ({"protocol": "tcp", "port_min": 80, "port_max": 22}, "port_min 80 is larger than port_max 22"),
        ({"protocol": "any", "port_min": 22}, "ports mean nothing to protocol any"),
        ({"protocol": "0"}, "unknown protocol '0'"),
        ({"protocol": "47", "port_min": 22}, "ports mean nothing to protocol gre"),
        ({"protocol": "icmp", "port_min": 8}, "icmp has no ports"),
        ({"protocol": "tcp", "icmp_type": 8}, "mean nothing to tcp"),
        ({"protocol": "icmp", "icmp_type": 255}, "icmp_type 255 is out of range"),
        ({"protocol": "icmp", "icmp_code": 0}, "icmp_code 0 needs an icmp_type"),
        ({"protocol": "any", "cidr": "10.0.0.1/8"}, "has bits set beyond its prefix: write 10.0.0.0/8"),
        ({"protocol": "any", "cidr": "10.0.0/8"}, "is not an address range"),
        ({"protocol": "any", "cidr": "fe80::1%eth0"}, "is not an address range"),
        ({"protocol": "any", "cidr": "0.0.0.0/0; rm"}, "is not an address range"),
        ({"protocol": "any", "cidr": "::/0", "ethertype": "IPv4"}, "is not an IPv4 range"),
        ({"protocol": "icmp", "cidr": "::/0"}, "icmp does not exist in IPv6"),
        ({"protocol": "icmpv6", "cidr": "10.0.0.0/8"}, "icmpv6 does not exist in IPv4"),
        ({"protocol": "any", "cidr": "10.0.0.0/8", "remote_group": "web"}, "give one of them"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(rule: dict[str, t.Any], message: str) -> None:
    with pytest.raises(NovaliteError, match=message):
        normalised(rule)


RULES = st.fixed_dictionaries(
    {"protocol": st.sampled_from(["tcp", "UDP", "any", "icmp", "58", "47"])},
    optional={
        "port_min": st.integers(1, 65535),
        "port_max": st.integers(1, 65535),
        "icmp_type": st.integers(-1, 254),
        "cidr": st.ip_addresses().map(str),
        "ethertype": st.sampled_from(["IPv4", "IPv6"]),
        "remote_group": st.sampled_from(["a", "b"]),
    },
)


def test_a_rule_is_for_ingress_unless_it_says_otherwise() -> None:
    assert normalised(SSH)["direction"] == "ingress"
    egress = normalised({**SSH, "direction": "egress"})
    assert egress["direction"] == "egress"
    assert identity(egress) != identity(normalised(SSH))


@given(RULES)
def test_the_stored_form_of_a_rule_is_its_own(rule: dict[str, t.Any]) -> None:
    try:
        once = normalised(rule)
    except NovaliteError:
        return
    icmp = once["protocol"] in ("icmp", "icmpv6")
    low, high = ("icmp_type", "icmp_code") if icmp else ("port_min", "port_max")
    again = {**once, "port_min": None, "port_max": None, low: once["port_min"], high: once["port_max"]}
    assert normalised(again) == once


@given(st.lists(st.sampled_from([SSH, PING, {"protocol": "any", "remote_group": "a"}]), unique_by=str), st.randoms())
def test_the_order_of_rules_does_not_matter(rules: list[dict[str, t.Any]], random: t.Any) -> None:
    shuffled = rules[:]
    random.shuffle(shuffled)
    assert ordered(map(normalised, shuffled)) == ordered(map(normalised, rules))
    assert len({identity(normalised(rule)) for rule in rules}) == len(rules)


def rule_ids(ledger: sa.Engine) -> set[str]:
    with transaction(ledger) as connection:
        return set(connection.execute(sa.select(tables.security_group_rule.c.id)).scalars())


def test_the_rules_of_a_group_are_replaced_as_a_set(run: Run, ledger: sa.Engine) -> None:
    first = run("security_group", security_groups=[{"name": "web", "description": "Web", "rules": [SSH, PING]}])
    assert [rule["protocol"] for rule in first["security_groups"][0]["rules"]] == ["icmp", "tcp"]
    before = rule_ids(ledger)
    assert not run("security_group", security_groups=[{"name": "web", "rules": [PING, SSH, SSH]}])["changed"]
    assert not run("security_group", security_groups=[{"name": "web"}])["changed"]
    fewer = run("security_group", security_groups=[{"name": "web", "rules": [SSH, {"protocol": "udp"}]}])
    protocols = [
        [rule["protocol"] for rule in fewer["diff"][side]["security_groups"]["web"]["rules"]]
        for side in ("before", "after")
    ]
    assert protocols == [["icmp", "tcp"], ["tcp", "udp"]]
    # the rule that stayed is the same one: chains, and API clients, know it by its id
    assert len(rule_ids(ledger) & before) == 1
    assert run("security_group", security_groups=[{"name": "web", "rules": []}])["security_groups"][0]["rules"] == []


def test_groups_of_one_call_can_name_each_other(run: Run) -> None:
    groups: list[dict[str, t.Any]] = [
        {"name": "a", "rules": [{"protocol": "any", "remote_group": "b"}]},
        {"name": "b", "rules": [{"protocol": "any", "remote_group": "b"}]},
    ]
    assert run("security_group", security_groups=groups)["changed"]
    assert not run("security_group", security_groups=groups)["changed"]
    with pytest.raises(ConflictError, match="'b' is named by a rule of 'a': remove that rule first"):
        run("security_group", security_groups=[{"name": "b"}], state="absent")
    assert run("security_group", security_groups=[{"name": "b"}, {"name": "a"}], state="absent")["changed"]


def test_an_unknown_remote_group_is_refused_and_nothing_is_kept(run: Run) -> None:
    groups = [{"name": "a", "rules": [{"protocol": "any", "remote_group": "nobody"}]}]
    with pytest.raises(NotFoundError, match=r"unknown security group 'nobody': there is a$"):
        run("security_group", security_groups=groups)
    assert not run("security_group", security_groups=[{"name": "a"}], state="absent")["changed"]


def test_the_default_group_denies_and_stays(run: Run, ledger: sa.Engine) -> None:
    with transaction(ledger) as connection:
        made = ensure_default_group(connection, "d" * 32, open_to_members=False)
        assert ensure_default_group(connection, "d" * 32, open_to_members=False) == made
    result = run("security_group", security_groups=[{"name": "default"}])
    assert not result["changed"]
    assert (result["security_groups"][0]["id"], result["security_groups"][0]["rules"]) == (made, [])
    with pytest.raises(ConflictError, match="cannot be removed"):
        run("security_group", security_groups=[{"name": "default"}], state="absent")


def test_a_default_group_that_is_open_to_its_members_stays_as_it_was_made(run: Run, ledger: sa.Engine) -> None:
    with transaction(ledger) as connection:
        made = ensure_default_group(connection, "d" * 32, open_to_members=True)
        assert ensure_default_group(connection, "d" * 32, open_to_members=False) == made
    (group,) = run("security_group", security_groups=[{"name": "default"}])["security_groups"]
    assert [(rule["ethertype"], rule["remote_group"]) for rule in group["rules"]] == [
        ("IPv4", "default"),
        ("IPv6", "default"),
    ]
    assert run("security_group", security_groups=[{"name": "default", "rules": []}])["changed"]
    with transaction(ledger) as connection:
        ensure_default_group(connection, "d" * 32, open_to_members=True)
    assert run("security_group", security_groups=[{"name": "default"}])["security_groups"][0]["rules"] == []


def test_a_group_that_an_instance_uses_stays(run: Run, ledger: sa.Engine) -> None:
    [group] = run("security_group", security_groups=[{"name": "web"}])["security_groups"]
    with transaction(ledger) as connection:
        add_instance(connection, "web-1", id=7)
        connection.execute(sa.insert(tables.instance_security_group).values(instance_id=7, group_id=group["id"]))
    with pytest.raises(ConflictError, match="'web' is in use by the instance 'web-1'"):
        run("security_group", security_groups=[{"name": "web"}], state="absent")
    with transaction(ledger) as connection:
        connection.execute(sa.update(tables.instance).values(deleted=7))
    assert run("security_group", security_groups=[{"name": "web"}], state="absent")["changed"]


def test_groups_and_rules_are_limited(run: Run) -> None:
    run("project", projects=[{"name": "demo", "quotas": {"security_groups": 1, "security_group_rules": 2}}])
    with pytest.raises(QuotaError, match="security_group_rules of security group 'a': 3 wanted, 2 allowed"):
        run("security_group", security_groups=[{"name": "a", "rules": [SSH, PING, {"protocol": "udp"}]}])
    with pytest.raises(QuotaError, match="security_groups: 2 wanted, 1 allowed"):
        run("security_group", security_groups=[{"name": "a"}, {"name": "b"}])
    assert run("security_group", security_groups=[{"name": "a", "rules": [SSH, PING]}])["changed"]
    # the rule by which nothing is let out is not counted, as when a group loses its last egress rule by the Network API
    nobody = {"protocol": "any", "direction": "egress", "cidr": NOBODY}
    assert run("security_group", security_groups=[{"name": "a", "rules": [SSH, PING, nobody]}])["changed"]
    run("project", projects=[{"name": "demo", "quotas": {"security_groups": 0}}])
    assert run("security_group", security_groups=[{"name": "a", "description": "there already"}])["changed"]


def test_a_project_that_does_not_exist_owns_nothing(run: Run) -> None:
    with pytest.raises(NotFoundError, match="unknown project 'nobody': there is demo"):
        run("security_group", security_groups=[{"name": "a"}], project="nobody")
