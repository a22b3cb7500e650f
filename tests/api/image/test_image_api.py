# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The Image API, asked as clients ask it."""

from __future__ import annotations

import json
import re
import typing as t
import uuid

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from api.openstack.identity.catalog import CLOUD
from tests.api.conftest import Cloud
from tests.api.doors import Doors
from tests.support.examples import part_of

NOWHERE = "11111111-2222-3333-4444-555555555555"
MADE = 1_700_000_000
SUM = "ab" * 32


def make(cloud: Cloud, name: str, owner: str = "", **values: t.Any) -> str:
    number = str(uuid.uuid4())
    row = {
        "disk_format": "qcow2",
        "source": "/srv/x.qcow2",
        "checksum": f"sha256:{SUM}",
        "size": 1000,
        "virtual_size": 2000,
        "properties": {"novalite:stat": {}, "hw_disk_bus": "virtio"},
        "created_at": MADE,
    }
    cloud.insert(tables.image, id=number, owner=owner, name=name, **{**row, **values})
    return number


def patched(doors: Doors, number: str, changes: t.Any, status: int = 200, who: str = "member") -> t.Any:
    user = getattr(doors, who)
    headers = {**user.headers, "Content-Type": "application/openstack-images-v2.1-json-patch"}
    answer = doors.client.patch(f"/image/v2/images/{number}", data=json.dumps(changes), headers=headers)
    assert answer.status_code == status, answer.get_data(as_text=True)
    return answer.get_json()


@pytest.mark.parametrize("path", ["/image", "/image/", "/image/v2/"])
def test_anybody_reads_the_versions(doors: Doors, path: str) -> None:
    answer = doors.client.get(path)
    assert answer.status_code == 300
    assert answer.get_json()["versions"][0]["id"] == "v2.12"
    assert answer.get_json()["versions"][0]["links"][0]["href"].endswith("/image/v2/")


def test_an_image_is_shown_as_glance_does(cloud: Cloud, doors: Doors) -> None:
    number = make(cloud, "ami-tiny", cmdline="root=/dev/vda", min_disk_gb=1, min_ram_mb=64)
    assert doors.reader.get(f"/images/{number}") == {
        "hw_disk_bus": "virtio",
        "os_command_line": "root=/dev/vda",
        "id": number,
        "name": "ami-tiny",
        "status": "active",
        "visibility": "public",
        "owner": CLOUD,
        "protected": False,
        "os_hidden": False,
        "checksum": None,
        "os_hash_algo": "sha256",
        "os_hash_value": SUM,
        "size": 1000,
        "virtual_size": 2000,
        "container_format": "bare",
        "disk_format": "qcow2",
        "min_disk": 1,
        "min_ram": 64,
        "tags": [],
        "created_at": "2023-11-14T22:13:20Z",
        "updated_at": "2023-11-14T22:13:20Z",
        "self": f"/v2/images/{number}",
        "file": f"/v2/images/{number}/file",
        "schema": "/v2/schemas/image",
    }
    answer = doors.member.get("/images/ami-tiny", 404)
    assert answer["message"] == "No image found with ID ami-tiny" and answer["title"] == "Not Found"
    assert [image["id"] for image in doors.member.get("/images?name=ami-tiny")["images"]] == [number]


def test_whose_the_clouds_own_images_are_can_be_looked_up(cloud: Cloud, doors: Doors) -> None:
    """Horizon shows administrators the name of each image's owner."""
    owner = doors.admin.get(f"/images/{make(cloud, 'ami-tiny')}")["owner"]
    path = f"/identity/v3/projects/{owner}"
    assert re.fullmatch("[0-9a-f]{32}", owner)
    assert doors.client.get(path, headers=doors.admin.headers).get_json()["project"]["name"] == "cloud"
    assert doors.client.get(path, headers=doors.member.headers).status_code == 404
    projects = doors.client.get("/identity/v3/projects", headers=doors.admin.headers).get_json()["projects"]
    assert owner not in [project["id"] for project in projects]


def test_images_are_public_or_own(cloud: Cloud, doors: Doors) -> None:
    public, own = make(cloud, "a"), make(cloud, "b", doors.project, created_at=MADE + 1)
    body = doors.member.get("/images")
    assert [image["id"] for image in body["images"]] == [own, public], "the newest first"
    assert (body["first"], body["schema"]) == ("/v2/images", "/v2/schemas/images") and "next" not in body
    assert [image["id"] for image in doors.stranger.get("/images")["images"]] == [public]
    for method, path in (
        ("GET", ""),
        ("DELETE", ""),
        ("PUT", "/tags/x"),
        ("GET", "/file"),
        ("GET", "/members"),
        ("GET", "/tasks"),
    ):
        assert doors.stranger.ask(method, f"/images/{own}{path}").status_code == 404, path
    patched(doors, own, [], 404, who="stranger")


def test_filters(cloud: Cloud, doors: Doors) -> None:
    a = make(cloud, "a", size=10, properties={"os_distro": "debian"}, tags=["x"])
    b = make(cloud, "b", doors.project, disk_format="raw", created_at=MADE + 100)
    for query, expected in (
        (f"id=in%3A{a},{b}", [b, a]),
        ("name=in:a,zz", [a]),
        ("name=a&name=b", []),
        ("visibility=public", [a]),
        ("visibility=private", [b]),
        ("visibility=all", [b, a]),
        ("status=active", [b, a]),
        ("status=queued", []),
        (f"owner={doors.project}", [b]),
        ("disk_format=raw", [b]),
        ("size_max=10", [a]),
        ("size_min=11", [b]),
        ("tag=x", [a]),
        ("os_distro=debian", [a]),
        ("os_distro=other", []),
        ("protected=False", [b, a]),
        ("os_hidden=true", []),
        ("created_at=gt:2023-11-14T22:13:30Z", [b]),
        ("member_status=all", [b, a]),
        ("sort=name:asc", [a, b]),
        ("sort_key=name&sort_dir=desc", [b, a]),
        ("sort_dir=asc", [a, b]),
        ("sort=disk_format:desc,name:asc", [b, a]),
        ("limit=1", [b]),
        (f"marker={b}", [a]),
        ("limit=0", []),
    ):
        assert [image["id"] for image in doors.member.get(f"/images?{query}")["images"]] == expected, query


def test_pages_are_followed_by_their_links(cloud: Cloud, doors: Doors) -> None:
    for number in range(5):
        make(cloud, f"i{number}")
    names, href = [], "/v2/images?limit=2&sort=name:asc"
    while href:
        body = doors.client.get(f"/image{href}", headers=doors.member.headers).get_json()
        names += [image["name"] for image in body["images"]]
        href = body.get("next", "")
    assert names == ["i0", "i1", "i2", "i3", "i4"]


@pytest.mark.parametrize(
    "query",
    [
        "limit=x",
        "limit=-1",
        f"marker={NOWHERE}",
        "sort=colour",
        "sort=name:up",
        "sort_key=nosuch",
        "visibility=x",
        "created_at=gt:yesterday",
        "protected=maybe",
        "size_min=x",
        "id=in:%22a",
        "sort=name&sort_key=name",
    ],
)
def test_a_query_that_means_nothing_is_refused(cloud: Cloud, doors: Doors, query: str) -> None:
    make(cloud, "a")
    doors.member.get(f"/images?{query}", 400)


def test_an_image_is_described_anew(cloud: Cloud, doors: Doors) -> None:
    number = make(cloud, "a", doors.project)
    changes = [
        {"op": "replace", "path": "/name", "value": "b"},
        {"op": "replace", "path": "/min_disk", "value": 3},
        {"op": "add", "path": "/os_distro", "value": "debian"},
        {"op": "remove", "path": "/hw_disk_bus"},
        {"op": "replace", "path": "/tags", "value": ["y", "x"]},
        {"op": "replace", "path": "/protected", "value": True},
        {"op": "replace", "path": "/visibility", "value": "private"},
        {"op": "add", "path": "/a~1b", "value": "c"},
    ]
    after = patched(doors, number, changes)
    assert after == doors.member.get(f"/images/{number}")
    keys = ("name", "min_disk", "os_distro", "hw_disk_bus", "tags", "protected", "a/b")
    assert {key: after.get(key) for key in keys} == {
        "name": "b",
        "min_disk": 3,
        "os_distro": "debian",
        "hw_disk_bus": None,
        "tags": ["x", "y"],
        "protected": True,
        "a/b": "c",
    }
    (row,) = doors.rows(tables.image)
    assert row["properties"]["novalite:stat"] == {}, "what is novalite's own stays"
    assert row["name"] == "b", "playbooks find it under its new name"
    doors.member.delete(f"/images/{number}", 403)
    patched(doors, number, [{"op": "replace", "path": "/protected", "value": False}])
    doors.member.delete(f"/images/{number}", 204)
    doors.member.delete(f"/images/{number}", 404)


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"op": "replace", "path": "/id", "value": NOWHERE}, 403),
        ({"op": "replace", "path": "/visibility", "value": "public"}, 403),
        ({"op": "replace", "path": "/disk_format", "value": "raw"}, 403),
        ({"op": "remove", "path": "/name"}, 403),
        ({"op": "replace", "path": "/nosuch", "value": "x"}, 409),
        ({"op": "remove", "path": "/nosuch"}, 409),
        ({"op": "replace", "path": "/owner", "value": "0" * 32}, 403),
        ({"op": "add", "path": "/os_glance_x", "value": "y"}, 403),
        ({"op": "add", "path": "/locations/-", "value": {}}, 403),
        ({"op": "replace", "path": "/container_format", "value": "ovf"}, 403),
        ({"op": "add", "path": "/novalite:stat", "value": "x"}, 400),
        ({"op": "add", "path": "/x", "value": 5}, 400),
        ({"op": "add", "path": "/x", "value": "two\nlines"}, 400),
        ({"op": "add", "path": "/x"}, 400),
        ({"op": "add", "path": "x", "value": "y"}, 400),
        ({"op": "move", "path": "/x", "value": "y"}, 400),
        ({"op": "replace", "path": "/min_disk", "value": -1}, 400),
        ({"op": "replace", "path": "/tags", "value": "x"}, 400),
        ({}, 400),
    ],
)
def test_changes_that_cannot_be(cloud: Cloud, doors: Doors, change: dict[str, t.Any], status: int) -> None:
    number = make(cloud, "a", doors.project)
    before = doors.member.get(f"/images/{number}")
    patched(doors, number, [change], status)
    assert doors.member.get(f"/images/{number}") == before


SAID = {"op": "add", "path": "/os_host_mount", "value": "yes"}


def test_only_the_operator_lets_hosts_mount_an_image(cloud: Cloud, doors: Doors) -> None:
    """Through every door that writes properties of an image; whoever owns it may take it back."""
    new = {"disk_format": "raw", "container_format": "bare", "os_host_mount": "yes"}
    refusal = doors.member.post("/images", new, 403)
    assert "the operator's to set" in json.dumps(refusal)
    number = make(cloud, "mine", owner=doors.project, properties={})
    patched(doors, number, [SAID], 403)
    patched(doors, number, [SAID], 200, who="admin")
    patched(doors, number, [{"op": "add", "path": "/os_type", "value": "linux"}])  # what is there stays
    patched(doors, number, [{"op": "replace", "path": "/os_host_mount", "value": "true"}], 403)
    shown = patched(doors, number, [{"op": "remove", "path": "/os_host_mount"}])
    assert "os_host_mount" not in shown and shown["os_type"] == "linux"
    proxy = f"/compute/v2.1/images/{number}/metadata"
    said: dict[str, t.Any] = {"metadata": {"os_host_mount": "yes"}}
    for method, path, body in (
        ("post", proxy, said),
        ("put", proxy, said),
        ("put", f"{proxy}/os_host_mount", {"meta": said["metadata"]}),
    ):
        for door, status in ((doors.member, 403), (doors.admin, 200)):
            answer = getattr(doors.client, method)(path, json=body, headers=door.headers)
            assert answer.status_code == status, answer.get_data(as_text=True)
        patched(doors, number, [{"op": "remove", "path": "/os_host_mount"}])


JUDGED = {
    "os_admin_user": 'a"b',
    "os_partition": "first",
    "os_config_drive": "yes",
    "img_config_drive": "yes",
    "os_config_drive_format": "vfat",
    "os_shutdown_timeout": "1 min",
    "hw_qemu_guest_agent": "maybe",
    "os_host_mount": "sometimes",
    "hw_cdrom_bus": "floppy",
    "hw_machine_type": "isapc",
    "hw_firmware_type": "coreboot",
    "os_secure_boot": "maybe",
    "hw_tpm_version": "3",
    "hw_tpm_model": "tpm-spapr",
    "hw_watchdog_action": "bark",
    "hw_boot_menu": "often",
    "hw_cpu_cores": "0",
}


@pytest.mark.parametrize("name", list(JUDGED))
def test_a_property_that_novalite_reads_is_judged_when_it_is_recorded(cloud: Cloud, doors: Doors, name: str) -> None:
    """By every door; clients send many that nobody here reads, and those are free."""
    both = dict.fromkeys(("os_config_drive", "img_config_drive"), "optional")  # of which one is read
    free = {"disk_format": "raw", "container_format": "bare", "os_distro": JUDGED[name], "os_version": "", **both}
    bad = {name: JUDGED[name]}
    for user in (doors.admin, doors.member):
        said = json.dumps(user.post("/images", {**free, **bad}, 400))
        assert f"its property {name} is" in said and "; use " in said
    number = doors.member.post("/images", {**free, "os_admin_username": 'a"b'}, 201)["id"]
    patched(doors, number, [{"op": "add", "path": f"/{name}", "value": JUDGED[name]}], 400)
    proxy = f"/compute/v2.1/images/{number}/metadata"
    assert doors.client.post(proxy, json={"metadata": bad}, headers=doors.member.headers).status_code == 400


def test_an_image_that_was_recorded_with_a_bad_property_is_listed_mended_and_deleted(
    cloud: Cloud, doors: Doors
) -> None:
    number = make(cloud, "old", owner=doors.project, properties={"os_admin_user": 'a"b'})
    assert [row["os_admin_user"] for row in doors.member.get("/images")["images"]] == ['a"b']
    patched(doors, number, [{"op": "replace", "path": "/name", "value": "older"}])
    patched(doors, number, [{"op": "replace", "path": "/os_admin_user", "value": "c d"}], 400)
    assert patched(doors, number, [{"op": "replace", "path": "/os_admin_user", "value": "debian"}])["name"] == "older"
    for user in ('a"b', "debian"):
        doors.member.delete(
            f"/images/{make(cloud, user, owner=doors.project, properties={'os_admin_user': user})}", 204
        )


def test_tags_one_by_one(cloud: Cloud, doors: Doors) -> None:
    number = make(cloud, "a", doors.project)
    doors.member.put(f"/images/{number}/tags/x", None, 204)
    doors.member.put(f"/images/{number}/tags/x", None, 204)
    assert doors.member.get(f"/images/{number}")["tags"] == ["x"]
    doors.member.delete(f"/images/{number}/tags/x", 204)
    doors.member.delete(f"/images/{number}/tags/x", 404)


def test_who_may_what(cloud: Cloud, doors: Doors) -> None:
    public, own = make(cloud, "a"), make(cloud, "b", doors.project)
    for number, who in ((public, "member"), (own, "reader"), (public, "reader")):
        user = getattr(doors, who)
        user.delete(f"/images/{number}", 403)
        user.put(f"/images/{number}/tags/x", None, 403)
        patched(doors, number, [], 403, who=who)
    patched(doors, public, [{"op": "replace", "path": "/name", "value": "c"}], who="admin")
    doors.reader.post("/images", {"name": "x"}, 403)
    assert doors.client.get("/image/v2/images").status_code == 401
    assert doors.member.get(f"/images/{own}/members")["members"] == []


@pytest.mark.parametrize("name", ["image", "images", "member", "members", "task", "tasks"])
def test_schemas(doors: Doors, name: str) -> None:
    assert doors.member.get(f"/schemas/{name}")["name"] == name
    doors.member.get("/schemas/nosuch", 404)
    doors.member.get("/nosuch", 404)
    doors.member.delete("/images", 405)
    for method in ("GET", "DELETE"):
        assert doors.member.ask(method, "/images/").status_code == 404


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=6,
)
CHANGES = (
    st.lists(
        st.fixed_dictionaries(
            {
                "op": st.sampled_from(["add", "replace", "remove"]),
                "path": st.text(max_size=8).map("/".__add__)
                | st.sampled_from(["/name", "/tags", "/min_ram", "/owner"]),
            },
            optional={"value": JSON},
        ),
        max_size=4,
    )
    | JSON
)


@settings(max_examples=part_of(100), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(CHANGES, st.dictionaries(st.sampled_from(["limit", "marker", "sort", "name", "size_min", "x"]), st.text()))
def test_nothing_is_answered_with_5xx(cloud: Cloud, doors: Doors, changes: t.Any, query: dict[str, str]) -> None:
    rows = doors.rows(tables.image)
    number = rows[0]["id"] if rows else make(cloud, "a", doors.project)
    headers = {**doors.member.headers, "Content-Type": "application/openstack-images-v2.1-json-patch"}
    answer = doors.client.patch(f"/image/v2/images/{number}", data=json.dumps(changes), headers=headers)
    assert answer.status_code < 500, (changes, answer.get_data(as_text=True))
    answer = doors.client.get("/image/v2/images", query_string=query, headers=doors.member.headers)
    assert answer.status_code < 500, (query, answer.get_data(as_text=True))
    shown = doors.member.get(f"/images/{number}")
    assert shown["id"] == number and shown["size"] == 1000
