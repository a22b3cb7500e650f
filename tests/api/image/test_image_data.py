# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Images that are uploaded: their states, what is refused, who gets to see and to launch them."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pathlib
import struct
import time
import typing as t
import uuid

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._disk import qcow2
from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError, NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.catalog import image_states, image_store
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import lookups
from tests.api.conftest import Cloud
from tests.api.doors import Doors, User
from tests.unit._image_import.appliances import FORMATS, SIZE, converted, raw_disk, raw_of

RAW = bytes(range(256)) * 16
DISK = {"disk_format": "raw", "container_format": "bare"}


def send(user: User, number: str, data: bytes, status: int = 204, where: str = "file", **headers: str) -> str:
    """As clients stream: in chunks, of a length that nobody says."""
    sent = {**user.headers, "Content-Type": "application/octet-stream", **headers}
    length = sent.pop("Content-Length", None)
    how = {"HTTP_TRANSFER_ENCODING": "chunked"} if length is None else {"CONTENT_LENGTH": length}
    answer = user.client.put(
        f"/image/v2/images/{number}/{where}",
        input_stream=io.BytesIO(data),
        headers=sent,
        environ_overrides={"wsgi.input_terminated": True, **how},
    )
    assert answer.status_code == status, answer.get_data(as_text=True)
    return answer.get_data(as_text=True)


def made(user: User, data: bytes | None = RAW, **said: t.Any) -> str:
    number: str = user.post("/images", {**DISK, **said}, 201)["id"]
    if data is not None:
        send(user, number, data)
    return number


def empty_qcow2(tmp_path: pathlib.Path, virtual_size: int = 1 << 20) -> bytearray:
    """One that stands on its own."""
    path = tmp_path / f"{uuid.uuid4()}.qcow2"
    qcow2.write_overlay(str(path), "/base", virtual_size)
    data = bytearray(path.read_bytes())
    data[8:20] = bytes(12)  # no backing file
    data[112:120] = bytes(8)  # no header extension
    return data


def test_an_image_is_made_uploaded_and_downloaded(cloud: Cloud, doors: Doors) -> None:
    body = {**DISK, "name": "web", "tags": ["b", "a"], "min_disk": 1, "os_distro": "debian", "ramdisk_id": "x"}
    shown = doors.member.post("/images", body, 201)
    number = shown["id"]
    assert {key: shown[key] for key in ("status", "visibility", "owner", "size", "checksum", "tags", "os_distro")} == {
        "status": "queued",
        "visibility": "shared",
        "owner": doors.project,
        "size": None,
        "checksum": None,
        "tags": ["a", "b"],
        "os_distro": "debian",
    }
    answer = doors.member.ask("GET", f"/images/{number}/file")
    assert (answer.status_code, answer.data) == (204, b"")
    send(doors.member, number, RAW)
    shown = doors.reader.get(f"/images/{number}")
    assert (shown["status"], shown["size"], shown["virtual_size"], shown["stores"]) == ("active", 4096, 4096, "file")
    assert (shown["os_hash_algo"], shown["os_hash_value"]) == ("sha256", hashlib.sha256(RAW).hexdigest())
    assert shown["checksum"] == hashlib.md5(RAW).hexdigest()
    path = cloud.home / "images" / number
    assert path.read_bytes() == RAW and path.stat().st_mode & 0o777 == 0o600
    answer = doors.reader.ask("GET", f"/images/{number}/file")
    assert (answer.status_code, answer.data, answer.headers["Content-MD5"]) == (200, RAW, shown["checksum"])
    assert answer.headers["Content-Length"] == "4096" and answer.mimetype == "application/octet-stream"
    part = doors.client.get(f"/image/v2/images/{number}/file", headers={**doors.reader.headers, "Range": "bytes=10-19"})
    assert (part.status_code, part.data) == (206, RAW[10:20])
    assert "not allowed" in send(doors.member, number, RAW, 409), "only once"
    doors.member.delete(f"/images/{number}", 204)
    assert os.listdir(cloud.home / "images") == []


def test_names_may_be_equal_and_playbooks_tell_them_apart(doors: Doors) -> None:
    first, second, nameless = (made(doors.member, None, **said) for said in ({"name": "x"}, {"name": "x"}, {}))
    assert doors.member.get(f"/images/{second}")["name"] == "x"
    assert doors.member.get(f"/images/{nameless}")["name"] is None
    names = {row["id"]: row["name"] for row in doors.rows(tables.image)}
    assert names == {first: "x", second: f"x-{second}", nameless: f"image-{nameless[:8]}"}
    image_id = str(uuid.uuid4())
    assert doors.member.post("/images", {"id": image_id}, 201)["id"] == image_id
    doors.stranger.post("/images", {"id": image_id}, 409)


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ({"container_format": "wrong"}, 400),
        ({"disk_format": "wrong"}, 400),
        ({"id": "x"}, 400),
        ({"name": 5}, 400),
        ({"min_disk": -1}, 400),
        ({"tags": "x"}, 400),
        ({"x": 5}, 400),
        ({"visibility": "x"}, 400),
        ({"novalite:stat": "x"}, 400),
        ({"name": "two\nlines"}, 400),
        ({"status": "active"}, 403),
        ({"size": 5}, 403),
        ({"os_glance_foo": "x"}, 403),
        ({"locations": []}, 403),
        ({"checksum": "x"}, 403),
        ({"visibility": "public"}, 403),
        ({"owner": "0" * 32}, 403),
    ],
)
def test_what_cannot_be_said_of_a_new_image(doors: Doors, said: dict[str, t.Any], status: int) -> None:
    doors.member.post("/images", said, status)
    assert doors.rows(tables.image) == []


def test_an_administrator_makes_public_ones_and_gives_them_away(doors: Doors) -> None:
    number = made(doors.admin, visibility="public", name="debian")
    assert number in {image["id"] for image in doors.stranger.get("/images")["images"]}
    other = made(doors.admin, None, owner="0" * 32)
    assert doors.admin.get(f"/images/{other}")["owner"] == "0" * 32
    doors.member.get(f"/images/{other}", 404)
    doors.stranger.delete(f"/images/{number}", 403)
    with doors.cloud.engine.connect() as connection:
        assert lookups.image_by_name(connection, "debian", doors.other)["id"] == number


def test_what_hosts_may_mount_is_not_replaced_by_a_members_data(doors: Doors) -> None:
    """The operator said it of data that were not there yet, or of others."""
    number = made(doors.member, None)
    with transaction(doors.cloud.engine) as connection:
        said = sa.update(tables.image).where(tables.image.c.id == number).values(properties={"os_host_mount": "yes"})
        connection.execute(said)
    send(doors.member, number, RAW)
    assert "os_host_mount" not in doors.member.get(f"/images/{number}")
    number = made(doors.admin, None, os_host_mount="yes")
    send(doors.admin, number, RAW)
    assert doors.member.get(f"/images/{number}")["os_host_mount"] == "yes"


def test_the_old_form_of_changes(doors: Doors) -> None:
    number = made(doors.member, None)
    headers = {**doors.member.headers, "Content-Type": "application/openstack-images-v2.0-json-patch"}
    changes = [{"replace": "/os_hidden", "value": True}, {"add": "/a", "value": "b"}]
    answer = doors.client.patch(f"/image/v2/images/{number}", data=json.dumps(changes), headers=headers)
    assert (answer.status_code, answer.get_json()["os_hidden"], answer.get_json()["a"]) == (200, True, "b")
    assert doors.member.get("/images")["images"] == []
    assert [image["id"] for image in doors.member.get("/images?os_hidden=true")["images"]] == [number]
    answer = doors.client.patch(f"/image/v2/images/{number}", json=changes, headers=doors.member.headers)
    assert answer.status_code == 415


def with_backing(data: bytearray) -> None:
    data[8:20] = struct.pack(">QI", 200, 11)
    data[200:211] = b"/etc/shadow"


def with_data_file(data: bytearray) -> None:
    data[72:80] = struct.pack(">Q", 1 << 2)


def with_data_file_name(data: bytearray) -> None:
    data[112:128] = struct.pack(">II8s", 0x44415441, 6, b"/etc/x")


def absurd(data: bytearray) -> None:
    data[24:32] = struct.pack(">Q", 1 << 60)


def cut_off(data: bytearray) -> None:
    del data[100:]


def without_tables(data: bytearray) -> None:
    data[40:48] = struct.pack(">Q", 1 << 40)


@pytest.mark.parametrize("spoil", [with_backing, with_data_file, with_data_file_name, absurd, cut_off, without_tables])
def test_a_hostile_disk_never_becomes_active(
    cloud: Cloud, doors: Doors, tmp_path: pathlib.Path, spoil: t.Callable[[bytearray], None]
) -> None:
    data = empty_qcow2(tmp_path)
    number = made(doors.member, None, disk_format="qcow2")
    good = bytes(data)
    spoil(data)
    send(doors.member, number, bytes(data), 400)
    shown = doors.member.get(f"/images/{number}")
    assert (shown["status"], shown["size"], shown["checksum"]) == ("queued", None, None)
    assert os.listdir(cloud.home / "images") == []
    assert doors.member.ask("GET", f"/images/{number}/file").status_code == 204
    raw = made(doors.member, None)
    send(doors.member, raw, bytes(data) if data.startswith(b"QFI") else good, 400)  # called a raw one
    send(doors.member, number, good)
    assert doors.member.get(f"/images/{number}")["virtual_size"] == 1 << 20


def test_uploads_that_cannot_be(cloud: Cloud, doors: Doors) -> None:
    number = made(doors.member, None)
    send(doors.member, number, RAW, 415, **{"Content-Type": "text/plain"})
    send(doors.reader, number, RAW, 403)
    send(doors.stranger, number, RAW, 404)
    bare: str = doors.member.post("/images", {}, 201)["id"]
    assert "container_format" in send(doors.member, bare, RAW, 400)
    send(doors.member, number, b"", 400)
    headers = {"Content-Length": "5000"}
    assert "4096 of 5000" in send(doors.member, number, RAW, 400, **headers), "its sender went away"
    assert doors.member.get(f"/images/{number}")["status"] == "queued"


def test_a_project_has_room_for_so_much(cloud: Cloud, doors: Doors, monkeypatch: pytest.MonkeyPatch) -> None:
    cloud.insert(tables.quota, project_id=doors.project, resource="image_size_total", hard_limit=1)
    cloud.insert(tables.quota, project_id=doors.project, resource="images", hard_limit=2)
    number = made(doors.member, None)
    assert "1048576" in send(doors.member, number, bytes((1 << 20) + 1), 413)
    send(doors.member, number, b"", 413, **{"Content-Length": str(1 << 30)})
    send(doors.member, number, bytes(1 << 20))
    second = made(doors.member, None)
    send(doors.member, second, b"x" * 512, 413)
    assert doors.member.get(f"/images/{second}")["status"] == "queued"
    doors.member.post("/images", {}, 413)
    monkeypatch.setattr(image_store, "RESERVE", 1 << 62)
    send(doors.stranger, made(doors.stranger, None), RAW, 413)
    names = os.listdir(cloud.home / "images")
    assert names == [number]


def test_many_uploads_at_once_leave_others_their_turn(cloud: Cloud, doors: Doors) -> None:
    slots = doors.app.extensions["image_transfers"]
    number, count = made(doors.member), 0
    while slots.acquire(blocking=False):
        count += 1
    assert count == 8
    assert doors.member.ask("GET", f"/images/{number}/file").status_code == 429
    send(doors.member, made(doors.member, None), RAW, 429)
    slots.release(count)
    for _ in range(2 * count):
        for method in ("GET", "HEAD"):
            doors.member.ask(method, f"/images/{number}/file").close()
        headers = {**doors.member.headers, "Range": "bytes=99999-"}
        assert doors.client.get(f"/image/v2/images/{number}/file", headers=headers).status_code == 416
        send(doors.member, made(doors.member, None), b"", 400)
    assert slots._value == count


def test_an_upload_that_lost_its_image_writes_nothing(cloud: Cloud, doors: Doors) -> None:
    number = made(doors.member, None)
    with transaction(cloud.engine) as connection:
        transfer = image_states.begin(connection, number, "queued", "saving")
    assert doors.member.get(f"/images/{number}")["status"] == "saving"
    send(doors.member, number, RAW, 409)
    cloud.write(sa.update(tables.image).values(updated_at=time.time() - 2 * image_states.SILENT))
    part = pathlib.Path(image_store.part_of(str(cloud.home), number, transfer))
    part.parent.mkdir(exist_ok=True)
    deleted = str(uuid.uuid4())
    cloud.insert(tables.tables_images.image_id_used, id=deleted)
    for path in (part, part.parent / deleted):
        path.write_bytes(b"x")
        os.utime(path, (1, 1))
    with transaction(cloud.engine) as connection:
        image_states.sweep(connection, str(cloud.home))
    assert os.listdir(part.parent) == []
    with transaction(cloud.engine) as connection, pytest.raises(NotFoundError):
        image_states.progress(connection, number, transfer, 5)
    send(doors.member, number, RAW)


@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize("disk_format", FORMATS)
def test_disks_of_other_hypervisors_are_converted(
    cloud: Cloud, doors: Doors, tmp_path: pathlib.Path, disk_format: str, staged: bool
) -> None:
    raw = raw_disk(tmp_path / "disk.raw")
    number = made(doors.member, None, disk_format=disk_format)
    send(doors.member, number, converted(raw, disk_format).read_bytes(), where="stage" if staged else "file")
    if staged:
        doors.member.post(f"/images/{number}/import", {"method": {"name": "glance-direct"}}, 202)
        (task,) = doors.member.get(f"/images/{number}/tasks")["tasks"]
        assert (task["status"], task["message"]) == ("success", "")
    image, data = doors.member.get(f"/images/{number}"), doors.member.ask("GET", f"/images/{number}/file").data
    assert (image["status"], image["disk_format"], image["virtual_size"]) == ("active", "qcow2", SIZE)
    assert (image["size"], image["checksum"]) == (len(data), hashlib.md5(data).hexdigest())
    assert image["os_hash_value"] == hashlib.sha256(data).hexdigest()
    with cloud.engine.connect() as connection:
        assert raw_of(lookups.image_by_id(connection, number, doors.project)["source"]) == raw.read_bytes()
    assert os.listdir(cloud.home / "images") == [number]


@pytest.mark.parametrize("disk_format", [*FORMATS, "iso"])
def test_a_disk_that_is_not_what_it_was_declared_to_be_is_refused(cloud: Cloud, doors: Doors, disk_format: str) -> None:
    number = made(doors.member, None, disk_format=disk_format)
    assert disk_format in send(doors.member, number, RAW, 400)
    send(doors.member, number, RAW, where="stage")
    doors.member.post(f"/images/{number}/import", {"method": {"name": "glance-direct"}}, 202)
    assert disk_format in doors.member.get(f"/images/{number}/tasks")["tasks"][0]["message"]
    assert doors.member.get(f"/images/{number}")["status"] == "queued" and os.listdir(cloud.home / "images") == []


def test_a_disk_that_unfolds_beyond_the_quota_is_refused(cloud: Cloud, doors: Doors, tmp_path: pathlib.Path) -> None:
    raw = tmp_path / "disk.raw"
    raw.write_bytes(b"\1" * (8 << 20))
    data = converted(raw, "vmdk").read_bytes()
    cloud.write(sa.insert(tables.quota).values(project_id=doors.project, resource="image_size_total", hard_limit=1))
    assert len(data) < 1 << 20
    number = made(doors.member, None, disk_format="vmdk")
    assert "cannot be converted" in send(doors.member, number, data, 400)
    assert os.listdir(cloud.home / "images") == []


@pytest.mark.parametrize("where", ["file", "stage"])
def test_an_ova_is_refused_with_what_to_do(cloud: Cloud, doors: Doors, where: str) -> None:
    number = made(doors.member, None, disk_format="vmdk", container_format="ova")
    assert "upload its disk" in send(doors.member, number, RAW, 400, where=where)
    assert doors.member.get(f"/images/{number}")["status"] == "queued" and not (cloud.home / "images").exists()


@pytest.mark.parametrize("disk_format", ["ploop", "aki", "ari", "ami"])
def test_what_cannot_be_launched_is_kept_all_the_same(cloud: Cloud, doors: Doors, disk_format: str) -> None:
    number = made(doors.member, disk_format=disk_format)
    assert doors.member.ask("GET", f"/images/{number}/file").data == RAW
    with cloud.engine.connect() as connection, pytest.raises(NovaliteError, match=f"disk_format is '{disk_format}'"):
        lookups.image_by_id(connection, number, doors.project)


def test_only_an_active_image_is_launched(cloud: Cloud, doors: Doors) -> None:
    def launched(number: str) -> dict[str, t.Any]:
        with cloud.engine.connect() as connection:
            return lookups.image_by_id(connection, number, doors.project)

    number = made(doors.member, None)
    with pytest.raises(NovaliteError, match="not active"):
        launched(number)
    send(doors.member, number, RAW)
    assert launched(number)["source"] == str(cloud.home / "images" / number)
    doors.reader.post(f"/images/{number}/actions/deactivate", None, 403)
    for _ in range(2):
        doors.member.post(f"/images/{number}/actions/deactivate", None, 204)
    assert doors.member.get(f"/images/{number}")["status"] == "deactivated"
    doors.member.get(f"/images/{number}/file", 403)
    assert doors.admin.ask("GET", f"/images/{number}/file").data == RAW
    with pytest.raises(NovaliteError, match="not active"):
        launched(number)
    doors.member.post(f"/images/{number}/actions/reactivate", None, 204)
    assert launched(number)["size"] == 4096
    doors.member.post(f"/images/{made(doors.member, None)}/actions/deactivate", None, 403)


def test_a_kernel_and_a_ramdisk_are_images_of_their_own(cloud: Cloud, doors: Doors) -> None:
    kernel, ramdisk = (made(doors.member, disk_format=kind, container_format=kind) for kind in ("aki", "ari"))
    number = made(doors.member, disk_format="ami", container_format="ami", kernel_id=kernel, ramdisk_id=ramdisk)
    with cloud.engine.connect() as connection:
        image = lookups.image_by_id(connection, number, doors.project)
        assert (image["disk_format"], image["cmdline"]) == ("raw", lookups.CMDLINE)
        assert image["kernel"]["source"].endswith(kernel) and image["ramdisk"]["source"].endswith(ramdisk)
    doors.member.delete(f"/images/{kernel}", 204)
    with cloud.engine.connect() as connection, pytest.raises(NovaliteError, match="kernel_id"):
        lookups.image_by_id(connection, number, doors.project)


def test_a_file_stays_while_an_instance_was_made_from_it(cloud: Cloud, doors: Doors) -> None:
    number = made(doors.member)
    path = str(cloud.home / "images" / number)
    record: dict[str, t.Any] = {"id": number, "name": "x", "kernel": None, "ramdisk": None, "properties": {}}
    record["source"] = path
    instance_uuid = cloud.instance(doors.project, "web", None, image=record)
    doors.member.delete(f"/images/{number}", 204)
    doors.member.get(f"/images/{number}", 404)
    os.utime(path, (1, 1))
    with transaction(cloud.engine) as connection:
        image_states.sweep(connection, str(cloud.home))
    assert os.path.exists(path)
    with transaction(cloud.engine) as connection:
        connection.execute(sa.update(tables.instance).where(tables.instance.c.uuid == instance_uuid).values(deleted=1))
        image_states.sweep(connection, str(cloud.home))
    assert not os.path.exists(path)
