# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Security groups of the Network API, asked as clients ask them."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._firewall.rules import NUMBERS, parse_rule
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from tests.api.conftest import Cloud
from tests.api.doors import Doors
from tests.api.network.test_network_api import NOWHERE, error_of, make_group, rule_body

# --- Security groups ------------------------------------------------------------------------------------------------


def test_a_new_group_is_as_clients_expect_it(doors: Doors) -> None:
    group = make_group(doors)
    assert (group["name"], group["description"], group["project_id"]) == ("web", "web", doors.project)
    rules = group.pop("security_group_rules")
    assert [(rule["direction"], rule["ethertype"], rule["protocol"], rule["remote_ip_prefix"]) for rule in rules] == [
        ("egress", "IPv4", None, None),
        ("egress", "IPv6", None, None),
    ]
    shown = doors.reader.get(f"/security-groups/{group['id']}")["security_group"]
    assert shown["security_group_rules"] == rules
    assert doors.member.get("/security-groups/web", 404)["NeutronError"]["type"] == "SecurityGroupNotFound"
    assert [record["id"] for record in doors.member.get("/security-groups?name=web")["security_groups"]] == [
        group["id"]
    ]
    listed = doors.member.get(f"/security-group-rules?security_group_id={group['id']}")["security_group_rules"]
    assert listed == rules
    assert error_of(doors.member.post("/security-groups", {"security_group": {"name": "web"}}, 409))
    body = {"security_group": {"name": "www", "description": "two"}}
    assert doors.member.put(f"/security-groups/{group['id']}", body)["security_group"]["name"] == "www"
    doors.member.delete(f"/security-groups/{group['id']}", 204)
    doors.member.delete(f"/security-groups/{group['id']}", 404)
    assert not doors.jobs()


def first_look(doors: Doors) -> None:
    doors.reader.get("/security-groups")


def first_port(doors: Doors) -> None:
    network = doors.member.post("/networks", {"network": {"name": "own"}}, 201)["network"]["id"]
    doors.member.post("/ports", {"port": {"network_id": network}}, 201)


@pytest.mark.parametrize("make", [first_look, first_port])
def test_the_default_group_lets_its_own_members_in(doors: Doors, make: t.Callable[[Doors], None]) -> None:
    make(doors)
    (group,) = doors.reader.get("/security-groups?name=default")["security_groups"]
    rules = {(rule["direction"], rule["ethertype"]): rule for rule in group["security_group_rules"]}
    assert len(group["security_group_rules"]) == len(rules) == 4
    for (direction, _family), rule in rules.items():
        assert rule["remote_group_id"] == (group["id"] if direction == "ingress" else None)
        assert {rule[key] for key in ("protocol", "port_range_min", "port_range_max", "remote_ip_prefix")} == {None}
    for rule in rules.values():
        assert doors.member.get(f"/security-group-rules/{rule['id']}")["security_group_rule"] == rule
        doors.member.delete(f"/security-group-rules/{rule['id']}", 204)
    make(doors)  # what its owner deleted does not come back
    (left,) = doors.reader.get("/security-groups?name=default")["security_groups"]
    assert left == {**group, "security_group_rules": []}


def test_a_default_group_that_is_there_keeps_its_rules(doors: Doors) -> None:
    _number, group = doors.group("default")
    first_look(doors)
    rules = doors.reader.get(f"/security-groups/{group}")["security_group"]["security_group_rules"]
    assert [rule["direction"] for rule in rules] == ["egress", "egress"]


def test_each_project_has_a_default_group_and_keeps_it(doors: Doors) -> None:
    (group,) = doors.reader.get("/security-groups?name=default")["security_groups"]
    assert doors.reader.get("/security-groups?name=default")["security_groups"] == [group]
    assert error_of(doors.member.delete(f"/security-groups/{group['id']}", 409)) == "SecurityGroupCannotRemoveDefault"
    doors.member.put(f"/security-groups/{group['id']}", {"security_group": {"name": "x"}}, 409)
    doors.member.put(f"/security-groups/{group['id']}", {"security_group": {"description": "x"}})


def test_a_rule_is_added_and_removed(doors: Doors) -> None:
    group = make_group(doors)["id"]
    body = rule_body(
        group, ethertype="IPv4", protocol="tcp", port_range_min=22, port_range_max=22, remote_ip_prefix="0.0.0.0/0"
    )
    rule = doors.member.post("/security-group-rules", body, 201)["security_group_rule"]
    assert {key: rule[key] for key in body["security_group_rule"]} == body["security_group_rule"]
    assert error_of(doors.member.post("/security-group-rules", body, 409)) == "SecurityGroupRuleExists"
    assert doors.member.get(f"/security-group-rules/{rule['id']}")["security_group_rule"] == rule
    doors.stranger.get(f"/security-group-rules/{rule['id']}", 404)
    doors.stranger.delete(f"/security-group-rules/{rule['id']}", 404)
    doors.member.delete(f"/security-group-rules/{rule['id']}", 204)
    doors.member.delete(f"/security-group-rules/{rule['id']}", 404)
    assert not doors.jobs(), "no server is in the group, so no host is told"


@pytest.mark.parametrize(
    ("more", "shown"),
    [
        ({}, {"protocol": None, "ethertype": "IPv4", "remote_ip_prefix": None}),
        ({"remote_ip_prefix": "0.0.0.0/0"}, {"protocol": None, "remote_ip_prefix": "0.0.0.0/0"}),
        ({"protocol": "icmp", "port_range_min": 8, "port_range_max": 0}, {"port_range_min": 8, "port_range_max": 0}),
        ({"protocol": "icmp", "ethertype": "IPv6"}, {"protocol": "ipv6-icmp"}),
        ({"protocol": "ipv6-icmp", "ethertype": "IPv6"}, {"protocol": "ipv6-icmp", "remote_ip_prefix": None}),
        ({"protocol": 6, "port_range_min": "80", "port_range_max": "90"}, {"protocol": "6", "port_range_min": 80}),
        ({"protocol": "TCP", "port_range_min": 1, "port_range_max": 65535}, {"protocol": "tcp", "port_range_min": 1}),
        ({"protocol": "udp", "port_range_min": 1, "port_range_max": 65535}, {"port_range_max": 65535}),
        ({"protocol": "112"}, {"protocol": "112"}),
        ({"protocol": "vrrp"}, {"protocol": "vrrp"}),
        ({"protocol": "any"}, {"protocol": None}),
        ({"protocol": "0"}, {"protocol": "0"}),
        ({"protocol": "1", "ethertype": "IPv6"}, {"protocol": "58"}),
        ({"protocol": "ipv6-encap", "ethertype": "IPv6"}, {"protocol": "ipv6-encap"}),
        ({"remote_ip_prefix": "10.1.2.3"}, {"remote_ip_prefix": "10.1.2.3/32", "normalized_cidr": "10.1.2.3/32"}),
        ({"remote_ip_prefix": "10.1.2.3/8"}, {"remote_ip_prefix": "10.1.2.3/8", "normalized_cidr": "10.0.0.0/8"}),
        ({"ethertype": "IPv6", "remote_ip_prefix": "fd00::/8"}, {"remote_ip_prefix": "fd00::/8"}),
    ],
)
def test_rules_as_neutron_writes_them(doors: Doors, more: dict[str, t.Any], shown: dict[str, t.Any]) -> None:
    group = make_group(doors)["id"]
    rule = doors.member.post("/security-group-rules", rule_body(group, **more), 201)["security_group_rule"]
    assert {key: rule[key] for key in shown} == shown


NEUTRONS_PROTOCOLS = (
    *("ah", "dccp", "egp", "esp", "gre", "icmp", "igmp", "ipip", "ospf", "pgm", "rsvp", "sctp", "tcp", "udp"),
    *("udplite", "vrrp", "ipv6-encap", "ipv6-frag", "ipv6-icmp", "ipv6-nonxt", "ipv6-opts", "ipv6-route"),
)


def test_all_of_neutrons_protocols_by_name_and_by_number(cloud: Cloud, doors: Doors) -> None:
    cloud.insert(tables.quota, project_id=doors.project, resource="security_groups", hard_limit=-1)
    for name in NEUTRONS_PROTOCOLS:
        group = make_group(doors, name)["id"]
        family = "IPv6" if name.startswith("ipv6-") else "IPv4"
        body = rule_body(group, protocol=name, ethertype=family)
        rule = doors.member.post("/security-group-rules", body, 201)["security_group_rule"]
        assert rule["protocol"] == name
        (row,) = [row for row in doors.rows(tables.security_group_rule) if row["id"] == rule["id"]]
        parse_rule(1, row)  # hosts can tell it
        number = NUMBERS.get(row["protocol"], row["protocol"])
        again = rule_body(group, protocol=number, ethertype=family)
        assert error_of(doors.member.post("/security-group-rules", again, 409)) == "SecurityGroupRuleExists"


def test_several_rules_at_once_or_none(cloud: Cloud, doors: Doors) -> None:
    number, group = doors.group("web")
    cloud.instance(doors.project, "a", cloud.host("hv1"), groups=[number])
    rules = [rule_body(group, protocol=name)["security_group_rule"] for name in ("tcp", "udp")]
    made = doors.member.post("/security-group-rules", {"security_group_rules": rules}, 201)["security_group_rules"]
    assert [rule["protocol"] for rule in made] == ["tcp", "udp"] and len(doors.jobs()) == 1

    def refused(status: int, *rules: dict[str, t.Any]) -> str:
        return error_of(doors.member.post("/security-group-rules", {"security_group_rules": list(rules)}, status))

    new = rule_body(group, protocol="icmp")["security_group_rule"]
    assert refused(409, new, rules[0]) == "SecurityGroupRuleExists"
    assert refused(409, new, new) == "DuplicateSecurityGroupRuleInPost"
    other = rule_body(make_group(doors, "db")["id"])["security_group_rule"]
    assert refused(400, new, other) == "SecurityGroupNotSingleGroupRules"
    refused(400, new, {**new, "protocol": "nosuch"})
    listed = doors.member.get(f"/security-group-rules?security_group_id={group}&direction=ingress")
    assert len(listed["security_group_rules"]) == 2


def test_several_groups_at_once_or_none(doors: Doors) -> None:
    body = {"security_groups": [{"name": "a"}, {"name": "b", "description": "two"}]}
    made = doors.member.post("/security-groups", body, 201)["security_groups"]
    assert [(group["name"], group["description"]) for group in made] == [("a", ""), ("b", "two")]
    body = {"security_groups": [{"name": "c"}, {"name": "a"}]}
    assert error_of(doors.member.post("/security-groups", body, 409)) == "SecurityGroupNameExists"
    assert not doors.member.get("/security-groups?name=c")["security_groups"]


def test_no_range_of_addresses_means_everyone_and_is_not_said_again(doors: Doors) -> None:
    group = make_group(doors)["id"]
    doors.member.post("/security-group-rules", rule_body(group, protocol="tcp"), 201)
    again = rule_body(group, protocol="tcp", remote_ip_prefix="0.0.0.0/0")
    assert error_of(doors.member.post("/security-group-rules", again, 409)) == "SecurityGroupRuleExists"
    doors.member.post("/security-group-rules", rule_body(group, protocol="tcp", ethertype="IPv6"), 201)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"protocol": "tcp", "port_range_min": -16, "port_range_max": 80}, "Invalid value for port -16"),
        ({"protocol": "tcp", "port_range_min": 80, "port_range_max": 65536}, "Invalid value for port 65536"),
        ({"port_range_min": 80, "port_range_max": 80}, "Must also specify protocol"),
        ({"protocol": "gre", "port_range_min": 80, "port_range_max": 80}, "Ports cannot be specified for protocol gre"),
        ({"protocol": "256"}, "integer representations [0 to 255]"),
        ({"protocol": "icmpv6"}, "Invalid ethertype IPv4 for protocol icmpv6"),
        ({"protocol": "44"}, "Invalid ethertype IPv4 for protocol 44"),
        ({"remote_ip_prefix": "10.0.0.0/33"}, "Invalid CIDR 10.0.0.0/33 given as IP prefix"),
        ({"protocol": "icmp", "port_range_min": 1, "port_range_max": 65535}, "Invalid value for ICMP code"),
        ({"protocol": "tcp", "port_range_max": 6}, "port_range_min must be <= port_range_max"),
        ({"protocol": "icmp", "port_range_min": 1, "port_range_max": 256}, "Invalid value for ICMP code"),
        ({"protocol": "icmp", "port_range_min": 300}, "Invalid value for ICMP type"),
        ({"protocol": "icmp", "port_range_min": -1, "port_range_max": 25}, "Invalid value for ICMP type"),
        ({"ethertype": "IPv6", "remote_ip_prefix": "10.0.0.0/8"}, "Conflicting value ethertype IPv6"),
        ({"ethertype": "IPv4", "remote_ip_prefix": "fd00::/8"}, "Conflicting value ethertype IPv4"),
    ],
)
def test_what_is_wrong_with_a_rule_is_said_as_neutron_says_it(doors: Doors, more: dict[str, t.Any], words: str) -> None:
    refused = doors.member.post("/security-group-rules", rule_body(make_group(doors)["id"], **more), 400)
    assert words in refused["NeutronError"]["message"]


def test_a_group_as_the_other_end(doors: Doors) -> None:
    web, db = make_group(doors), make_group(doors, "db")
    body = rule_body(db["id"], protocol="tcp", port_range_min=5432, port_range_max=5432, remote_group_id=web["id"])
    rule = doors.member.post("/security-group-rules", body, 201)["security_group_rule"]
    assert (rule["remote_group_id"], rule["remote_ip_prefix"]) == (web["id"], None)
    doors.member.delete(f"/security-groups/{web['id']}", 204)  # and the rule goes with it
    doors.member.get(f"/security-group-rules/{rule['id']}", 404)
    _number, foreign = doors.group("theirs", doors.other)
    doors.member.post("/security-group-rules", rule_body(db["id"], remote_group_id=foreign), 404)
    doors.member.post("/security-group-rules", rule_body(db["id"], remote_group_id="no-id-at-all"), 404)
    doors.member.post("/security-group-rules", rule_body(foreign), 404)


@pytest.mark.parametrize(
    "more",
    [
        {"protocol": "tcp", "port_range_min": 90, "port_range_max": 80},
        {"protocol": "tcp", "port_range_min": 80},
        {"protocol": "tcp", "port_range_min": 1, "port_range_max": 70000},
        {"protocol": "icmp", "port_range_max": 8},
        {"protocol": "icmp", "port_range_min": 256, "port_range_max": 0},
        {"protocol": "nosuch"},
        {"protocol": "ipv6-icmp", "ethertype": "IPv4"},
        {"ethertype": "IPv5"},
        {"direction": "sideways"},
        {"remote_ip_prefix": "10.0.0.0/33"},
        {"remote_ip_prefix": "10.0.0.0/8", "ethertype": "IPv6"},
        {"remote_ip_prefix": "10.0.0.0/8", "remote_group_id": NOWHERE},
        {"remote_ip_prefix": "0.0.0.0/32"},
        {"colour": "red"},
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(doors: Doors, more: dict[str, t.Any]) -> None:
    group = make_group(doors)["id"]
    status = 404 if more.get("remote_group_id") else 400
    doors.member.post("/security-group-rules", rule_body(group, **more), status)
    assert len(doors.member.get("/security-group-rules?direction=ingress")["security_group_rules"]) == 0


def egress_of(doors: Doors, group: str) -> list[dict[str, t.Any]]:
    path = f"/security-group-rules?security_group_id={group}&direction=egress"
    return t.cast("list[dict[str, t.Any]]", doors.member.get(path)["security_group_rules"])


def stored_egress(doors: Doors) -> set[tuple[str, str | None]]:
    rows = doors.rows(tables.security_group_rule)
    return {(row["ethertype"], row["cidr"]) for row in rows if row["direction"] == "egress"}


def test_egress_is_open_until_its_rules_are_deleted(doors: Doors) -> None:
    """What is shown and what the hosts enforce (nothing recorded: open) stay the same thing."""
    group = make_group(doors)["id"]
    four, six = egress_of(doors, group)
    assert stored_egress(doors) == set()
    doors.member.delete(f"/security-group-rules/{six['id']}", 204)
    assert stored_egress(doors) == {("IPv4", "0.0.0.0/0")} and egress_of(doors, group) == [four]
    doors.member.delete(f"/security-group-rules/{four['id']}", 204)
    # a group without any would let everything out
    assert stored_egress(doors) == {("IPv4", "0.0.0.0/32")} and egress_of(doors, group) == []
    body = rule_body(group, direction="egress", protocol="tcp", port_range_min=443, port_range_max=443)
    only = doors.member.post("/security-group-rules", body, 201)["security_group_rule"]
    assert egress_of(doors, group) == [only] and stored_egress(doors) == {("IPv4", None)}


def test_one_more_egress_rule_keeps_the_two_that_were_there(doors: Doors) -> None:
    group = make_group(doors)["id"]
    before = egress_of(doors, group)
    body = rule_body(group, direction="egress", protocol="tcp", port_range_min=443, port_range_max=443)
    doors.member.post("/security-group-rules", body, 201)
    after = egress_of(doors, group)
    assert len(after) == 3 and all(rule in after for rule in before)
    again = rule_body(group, direction="egress")
    assert error_of(doors.member.post("/security-group-rules", again, 409)) == "SecurityGroupRuleExists"


def test_hosts_learn_of_a_rule_from_a_job(cloud: Cloud, doors: Doors) -> None:
    number, group = doors.group("web")
    cloud.instance(doors.project, "a", cloud.host("hv1"), groups=[number])
    rule = doors.member.post("/security-group-rules", rule_body(group), 201)["security_group_rule"]
    (job,) = doors.jobs()
    assert (job["kind"], job["project_id"], job["user_id"]) == ("security_groups", doors.project, doors.member.id)
    assert job["variables"] == {"project": "demo", "changed_groups": [group]}
    doors.member.delete(f"/security-group-rules/{rule['id']}", 204)
    assert len(doors.jobs()) == 1, "it has not begun, and will find this change, too"
    cloud.write(tables.tables_jobs.job.update().values(state="running"))
    doors.member.post("/security-group-rules", rule_body(group), 201)
    assert [record["state"] for record in doors.jobs()] == ["running", "queued"]
    assert error_of(doors.member.delete(f"/security-groups/{group}", 409)) == "SecurityGroupInUse"
