# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hypervisors, services and aggregates of the Compute API, asked as clients ask them."""

from __future__ import annotations

import json
import re
import time
import typing as t
import uuid

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables, tables_jobs
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.jobs import worker_rows
from api.web import policy
from tests.api.conftest import Cloud
from tests.api.doors import Doors
from tests.support.examples import part_of

# --- Hypervisors ----------------------------------------------------------------------------------------------------


def test_hypervisors_by_version(cloud: Cloud, doors: Doors, hosts: list[str]) -> None:
    old = doors.admin.get("/os-hypervisors/detail")["hypervisors"][0]
    assert isinstance(old["id"], int) and old["service"]["id"] == old["id"]
    assert json.loads(old["cpu_info"])["arch"] == "x86_64"
    assert (old["vcpus"], old["vcpus_used"], old["memory_mb_used"], old["free_ram_mb"]) == (4, 1, 612, 3484)
    middle = doors.admin.get("/os-hypervisors/detail", version="2.53")["hypervisors"][0]
    assert len(middle["id"]) == len(middle["service"]["id"]) == 36 and middle["id"] != middle["service"]["id"]
    assert middle["cpu_info"]["topology"]["cores"] == 4
    new = doors.admin.get(f"/os-hypervisors/{middle['id']}", version="2.88")["hypervisor"]
    assert new == {
        "id": middle["id"],
        "hypervisor_hostname": "hv1",
        "state": "up",
        "status": "enabled",
        "hypervisor_type": "QEMU",
        "hypervisor_version": 7002000,
        "host_ip": "",
        "service": middle["service"],
        "uptime": None,
    }
    (first, second) = doors.admin.get("/os-hypervisors", version="2.88")["hypervisors"]
    assert (first["hypervisor_hostname"], second["state"]) == ("hv1", "down")
    assert "more" not in first and first.keys() == {"id", "hypervisor_hostname", "state", "status"}
    doors.admin.get(f"/os-hypervisors/{old['id']}")
    doors.admin.get(f"/os-hypervisors/{old['id']}", 404, version="2.53")
    doors.admin.get("/os-hypervisors/hv1", 404)


def test_uptime_is_what_the_host_reported(cloud: Cloud, doors: Doors, hosts: list[str]) -> None:
    first, second = doors.admin.get("/os-hypervisors")["hypervisors"]
    doors.admin.get(f"/os-hypervisors/{first['id']}/uptime", 400)  # it has not yet
    table = tables.compute_host
    booted_at = int(time.time()) - 2 * 86400 - 3600 - 5 * 60
    with cloud.engine.begin() as connection:
        facts = connection.execute(sa.select(table.c.facts).where(table.c.name == "hv1")).scalar_one()
        connection.execute(sa.update(table).values(facts={**facts, "booted_at": booted_at}))
    shown = doors.admin.get(f"/os-hypervisors/{first['id']}/uptime")["hypervisor"]
    assert shown.keys() == {"id", "hypervisor_hostname", "state", "status", "uptime"}
    assert re.fullmatch(r" \d\d:\d\d:\d\d up 2 days,  1:0[56]", shown["uptime"])
    (new, _down) = doors.admin.get("/os-hypervisors/detail", version="2.88")["hypervisors"]
    assert new["uptime"].endswith(shown["uptime"].partition(" up ")[2]) and _down["uptime"] is None
    doors.admin.get(f"/os-hypervisors/{second['id']}/uptime", 400)  # it is down


def test_statistics_and_servers_of_hypervisors(cloud: Cloud, doors: Doors, hosts: list[str]) -> None:
    server = cloud.instance(doors.project, "a", "hv1")
    host = doors.rows(tables.compute_host)[0]["id"]
    cloud.insert(
        tables.allocation, instance_uuid=server, compute_host_id=host, vcpus=1, memory_mb=512, disk_gb=1, created_at=0
    )
    statistics = doors.admin.get("/os-hypervisors/statistics")["hypervisor_statistics"]
    assert (statistics["count"], statistics["vcpus"], statistics["vcpus_used"], statistics["running_vms"]) == (
        2,
        8,
        1,
        1,
    )
    doors.admin.get("/os-hypervisors/statistics", 404, version="2.88")
    path = "/os-hypervisors?with_servers=true&hypervisor_hostname_pattern=hv1"
    (hypervisor,) = doors.admin.get(path, version="2.53")["hypervisors"]
    assert [each["uuid"] for each in hypervisor["servers"]] == [server]
    assert "servers" not in doors.admin.get(path)["hypervisors"][0]
    assert doors.admin.get("/os-hypervisors/hv1/servers")["hypervisors"][0]["servers"][0]["uuid"] == server
    assert len(doors.admin.get("/os-hypervisors/hv/search")["hypervisors"]) == 2
    doors.admin.get("/os-hypervisors/nosuch/search", 404)
    doors.admin.get("/os-hypervisors?hypervisor_hostname_pattern=nosuch", 404, version="2.53")
    page = doors.admin.get("/os-hypervisors?limit=1", version="2.53")
    assert len(page["hypervisors"]) == 1 and "hypervisors_links" in page


def test_hosts_are_for_administrators(doors: Doors, hosts: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for path in ("/os-services", "/os-aggregates", "/os-hypervisors/hv/search", "/os-hypervisors/hv/servers"):
        doors.member.get(path, 403)
    for path in ("/os-hypervisors/detail", "/os-hypervisors/statistics"):
        doors.member.get(path, 403)
    # where an operator shows what is left on them to all, whose servers are there is not shown
    monkeypatch.setitem(policy.POLICY, "compute:hypervisors:read", "reader")
    (hypervisor, *_rest) = doors.member.get("/os-hypervisors/detail", version="2.88")["hypervisors"]
    assert "servers" not in hypervisor
    doors.member.get("/os-hypervisors/detail?with_servers=true", 403, version="2.88")
    doors.member.get(f"/os-hypervisors/{hypervisor['id']}?with_servers=true", 403, version="2.88")
    doors.member.get("/os-hypervisors/statistics")
    doors.member.put(f"/os-services/{uuid.uuid4()}", {"status": "disabled"}, 403, version="2.53")
    doors.member.get("/os-hosts", 403)
    assert {host["host_name"] for host in doors.admin.get("/os-hosts")["hosts"]} >= set(hosts)


# --- Services -------------------------------------------------------------------------------------------------------


def test_services_are_switched(doors: Doors, hosts: list[str]) -> None:
    first, second = doors.admin.get("/os-services", version="2.69")["services"]
    assert (first["binary"], first["host"], first["zone"], first["status"], first["state"]) == (
        "nova-compute",
        "hv1",
        "nova",
        "enabled",
        "up",
    )
    assert second["state"] == "down" and second["updated_at"] is None and first["forced_down"] is False
    path = f"/os-services/{first['id']}"
    body = {"status": "disabled", "disabled_reason": "kernel"}
    after = doors.admin.put(path, body, version="2.53")["service"]
    assert (after["status"], after["disabled_reason"]) == ("disabled", "kernel")
    assert doors.admin.put(path, {"status": "enabled"}, version="2.53")["service"]["disabled_reason"] is None
    old = {"host": "hv1", "binary": "nova-compute"}
    assert doors.admin.put("/os-services/disable", old)["service"]["status"] == "disabled"
    doors.admin.put("/os-services/disable-log-reason", {**old, "disabled_reason": "x"})
    assert doors.admin.put("/os-services/enable", old)["service"]["status"] == "enabled"
    doors.admin.put("/os-services/enable", {**old, "host": "nosuch"}, 404)
    doors.admin.put("/os-services/explode", old, 404)
    for wrong in ({}, {"status": "broken"}, {"disabled_reason": "x"}, {"forced_down": True}):
        doors.admin.put(path, wrong, 400, version="2.53")
    assert doors.admin.get("/os-services?host=hv2")["services"][0]["host"] == "hv2"
    assert doors.admin.get("/os-services?binary=nova-scheduler")["services"] == []


def test_workers_are_services_of_the_control_plane(doors: Doors, cloud: Cloud, hosts: list[str]) -> None:
    with transaction(cloud.engine) as connection:
        worker_rows.add(connection, "w1", machine="m1", hostname="controller", pid=1)
        worker_rows.add(connection, "w2", machine="m1", hostname="controller", pid=2)
        worker_rows.add(connection, "w3", machine="m2", hostname="spare", pid=1)
        worker_rows.add(connection, "w4", machine="m3", hostname="gone", pid=1)
        connection.execute(sa.update(tables_jobs.worker).where(tables_jobs.worker.c.id == "w3").values(seen_at=5))
        worker_rows.stop(connection, "w4")
    services = doors.admin.get("/os-services", version="2.53")["services"]
    assert [(service["binary"], service["host"], service["zone"], service["state"]) for service in services] == [
        ("nova-conductor", "controller", "internal", "up"),
        ("nova-scheduler", "controller", "internal", "up"),
        ("nova-conductor", "spare", "internal", "down"),
        ("nova-scheduler", "spare", "internal", "down"),
        ("nova-compute", "hv1", "nova", "up"),
        ("nova-compute", "hv2", "edge", "down"),
    ]
    assert len({service["id"] for service in services}) == 6
    for query, number in (("binary=nova-scheduler", 2), ("host=controller", 2), ("binary=nova-compute&host=hv1", 1)):
        assert len(doors.admin.get(f"/os-services?{query}")["services"]) == number
    old = {service["binary"]: service["id"] for service in doors.admin.get("/os-services?host=controller")["services"]}
    assert all(isinstance(number, int) for number in old.values())
    path = f"/os-services/{services[1]['id']}"
    refused = doors.admin.put(path, {"status": "disabled"}, 400, version="2.53")["badRequest"]["message"]
    assert refused == ("Updating a nova-scheduler service is not supported. Only nova-compute services can be updated.")
    doors.admin.delete(path, 400, version="2.53")
    doors.admin.put("/os-services/disable", {"host": "controller", "binary": "nova-scheduler"}, 404)


def test_a_service_is_deleted_when_nothing_is_on_its_host(doors: Doors, cloud: Cloud, hosts: list[str]) -> None:
    server = cloud.instance(cloud.project("shop"), "web", "hv1")
    first, second = doors.admin.get("/os-services", version="2.69")["services"]
    doors.member.delete(f"/os-services/{first['id']}", 403, version="2.69")
    refused = doors.admin.delete(f"/os-services/{first['id']}", 409, version="2.69")
    assert refused["conflictingRequest"]["message"] == (
        "Unable to delete compute service that is hosting instances. Migrate or delete the instances first."
    )
    number = doors.admin.post("/os-aggregates", {"aggregate": {"name": "fast"}}, 200)["aggregate"]["id"]
    doors.admin.post(f"/os-aggregates/{number}/action", {"add_host": {"host": "hv2"}}, 200)
    doors.admin.delete(f"/os-services/{second['id']}", 204, version="2.69")
    doors.admin.delete(f"/os-services/{second['id']}", 404, version="2.69")
    assert doors.admin.get(f"/os-aggregates/{number}")["aggregate"]["hosts"] == []
    cloud.delete(server)
    # before version 2.53 services are known by their numbers
    (old,) = doors.admin.get("/os-services")["services"]
    doors.admin.delete(f"/os-services/{old['id']}", 204)
    assert doors.admin.get("/os-services")["services"] == []
    assert cloud.host("hv1")  # it may come back


# --- Aggregates -----------------------------------------------------------------------------------------------------


def test_an_aggregate_lives(doors: Doors, hosts: list[str]) -> None:
    made = doors.admin.post("/os-aggregates", {"aggregate": {"name": "ssd", "availability_zone": "fast"}}, 200)
    assert made["aggregate"].keys() == {
        "id",
        "name",
        "availability_zone",
        "created_at",
        "updated_at",
        "deleted",
        "deleted_at",
    }
    assert made["aggregate"]["created_at"].startswith(time.strftime("%Y-", time.gmtime()))
    assert made["aggregate"]["updated_at"] is None
    path = f"/os-aggregates/{made['aggregate']['id']}"
    doors.admin.post("/os-aggregates", {"aggregate": {"name": "ssd"}}, 409)
    after = doors.admin.post(f"{path}/action", {"add_host": {"host": "hv1"}}, 200)["aggregate"]
    assert after["hosts"] == ["hv1"] and after["metadata"] == {"availability_zone": "fast"}
    doors.admin.post(f"{path}/action", {"add_host": {"host": "hv1"}}, 409)
    doors.admin.post(f"{path}/action", {"add_host": {"host": "nosuch"}}, 404)
    doors.admin.post(f"{path}/action", {"add_host": {"host": "hv2"}}, 409)  # of another zone
    metadata = {"set_metadata": {"metadata": {"disk": "ssd", "x": "y"}}}
    assert doors.admin.post(f"{path}/action", metadata, 200)["aggregate"]["metadata"]["disk"] == "ssd"
    fewer = {"set_metadata": {"metadata": {"x": None, "availability_zone": "faster"}}}
    after = doors.admin.post(f"{path}/action", fewer, 200)["aggregate"]
    assert after["metadata"] == {"disk": "ssd", "availability_zone": "faster"}
    assert {zone["zoneName"] for zone in doors.member.get("/os-availability-zone")["availabilityZoneInfo"]} == {
        "edge",
        "faster",
    }
    after = doors.admin.put(path, {"aggregate": {"name": "nvme"}}, version="2.81")["aggregate"]
    assert (after["name"], len(after["uuid"]), after["hosts"]) == ("nvme", 36, ["hv1"])
    assert after["created_at"] == made["aggregate"]["created_at"] <= after["updated_at"]
    assert doors.admin.get("/os-aggregates", version="2.81")["aggregates"] == [after]
    doors.admin.delete(path, 400)
    doors.admin.post(f"{path}/action", {"remove_host": {"host": "hv1"}}, 200)
    doors.admin.post(f"{path}/action", {"remove_host": {"host": "hv1"}}, 404)
    doors.admin.delete(path, 200)
    doors.admin.delete(path, 404)
    for body in ({"name": ""}, {"name": "a", "availability_zone": "a:b"}, {"colour": 1}, {}):
        doors.admin.post("/os-aggregates", {"aggregate": body}, 400)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=6,
)
WORDS = st.sampled_from(
    [
        "name",
        "policy",
        "policies",
        "rules",
        "availability_zone",
        "host",
        "metadata",
        "status",
        "disabled_reason",
        "instances",
        "cores",
        "force",
        "quota_set",
        "server_group",
        "aggregate",
        "add_host",
        "set_metadata",
        "binary",
    ]
)


@settings(max_examples=part_of(80), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    WORDS,
    st.dictionaries(WORDS, JSON | st.sampled_from(["affinity", "enabled", "hv1", ["affinity"], {}])),
    st.sampled_from(["2.1", "2.53", "2.96"]),
    st.text(max_size=9),
)
def test_nothing_is_answered_with_5xx(
    cloud: Cloud, doors: Doors, key: str, inner: t.Any, version: str, text: str
) -> None:
    if not doors.rows(tables.aggregate):
        cloud.host("hv1")
        cloud.insert(tables.aggregate, name="first", metadata={})
    first = doors.rows(tables.aggregate)[0]["id"]
    for method, path in (
        ("PUT", f"/os-quota-sets/{doors.project}"),
        ("POST", "/os-server-groups"),
        ("POST", "/os-aggregates"),
        ("PUT", f"/os-aggregates/{first}"),
        ("POST", f"/os-aggregates/{first}/action"),
        ("PUT", "/os-services/enable"),
    ):
        for body in ({key: inner}, inner):
            answer = doors.admin.ask(method, path, body, version)
            assert answer.status_code < 500, (path, body, answer.get_data(as_text=True))
    for path in (
        "/os-hypervisors/",
        "/os-services/",
        "/os-server-groups/",
        "/os-aggregates/",
        "/os-quota-sets/",
        "/os-hypervisors?limit=",
        "/os-hypervisors?marker=",
        "/os-server-groups?offset=",
    ):
        answer = doors.client.get(doors.base + path + text, headers=doors.admin.headers)
        assert answer.status_code < 500, path
