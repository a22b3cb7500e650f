# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Orders to hosts after a change of groups, and what the ledger answers about them."""

from __future__ import annotations

import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError, NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.steps.firewall_plan import firewall_plan
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.reachability import reachability
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.security_group import security_group
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.security_group_info import (
    security_group_info,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.server_security_groups import (
    server_security_groups,
)
from tests.unit._ledger.servers.test_group_members import addresses, launch

OPERATIONS = {
    operation.__name__: operation
    for operation in (firewall_plan, server_security_groups, reachability, security_group_info, security_group)
}
DEFAULTS: dict[str, dict[str, t.Any]] = {
    "security_group": {"project": "demo", "state": "present", "plan": True},
    "server_security_groups": {"project": "demo", "state": "present", "exclusive": False},
    "reachability": {
        "project": "demo",
        "protocol": "tcp",
        "port": None,
        "icmp_code": None,
        "trace": False,
        "walks": (),
    },
    "security_group_info": {"project": "demo", "all_projects": False, "picture": False},
}


def call(cloud: t.Any, name: str, check_mode: bool = False, **params: t.Any) -> dict[str, t.Any]:
    with transaction(cloud.engine, check_mode) as connection:
        return OPERATIONS[name](connection, {**DEFAULTS.get(name, {}), **params})


def change(cloud: t.Any, **rules: list[dict[str, t.Any]]) -> dict[str, t.Any]:
    groups = [{"name": name, "description": None, "rules": of_group} for name, of_group in rules.items()]
    return call(cloud, "security_group", security_groups=groups)


SSH = {"protocol": "tcp", "port_min": 22, "cidr": "0.0.0.0/0"}
FROM_WEB = {"protocol": "tcp", "port_min": 3306, "remote_group": "web"}


NOTHING: dict[str, t.Any] = {"instances": [], "security_groups": [], "zones": [], "bridges": [], "serving": []}


def three(cloud: t.Any) -> dict[str, dict[str, t.Any]]:
    """db on hv1, web on hv2, alone on hv3."""
    change(cloud, web=[SSH], db=[FROM_WEB], alone=[])
    return {name: launch(cloud, name, host, name) for name, host in (("db", "hv1"), ("web", "hv2"), ("alone", "hv3"))}


def ids(cloud: t.Any) -> dict[str, int]:
    return {group["name"]: group["id"] for group in call(cloud, "security_group_info")["security_groups"]}


def test_every_host_is_told_all_that_it_has(cloud: t.Any) -> None:
    made = three(cloud)
    number = ids(cloud)
    hosts = call(cloud, "firewall_plan")["hosts"]
    assert sorted(hosts) == ["hv1", "hv2", "hv3"]
    assert [instance["id"] for instance in hosts["hv1"]["instances"]] == [made["db"]["id"]]
    assert hosts["hv1"]["security_groups"][-1] == {"id": number["web"], "members": addresses(made["web"])}
    assert hosts["hv1"]["bridges"] == hosts["hv1"]["serving"] == [made["db"]["nics"][0]["network"]["bridge"]]
    call(cloud, "server_security_groups", servers=[{"name": "alone", "security_groups": ["alone"]}], state="absent")
    cloud.server({"name": "web", "count": 1}, state="absent")
    cloud.state({"uuids": [made["web"]["uuid"]], "host": "hv2", "state": "deleted"})
    hosts = call(cloud, "firewall_plan")["hosts"]
    assert hosts["hv2"] == {**NOTHING, "ledger": hosts["hv1"]["ledger"]}
    assert hosts["hv1"]["security_groups"][-1] == {"id": number["web"], "members": []}
    assert list(call(cloud, "firewall_plan", hosts=["hv3"])["hosts"]) == ["hv3"]
    with pytest.raises(NotFoundError, match="hv9"):
        call(cloud, "firewall_plan", hosts=["hv9"])


def test_one_that_is_going_keeps_its_chains_until_it_is_gone(cloud: t.Any) -> None:
    made = three(cloud)
    cloud.server({"name": "web", "count": 1}, state="absent")
    assert [instance["id"] for instance in call(cloud, "firewall_plan")["hosts"]["hv2"]["instances"]] == [
        made["web"]["id"]
    ]


def test_a_changed_rule_reaches_who_carries_the_group(cloud: t.Any) -> None:
    three(cloud)
    changed = change(cloud, db=[{**FROM_WEB, "port_min": 3307}])
    assert sorted(changed["hosts"]) == ["hv1"]
    (rule,) = changed["hosts"]["hv1"]["security_groups"][0]["rules"]
    assert rule["port_min"] == 3307
    again = change(cloud, db=[{**FROM_WEB, "port_min": 3307}])
    assert not again["changed"] and again["hosts"] == changed["hosts"]
    # Who names it as a source hears of its members.
    assert sorted(change(cloud, web=[])["hosts"]) == ["hv1", "hv2"]
    assert change(cloud, nobody=[SSH])["hosts"] == {}


def test_who_joins_and_leaves(cloud: t.Any) -> None:
    made = three(cloud)
    number = ids(cloud)
    web = [{"name": "alone", "security_groups": ["web"]}]
    planned = call(cloud, "server_security_groups", check_mode=True, servers=web)
    joined = call(cloud, "server_security_groups", servers=web)
    assert planned == joined
    assert joined["diff"] == {
        "before": {"servers": {"alone": ["alone"]}},
        "after": {"servers": {"alone": ["alone", "web"]}},
    }
    assert sorted(joined["hosts"]) == ["hv1", "hv3"]  # hv2 has a member, but nobody there asks who the others are
    (alone,) = joined["hosts"]["hv3"]["instances"]
    assert sorted(alone["security_groups"]) == sorted([number["alone"], number["web"]])
    there = [{"bridge": "", "addresses": addresses(made["alone"])}]
    assert joined["hosts"]["hv1"] == {
        **NOTHING,
        "security_groups": [{"id": number["web"], "joining": there, "leaving": []}],
        "ledger": joined["hosts"]["hv3"]["ledger"],
    }
    assert not call(cloud, "server_security_groups", servers=web)["changed"]
    left = call(cloud, "server_security_groups", servers=web, state="absent")
    assert left["hosts"]["hv1"]["security_groups"] == [{"id": number["web"], "joining": [], "leaving": there}]
    assert left["servers"] == [{"name": "alone", "security_groups": ["alone"]}]


def test_exclusive_membership(cloud: t.Any) -> None:
    three(cloud)
    only = call(
        cloud,
        "server_security_groups",
        exclusive=True,
        servers=[{"name": "web", "security_groups": ["alone", "default"]}],
    )
    assert only["servers"] == [{"name": "web", "security_groups": ["alone", "default"]}]
    assert sorted(only["hosts"]) == ["hv1", "hv2"]  # hv1 names the group that it left
    none = call(cloud, "server_security_groups", exclusive=True, servers=[{"name": "web", "security_groups": []}])
    assert none["servers"] == [{"name": "web", "security_groups": []}]


@pytest.mark.parametrize(
    ("servers", "named"),
    [
        ([{"name": "nobody", "security_groups": ["web"]}], "unknown server 'nobody'"),
        ([{"name": "web", "security_groups": ["nothing"]}], "unknown security group 'nothing'"),
    ],
)
def test_unknown_names_are_refused(cloud: t.Any, servers: list[dict[str, t.Any]], named: str) -> None:
    three(cloud)
    with pytest.raises(NotFoundError, match=named):
        call(cloud, "server_security_groups", servers=servers)


def test_who_may_talk_to_whom(cloud: t.Any) -> None:
    made = three(cloud)
    yes = call(cloud, "reachability", source="web", destination="db", port=3306)
    assert yes["allowed"]
    (line,) = yes["msg"]
    assert line.endswith("tcp 3306: allowed, web may send anything, let in by group db: tcp 3306 from group web")
    no = call(cloud, "reachability", source="alone", destination="db", port=3306)
    assert not no["allowed"] and "no rule lets it in" in no["msg"][0]
    address = made["web"]["nics"][0]["ip"]
    assert call(cloud, "reachability", source="192.0.2.1", destination=address, port=22)["allowed"]
    assert not call(cloud, "reachability", source="fd00::1", destination="web", port=22)["allowed"]
    with pytest.raises(NotFoundError, match="unknown server 'nobody'"):
        call(cloud, "reachability", source="nobody", destination="db")


def test_an_answer_is_compared_with_the_walks_of_the_hosts(cloud: t.Any) -> None:
    made = three(cloud)
    cloud.write(sa.update(tables.instance).values(vm_state="active"))
    ends: dict[str, t.Any] = {"source": "web", "destination": "db", "port": 3306, "trace": True}
    hosts = call(cloud, "reachability", **ends)["hosts"]
    assert set(hosts) == {made["web"]["host"], made["db"]["host"]}
    packet = hosts[made["db"]["host"]][0]
    assert packet["device_out"] == f"tap{made['db']['nics'][0]['id'][:11]}"
    walks = [
        {"answer": 0, "host": host, "accepted": True, "certain": True, "lines": ["ACCEPT"]} for host in sorted(hosts)
    ]
    assert call(cloud, "reachability", **ends, walks=walks)["msg"][1:] == [
        f"  {host}  ACCEPT" for host in sorted(hosts)
    ]
    with pytest.raises(NovaliteError, match=r"the ledger allows it, and the chains of .* do not: .*firewall.yml"):
        call(cloud, "reachability", **ends, walks=[{**walk, "accepted": False, "lines": ["DROP"]} for walk in walks])


def test_the_picture_is_of_what_is_recorded(cloud: t.Any) -> None:
    three(cloud)
    number = ids(cloud)
    text = call(cloud, "security_group_info", picture=True)["dot"]
    assert f'"group{number["web"]}" -> "group{number["db"]}" [label="tcp 3306"];' in text
    assert "dot" not in call(cloud, "security_group_info")
