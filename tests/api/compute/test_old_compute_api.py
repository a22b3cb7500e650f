# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Requests of old clients to Compute: usage, extensions, and other services' things until microversion 2.35."""

from __future__ import annotations

import time

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.volumes import volume_snapshots
from tests.api.conftest import Cloud
from tests.api.doors import Doors
from tests.api.image.test_image_api import make as make_image
from tests.api.network.test_network_api import make_pool


def test_usage_is_the_time_that_servers_ran(cloud: Cloud, doors: Doors) -> None:
    noon = 1_700_000_000 // 3600 * 3600
    cloud.instance(doors.project, "a", None, launched_at=noon)
    cloud.instance(doors.project, "b", None, launched_at=noon - 7200, terminated_at=noon + 1800)
    cloud.instance(doors.project, "never", None)
    cloud.instance(doors.other, "c", None, launched_at=noon)

    def at(seconds: int) -> str:
        return time.strftime("%Y-%m-%dT%H:%M:%S.000000", time.gmtime(noon + seconds))

    query = f"start={at(0)}&end={at(7200)}"
    usage = doors.reader.get(f"/os-simple-tenant-usage/{doors.project}?{query}")["tenant_usage"]
    assert {server["name"]: server["hours"] for server in usage["server_usages"]} == {"a": 2.0, "b": 0.5}
    assert (usage["total_hours"], usage["total_memory_mb_usage"]) == (2.5, 1280.0)
    assert {server["name"]: server["state"] for server in usage["server_usages"]} == {"a": "active", "b": "terminated"}
    doors.member.get(f"/os-simple-tenant-usage/{doors.other}?{query}", 404)
    doors.member.get(f"/os-simple-tenant-usage?{query}", 403)
    usages = doors.admin.get(f"/os-simple-tenant-usage?{query}")["tenant_usages"]
    assert {project["tenant_id"]: project["total_hours"] for project in usages} == {
        doors.project: 2.5,
        doors.other: 2.0,
    }
    assert "server_usages" not in usages[0]
    assert "server_usages" in doors.admin.get(f"/os-simple-tenant-usage?detailed=1&{query}")["tenant_usages"][0]
    before = doors.member.get(f"/os-simple-tenant-usage/{doors.project}?start={at(-9999)}&end={at(-9000)}")
    assert (before["tenant_usage"]["total_hours"], before["tenant_usage"]["server_usages"]) == (0, [])
    doors.member.get(f"/os-simple-tenant-usage/{doors.project}?start=yesterday", 400)
    doors.member.get(f"/os-simple-tenant-usage/{doors.project}?start={at(10)}&end={at(0)}", 400)


def test_usage_is_paged_over_instances_from_2_40(cloud: Cloud, doors: Doors) -> None:
    noon = 1_700_000_000
    servers = {cloud.instance(doors.project, f"s{number}", None, launched_at=noon) for number in range(3)}
    servers |= {cloud.instance(doors.other, f"o{number}", None, launched_at=noon) for number in range(2)}
    start = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(noon))

    def walk(path: str, plural: str) -> tuple[list[str], int]:
        """Ask as Horizon does, until a page holds no server; return the servers, and how many pages had a next one."""
        uuids: list[str] = []
        links, marker = 0, ""
        while len(uuids) < 20:
            answer = doors.admin.get(f"{path}?start={start}&detailed=1&limit=2{marker}", version="2.40")
            usages = answer[plural] if isinstance(answer[plural], list) else [answer[plural]]
            page = [server["instance_id"] for usage in usages for server in usage["server_usages"]]
            links += f"{plural}_links" in answer
            if not page:
                break
            uuids += page
            marker = f"&marker={page[-1]}"
            assert f"{plural}_links" not in answer or answer[f"{plural}_links"][0]["href"].endswith(marker)
        return uuids, links

    server_ids, links = walk("/os-simple-tenant-usage", "tenant_usages")
    assert (len(server_ids), set(server_ids), links) == (5, servers, 2)
    server_ids, links = walk(f"/os-simple-tenant-usage/{doors.other}", "tenant_usage")
    assert (len(server_ids), links) == (2, 1)
    nosuch = "/os-simple-tenant-usage?marker=11111111-1111-1111-1111-111111111111"
    doors.admin.get(nosuch, 400, version="2.40")
    doors.admin.get(nosuch, version="2.39")  # is not read there


@pytest.mark.parametrize("path", ["os-agents", "os-cells", "os-certificates", "os-cloudpipe", "os-fping"])
def test_what_nova_gave_up_is_gone(doors: Doors, path: str) -> None:
    assert doors.member.get(f"/{path}", 410)["computeFault"]["code"] == 410


def test_extensions(doors: Doors) -> None:
    extensions = doors.member.get("/extensions")["extensions"]
    assert doors.member.get("/extensions/os-keypairs")["extension"] in extensions
    for alias in ("os-admin-actions", "os-attach-interfaces", "os-server-start-stop"):
        assert doors.member.get(f"/extensions/{alias}")["extension"]["alias"] == alias
    doors.member.get("/extensions/nosuch", 404)


@pytest.mark.parametrize(
    "path",
    ["/images", "/os-security-groups", "/os-networks", "/os-floating-ips", "/os-volumes", "/os-snapshots/detail"],
)
def test_these_end_with_2_35(doors: Doors, path: str) -> None:
    doors.member.get(path, version="2.35")
    doors.member.get(path, 404, version="2.36")


def test_images(cloud: Cloud, doors: Doors) -> None:
    number = make_image(cloud, "ami-tiny", min_disk_gb=1)
    make_image(cloud, "theirs", doors.other)
    (image,) = doors.member.get("/images/detail")["images"]
    assert (image["id"], image["status"], image["minDisk"]) == (number, "ACTIVE", 1)
    assert image["metadata"] == {"hw_disk_bus": "virtio"}
    assert doors.member.get(f"/images/{number}")["image"] == image
    assert [each["name"] for each in doors.member.get("/images?name=ami-tiny&minDisk=1")["images"]] == ["ami-tiny"]
    assert doors.member.get("/images?minDisk=2")["images"] == []
    doors.member.get("/images/ami-tiny", 404)


def test_volumes_and_snapshots(cloud: Cloud, doors: Doors) -> None:
    cloud.host("hv1")
    asked = {"size": "1", "display_name": "data", "metadata": {"a": "b"}}
    made = doors.member.post("/os-volumes", {"volume": asked}, 200)["volume"]
    assert made == {
        "id": made["id"],
        "status": "available",
        "size": 1,
        "availabilityZone": "nova",
        "createdAt": made["createdAt"],
        "attachments": [{}],
        "displayName": "data",
        "displayDescription": None,
        "volumeType": made["volumeType"],
        "snapshotId": None,
        "metadata": {"a": "b"},
    }
    for body in ({"size": 0}, {"size": ""}, {"display_name": "x"}, {"size": 1, "nosuch": 1}):
        doors.member.post("/os-volumes", {"volume": body}, 400)
    doors.reader.post("/os-volumes", {"volume": asked}, 403)
    path = f"/os-volumes/{made['id']}"
    assert doors.member.get(path) == {"volume": made}
    assert doors.member.get("/os-volumes/detail")["volumes"] == doors.member.get("/os-volumes")["volumes"] == [made]
    assert doors.member.get("/os-volumes?offset=1")["volumes"] == doors.stranger.get("/os-volumes")["volumes"] == []
    doors.stranger.get(path, 404)
    doors.stranger.delete(path, 404)
    with transaction(cloud.engine) as connection:  # a host that answered just now: the data is made there
        connection.execute(sa.update(tables.compute_host).values(last_seen_at=2**31))
    taken = {"volume_id": made["id"], "display_name": "before"}
    snapshot = doors.member.post("/os-snapshots", {"snapshot": taken}, 200)["snapshot"]
    assert (snapshot["displayName"], snapshot["volumeId"], snapshot["size"]) == ("before", made["id"], 1)
    assert doors.member.get(f"/os-snapshots/{snapshot['id']}")["snapshot"] == snapshot
    assert doors.member.get("/os-snapshots")["snapshots"] == [snapshot]
    doors.stranger.delete(f"/os-snapshots/{snapshot['id']}", 404)
    with transaction(cloud.engine) as connection:
        volume_snapshots.finish_snapshot(connection, snapshot["id"])
    doors.member.delete(f"/os-snapshots/{snapshot['id']}", 202)
    assert [job["kind"] for job in doors.jobs()] == ["volume_snapshot_create", "volume_snapshot_delete"]


def test_security_groups(cloud: Cloud, doors: Doors) -> None:
    body = {"security_group": {"name": "web", "description": "w"}}
    made = doors.member.post("/os-security-groups", body, 200)["security_group"]
    assert made == {"id": made["id"], "name": "web", "description": "w", "tenant_id": doors.project, "rules": []}
    doors.member.post("/os-security-groups", body, 400)
    doors.reader.post("/os-security-groups", body, 403)
    rule = {"parent_group_id": made["id"], "ip_protocol": "tcp", "from_port": 22, "to_port": 22, "cidr": "10.0.0.0/8"}
    cloud.instance(doors.project, "a", cloud.host("hv1"), groups=[doors.rows(tables.security_group)[0]["id"]])
    made_rule = doors.member.post("/os-security-group-rules", {"security_group_rule": rule}, 200)["security_group_rule"]
    assert made_rule == {
        "id": made_rule["id"],
        "parent_group_id": made["id"],
        "ip_protocol": "tcp",
        "from_port": 22,
        "to_port": 22,
        "ip_range": {"cidr": "10.0.0.0/8"},
        "group": {},
    }
    doors.member.post("/os-security-group-rules", {"security_group_rule": rule}, 400)
    doors.member.post("/os-security-group-rules", {"security_group_rule": {**rule, "parent_group_id": "7"}}, 400)
    icmp = {**rule, "ip_protocol": "icmp", "from_port": -1, "to_port": -1, "cidr": None, "group_id": made["id"]}
    two = doors.member.post("/os-security-group-rules", {"security_group_rule": icmp}, 200)["security_group_rule"]
    assert two["group"] == {"name": "web", "tenant_id": doors.project} and two["from_port"] == -1
    assert [job["kind"] for job in doors.jobs()] == ["security_groups"]
    doors.stranger.delete(f"/os-security-group-rules/{made_rule['id']}", 404)
    doors.member.delete(f"/os-security-group-rules/{made_rule['id']}", 202)
    assert doors.member.get(f"/os-security-groups/{made['id']}")["security_group"]["rules"] == [two]
    names = {each["name"] for each in doors.member.get("/os-security-groups")["security_groups"]}
    assert names == {"web", "default"}
    doors.member.delete(f"/os-security-groups/{made['id']}", 400)
    doors.stranger.get(f"/os-security-groups/{made['id']}", 404)
    whole = {**rule, "ip_protocol": "udp", "from_port": 1, "to_port": 65535}
    whole_rule = doors.member.post("/os-security-group-rules", {"security_group_rule": whole}, 200)[
        "security_group_rule"
    ]
    assert (whole_rule["from_port"], whole_rule["to_port"]) == (1, 65535)
    doors.member.delete(f"/os-security-group-rules/{whole_rule['id']}", 202)
    echo = {**rule, "ip_protocol": "icmp", "from_port": 8, "to_port": 0}
    echo_rule = doors.member.post("/os-security-group-rules", {"security_group_rule": echo}, 200)["security_group_rule"]
    assert (echo_rule["from_port"], echo_rule["to_port"]) == (8, 0)
    doors.member.delete(f"/os-security-group-rules/{echo_rule['id']}", 202)
    long = {**rule, "cidr": "10.2.3.124/24"}
    shown = doors.member.post("/os-security-group-rules", {"security_group_rule": long}, 200)["security_group_rule"]
    assert shown["ip_range"] == {"cidr": "10.2.3.124/24"}  # as Nova shows it; what it means is 10.2.3.0/24
    (row,) = [row for row in doors.rows(tables.security_group_rule) if row["id"] == shown["id"]]
    assert (row["cidr"], row["cidr_said"]) == ("10.2.3.0/24", "10.2.3.124/24")
    doors.member.delete(f"/os-security-group-rules/{shown['id']}", 202)
    doors.member.post("/os-security-group-rules", {"security_group_rule": {**rule, "cidr": "10.2.3.0/33"}}, 400)
    # for ICMP they are a type and a code, and 65535 is none
    for wrong in ({"from_port": 90, "to_port": 80}, {"ip_protocol": "icmp", "from_port": 1, "to_port": 65535}):
        doors.member.post("/os-security-group-rules", {"security_group_rule": {**rule, **wrong}}, 400)


def test_networks_and_floating_ips(cloud: Cloud, doors: Doors) -> None:
    net = cloud.network("private", "10.20.0.0/24")
    make_pool(cloud)
    shown = {"id": net.uuid, "label": "private", "cidr": "10.20.0.0/24"}
    for path in ("/os-networks", "/os-tenant-networks"):
        assert doors.member.get(path) == {"networks": [shown]}
        assert doors.member.get(f"{path}/{net.uuid}") == {"network": shown}
    assert doors.member.get("/os-floating-ip-pools") == {"floating_ip_pools": [{"name": "public"}]}
    assert doors.member.get("/os-floating-ips") == {"floating_ips": []}
    doors.member.get("/os-floating-ips/x", 404)


def test_a_groups_name_may_have_spaces_around_it(doors: Doors) -> None:
    body = {"security_group": {"name": " web ", "description": ""}}
    made = doors.member.post("/os-security-groups", body, 200)["security_group"]
    assert doors.member.get(f"/os-security-groups/{made['id']}")["security_group"]["name"] == " web "
    doors.member.post("/os-security-groups", {"security_group": {"name": "  ", "description": ""}}, 400)


def test_without_an_id_after_the_slash_there_is_nothing(doors: Doors) -> None:
    doors.member.delete("/os-security-groups/", 404)
    doors.member.get("/os-volumes/", 404)
    doors.member.delete("/os-security-groups", 405)
    doors.admin.get("/os-simple-tenant-usage/", 404)
    doors.admin.get("/os-simple-tenant-usage", 200)


def test_all_projects_groups_are_for_admins(doors: Doors) -> None:
    doors.group("theirs", doors.other)
    for user, seen in ((doors.admin, True), (doors.member, False)):
        names = [each["name"] for each in user.get("/os-security-groups?all_tenants=1")["security_groups"]]
        assert ("theirs" in names) is seen and "default" in names


def test_floating_ips_are_taken_led_to_servers_and_given_back(cloud: Cloud, doors: Doors) -> None:
    net = cloud.network("private", "10.20.0.0/24")
    instance_uuid = cloud.instance(doors.project, "a", cloud.host("hv1"), [(net, "10.20.0.5")])
    two = cloud.instance(doors.project, "b", cloud.host("hv2"), [(net, "10.20.0.6")])
    network = make_pool(cloud)
    doors.member.post("/os-floating-ips", {"pool": "nosuch"}, 404)
    doors.reader.post("/os-floating-ips", {"pool": "public"}, 403)
    first, other = (
        doors.member.post("/os-floating-ips", {"pool": pool}, 200)["floating_ip"] for pool in ("public", network)
    )
    assert (first["pool"], first["instance_id"], first["fixed_ip"]) == ("public", None, None)

    def act(server: str, name: str, value: dict[str, str], status: int) -> None:
        doors.member.post(f"/servers/{server}/action", {name: value}, status)

    add, remove, address = "addFloatingIp", "removeFloatingIp", {"address": first["ip"]}
    act(instance_uuid, add, {**address, "fixed_address": "10.20.0.9"}, 400)
    act(instance_uuid, add, {**address, "fixed_address": "10.20.0.5"}, 202)
    shown = doors.member.get(f"/os-floating-ips/{first['id']}")["floating_ip"]
    assert (shown["instance_id"], shown["fixed_ip"]) == (instance_uuid, "10.20.0.5")
    act(instance_uuid, add, {"address": other["ip"]}, 400)  # it has one of this pool
    act(instance_uuid, "addFixedIp", {"networkId": net.uuid}, 202)
    own = doors.member.get(f"/servers/{instance_uuid}")["server"]["addresses"]["private"]
    (further,) = {each["addr"] for each in own} - {"10.20.0.5", first["ip"]}
    act(instance_uuid, add, {"address": other["ip"], "fixed_address": further}, 202)
    assert doors.member.get(f"/os-floating-ips/{other['id']}")["floating_ip"]["fixed_ip"] == further
    act(instance_uuid, remove, {"address": other["ip"]}, 202)
    act(two, remove, address, 409)
    act(two, add, address, 202)  # it moves
    act(two, remove, address, 202)
    act(two, remove, {"address": "203.0.113.200"}, 404)
    assert {job["kind"] for job in doors.jobs()} == {"floating_ips", "security_groups"}
    doors.stranger.delete(f"/os-floating-ips/{first['id']}", 404)
    doors.member.delete(f"/os-floating-ips/{first['id']}", 202)
    doors.member.delete(f"/os-floating-ips/{first['id']}", 404)
    doors.member.post("/os-floating-ips", {"pool": "public"}, 404, version="2.36")


def test_no_host_audits_usage(cloud: Cloud, doors: Doors) -> None:
    cloud.host("hv1")
    audit_log = doors.admin.get("/os-instance_usage_audit_log/2026-03-15%2010:00:00")["instance_usage_audit_log"]
    assert (audit_log["period_beginning"], audit_log["period_ending"]) == ("2026-02-01 00:00:00", "2026-03-01 00:00:00")
    assert audit_log["hosts_not_run"] == ["hv1"] and audit_log["num_hosts_done"] == 0
    assert doors.admin.get("/os-instance_usage_audit_log")["instance_usage_audit_logs"]["num_hosts"] == 1
    for before in ("soon", "0001-01-01", "9999-12-31"):
        doors.admin.get(f"/os-instance_usage_audit_log/{before}", 200 if before[0] == "9" else 400)
    doors.member.get("/os-instance_usage_audit_log", 403)
