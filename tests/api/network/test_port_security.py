# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Port security, switched off by the owner of a network, and what hosts are told of it."""

from __future__ import annotations

import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_networking import port_security_group
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute.views import instances_by
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.security import firewalls
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.steps.port_plan import port_plan
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.network import network as change_network
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.reachability import reachability
from tests.api.conftest import Cloud
from tests.api.doors import Doors
from tests.api.network.test_tenant_networks import error_of, network, port, subnet
from tests.support.cloud import checked

FACTS = {"domain_type": "qemu", "arch": "x86_64", "machine": "pc", "emulator": "/q", "disk_cache": "none"}
OFF = {"port_security_enabled": False}
PAIRS = {"allowed_address_pairs": [{"ip_address": "10.50.0.200"}]}


def default_group(doors: Doors) -> str:
    (group,) = doors.member.get("/security-groups?name=default")["security_groups"]
    return str(group["id"])


def test_a_network_says_what_its_ports_begin_with(doors: Doors) -> None:
    of = network(doors, **OFF)
    assert of["port_security_enabled"] is False
    subnet(doors, of)
    made = port(doors, of)
    assert (made["port_security_enabled"], made["security_groups"]) == (False, [])
    assert port(doors, of, port_security_enabled=True)["security_groups"] == [default_group(doors)]
    named = port(doors, of, mac_address="fa:16:3e:aa:bb:cc")
    assert named["port_security_enabled"] is False
    after = doors.member.put(f"/networks/{of['id']}", {"network": {"port_security_enabled": True}})["network"]
    assert after["port_security_enabled"] and port(doors, of)["port_security_enabled"]
    assert doors.member.get(f"/ports/{made['id']}")["port"]["port_security_enabled"] is False, "it stays as it was made"


def test_without_security_a_port_has_no_groups_and_no_pairs(doors: Doors) -> None:
    of = network(doors)
    subnet(doors, of)
    group = default_group(doors)

    def refused(number: str | None, values: dict[str, t.Any], status: int = 409) -> str:
        if number is None:
            return error_of(doors.member.post("/ports", {"port": {"network_id": of["id"], **values}}, status))
        return error_of(doors.member.put(f"/ports/{number}", {"port": values}, status))

    def changed(values: dict[str, t.Any]) -> dict[str, t.Any]:
        return t.cast("dict[str, t.Any]", doors.member.put(f"/ports/{number}", {"port": values})["port"])

    assert refused(None, {**OFF, **PAIRS}) == "AddressPairAndPortSecurityRequired"
    refused(None, {**OFF, "security_groups": [group]}, 400)
    number = port(doors, of, **PAIRS)["id"]
    assert refused(number, OFF) == "AddressPairAndPortSecurityRequired"
    assert refused(number, {**OFF, "allowed_address_pairs": []}) == "PortSecurityPortHasSecurityGroup"
    off = changed({**OFF, "allowed_address_pairs": [], "security_groups": []})
    assert (off["port_security_enabled"], off["security_groups"], off["allowed_address_pairs"]) == (False, [], [])
    assert not [row for row in doors.rows(port_security_group) if row["vif_id"] == number]
    assert refused(number, PAIRS) == "AddressPairAndPortSecurityRequired"
    refused(number, {"security_groups": [group]}, 400)
    assert changed({"name": "n"})["port_security_enabled"] is False
    assert changed({"port_security_enabled": True})["security_groups"] == []
    assert changed({"security_groups": [group], **PAIRS})["security_groups"] == [group]


def test_it_is_the_networks_owner_who_decides(cloud: Cloud, doors: Doors) -> None:
    """And an administrator; not whoever is there."""
    cloud.network("private", "10.20.0.0/24")
    (of,) = doors.member.get("/networks")["networks"]
    for value in (True, False):
        port_body = {"port": {"network_id": of["id"], "port_security_enabled": value}}
        assert error_of(doors.member.post("/ports", port_body, 403)) == "PolicyNotAuthorized"
    made = port(doors, of)
    port_body = {"port": {**OFF, "security_groups": []}}
    assert error_of(doors.member.put(f"/ports/{made['id']}", port_body, 403)) == "PolicyNotAuthorized"
    assert doors.admin.put(f"/ports/{made['id']}", port_body)["port"]["port_security_enabled"] is False


def test_the_host_of_a_servers_port_is_told(cloud: Cloud, doors: Doors) -> None:
    """Its groups stay the server's: they judge its other interfaces, and this one when security comes back."""
    net, other = cloud.network("private", "10.20.0.0/24"), cloud.network("more", "10.30.0.0/24")
    number, group = doors.group("web")
    rule = {"group_id": number, "protocol": "any", "remote_group_id": number}
    cloud.insert(tables.security_group_rule, id="r" * 36, direction="ingress", ethertype="IPv4", **rule)
    cloud.insert(tables.security_group_rule, id="s" * 36, direction="ingress", ethertype="IPv6", **rule)
    nics = [(net, "10.20.0.5"), (other, "10.30.0.5")]
    cloud.instance(doors.project, "a", cloud.host("hv1", facts=FACTS), nics, groups=[number], power_state=1)
    first, second = doors.member.get("/ports?sort_key=mac_address")["ports"]
    changing, staying = (first, second) if "10.20.0.5" in str(first) else (second, first)
    path = f"/ports/{changing['id']}"
    assert error_of(doors.admin.put(path, {"port": OFF}, 409)) == "PortSecurityPortHasSecurityGroup"
    after = doors.admin.put(path, {"port": {**OFF, "security_groups": []}})["port"]
    assert (after["port_security_enabled"], after["security_groups"]) == (False, [])
    assert doors.member.get(f"/ports/{staying['id']}")["port"]["security_groups"] == [group]
    (job,) = doors.jobs()
    assert (job["kind"], job["variables"]["ports"]) == ("security_groups", [changing["id"]])
    assert "changed_groups" not in job["variables"]

    with transaction(cloud.engine) as connection:
        plan = port_plan(connection, {"ports": [changing["id"]], "state_dir": "/var/lib/novalite"})
        (rules,) = plan["firewall"]["hv1"]["instances"]
        assert rules["open_devices"] == [f"tap{changing['id'][:11]}"]
        assert rules["devices"] == [f"tap{staying['id'][:11]}"]
        assert "10.20.0.5" not in rules["addresses"] and "10.30.0.5" in rules["addresses"]
        (group_plan,) = plan["firewall"]["hv1"]["security_groups"]
        assert "10.20.0.5" not in group_plan["members"] and "10.30.0.5" in group_plan["members"]
        of_host = plan["hosts"]["hv1"]
        assert of_host["filters"][0]["beside"] == ["nova-open"]
        assert '<filterref filter="nova-open"' in of_host["domains"][0]["xml"]
        for address, allowed in (("10.20.0.5", True), ("10.30.0.5", False)):
            asked = checked("reachability", project="demo", source="198.51.100.1", destination=address, port=22)
            assert reachability(connection, asked)["allowed"] is allowed

    doors.admin.put(path, {"port": {"port_security_enabled": True}})
    assert doors.member.get(path)["port"]["security_groups"] == [group]
    with transaction(cloud.engine) as connection:
        (server,) = instances_by(connection, names=["a"])
        (plan,) = firewalls.plan_for_instances(connection, [server["uuid"]], []).values()
        assert "open_devices" not in plan["instances"][0]


def test_address_pairs_change_while_a_server_has_the_port(cloud: Cloud, doors: Doors) -> None:
    """As keepalived's are, and Octavia's."""
    cloud.instance(
        doors.project, "a", cloud.host("hv1", facts=FACTS), [(cloud.network("private"), "10.20.0.5")], power_state=1
    )
    (made,) = doors.member.get("/ports")["ports"]
    port_body = {"allowed_address_pairs": [{"ip_address": "10.20.0.99"}]}
    for _twice in range(2):
        after = doors.admin.put(f"/ports/{made['id']}", {"port": port_body})["port"]
        assert [pair["ip_address"] for pair in after["allowed_address_pairs"]] == ["10.20.0.99"]
    (job,) = doors.jobs()
    assert job["variables"]["ports"] == [made["id"]]
    with transaction(cloud.engine) as connection:
        plan = port_plan(connection, {"ports": [made["id"]], "state_dir": "/var/lib/novalite"})
    assert plan["hosts"]["hv1"]["filters"][0]["allowed_pairs"] == [{"mac": made["mac_address"], "cidr": "10.20.0.99"}]


def test_the_operator_opens_a_projects_network_to_itself(cloud: Cloud, doors: Doors) -> None:
    of = network(doors)

    def change(**values: t.Any) -> None:
        with transaction(cloud.engine) as connection:
            change_network(connection, checked("network", project="demo", networks=[{"name": "web", **values}]))

    with pytest.raises(NovaliteError, match="make one first"):
        change(allow_project_net_traffic=True)
    subnet(doors, of, allocation_pools=[{"start": "10.50.0.10", "end": "10.50.0.20"}])
    reserved = sa.select(tables.fixed_ip).where(tables.fixed_ip.c.reserved.is_not(None))
    before = [tuple(row) for row in cloud.rows(reserved.order_by(tables.fixed_ip.c.ip))]
    change(allow_project_net_traffic=True)
    (row,) = cloud.rows(sa.select(tables.network))
    assert row.allow_project_net_traffic is True
    # the gateway and what is in no allocation pool are handed out as little as before
    assert [tuple(row) for row in cloud.rows(reserved.order_by(tables.fixed_ip.c.ip))] == before
    with pytest.raises(NovaliteError, match="leave cidr out"):
        change(cidr="10.60.0.0/24")


def test_the_operator_opens_a_network_to_itself(cloud: Cloud, doors: Doors) -> None:
    """Nova's allow_same_net_traffic, as a network's choice."""
    net = cloud.network("private")
    cloud.instance(doors.project, "a", cloud.host("hv1", facts=FACTS), [(net, "10.20.0.5")], power_state=1)
    cloud.instance(doors.project, "b", "hv1", [(net, "10.20.0.6")], power_state=1)
    for value in (True, False):
        with transaction(cloud.engine) as connection:
            item = {"name": "private", "allow_project_net_traffic": value}
            assert change_network(connection, checked("network", networks=[item]))["changed"]
            (server,) = instances_by(connection, names=["a"])
            (plan,) = firewalls.plan_for_instances(connection, [server["uuid"]], []).values()
            assert ("open_networks" in plan["instances"][0]) is value
            asked = checked("reachability", project="demo", source="b", destination="a", port=22)
            assert reachability(connection, asked)["allowed"] is value
