# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Volumes, types and attachments, asked for as Cinder's clients do."""

from __future__ import annotations

import typing as t
import uuid

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.catalog import volume_types
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables, tables_volumes
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.steps.volume_action import volume_action
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.volumes import volume_attachments, volumes
from tests.api.conftest import Cloud
from tests.api.doors import Doors, User

NOWHERE = "11111111-2222-3333-4444-555555555555"


def made(user: User, **said: t.Any) -> str:
    number: str = user.post("/volumes", {"volume": {"size": 1, **said}}, 202)["volume"]["id"]
    return number


def shown(user: User, number: str) -> dict[str, t.Any]:
    return t.cast("dict[str, t.Any]", user.get(f"/volumes/{number}")["volume"])


def act(user: User, number: str, name: str, said: t.Any = None, status: int = 202) -> t.Any:
    return user.post(f"/volumes/{number}/action", {name: said}, status)


def an_image(cloud: Cloud) -> str:
    image = str(uuid.uuid4())
    cloud.insert(
        tables.image,
        id=image,
        owner="",
        name="tiny",
        disk_format="qcow2",
        source="/x",
        checksum="sha256:" + "0" * 64,
        size=5,
        virtual_size=1 << 20,
        properties={"os_distro": "debian"},
        created_at=0,
    )
    return image


def hung(cloud: Cloud, doors: Doors, number: str) -> tuple[str, str]:
    """A server, and the attachment of the volume to it."""
    server = cloud.instance(doors.project, f"s{number[:8]}", "hv1", vm_state="active")
    with transaction(cloud.engine) as connection:
        attachment = volume_attachments.begin_attach(connection, number, server)
        volume_attachments.finish_attach(connection, attachment.id)
    return server, attachment.id


def test_a_blank_volume_lives_and_dies_without_a_job(doors: Doors) -> None:
    body = doors.member.post(
        "/volumes", {"volume": {"size": "2", "name": "v", "description": "d", "metadata": {"a": "b"}}}, 202
    )["volume"]
    number = body["id"]
    assert {key: body[key] for key in ("name", "size", "status", "bootable", "metadata", "encrypted")} == {
        "name": "v",
        "size": 2,
        "status": "available",
        "bootable": "false",
        "metadata": {"a": "b"},
        "encrypted": False,
    }
    assert "os-vol-tenant-attr:tenant_id" not in body
    assert shown(doors.reader, number)["os-vol-tenant-attr:tenant_id"] == doors.project
    assert shown(doors.admin, number)["os-vol-host-attr:host"] is None
    doors.stranger.get(f"/volumes/{number}", 404)
    doors.reader.delete(f"/volumes/{number}", 403)
    changed = doors.member.put(f"/volumes/{number}", {"volume": {"name": "w", "description": None}})["volume"]
    assert (changed["name"], changed["description"]) == ("w", None)
    doors.member.put(f"/volumes/{number}", {"volume": {}}, 400)
    act(doors.member, number, "os-extend", {"new_size": 3})
    assert shown(doors.member, number)["size"] == 3
    act(doors.member, number, "os-extend", {"new_size": 3}, 400)
    doors.member.delete(f"/volumes/{number}", 202)
    doors.member.get(f"/volumes/{number}", 404)
    doors.member.delete(f"/volumes/{number}", 404)
    assert doors.jobs() == []


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ({"size": 0}, 400),
        ({"size": -1}, 400),
        ({"size": "#$%"}, 400),
        ({"size": None}, 400),
        ({"x": 1}, 400),
        ({"volume_type": NOWHERE}, 404),
        ({"source_volid": NOWHERE}, 404),
        ({"snapshot_id": NOWHERE}, 404),
        ({"imageRef": NOWHERE}, 400),
        ({"size": 5000}, 413),
        ({"multiattach": True}, 400),
        ({"backup_id": "x"}, 400),
        ({"metadata": {"a": 5}}, 400),
        ({"name": "x" * 256}, 400),
    ],
)
def test_volumes_that_cannot_be(doors: Doors, said: dict[str, t.Any], status: int) -> None:
    doors.member.post("/volumes", {"volume": {"size": 1, **said}}, status)
    assert doors.rows(tables_volumes.volume) == []


@pytest.mark.parametrize("of", ["blank", "image", "volume"])
@pytest.mark.parametrize("backend", ["file", "nfs"])
def test_a_volume_is_in_a_zone_that_there_is(cloud: Cloud, doors: Doors, of: str, backend: str) -> None:
    """Whatever it is made of and wherever it is stored; a host in the default zone is not needed for that one."""
    cloud.host("hv2", last_seen_at=2**31, zone="east")
    options = {"extra_specs": {}, "options": {"share": "tank"}} if backend == "nfs" else {}
    with transaction(cloud.engine) as connection:
        volume_types.create_type(connection, {"name": "t", "backend": backend, **options})
    said: dict[str, t.Any] = (
        {"source_volid": made(doors.member, volume_type="t")} if of == "volume" else {"volume_type": "t"}
    )
    if of == "image":
        said["imageRef"] = an_image(cloud)
    before = doors.rows(tables_volumes.volume)
    for zone in ("west", "x" * 255, "nova:hv1", "EAST"):
        answer = doors.member.post("/volumes", {"volume": {"size": 1, "availability_zone": zone, **said}}, 400)
        assert "is invalid" in answer["badRequest"]["message"]
    assert doors.rows(tables_volumes.volume) == before
    for known in ("east", "nova", None, ""):
        answer = doors.member.post("/volumes", {"volume": {"size": 1, "availability_zone": known, **said}}, 202)
        assert answer["volume"]["availability_zone"] == (known or "nova")


def test_a_quota_is_a_limit(cloud: Cloud, doors: Doors) -> None:
    path = f"/os-quota-sets/{doors.project}"
    doors.member.put(path, {"quota_set": {"volumes": 1}}, 403)
    assert doors.admin.put(path, {"quota_set": {"volumes": 1}})["quota_set"]["volumes"] == 1
    doors.admin.put(path, {"quota_set": {"nosuch": 1}}, 400)
    made(doors.member)
    answer = doors.member.post("/volumes", {"volume": {"size": 1}}, 413)
    assert "volumes" in answer["overLimit"]["message"]
    assert doors.reader.get(f"{path}?usage=true")["quota_set"]["volumes"] == {"limit": 1, "in_use": 1, "reserved": 0}
    doors.admin.delete(path, 200)
    made(doors.member)


def test_a_volume_is_made_of_an_image_by_a_job(cloud: Cloud, doors: Doors) -> None:
    image = an_image(cloud)
    number = made(doors.member, imageRef=image)
    (job,) = doors.jobs()
    assert (job["kind"], job["variables"]) == ("volume_create", {"volumes": [number]})
    body = shown(doors.member, number)
    assert (body["status"], body["bootable"]) == ("creating", "true")
    assert body["volume_image_metadata"]["image_id"] == image
    assert act(doors.member, number, "os-show_image_metadata", None, 200)["metadata"]["os_distro"] == "debian"
    said = {"metadata": {"kernel_id": "k", "os_distro": "other"}}
    image_metadata = act(doors.member, number, "os-set_image_metadata", said, 200)["metadata"]
    assert (image_metadata["kernel_id"], image_metadata["os_distro"], image_metadata["image_id"]) == (
        "k",
        "other",
        image,
    )
    # servers that start from it are injected into as the image says: that is the operator's to say
    act(doors.member, number, "os-set_image_metadata", {"metadata": {"os_host_mount": "yes"}}, 403)
    act(doors.member, number, "os-set_image_metadata", {"metadata": {"os_admin_user": 'a"b'}}, 400)
    act(doors.member, number, "os-unset_image_metadata", {"key": "kernel_id"}, 200)
    act(doors.member, number, "os-unset_image_metadata", {"key": "kernel_id"}, 404)
    doors.member.delete(f"/volumes/{number}", 400)
    for method in ("GET", "PUT", "DELETE"):
        assert doors.member.ask(method, "/volumes/").status_code == 404
    with transaction(cloud.engine) as connection:
        volumes.finish_create(connection, number)
    doors.member.delete(f"/volumes/{number}", 202)
    assert [job["kind"] for job in doors.jobs()] == ["volume_create", "volume_delete"]
    cloud.write(sa.update(tables.image).values(status="deactivated"))
    assert "not active" in str(doors.member.post("/volumes", {"volume": {"size": 1, "imageRef": image}}, 400))


def test_a_volume_of_no_image_has_image_metadata_too(doors: Doors) -> None:
    said = {"metadata": {"kernel_id": "k", "os_distro": "other"}}
    blank = made(doors.member)
    assert act(doors.member, blank, "os-set_image_metadata", said, 200)["metadata"] == said["metadata"]
    assert shown(doors.member, blank)["volume_image_metadata"] == said["metadata"]
    assert not doors.jobs()
    for key in said["metadata"]:
        act(doors.member, blank, "os-unset_image_metadata", {"key": key}, 200)
    assert "volume_image_metadata" not in shown(doors.member, blank)


def test_lists(cloud: Cloud, doors: Doors) -> None:
    first = made(doors.member, name="a", metadata={"k": "v"})
    cloud.write(sa.update(tables_volumes.volume).values(created_at=1))
    second = made(doors.member, name="b", size=2)
    made(doors.stranger, name="c")
    for query, listed in (
        ("", [second, first]),
        ("name=a", [first]),
        ("status=available", [second, first]),
        ("status=error", []),
        ("sort=name:asc", [first, second]),
        ("sort_key=size&sort_dir=asc", [first, second]),
        ("limit=1", [second]),
        (f"marker={second}", [first]),
        ("offset=1", [first]),
        ("bootable=false", [second, first]),
        ("name~=a", [first]),
        ("metadata=%7B%27k%27%3A+%27v%27%7D", [first]),
        ("all_tenants=1", [second, first]),
    ):
        for path in ("/volumes", "/volumes/detail"):
            assert [volume["id"] for volume in doors.reader.get(f"{path}?{query}")["volumes"]] == listed, query
    assert len(doors.admin.get("/volumes?all_tenants=1")["volumes"]) == 3
    (link,) = doors.reader.get("/volumes?limit=1")["volumes_links"]
    assert f"marker={second}" in link["href"] and "limit=1" in link["href"]
    assert doors.reader.get("/volumes?with_count=true&limit=1")["count"] == 2
    doors.member.get(f"/volumes?marker={NOWHERE}", 404)
    for query in ("limit=x", "limit=-1", "sort=colour", "sort_key=name&sort_dir=up", "metadata=x"):
        doors.reader.get(f"/volumes?{query}", 400)
    assert doors.reader.get("/volumes/summary")["volume-summary"] == {"total_size": 3, "total_count": 2}


def test_metadata(doors: Doors) -> None:
    for path in ("volumes", "snapshots"):
        number = made(doors.member)
        if path == "snapshots":
            number = doors.member.post("/snapshots", {"snapshot": {"volume_id": number}}, 202)["snapshot"]["id"]
        where = f"/{path}/{number}/metadata"
        assert doors.member.post(where, {"metadata": {"a": "1", "b": "2"}}, 200) == {"metadata": {"a": "1", "b": "2"}}
        assert doors.member.put(f"{where}/a", {"meta": {"a": "3"}}) == {"meta": {"a": "3"}}
        doors.member.put(f"{where}/a", {"meta": {"b": "3"}}, 400)
        doors.member.delete(f"{where}/b", 200)
        doors.member.delete(f"{where}/b", 404)
        assert doors.reader.get(where) == {"metadata": {"a": "3"}}
        assert doors.reader.get(f"{where}/a") == {"meta": {"a": "3"}}
        assert doors.member.put(where, {"metadata": {"c": "4"}}) == {"metadata": {"c": "4"}}
        doors.reader.put(where, {"metadata": {}}, 403)


def test_small_actions(doors: Doors) -> None:
    number = made(doors.member)
    act(doors.member, number, "os-reserve")
    assert shown(doors.member, number)["status"] == "attaching"
    act(doors.member, number, "os-reserve", {}, 400)
    act(doors.member, number, "os-unreserve")
    act(doors.member, number, "os-set_bootable", {"bootable": "true"}, 200)
    act(doors.member, number, "os-set_bootable", {}, 400)
    act(doors.member, number, "os-update_readonly_flag", {"readonly": True})
    body = shown(doors.member, number)
    assert (body["status"], body["bootable"], body["metadata"]) == ("available", "true", {"readonly": "True"})
    act(doors.member, number, "os-reset_status", {"status": "error"}, 403)
    act(doors.admin, number, "os-reset_status", {"status": "error"})
    act(doors.admin, number, "os-reset_status", {"status": "nosuch"}, 400)
    assert shown(doors.member, number)["status"] == "error"
    for name in ("os-retype", "nosuch", "os-detach"):  # it has no new type
        act(doors.member, number, name, {}, 400)
    act(doors.member, number, "os-force_delete", None, 403)
    act(doors.admin, number, "os-force_delete")
    act(doors.stranger, made(doors.member), "os-reserve", None, 404)


def test_attachments(cloud: Cloud, doors: Doors) -> None:
    number = made(doors.member)
    server = cloud.instance(doors.project, "web", "hv1", vm_state="active")
    act(doors.member, number, "os-attach", {"host_name": "x"}, 400)
    act(doors.member, number, "os-attach", {"instance_uuid": NOWHERE}, 404)
    act(doors.member, number, "os-attach", {"instance_uuid": server, "mountpoint": "/dev/vdc"})
    (job,) = doors.jobs()
    assert job["kind"] == "volume_attach"
    (attachment,) = job["variables"]["attachments"]
    with transaction(cloud.engine) as connection:
        connection.execute(sa.update(tables.compute_host).values(state_dir="/srv/nv"))
        (plan,) = volume_action(connection, {"attachments": [attachment]})["hosts"].values()
        assert f"/srv/nv/volumes/{number}" in plan["attach"][0]["xml"]
        volume_attachments.finish_attach(connection, attachment)
    (attachment_body,) = shown(doors.admin, number)["attachments"]
    assert {key: attachment_body[key] for key in ("attachment_id", "server_id", "device", "host_name", "id")} == {
        "attachment_id": attachment,
        "server_id": server,
        "device": "/dev/vdc",
        "host_name": "hv1",
        "id": number,
    }
    new = {**doors.member.headers, "OpenStack-API-Version": "volume 3.27"}
    base = doors.member.base
    body = doors.client.get(f"{base}/attachments", headers=new).get_json()
    assert [(record["id"], record["status"]) for record in body["attachments"]] == [(attachment, "attached")]
    body = doors.client.get(f"{base}/attachments/{attachment}", headers=new).get_json()["attachment"]
    assert (body["instance"], body["volume_id"]) == (server, number)
    doors.member.get(f"/attachments/{attachment}", 404)  # of no use to who speaks 3.0
    act(doors.member, number, "os-begin_detaching")
    act(doors.member, number, "os-roll_detaching")
    act(doors.member, number, "os-detach", {"attachment_id": NOWHERE}, 400)
    assert doors.client.delete(f"{base}/attachments/{attachment}", headers=new).status_code == 200
    assert [job["kind"] for job in doors.jobs()] == ["volume_attach", "volume_detach"]
    doors.member.delete(f"/volumes/{number}", 400)


def test_a_mountpoint_that_is_no_device_leaves_the_name_to_the_guest(cloud: Cloud, doors: Doors) -> None:
    number = made(doors.member)
    server = cloud.instance(doors.project, "web", "hv1", vm_state="active")
    act(doors.member, number, "os-attach", {"instance_uuid": server, "mountpoint": "/mnt", "mode": "rw"})
    (attachment,) = doors.rows(tables_volumes.volume_attachment)
    assert attachment["device"] == "/dev/vdb"
    # who speaks of attachments completes them, as Nova does; here their job does
    path = f"{doors.member.base}/attachments/{attachment['id']}/action"
    for version, body, status in (("3.43", {}, 404), ("3.44", {}, 400), ("3.44", {"os-complete": None}, 204)):
        headers = {**doors.member.headers, "OpenStack-API-Version": f"volume {version}"}
        assert doors.client.post(path, json=body, headers=headers).status_code == status
    headers = {**doors.stranger.headers, "OpenStack-API-Version": "volume 3.44"}
    assert doors.client.post(path, json={"os-complete": None}, headers=headers).status_code == 404
