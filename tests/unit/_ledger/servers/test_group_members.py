# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The groups that rules name, with everybody who is in them, wherever they are."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._addressing.ipv6 import host_ipv6
from ansible_collections.novalite.cloud.plugins.module_utils._addressing.macs import LINK_LOCAL, eui64
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.security.security_groups import (
    ensure_default_group,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.steps.server_plan import server_plan
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.reachability import reachability
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.security_group import security_group
from tests.support.rows import DEMO

FACTS = {"domain_type": "qemu", "arch": "x86_64", "machine": "pc", "emulator": "/q", "disk_cache": "none"}


def launch(cloud: t.Any, name: str, host: str, *groups: str) -> dict[str, t.Any]:
    (instance,) = cloud.server(
        {"name": name, "flavor": "m1.nano", "image": "ami-tiny", "security_groups": list(groups)}
    )["to_build"]
    cloud.place(instance["uuid"], host)
    (placed,) = cloud.info(names=[name])
    return t.cast("dict[str, t.Any]", placed)


def plan(cloud: t.Any, **params: t.Any) -> dict[str, t.Any]:
    facts = [{"name": name, **FACTS} for name in ("hv1", "hv2", "hv3")]
    with transaction(cloud.engine) as connection:
        return server_plan(
            connection,
            {"instances": [], "existing": [], "leaving": [], "compute_hosts": facts, "state_dir": "/x", **params},
        )["hosts"]


def addresses(*instances: dict[str, t.Any]) -> list[str]:
    return sorted(
        address
        for instance in instances
        for nic in instance["nics"]
        for address in (nic["ip"], eui64("fe80::/64", nic["mac"]))
    )


def change(group: int, joining: t.Sequence[str] = (), leaving: t.Sequence[str] = ()) -> dict[str, t.Any]:
    """What hosts are told of a group whose members are on ordinary networks."""
    sides = {"joining": sorted(joining), "leaving": sorted(leaving)}
    return {
        "id": group,
        **{side: [{"bridge": "", "addresses": texts}] if texts else [] for side, texts in sides.items()},
    }


def groups(cloud: t.Any) -> dict[str, int]:
    def group(name: str, *rules: dict[str, t.Any]) -> dict[str, t.Any]:
        return {"name": name, "description": None, "rules": [{"protocol": "any", **rule} for rule in rules]}

    with transaction(cloud.engine) as connection:
        made = security_group(
            connection,
            {
                "project": "demo",
                "state": "present",
                "security_groups": [
                    group("db", {"remote_group": "web"}),
                    group("web"),
                    group("own", {"remote_group": "own"}),
                ],
            },
        )
    return {record["name"]: record["id"] for record in made["security_groups"]}


def test_a_host_is_told_the_members_of_the_groups_that_its_rules_name(cloud: t.Any) -> None:
    ids = groups(cloud)
    web = launch(cloud, "web", "hv2", "web")
    db = launch(cloud, "db", "hv1", "db")
    hosts = plan(cloud, instances=[db])
    assert "groups" not in hosts["hv1"] and "groups" not in hosts.get("hv2", {})
    own, named = hosts["hv1"]["build"]["security_groups"]
    assert (own["id"], "members" in own) == (ids["db"], False)
    assert named == {"id": ids["web"], "members": addresses(web)}


def test_other_hosts_are_told_who_joins_and_who_leaves(cloud: t.Any) -> None:
    ids = groups(cloud)
    launch(cloud, "db", "hv1", "db")
    first = launch(cloud, "web", "hv2", "web")
    second = launch(cloud, "web-2", "hv2", "web")
    cloud.write(
        sa.update(tables.vif)
        .where(tables.vif.c.instance_uuid == second["uuid"])
        .values(
            allowed_address_pairs=[
                {"ip_address": "10.20.0.99"},
                {"ip_address": "10.9.0.0/16"},
                {"ip_address": "10.8.0.0/31"},
            ]
        )
    )
    hosts = plan(cloud, instances=[second])
    assert set(hosts) == {"hv1", "hv2"}
    joined = change(ids["web"], joining=[*addresses(second), "10.20.0.99", "10.8.0.0", "10.8.0.1"])
    assert hosts["hv1"]["groups"] == {"security_groups": [joined], "ledger": hosts["hv2"]["build"]["ledger"]}
    assert "groups" not in hosts["hv2"]
    left = plan(cloud, leaving=[second])["hv1"]["groups"]["security_groups"]
    assert left == [change(ids["web"], leaving=addresses(second))] and first["uuid"] != second["uuid"]


def test_an_address_that_another_member_may_use_stays(cloud: t.Any) -> None:
    """Two that share an address (VRRP), and one whose own address another one may use: with the first that leaves, the
    others keep it, and only then does it go."""
    ids = groups(cloud)
    launch(cloud, "db", "hv1", "db")
    first, second, third = (launch(cloud, f"web{number}", "hv2", "web") for number in range(3))
    pairs = [{"ip_address": "10.20.0.99"}, {"ip_address": third["nics"][0]["ip"]}]
    both = tables.vif.c.instance_uuid.in_([first["uuid"], second["uuid"]])
    cloud.write(sa.update(tables.vif).where(both).values(allowed_address_pairs=pairs))
    first, second, third = (cloud.info(names=[f"web{number}"])[0] for number in range(3))

    def left(*leaving: dict[str, t.Any]) -> t.Any:
        return plan(cloud, leaving=leaving)["hv1"]["groups"]["security_groups"]

    own = [eui64("fe80::/64", third["nics"][0]["mac"])]
    assert left(first) == [change(ids["web"], leaving=addresses(first))]
    assert left(third) == [change(ids["web"], leaving=own)]
    assert left(first, second) == [change(ids["web"], leaving=[*addresses(first, second), "10.20.0.99"])]
    assert left(first, second, third) == [change(ids["web"], leaving=[*addresses(first, second, third), "10.20.0.99"])]


def test_who_moves_neither_joins_nor_leaves(cloud: t.Any) -> None:
    groups(cloud)
    launch(cloud, "db", "hv1", "db")
    web = launch(cloud, "web", "hv2", "web")
    there = {**web, "host": "hv3"}
    assert "groups" not in plan(cloud, instances=[there], leaving=[web])["hv1"]  # on its way
    is_web = tables.instance.c.uuid == web["uuid"]
    cloud.write(sa.update(tables.instance).where(is_web).values(host="hv3"))
    assert "groups" not in plan(cloud, leaving=[web])["hv1"]  # it is there, and hv2 takes away what it has left
    assert "groups" in plan(cloud, leaving=[there])["hv1"]


def test_who_has_no_port_security_is_no_member(cloud: t.Any) -> None:
    """Such a port may send from any address: a rule for the group's members is not for it."""
    ids = groups(cloud)
    db, web, unsecured = (
        launch(cloud, name, "hv1", group) for name, group in (("db", "db"), ("w1", "web"), ("w2", "web"))
    )
    is_unsecured = tables.vif.c.instance_uuid == unsecured["uuid"]
    cloud.write(sa.update(tables.vif).where(is_unsecured).values(port_security_enabled=False))
    members = {
        group["id"]: group.get("members") for group in plan(cloud, instances=[db])["hv1"]["build"]["security_groups"]
    }
    assert members[ids["web"]] == addresses(web)


def test_hosts_of_what_is_deleted_are_told_nothing(cloud: t.Any) -> None:
    groups(cloud)
    gone, web = launch(cloud, "db", "hv1", "db"), launch(cloud, "web", "hv2", "web")
    assert "groups" in plan(cloud, instances=[web])["hv1"]
    cloud.delete(gone["uuid"])
    assert "hv1" not in plan(cloud, instances=[web])


def test_members_of_a_default_group_that_the_apis_made_reach_each_other_and_their_hosts_are_told(cloud: t.Any) -> None:
    ids = groups(cloud)
    with transaction(cloud.engine) as connection:
        default = ensure_default_group(connection, DEMO, open_to_members=True)
    launch(cloud, "alone", "hv3", "db")
    first, second = launch(cloud, "first", "hv1", "default"), launch(cloud, "second", "hv2", "default")
    stranger = launch(cloud, "stranger", "hv2", "web")
    hosts = plan(cloud, instances=[second])
    assert {host for host in hosts if "groups" in hosts[host]} == {"hv1"}, "hv3 has no member"
    assert hosts["hv1"]["groups"]["security_groups"] == [change(default, joining=addresses(second))]
    (group,) = hosts["hv2"]["build"]["security_groups"]
    assert (group["id"], group["members"]) == (default, addresses(first, second))
    assert sorted((rule["ethertype"], rule["protocol"], rule["remote_group_id"]) for rule in group["rules"]) == [
        ("IPv4", "any", default),
        ("IPv6", "any", default),
    ]
    assert "groups" not in plan(cloud, instances=[stranger]).get("hv1", {}) and ids["web"] != default
    asked = {"project": "demo", "protocol": "udp", "port": 7, "icmp_code": None, "trace": False, "walks": ()}
    with transaction(cloud.engine) as connection:
        for source, allowed in (("second", True), ("stranger", False), ("192.0.2.1", False)):
            answer = reachability(connection, {**asked, "source": source, "destination": "first"})
            assert answer["allowed"] is allowed, answer["msg"]


def test_no_other_host_waits_for_a_default_group_that_a_playbook_made(cloud: t.Any) -> None:
    first, second = launch(cloud, "first", "hv1", "default"), launch(cloud, "second", "hv2", "default")
    assert [group["rules"] for group in first["security_groups"]] == [[]]
    hosts = plan(cloud, instances=[second])
    assert not any("groups" in plans for plans in hosts.values())
    assert "members" not in hosts["hv2"]["build"]["security_groups"][0]


def test_a_pair_never_covers_the_address_of_another_projects_port_or_of_a_host(cloud: t.Any) -> None:
    ids = groups(cloud)
    launch(cloud, "db", "hv1", "db")
    web = launch(cloud, "web", "hv2", "web")
    victim, mate = launch(cloud, "victim", "hv1"), launch(cloud, "mate", "hv1")
    addresses_of = {instance["name"]: instance["nics"][0]["ip"] for instance in (victim, mate)}
    link_local_of = {each["name"]: eui64(LINK_LOCAL, each["nics"][0]["mac"]) for each in (victim, mate)}
    hosts = {instance["nics"][0]["dhcp_server"] for instance in (web, victim)}
    taken = {addresses_of["victim"], *hosts, link_local_of["victim"], *(host_ipv6(LINK_LOCAL, host) for host in hosts)}
    link_local = sorted(address for address in {*link_local_of.values(), *taken} if ":" in address)
    cloud.write(
        sa.insert(tables.project).values(id="stranger", name="stranger", created_at=1),
        sa.update(tables.instance).where(tables.instance.c.uuid == victim["uuid"]).values(project_id="stranger"),
        sa.update(tables.vif)
        .where(tables.vif.c.instance_uuid == web["uuid"])
        .values(
            allowed_address_pairs=[
                {"ip_address": addresses_of["mate"], "mac_address": None},
                {"ip_address": "10.20.0.0/28", "mac_address": None},
                {"ip_address": "10.20.0.0/22", "mac_address": None},  # too large
                *({"ip_address": address, "mac_address": None} for address in link_local),
            ]
        ),
    )
    (placed,) = cloud.info(names=["web"])
    host = plan(cloud, instances=[placed])
    allowed = [pair["cidr"] for pair in host["hv2"]["build"]["firewall_instances"][0]["allowed_pairs"]]
    assert {addresses_of["mate"], link_local_of["mate"]} <= set(allowed) and 5 < len(allowed) < 20
    assert len(hosts) == 2 and taken.isdisjoint(allowed)
    (scope,) = host["hv1"]["groups"]["security_groups"][0]["joining"]
    members = scope["addresses"]
    assert addresses_of["victim"] not in members and addresses_of["mate"] in members
    assert ids["web"]


def test_a_group_that_names_itself(cloud: t.Any) -> None:
    ids = groups(cloud)
    first, second = launch(cloud, "one", "hv1", "own"), launch(cloud, "two", "hv2", "own")
    hosts = plan(cloud, instances=[second])
    (own,) = hosts["hv2"]["build"]["security_groups"]
    assert (own["id"], own["members"], len(own["rules"])) == (ids["own"], addresses(first, second), 1)
    assert hosts["hv1"]["groups"]["security_groups"] == [change(ids["own"], joining=addresses(second))]


def test_without_such_rules_nobody_is_asked(cloud: t.Any) -> None:
    groups(cloud)
    web = launch(cloud, "web", "hv1", "web")
    hosts = plan(cloud, instances=[web])
    assert set(hosts["hv1"]) == {"build"}
    assert [set(group) & {"members"} for group in hosts["hv1"]["build"]["security_groups"]] == [set()]


def test_members_on_an_isolated_network_are_told_apart(cloud: t.Any) -> None:
    ids = groups(cloud)
    web = launch(cloud, "web", "hv2", "web")
    db = launch(cloud, "db", "hv1", "db")
    (nic,) = web["nics"]
    cloud.write(sa.update(tables.network).where(tables.network.c.id == nic["network"]["id"]).values(isolated=True))
    (db,) = cloud.info(names=["db"])
    here = {"bridge": nic["network"]["bridge"], "addresses": addresses(web)}
    assert plan(cloud, instances=[db])["hv1"]["build"]["security_groups"][1] == {
        "id": ids["web"],
        "members": [],
        "scoped_members": [here],
    }
    (web,) = cloud.info(names=["web"])
    security_groups = plan(cloud, leaving=[web])["hv1"]["groups"]["security_groups"]
    assert security_groups == [{"id": ids["web"], "joining": [], "leaving": [here]}]
