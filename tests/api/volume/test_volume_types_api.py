# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Types, hosts, services and quotas of the Block Storage API."""

from __future__ import annotations

import urllib.parse

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.catalog import volume_types
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.jobs import worker_rows
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.volumes import volume_attachments, volumes
from tests.api.conftest import Cloud
from tests.api.doors import Doors
from tests.api.volume.test_volumes_api import act, hung, made, shown


def test_a_volume_becomes_of_another_type_where_its_data_may_stay(cloud: Cloud, doors: Doors) -> None:
    for name in ("fast", "slow"):
        doors.admin.post("/types", {"volume_type": {"name": name}}, 200)
    doors.admin.post("/types", {"volume_type": {"name": "theirs", "os-volume-type-access:is_public": False}}, 200)
    with transaction(cloud.engine) as connection:
        volume_types.create_type(connection, {"name": "lvm", "backend": "lvm", "options": {"volume_group": "vg0"}})
    number = made(doors.member, volume_type="fast")
    act(doors.member, number, "os-retype", {"new_type": "fast"}, 400)
    for nothing in ("theirs", "nosuch"):
        act(doors.member, number, "os-retype", {"new_type": nothing}, 400)
    act(doors.member, number, "os-retype", {"new_type": "lvm", "migration_policy": "never"})  # it is nowhere yet
    act(doors.member, number, "os-retype", {"new_type": "slow", "migration_policy": "never"})
    assert shown(doors.member, number)["volume_type"] == "slow"
    hung(cloud, doors, number)
    act(doors.member, number, "os-retype", {"new_type": "lvm", "migration_policy": "on-demand"}, 400)
    act(doors.member, number, "os-retype", {"new_type": "fast"})
    act(doors.stranger, number, "os-retype", {"new_type": "slow"}, 404)
    assert shown(doors.member, number)["volume_type"] == "fast"


def test_a_volume_that_was_called_broken_is_taken_from_its_server_by_force(cloud: Cloud, doors: Doors) -> None:
    number = made(doors.member)
    _server, attachment = hung(cloud, doors, number)
    act(doors.admin, number, "os-reset_status", {"status": "error"})
    act(doors.member, number, "os-detach", {"attachment_id": attachment}, 400)
    act(doors.member, number, "os-force_detach", {"attachment_id": attachment}, 403)
    act(doors.admin, number, "os-force_detach", {"attachment_id": attachment, "connector": None})
    (job,) = doors.jobs()
    assert (job["kind"], job["variables"]) == ("volume_detach", {"attachments": [attachment]})
    act(doors.admin, number, "os-force_detach", {"attachment_id": attachment}, 400)  # it is under way
    with transaction(cloud.engine) as connection:
        volume_attachments.finish_detach(connection, attachment)
    act(doors.member, number, "os-detach")  # nothing is left to do, and no error


def test_a_server_shows_that_its_volume_grew(cloud: Cloud, doors: Doors) -> None:
    number = made(doors.member)
    server, _attachment = hung(cloud, doors, number)
    new = {**doors.member.headers, "OpenStack-API-Version": "volume 3.42"}
    asked = {"os-extend": {"new_size": 2}}
    answer = doors.client.post(f"{doors.member.base}/volumes/{number}/action", json=asked, headers=new)
    assert answer.status_code == 202
    with transaction(cloud.engine) as connection:
        volumes.finish_extend(connection, number)
    (action,) = (row for row in doors.rows(tables.instance_action) if row["action"] == "extend_volume")
    (event,) = (row for row in doors.rows(tables.instance_action_event) if row["action_id"] == action["id"])
    assert action["instance_uuid"] == server and action["finished_at"] is not None and action["message"] is None
    assert (event["event"], event["result"]) == ("compute_extend_volume", "Success")
    assert (shown(doors.member, number)["size"], shown(doors.member, number)["status"]) == (2, "in-use")


def test_quotas_of_all_and_of_things_that_there_are_none_of(doors: Doors) -> None:
    said = {"volumes": 11, "backups": 7, "backup_gigabytes": 8, "groups": 9}
    path = f"/os-quota-sets/{doors.project}"
    assert said.items() <= doors.admin.put(path, {"quota_set": said})["quota_set"].items()
    assert doors.admin.get(path)["quota_set"]["backups"] == 7
    doors.admin.put(path, {"quota_set": {"volumes_lvmdriver": 1}}, 400)
    # an administrator may name the project
    assert doors.admin.get("/os-quota-sets/demo")["quota_set"]["backups"] == 7
    assert doors.admin.put("/os-quota-sets/demo", {"quota_set": {"groups": 8}})["quota_set"]["groups"] == 8
    assert doors.admin.get(path)["quota_set"]["groups"] == 8
    doors.member.get("/os-quota-sets/demo", 404)
    doors.admin.get("/os-quota-sets/nosuch", 404)
    doors.member.get("/os-quota-class-sets/default", 403)
    before = doors.admin.get("/os-quota-class-sets/default")["quota_class_set"]
    assert (before["id"], before["volumes"], before["backups"]) == ("default", 10, 10)
    doors.admin.put("/os-quota-class-sets/default", {"quota_class_set": {"snapshots": 3}})
    assert doors.member.get(f"{path}/defaults")["quota_set"]["snapshots"] == 3
    assert doors.member.get(path)["quota_set"]["snapshots"] == 3
    doors.admin.delete(path, 200)
    assert doors.admin.get(path)["quota_set"]["backups"] == 10


def test_each_host_stores_volumes(cloud: Cloud, doors: Doors) -> None:
    number = made(doors.member)
    for path in ("/os-hosts", "/os-hosts/hv1@file", "/scheduler-stats/get_pools", "/capabilities/hv1@file"):
        doors.member.get(path, 403)
    hung(cloud, doors, number)
    (host,) = doors.admin.get("/os-hosts")["hosts"]
    assert (host["host_name"], host["service-status"], host["service-state"]) == ("hv1@file", "available", "enabled")
    total, mine = doors.admin.get("/os-hosts/hv1@file")["host"]
    assert total["resource"]["project"] == "(total)" and mine["resource"]["project"] == doors.project
    assert mine["resource"]["volume_count"] == total["resource"]["total_volume_gb"] == "1"
    doors.admin.get("/os-hosts/nosuch", 404)
    assert doors.admin.get("/scheduler-stats/get_pools")["pools"] == [{"name": "hv1@file#file"}]
    (pool,) = doors.admin.get("/scheduler-stats/get_pools?detail=True")["pools"]
    about = doors.admin.get(f"/capabilities/{urllib.parse.quote(pool['name'])}")
    assert about["vendor_name"] == pool["capabilities"]["vendor_name"]
    doors.admin.get("/capabilities/nosuch", 404)
    here = {"host": "hv1@file", "binary": "cinder-volume"}
    for action, said, status in (
        ("disable", here, 400),
        ("disable", {**here, "binary": "x"}, 404),
        ("freeze", {}, 400),
        ("nosuch", {}, 404),
    ):
        doors.admin.put(f"/os-services/{action}", said, status)
    doors.member.put("/os-services/disable", here, 403)
    with transaction(cloud.engine) as connection:
        worker_rows.add(connection, "w1", machine="m1", hostname="controller", pid=1)
    scheduler, store = doors.admin.get("/os-services")["services"]
    assert (scheduler["binary"], scheduler["host"], scheduler["state"]) == ("cinder-scheduler", "controller", "up")
    assert store["binary"] == "cinder-volume"
    assert doors.admin.get("/os-services?binary=cinder-scheduler")["services"] == [scheduler]


def test_types(doors: Doors) -> None:
    assert [volume_type["name"] for volume_type in doors.reader.get("/types")["volume_types"]] == ["file"]
    assert doors.reader.get("/types/default")["volume_type"]["name"] == "file"
    doors.member.post("/types", {"volume_type": {"name": "x"}}, 403)
    said = {"name": "x", "os-volume-type-access:is_public": False, "extra_specs": {"a": "b"}}
    number = doors.admin.post("/types", {"volume_type": said}, 200)["volume_type"]["id"]
    doors.admin.post("/types", {"volume_type": said}, 409)
    doors.admin.post("/types", {"volume_type": {"name": ""}}, 400)
    doors.member.get(f"/types/{number}", 404)
    doors.member.post("/volumes", {"volume": {"size": 1, "volume_type": "x"}}, 404)
    doors.admin.post(f"/types/{number}/action", {"addProjectAccess": {"project": doors.project}}, 202)
    doors.admin.post(f"/types/{number}/action", {"addProjectAccess": {"project": doors.project}}, 409)
    assert doors.admin.get(f"/types/{number}/os-volume-type-access")["volume_type_access"] == [
        {"volume_type_id": number, "project_id": doors.project}
    ]
    volume_id = made(doors.member, volume_type="x")
    assert shown(doors.member, volume_id)["volume_type"] == "x"
    doors.admin.delete(f"/types/{number}", 400)
    specs = f"/types/{number}/extra_specs"
    assert doors.admin.post(specs, {"extra_specs": {"c": "d"}}, 200) == {"extra_specs": {"c": "d"}}
    assert doors.admin.put(f"{specs}/c", {"c": "e"}) == {"c": "e"}
    doors.admin.put(f"{specs}/c", {"d": "e"}, 400)
    assert doors.member.get(f"{specs}/c") == {"c": "e"}
    doors.admin.delete(f"{specs}/c", 202)
    doors.member.get(f"{specs}/c", 404)
    doors.admin.post(f"/types/{number}/action", {"removeProjectAccess": {"project": doors.project}}, 202)
    doors.admin.post(f"/types/{number}/action", {"removeProjectAccess": {"project": doors.project}}, 404)
    assert doors.admin.put(f"/types/{number}", {"volume_type": {"name": "y", "is_public": True}})["volume_type"][
        "is_public"
    ]
    doors.member.delete(f"/volumes/{volume_id}", 202)
    doors.admin.delete(f"/types/{number}", 202)


def test_services_and_extensions(doors: Doors) -> None:
    doors.member.get("/os-services", 403)
    (service,) = doors.admin.get("/os-services?host=hv1")["services"]
    assert (service["binary"], service["host"], service["status"], service["state"]) == (
        "cinder-volume",
        "hv1@file",
        "enabled",
        "up",
    )
    assert doors.admin.get("/os-services?binary=nosuch")["services"] == []
    aliases = {extension["alias"] for extension in doors.reader.get("/extensions")["extensions"]}
    assert "os-quota-sets" in aliases and "backups" in aliases
