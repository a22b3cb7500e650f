# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Administrators in the Compute API: who sees a flavor, what limits hold by default, which hosts there are."""

from __future__ import annotations

import typing as t

from tests.api.compute.test_interfaces_api import IMAGE_ID, ask
from tests.api.conftest import Cloud
from tests.api.doors import Doors
from tests.api.seeds import Api

Body = dict[str, t.Any]


def test_a_private_flavor_is_given_to_projects(doors: Doors) -> None:
    flavor_body = {"name": "mine", "ram": 64, "vcpus": 1, "disk": 1, "id": "p1", "os-flavor-access:is_public": False}
    doors.admin.post("/flavors", {"flavor": flavor_body}, 200)
    path = "/flavors/p1/os-flavor-access"
    assert doors.admin.get(path) == {"flavor_access": []}
    doors.member.get("/flavors/p1", 404)
    change = {"addTenantAccess": {"tenant": doors.other}}
    doors.member.post("/flavors/p1/action", change, 403)
    access = doors.admin.post("/flavors/p1/action", change, 200)
    assert access == {"flavor_access": [{"flavor_id": "p1", "tenant_id": doors.other}]} == doors.admin.get(path)
    doors.admin.post("/flavors/p1/action", change, 409)
    doors.admin.post("/flavors/p1/action", {"addTenantAccess": {"tenant": "0" * 32}}, 400)
    assert doors.stranger.get("/flavors/p1")["flavor"]["name"] == "mine"
    assert [flavor["id"] for flavor in doors.stranger.get("/flavors")["flavors"]] == ["p1"]
    assert doors.member.get("/flavors")["flavors"] == []
    taken = {"removeTenantAccess": {"tenant": doors.other}}
    assert doors.admin.post("/flavors/p1/action", taken, 200) == {"flavor_access": []}
    doors.admin.post("/flavors/p1/action", taken, 404)
    doors.stranger.get("/flavors/p1", 404)
    public = {**flavor_body, "id": "p2", "name": "all", "os-flavor-access:is_public": True}
    doors.admin.post("/flavors", {"flavor": public}, 200)
    doors.admin.get("/flavors/p2/os-flavor-access", 404)
    doors.admin.post("/flavors/p2/action", change, 409)


def test_a_server_has_a_private_flavor_of_its_project(api: Api) -> None:
    admin, client = api.client_as("admin"), api.client_as("alt")
    flavor_body = {"name": "mine", "ram": 64, "vcpus": 1, "disk": 1, "id": "p1", "os-flavor-access:is_public": False}
    ask(admin, "POST", "/compute/v2.1/flavors", {"flavor": flavor_body})
    server = {"server": {"name": "x", "flavorRef": "p1", "imageRef": IMAGE_ID, "networks": "none"}}
    ask(client, "POST", "/compute/v2.1/servers", server, 400)
    change = {"addTenantAccess": {"tenant": api.projects["alt"]}}
    ask(admin, "POST", "/compute/v2.1/flavors/p1/action", change)
    ask(client, "POST", "/compute/v2.1/servers", server, 202)


def test_default_limits_hold_where_a_project_has_none(doors: Doors) -> None:
    path = "/os-quota-class-sets/default"
    assert doors.admin.get(path)["quota_class_set"]["cores"] == 20
    doors.member.get(path, 403)
    doors.member.put(path, {"quota_class_set": {"cores": 1}}, 403)
    doors.admin.put(f"/os-quota-sets/{doors.other}", {"quota_set": {"cores": 7}})
    assert doors.admin.put(path, {"quota_class_set": {"cores": 33}})["quota_class_set"]["cores"] == 33
    assert doors.member.get(f"/os-quota-sets/{doors.project}")["quota_set"]["cores"] == 33
    assert doors.member.get(f"/os-quota-sets/{doors.project}/defaults")["quota_set"]["cores"] == 33
    assert doors.admin.get(f"/os-quota-sets/{doors.other}")["quota_set"]["cores"] == 7
    doors.admin.put(f"/os-quota-sets/{doors.other}", {"quota_set": {"cores": 20}})  # the same as without a default
    assert doors.admin.get(f"/os-quota-sets/{doors.other}")["quota_set"]["cores"] == 20
    doors.admin.delete(f"/os-quota-sets/{doors.other}", 202)
    assert doors.admin.get(f"/os-quota-sets/{doors.other}")["quota_set"]["cores"] == 33
    doors.admin.put("/os-quota-class-sets/nosuch", {"quota_class_set": {"cores": 1}}, 400)
    doors.admin.put(path, {"quota_class_set": {"nosuch": 1}}, 400)


def test_hosts_as_old_clients_ask_for_them(cloud: Cloud, doors: Doors) -> None:
    cloud.host("hv1", zone="east")
    cloud.instance(doors.other, "a", "hv1")
    doors.member.get("/os-hosts", 403)
    (host,) = doors.admin.get("/os-hosts")["hosts"]
    assert host == {"host_name": "hv1", "service": "compute", "zone": "east"}
    assert doors.admin.get("/os-hosts?zone=nosuch")["hosts"] == []
    resource_by_project = {
        row["resource"]["project"]: row["resource"] for row in doors.admin.get("/os-hosts/hv1")["host"]
    }
    assert resource_by_project["(total)"] == {
        "host": "hv1",
        "project": "(total)",
        "cpu": 4,
        "memory_mb": 4096,
        "disk_gb": 40,
    }
    assert resource_by_project[doors.other]["memory_mb"] == 512 == resource_by_project["(used_max)"]["memory_mb"]
    doors.admin.get("/os-hosts/nosuch", 404)
    assert doors.admin.put("/os-hosts/hv1", {"status": "disable"}) == {"host": "hv1", "status": "disabled"}
    doors.admin.put("/os-hosts/hv1", {"status": "nosuch"}, 400)
    doors.admin.get("/os-hosts/hv1/reboot", 400)
    doors.admin.get("/os-hosts/nosuch/reboot", 404)
    doors.admin.get("/os-hosts", 404, version="2.43")
    doors.admin.post("/os-server-external-events", {"events": []}, 403)
