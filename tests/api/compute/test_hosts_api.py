# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Quotas, zones, server groups, hypervisors, services and aggregates of the Compute API, asked as clients ask them."""

from __future__ import annotations

import typing as t
import uuid

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from tests.api.conftest import Cloud
from tests.api.doors import Doors

# --- Quotas ---------------------------------------------------------------------------------------------------------

NEWEST = {
    "cores": 20,
    "instances": 10,
    "key_pairs": 100,
    "metadata_items": 128,
    "ram": 51200,
    "server_group_members": 10,
    "server_groups": 10,
}


def test_quotas_by_version(doors: Doors) -> None:
    path = f"/os-quota-sets/{doors.project}"
    assert doors.reader.get(path, version="2.57") == {"quota_set": {"id": doors.project, **NEWEST}}
    assert doors.reader.get(f"{path}/defaults", version="2.57") == {"quota_set": {"id": doors.project, **NEWEST}}
    middle = doors.reader.get(path, version="2.36")["quota_set"]
    assert middle.keys() - NEWEST.keys() == {
        "id",
        "injected_files",
        "injected_file_path_bytes",
        "injected_file_content_bytes",
    }
    oldest = doors.reader.get(path)["quota_set"]
    assert oldest.keys() - middle.keys() == {"fixed_ips", "floating_ips", "security_groups", "security_group_rules"}


def test_quotas_are_set_by_administrators(cloud: Cloud, doors: Doors) -> None:
    cloud.instance(doors.project, "a", None)
    path = f"/os-quota-sets/{doors.project}"
    detail = doors.member.get(f"{path}/detail")["quota_set"]
    assert detail["instances"] == {"limit": 10, "in_use": 1, "reserved": 0} and detail["ram"]["in_use"] == 512
    doors.member.put(path, {"quota_set": {"instances": 20}}, 403)
    after = doors.admin.put(path, {"quota_set": {"instances": "20"}}, version="2.56")["quota_set"]
    assert after["instances"] == 20 and "id" not in after
    assert "greater than" in doors.admin.put(path, {"quota_set": {"instances": 0}}, 400)["badRequest"]["message"]
    doors.admin.put(path, {"quota_set": {"instances": 0, "force": True}})
    doors.admin.delete(path, 202)
    assert doors.admin.get(path)["quota_set"]["instances"] == 10
    for body in ({"instances": -2}, {"instances": "x"}, {"colour": 1}, {"instances": None}):
        doors.admin.put(path, {"quota_set": body}, 400)
    doors.admin.put(path, {"quota_set": {"floating_ips": 5}}, 400, version="2.36")
    for part in ("", "/detail", "/defaults"):
        doors.member.get(f"/os-quota-sets/{doors.other}{part}", 404)
        doors.admin.get(f"/os-quota-sets/{doors.other}{part}")
        doors.admin.get(f"/os-quota-sets/alt{part}")
    doors.admin.put("/os-quota-sets/alt", {"quota_set": {"instances": 3}})  # an administrator may name the project
    assert doors.admin.get(f"/os-quota-sets/{doors.other}")["quota_set"]["instances"] == 3
    doors.admin.delete("/os-quota-sets/alt", 202)
    assert doors.admin.get(f"/os-quota-sets/{doors.other}")["quota_set"]["instances"] == 10
    doors.member.get("/os-quota-sets/demo", 404)
    doors.admin.put(f"/os-quota-sets/{uuid.uuid4().hex}", {"quota_set": {"instances": 1}}, 404)


# --- Zones ----------------------------------------------------------------------------------------------------------


def test_zones(doors: Doors, hosts: list[str]) -> None:
    edge = {"zoneName": "edge", "zoneState": {"available": True}, "hosts": None}
    nova = {"zoneName": "nova", "zoneState": {"available": True}, "hosts": None}
    assert doors.reader.get("/os-availability-zone") == {"availabilityZoneInfo": [edge, nova]}
    assert doors.member.get("/os-availability-zone/detail", 403)["forbidden"]["code"] == 403
    edge, nova = doors.admin.get("/os-availability-zone/detail")["availabilityZoneInfo"]
    assert edge["hosts"] == {"hv2": {"nova-compute": {"available": False, "active": True, "updated_at": None}}}
    assert nova["hosts"]["hv1"]["nova-compute"]["available"]


# --- Server groups --------------------------------------------------------------------------------------------------


def test_a_server_group_by_version(cloud: Cloud, doors: Doors) -> None:
    body = {"server_group": {"name": "g", "policy": "anti-affinity", "rules": {"max_server_per_host": 2}}}
    made = doors.member.post("/os-server-groups", body, 200, version="2.64")["server_group"]
    assert made == {
        "id": made["id"],
        "name": "g",
        "policy": "anti-affinity",
        "rules": {"max_server_per_host": 2},
        "members": [],
        "project_id": doors.project,
        "user_id": doors.member.id,
    }
    member = cloud.instance(doors.project, "a", None)
    cloud.insert(tables.server_group_member, instance_uuid=member, group_id=made["id"])
    path = f"/os-server-groups/{made['id']}"
    assert doors.reader.get(path)["server_group"] == {
        "id": made["id"],
        "name": "g",
        "policies": ["anti-affinity"],
        "metadata": {},
        "members": [member],
    }
    doors.member.post("/os-server-groups", body, 409, version="2.64")
    doors.stranger.get(path, 404)
    doors.stranger.delete(path, 404)
    doors.reader.delete(path, 403)
    doors.member.get("/os-server-groups/g", 404)
    doors.member.delete(path, 204)
    doors.member.delete(path, 404)


def test_server_groups_are_listed(doors: Doors) -> None:
    for name in "abc":
        old = {"server_group": {"name": name, "policies": ["affinity"]}}
        doors.member.post("/os-server-groups", old, 200)
    doors.stranger.post("/os-server-groups", {"server_group": {"name": "x", "policies": ["affinity"]}}, 200)

    def names(user: t.Any, query: str = "") -> list[str]:
        return sorted(group["name"] for group in user.get(f"/os-server-groups{query}")["server_groups"])

    assert names(doors.reader) == ["a", "b", "c"]
    assert names(doors.reader, "?limit=1&offset=1") == ["b"]
    assert names(doors.admin, "?all_projects=True") == ["a", "b", "c", "x"]
    doors.member.get("/os-server-groups?all_projects=True", 403)
    doors.member.get("/os-server-groups?limit=x", 400)


@pytest.mark.parametrize(
    ("body", "version"),
    [
        ({"name": "a", "policies": ["soft-affinity"]}, "2.1"),
        ({"name": "a", "policies": ["affinity", "anti-affinity"]}, "2.15"),
        ({"name": "a", "policies": []}, "2.15"),
        ({"name": "a", "policies": ["affinity"]}, "2.64"),
        ({"name": "a", "policy": "affinity", "rules": {"max_server_per_host": 2}}, "2.64"),
        ({"name": "a", "policy": "anti-affinity", "rules": {"max_server_per_host": 0}}, "2.64"),
        ({"name": "", "policy": "affinity"}, "2.64"),
        ({"policy": "affinity"}, "2.64"),
    ],
)
def test_a_server_group_that_cannot_be(doors: Doors, body: dict[str, t.Any], version: str) -> None:
    doors.member.post("/os-server-groups", {"server_group": body}, 400, version=version)
