# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute.views import instances_by
from ansible_collections.novalite.cloud.plugins.module_utils._model.instance import Instance

CONTRACT = {
    *("id", "uuid", "name", "hostname", "domain_name", "project", "host", "alternates", "vm_state", "task_state"),
    *("power_state", "flavor", "image", "key", "availability_zone", "metadata", "attempts", "request"),
    *("security_groups", "nics", "fault", "launched_at", "created_at", "config_drive"),
}
IMAGE = {
    *("id", "name", "disk_format", "source", "checksum", "size", "virtual_size", "kernel", "ramdisk", "cmdline"),
    *("min_disk_gb", "min_ram_mb", "properties"),
}
NETWORK = {
    *("id", "uuid", "name", "cidr", "cidr_v6", "gateway", "gateway_v6", "bridge", "bridge_interface", "vlan"),
    *("dhcp", "dns", "domain", "mtu", "lease_seconds", "manager", "vni", "isolated", "snat", "ntp"),
    *("ipv6_mode", "routes", "allow_project_net_traffic", "admin_state_up"),
}
NIC = {
    *("id", "mac", "ip", "ipv6", "dhcp_server", "floating_ips", "allowed_address_pairs", "network"),
    *("port_security_enabled", "extra_dhcp_opts", "dns_name"),
}


def build(cloud: t.Any, name: str, **more: t.Any) -> list[dict[str, t.Any]]:
    return cloud.server({"name": name, "flavor": "m1.nano", "image": "ami-tiny", **more})["to_build"]


def read(cloud: t.Any, **conditions: t.Any) -> tuple[list[Instance], int]:
    """The instances, and the number of statements that they took."""
    statements = []

    def count(connection: t.Any, cursor: t.Any, statement: str, *rest: t.Any) -> None:
        statements.append(statement)

    with transaction(cloud.engine) as connection:
        sa.event.listen(connection, "before_cursor_execute", count)
        instances = instances_by(connection, **conditions)
    return instances, len(statements)


def test_an_instance_is_what_the_contract_says(cloud: t.Any) -> None:
    (made,) = build(cloud, "web", key="test")
    cloud.place(made["uuid"])
    (group,) = cloud.rows(sa.select(tables.security_group.c.id))
    rule = {"direction": "ingress", "ethertype": "IPv4", "protocol": "tcp", "port_min": 22, "port_max": 22}
    cloud.write(sa.insert(tables.security_group_rule).values(id="r1", group_id=group.id, cidr="0.0.0.0/0", **rule))
    ((instance,), _count) = read(cloud, uuids=[made["uuid"]])
    assert set(instance) >= CONTRACT and set(instance["image"]) == IMAGE
    assert set(instance["flavor"]) == {
        "name",
        "vcpus",
        "memory_mb",
        "root_gb",
        "ephemeral_gb",
        "swap_mb",
        "extra_specs",
        "flavorid",
    }
    (nic,) = instance["nics"]
    assert set(nic) == NIC and set(nic["network"]) == NETWORK
    assert nic["network"]["cidr"] == "10.20.0.0/28" and nic["network"]["dhcp"] is True
    assert {nic["ip"], nic["dhcp_server"]} == {"10.20.0.1", "10.20.0.2"}
    (shown,) = instance["security_groups"]
    assert set(shown) == {"id", "uuid", "name", "rules"}
    assert shown["rules"] == [{"id": "r1", "cidr": "0.0.0.0/0", "remote_group_id": None, **rule}]
    assert json.loads(json.dumps(instance)) == instance


def test_the_number_of_queries_does_not_grow(cloud: t.Any) -> None:
    cloud.network("dmz", "10.21.0.0/28")
    build(cloud, "one", networks=["private"])
    _instances, few = read(cloud)
    build(cloud, "web", count=8, networks=["dmz", "private"])
    instances, many = read(cloud)
    assert (len(instances), many) == (9, few) and few <= 9


def test_conditions_add_up(cloud: t.Any) -> None:
    web, _db = build(cloud, "web", networks=["private"]), build(cloud, "db")
    cloud.server({"name": "web", "flavor": "m1.nano", "image": "ami-tiny"}, project="other")
    cloud.place(web[0]["uuid"])
    assert len(read(cloud)[0]) == 3
    assert len(read(cloud, names=["web"])[0]) == 2
    assert [instance["uuid"] for instance in read(cloud, names=["web"], hosts=["hv1"])[0]] == [web[0]["uuid"]]
    assert [instance["name"] for instance in read(cloud, project_id="d" * 32)[0]] == ["web", "db"]
    none: list[dict[str, list[str]]] = [{"uuids": []}, {"names": []}, {"hosts": []}, {"uuids": ["x"]}]
    for nothing in none:
        assert read(cloud, **nothing)[0] == []


def test_the_dhcp_server_is_that_of_the_instances_own_host(cloud: t.Any) -> None:
    for name, host in (("a", "hv1"), ("b", "hv2"), ("c", "hv1")):
        cloud.place(build(cloud, name)[0]["uuid"], host)
    build(cloud, "d")
    servers = [instance["nics"][0]["dhcp_server"] for instance in read(cloud)[0]]
    assert servers[0] == servers[2] != servers[1] and None not in servers[:3] and servers[3] is None


def test_server_info(cloud: t.Any) -> None:
    (web,) = build(cloud, "web")
    build(cloud, "db")
    cloud.server({"name": "far", "flavor": "m1.nano", "image": "ami-tiny"}, project="other")
    cloud.place(web["uuid"])
    before = cloud.dump()
    assert [instance["name"] for instance in cloud.info()] == ["web", "db"]
    assert [instance["name"] for instance in cloud.info(name="web", names=["db", "nothing"])] == ["web", "db"]
    assert cloud.info(names=[]) == [] == cloud.info(name="far")
    assert [instance["name"] for instance in cloud.info(project="other")] == ["far"]
    assert [instance["name"] for instance in cloud.info(all_projects=True)] == ["web", "db", "far"]
    assert [instance["name"] for instance in cloud.info(all_projects=True, host="hv1")] == ["web"]
    # whoever asks for a host means all that are on it: a host was called empty with another project's servers there
    assert [instance["name"] for instance in cloud.info(host="hv1")] == ["web"]
    cloud.place(cloud.info(project="other")[0]["uuid"])
    assert [instance["name"] for instance in cloud.info(host="hv1")] == ["web", "far"]
    assert [instance["name"] for instance in cloud.info(host="hv1", project="other")] == ["far"]
    before = cloud.dump()
    assert "actions" not in cloud.info()[0]
    assert [len(instance["actions"]) for instance in cloud.info(actions=True)] == [1, 1]
    with pytest.raises(NotFoundError, match="nowhere"):
        cloud.info(project="nowhere")
    assert cloud.dump() == before
