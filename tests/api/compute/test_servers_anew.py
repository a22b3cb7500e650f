# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rebuild, rescue, unrescue, createImage, and what is refused of consoles and passwords."""

from __future__ import annotations

import base64
import typing as t

import pytest
import sqlalchemy as sa
from flask.testing import FlaskClient

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute import server_actions
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables, tables_jobs
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from tests.api import seeds

SERVERS = "/compute/v2.1/servers"
OTHER_IMAGE = "0c4a4b0e-1f5a-4a7b-8f0f-77a3b6f2d0aa"
HIDDEN_IMAGE = "3f1f9f53-6a1e-4b0e-8a6d-1c8f2d9e5b11"
ClientAs = t.Callable[..., FlaskClient]
Does = t.Callable[..., t.Any]


@pytest.fixture
def server(api: seeds.Api) -> str:
    for number, image_id, owner in (("9", OTHER_IMAGE, ""), ("8", HIDDEN_IMAGE, api.projects["alt"])):
        api.insert(
            tables.image,
            id=image_id,
            owner=owner,
            name=f"other-{number}",
            disk_format="raw",
            source=f"/nonexistent/{number}",
            checksum="sha256:" + number * 64,
            size=4096,
            virtual_size=4096,
            kernel=None,
            ramdisk=None,
            cmdline="",
            min_disk_gb=0,
            min_ram_mb=0,
            properties={},
            created_at=1,
        )
    return api.instance("demo", "web", host="hv1", metadata={"a": "1"}, key_name="test", public_key="ssh-rsa x")


@pytest.fixture
def does(server: str, client_as: ClientAs) -> Does:
    def post(body: t.Any, version: str = "2.1", user: str = "demo") -> t.Any:
        headers = {"OpenStack-API-Version": f"compute {version}"}
        return client_as(user).post(f"{SERVERS}/{server}/action", json=body, headers=headers)

    return post


def row(api: seeds.Api, uuid: str) -> t.Any:
    with api.engine.connect() as connection:
        return connection.execute(sa.select(tables.instance).where(tables.instance.c.uuid == uuid)).one()


def jobs(api: seeds.Api) -> list[t.Any]:
    with api.engine.connect() as connection:
        return list(connection.execute(sa.select(tables_jobs.job)).all())


def finish(api: seeds.Api, action: str, uuid: str, **how: t.Any) -> list[str]:
    with transaction(api.engine) as connection:
        return server_actions.finish(connection, action, [uuid], **how)


def change(api: seeds.Api, uuid: str, **values: t.Any) -> None:
    api.write(sa.update(tables.instance).where(tables.instance.c.uuid == uuid).values(**values))


def test_a_rebuild_changes_what_it_names_and_keeps_the_rest(api: seeds.Api, does: Does, server: str) -> None:
    data = base64.b64encode(b"#!/bin/sh").decode()
    answer = does(
        {
            "rebuild": {
                "imageRef": OTHER_IMAGE,
                "name": "anew",
                "metadata": {"b": "2"},
                "user_data": data,
                "key_name": None,
                "adminPass": "chosen",
                "description": "again",
            }
        },
        "2.96",
    )
    assert answer.status_code == 202, answer.get_json()
    shown = answer.get_json()["server"]
    assert (shown["status"], shown["name"], shown["adminPass"], shown["user_data"]) == (
        "REBUILD",
        "anew",
        "chosen",
        data,
    )
    assert shown["image"]["id"] == OTHER_IMAGE and answer.headers["Location"].endswith(f"/servers/{server}")
    instance_row = row(api, server)
    assert (instance_row.metadata, instance_row.key_name, instance_row.public_key, instance_row.host) == (
        {"b": "2"},
        None,
        None,
        "hv1",
    )
    assert instance_row.password_hash.startswith("$6$") and not instance_row.password_optional
    (job,) = jobs(api)
    assert (job.kind, job.variables) == ("rebuild", {})
    assert does({"rebuild": {"imageRef": OTHER_IMAGE}}).status_code == 409
    assert finish(api, "rebuild", server) == [server]
    instance_row = row(api, server)
    assert (instance_row.vm_state, instance_row.task_state, instance_row.power_state) == ("active", None, 1)


@pytest.mark.parametrize(
    ("version", "more"),
    [
        ("2.1", set()),
        ("2.53", set()),
        ("2.54", {"key_name"}),
        ("2.75", {"key_name", "config_drive", "OS-EXT-STS:vm_state", "OS-EXT-AZ:availability_zone"}),
    ],
)
def test_the_answers_to_changes_show_less_in_old_microversions(
    client_as: ClientAs, does: Does, server: str, version: str, more: set[str]
) -> None:
    newer_fields = {
        "key_name",
        "config_drive",
        "OS-EXT-STS:vm_state",
        "OS-EXT-AZ:availability_zone",
        "OS-EXT-SRV-ATTR:user_data",
    }
    rebuilt = does({"rebuild": {"imageRef": OTHER_IMAGE}}, version).get_json()["server"]
    assert newer_fields & rebuilt.keys() == more
    headers = {"OpenStack-API-Version": f"compute {version}"}
    path = f"/compute/v2.1/servers/{server}"
    answer = client_as("demo").put(path, json={"server": {"name": "other"}}, headers=headers)
    changed = answer.get_json()["server"]
    assert newer_fields & changed.keys() == (more if version == "2.75" else set())
    assert {"id", "name", "status", "addresses", "OS-DCF:diskConfig"} <= changed.keys()


@pytest.mark.parametrize(
    ("before", "how", "after", "image"),
    [
        ("active", {}, "active", OTHER_IMAGE),
        ("stopped", {}, "stopped", OTHER_IMAGE),
        ("error", {}, "active", OTHER_IMAGE),
        ("active", {"error": "no room"}, "error", OTHER_IMAGE),
        ("active", {"error": "no such file", "untouched": True}, "active", seeds.IMAGE_ID),
    ],
)
def test_what_a_server_is_after_a_rebuild(
    api: seeds.Api, does: Does, server: str, before: str, how: dict[str, t.Any], after: str, image: str
) -> None:
    change(api, server, vm_state=before)
    assert does({"rebuild": {"imageRef": OTHER_IMAGE}}).status_code == 202
    said = {server: {"untouched": True}} if how.pop("untouched", False) else {}
    finish(api, "rebuild", server, host_results=said, **how)
    instance_row = row(api, server)
    assert (instance_row.vm_state, instance_row.task_state, instance_row.image["id"]) == (after, None, image)
    assert (instance_row.fault is not None) == (after == "error")


@pytest.mark.parametrize(
    ("body", "version", "status"),
    [
        ({"imageRef": HIDDEN_IMAGE}, "2.1", 400),
        ({"imageRef": "x"}, "2.1", 400),
        ({}, "2.1", 400),
        ({"imageRef": OTHER_IMAGE, "key_name": "test"}, "2.53", 400),
        ({"imageRef": OTHER_IMAGE, "key_name": "nosuch"}, "2.54", 400),
        ({"imageRef": OTHER_IMAGE, "personality": []}, "2.57", 400),
        ({"imageRef": OTHER_IMAGE, "user_data": "not base64!"}, "2.57", 400),
        ({"imageRef": OTHER_IMAGE, "accessIPv4": "x"}, "2.1", 400),
        ({"imageRef": OTHER_IMAGE, "preserve_ephemeral": True}, "2.1", 400),
        ({"imageRef": OTHER_IMAGE, "hostname": "x"}, "2.89", 400),
        ({"imageRef": OTHER_IMAGE, "adminPass": "\n"}, "2.1", 400),
        ({"imageRef": OTHER_IMAGE, "name": " "}, "2.1", 400),
    ],
)
def test_rebuilds_that_cannot_be(
    api: seeds.Api, does: Does, server: str, body: t.Any, version: str, status: int
) -> None:
    before = row(api, server)
    assert does({"rebuild": body}, version).status_code == status
    assert row(api, server) == before and jobs(api) == []


def test_a_rescue_and_back(api: seeds.Api, does: Does, server: str) -> None:
    assert does({"rescue": {"rescue_image_ref": HIDDEN_IMAGE}}).status_code == 400
    answer = does({"rescue": {"adminPass": "let me in", "rescue_image_ref": OTHER_IMAGE}})
    assert (answer.status_code, answer.get_json()) == (200, {"adminPass": "let me in"})
    instance_row = row(api, server)
    assert instance_row.task_state == "rescuing" and instance_row.rescue_image["id"] == OTHER_IMAGE
    assert instance_row.rescue_image["password_hash"].startswith("$6$") and instance_row.password_hash is None
    finish(api, "rescue", server)
    assert row(api, server).vm_state == "rescued" and row(api, server).image["id"] == seeds.IMAGE_ID
    assert does({"rescue": None}).status_code == 409
    assert does({"unrescue": None}).status_code == 202
    finish(api, "unrescue", server)
    instance_row = row(api, server)
    assert (instance_row.vm_state, instance_row.task_state, instance_row.rescue_image) == ("active", None, None)
    assert [job.kind for job in jobs(api)] == ["rescue", "unrescue"]


def test_a_rescue_without_a_word_takes_the_servers_own_image(api: seeds.Api, does: Does, server: str) -> None:
    answer = does({"rescue": None})
    assert answer.status_code == 200 and len(answer.get_json()["adminPass"]) >= 12
    assert row(api, server).rescue_image["id"] == seeds.IMAGE_ID
    finish(api, "rescue", server, error="its host does not answer")
    instance_row = row(api, server)
    assert (instance_row.vm_state, instance_row.rescue_image) == ("error", None)


def test_an_image_of_a_server(api: seeds.Api, does: Does, server: str, client_as: ClientAs) -> None:
    answer = does({"createImage": {"name": "friday", "metadata": {"why": "a test"}}}, "2.45")
    image_id = answer.get_json()["image_id"]
    assert answer.status_code == 202 and "Location" not in answer.headers
    assert row(api, server).task_state == "image_snapshot"
    assert client_as("demo").get(f"/image/v2/images/{image_id}").get_json()["status"] == "saving"
    assert client_as("demo").put(f"/image/v2/images/{image_id}/file", data=b"x").status_code in (409, 415)
    said = {"source": "/nonexistent/friday", "checksum": "sha256:" + "7" * 64, "size": 9, "virtual_size": 64 << 20}
    assert finish(api, "createImage", server, host_results={server: said}) == [server]
    assert (row(api, server).vm_state, row(api, server).task_state) == ("active", None)
    shown = client_as("demo").get(f"/image/v2/images/{image_id}").get_json()
    assert (shown["name"], shown["status"], shown["size"]) == ("friday", "active", 9)
    assert (shown["why"], shown["instance_uuid"], shown["image_type"]) == ("a test", server, "snapshot")
    assert shown["base_image_ref"] == seeds.IMAGE_ID and shown["min_disk"] == 1
    assert client_as("alt").get(f"/image/v2/images/{image_id}").status_code == 404


def test_an_image_that_was_not_made_is_none(api: seeds.Api, does: Does, server: str, client_as: ClientAs) -> None:
    answer = does({"createImage": {"name": "friday"}})
    location = answer.headers["Location"]
    assert answer.status_code == 202 and "/image/v2/images/" in location
    finish(api, "createImage", server, error="no room")
    assert (row(api, server).vm_state, row(api, server).task_state) == ("active", None)
    assert client_as("demo").get(location).status_code == 404


def test_a_server_of_an_image_with_a_bad_property_can_be_made_an_image_of(
    api: seeds.Api, does: Does, server: str, client_as: ClientAs
) -> None:
    """It comes from before properties were judged, and is mended in the copy."""
    image = row(api, server).image
    change(api, server, image={**image, "properties": {"os_admin_user": 'a"b'}})
    image_id = does({"createImage": {"name": "friday"}}, "2.45").get_json()["image_id"]
    assert client_as("demo").get(f"/image/v2/images/{image_id}").get_json()["os_admin_user"] == 'a"b'


BAD_USER = {"name": "x", "metadata": {"os_admin_user": 'a"b'}}


@pytest.mark.parametrize(
    "body", [{}, {"name": ""}, {"name": "x", "metadata": {"a": 1}}, {"name": "x", "rotation": 1}, BAD_USER]
)
def test_images_that_cannot_be(does: Does, body: t.Any) -> None:
    assert does({"createImage": body}).status_code == 400


def test_an_image_too_many(api: seeds.Api, does: Does, server: str) -> None:
    api.insert(tables.quota, project_id=api.projects["demo"], resource="images", hard_limit=0)
    assert does({"createImage": {"name": "friday"}}).status_code == 403
    assert row(api, server).task_state is None and jobs(api) == []


def test_the_agent_in_a_guest_is_told_a_hash(api: seeds.Api, does: Does, server: str) -> None:
    change(api, server, image={**row(api, server).image, "properties": {"hw_qemu_guest_agent": "yes"}})
    answer = does({"changePassword": {"adminPass": "s3cret word"}})
    assert (answer.status_code, answer.data) == (202, b"")
    changed = row(api, server)
    assert (changed.task_state, changed.vm_state) == ("updating_password", "active")
    assert changed.password_hash.startswith("$6$") and not changed.password_optional
    (job,) = jobs(api)
    assert (job.kind, job.variables) == ("changePassword", {})
    with api.engine.connect() as connection:
        kept = repr(connection.execute(sa.select(tables.instance_action)).all())
    assert "changePassword" in kept and "$6$" not in kept and "s3cret" not in kept
    finish(api, "changePassword", server)
    assert (row(api, server).task_state, row(api, server).vm_state) == (None, "active")


@pytest.mark.parametrize("password", ["", "two\nlines"])
def test_what_is_no_password_is_refused(api: seeds.Api, does: Does, server: str, password: str) -> None:
    change(api, server, image={**row(api, server).image, "properties": {"hw_qemu_guest_agent": "yes"}})
    assert does({"changePassword": {"adminPass": password}}).status_code == 400
    assert row(api, server).task_state is None


def test_an_agent_in_windows_takes_no_hash(api: seeds.Api, does: Does, server: str) -> None:
    properties = {"hw_qemu_guest_agent": "yes", "os_type": "windows"}
    change(api, server, image={**row(api, server).image, "properties": properties})
    answer = does({"changePassword": {"adminPass": "x"}})
    assert answer.status_code == 409 and "not supported" in answer.get_json()["conflictingRequest"]["message"]


def test_nobody_in_a_guest_changes_its_password(api: seeds.Api, does: Does, server: str) -> None:
    answer = does({"changePassword": {"adminPass": "x"}})
    assert answer.status_code == 409 and "agent" in answer.get_json()["conflictingRequest"]["message"]
    change(api, server, vm_state="stopped")
    answer = does({"changePassword": {"adminPass": "x"}})
    assert "vm_state stopped" in answer.get_json()["conflictingRequest"]["message"]
    assert does({"changePassword": {}}).status_code == 400


def test_consoles_are_opened_by_addresses_with_a_token(
    api: seeds.Api, does: Does, server: str, client_as: ClientAs
) -> None:
    console = does({"os-getSerialConsole": {"type": "serial"}}).get_json()["console"]
    assert console["type"] == "serial" and "/console/serial#" in console["url"]
    assert does({"os-getVNCConsole": {"type": "novnc"}}).status_code == 200
    assert does({"os-getVNCConsole": {"type": "novnc"}}, "2.6").status_code == 404
    url = f"{SERVERS}/{server}/remote-consoles"
    headers = {"OpenStack-API-Version": "compute 2.6"}

    def ask(user: str, protocol: str, kind: str) -> t.Any:
        body = {"remote_console": {"protocol": protocol, "type": kind}}
        return client_as(user).post(url, json=body, headers=headers)

    answer = ask("demo", "vnc", "novnc")
    assert answer.status_code == 200 and answer.get_json()["remote_console"]["protocol"] == "vnc"
    for protocol, kind, words in (
        ("spice", "spice-html5", "Unavailable console type spice-html5."),
        ("vnc", "xvpvnc", "Unavailable console type xvpvnc."),
        ("serial", "novnc", "Invalid console type novnc"),
        ("mks", "webmks", "Invalid console type webmks"),
    ):
        answer = ask("demo", protocol, kind)
        assert (answer.status_code, answer.get_json()["badRequest"]["message"]) == (400, words)
    assert ask("alt", "serial", "serial").status_code == 404
    change(api, server, vm_state="stopped")
    assert ask("demo", "serial", "serial").status_code == 409
    change(api, server, vm_state="active", image={**row(api, server).image, "properties": {"hw_video_model": "none"}})
    assert [ask("demo", *asked).status_code for asked in (("vnc", "novnc"), ("serial", "serial"))] == [400, 200]
    change(api, server, host=None)
    assert does({"os-getSerialConsole": {"type": "serial"}}).status_code == 409


@pytest.mark.parametrize(
    "body",
    [{"rebuild": {"imageRef": OTHER_IMAGE}}, {"rescue": None}, {"unrescue": None}, {"createImage": {"name": "x"}}],
)
def test_a_foreign_server_is_none(does: Does, api: seeds.Api, body: t.Any) -> None:
    assert does(body, user="alt").status_code == 404
    assert does(body, user="reader").status_code == 403
    assert jobs(api) == []


def test_a_reset_ends_what_was_under_way(api: seeds.Api, does: Does, server: str) -> None:
    does({"rescue": None})
    assert does({"os-resetState": {"state": "error"}}, user="admin").status_code == 202
    instance_row = row(api, server)
    assert (instance_row.vm_state, instance_row.task_state, instance_row.rescue_image) == ("error", None, None)
    with api.engine.connect() as connection:
        assert connection.execute(sa.select(tables.instance_action.c.finished_at)).scalar_one() is not None
    assert finish(api, "rescue", server) == []


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ({"kind": "createImage", "variables": {"image_name": "native"}}, 202),
        ({"kind": "createImage"}, 400),
        ({"kind": "rescue"}, 202),
        ({"kind": "rebuild", "variables": {"image": "other-9"}}, 202),
        ({"kind": "rebuild", "variables": {"image": "nosuch"}}, 404),
    ],
)
def test_by_the_native_way(
    api: seeds.Api, server: str, client_as: ClientAs, asked: dict[str, t.Any], status: int
) -> None:
    answer = client_as("demo").post("/v1/jobs", json={**asked, "instances": [server]})
    assert answer.status_code == status, answer.get_json()
    assert len(jobs(api)) == (status == 202)
