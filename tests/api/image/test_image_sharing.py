# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Images of others, imported data, and the files that images leave."""

from __future__ import annotations

import os

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.catalog.image_records import register
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import lookups
from tests.api.conftest import Cloud
from tests.api.doors import Doors
from tests.api.image.test_image_data import DISK, RAW, made, send


def test_an_image_is_shared_and_accepted(cloud: Cloud, doors: Doors) -> None:
    number, other = made(doors.member, name="shared"), doors.other
    members = f"/images/{number}/members"
    doors.stranger.get(members, 404)
    shown = doors.member.post(members, {"member": other}, 200)
    assert (shown["member_id"], shown["image_id"], shown["status"]) == (other, number, "pending")
    doors.member.post(members, {"member": other}, 409)
    doors.reader.post(members, {"member": other}, 403)
    assert doors.stranger.get("/images")["images"] == []
    pending = doors.stranger.get("/images?visibility=shared&member_status=pending")["images"]
    assert [image["id"] for image in pending] == [number]
    with cloud.engine.connect() as connection, pytest.raises(NotFoundError):
        lookups.image_by_name(connection, "shared", other)
    doors.member.put(f"{members}/{other}", {"status": "accepted"}, 403)
    doors.stranger.put(f"{members}/{other}", {"status": "nosuch"}, 400)
    doors.stranger.put(f"{members}/{other}", {"status": "accepted"})
    assert [image["id"] for image in doors.stranger.get("/images")["images"]] == [number]
    assert [member["status"] for member in doors.stranger.get(members)["members"]] == ["accepted"]
    assert doors.reader.get(f"{members}/{other}")["status"] == "accepted"
    with cloud.engine.connect() as connection:
        assert lookups.image_by_name(connection, "shared", other)["id"] == number
    doors.stranger.delete(f"/images/{number}", 403)
    doors.stranger.post(members, {"member": "x"}, 403)
    doors.stranger.delete(f"{members}/{other}", 403)
    doors.member.delete(f"{members}/{other}", 204)
    doors.member.delete(f"{members}/{other}", 404)
    doors.stranger.get(f"/images/{number}", 404)
    private = made(doors.member, None, visibility="private")
    doors.member.post(f"/images/{private}/members", {"member": other}, 403)


def test_community_images_are_found_by_who_asks_for_them(doors: Doors) -> None:
    number = made(doors.member, None, visibility="community")
    assert doors.stranger.get("/images")["images"] == []
    for query in ("visibility=community", "visibility=all"):
        assert [image["id"] for image in doors.stranger.get(f"/images?{query}")["images"]] == [number]
    assert doors.stranger.get(f"/images/{number}")["visibility"] == "community"
    doors.stranger.delete(f"/images/{number}", 403)
    doors.stranger.get("/images?member_status=nosuch", 400)


def test_staged_data_are_imported(cloud: Cloud, doors: Doors) -> None:
    number = made(doors.member, None)
    body = {"method": {"name": "glance-direct"}, "all_stores": True}
    doors.member.post(f"/images/{number}/import", body, 409)
    send(doors.member, number, RAW, where="stage")
    assert doors.member.get(f"/images/{number}")["status"] == "uploading"
    assert doors.member.ask("GET", f"/images/{number}/file").status_code == 204
    doors.member.post(f"/images/{number}/import", {"method": {"name": "web-download", "uri": "http://x"}}, 400)
    doors.member.post(f"/images/{number}/import", {**body, "stores": ["nosuch"]}, 400)
    doors.stranger.post(f"/images/{number}/import", body, 404)
    answer = doors.member.ask("POST", f"/images/{number}/import", body)
    assert answer.status_code == 202
    assert doors.member.get(f"/images/{number}")["stores"] == "file"
    assert doors.member.ask("GET", f"/images/{number}/file").data == RAW
    (task,) = doors.member.get(f"/images/{number}/tasks")["tasks"]
    assert task["request_id"] == answer.headers["X-OpenStack-Request-Id"]
    assert (task["status"], task["input"]["import_req"]) == ("success", body)
    assert doors.admin.get(f"/tasks/{task['id']}")["result"] == {"image_id": number}
    assert len(doors.admin.get("/tasks")["tasks"]) == 1
    doors.member.get("/tasks", 403)
    doors.admin.post("/tasks", {"type": "import"}, 400)
    assert doors.member.get("/info/import")["import-methods"]["value"] == ["glance-direct"]
    assert doors.member.get("/info/stores")["stores"][0]["id"] == "file"


def test_an_import_that_is_refused_says_so(cloud: Cloud, doors: Doors) -> None:
    number = made(doors.member, None, disk_format="qcow2")
    send(doors.member, number, RAW, where="stage")
    doors.member.post(f"/images/{number}/import", {"method": {"name": "glance-direct"}}, 202)
    shown = doors.member.get(f"/images/{number}")
    assert (shown["status"], shown["os_glance_failed_import"]) == ("queued", "file")
    (task,) = doors.member.get(f"/images/{number}/tasks")["tasks"]
    assert task["status"] == "failure" and "qcow2" in task["message"]
    assert os.listdir(cloud.home / "images") == []


def test_the_id_of_a_deleted_image_is_nobody_elses(doors: Doors) -> None:
    """OSSN-0075: whoever knows the id from a script would get somebody else's data."""
    number = made(doors.member, visibility="community")
    doors.member.delete(f"/images/{number}", 204)
    for user in (doors.stranger, doors.member):
        user.post("/images", {**DISK, "id": number}, 409)


def test_a_copys_data_outlive_the_image_that_they_came_with(cloud: Cloud, doors: Doors) -> None:
    number = made(doors.member, visibility="community")
    mounted = sa.update(tables.image).where(tables.image.c.id == number).values(properties={"os_host_mount": "yes"})
    with transaction(cloud.engine) as connection:
        connection.execute(mounted)
        copy = register(connection, doors.other, "copy", "", {"id": number, "name": "first"})
    assert "os_host_mount" not in doors.stranger.get(f"/images/{copy}")  # that was said of another image
    doors.member.delete(f"/images/{number}", 204)
    answer = doors.stranger.ask("GET", f"/images/{copy}/file")
    assert (answer.status_code, answer.get_data()) == (200, RAW)


def test_data_that_are_not_what_was_uploaded_are_not_given_out(cloud: Cloud, doors: Doors) -> None:
    number = made(doors.member)
    file = cloud.home / "images" / number
    assert doors.member.ask("GET", f"/images/{number}/file").status_code == 200
    file.write_bytes(RAW[::-1])
    answer = doors.member.ask("GET", f"/images/{number}/file")
    assert answer.status_code == 404 and "checksum" in answer.get_data(as_text=True)
