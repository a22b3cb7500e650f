# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Images that are made of volumes, asked for as Cinder's clients do."""

from __future__ import annotations

import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._guest.image_properties import public_properties
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.jobs import job_outcomes
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.steps.volume_action import volume_action
from tests.api.conftest import Cloud
from tests.api.doors import Doors
from tests.api.volume.test_volumes_api import act, hung, made, shown
from tests.support import rows

UPLOAD = "os-volume_upload_image"
FILE = {"source": "/nonexistent/golden", "checksum": "sha256:" + "7" * 64, "size": 9, "virtual_size": 1 << 30}


def images(cloud: Cloud) -> list[t.Any]:
    return cloud.rows(sa.select(tables.image).where(tables.image.c.name.like("golden%")))


def carry_out(cloud: Cloud, number: str, error: str | None = None, **more: t.Any) -> dict[str, t.Any]:
    """What playbook volume_upload.yml does with the hosts left out; returns the plan of the volume's host."""
    with transaction(cloud.engine) as connection:
        planned = volume_action(connection, {"volumes": [number]})
    (host,) = planned["hosts"]
    row = {"uuid": number, "image_id": images(cloud)[0].id, "error": error, **FILE, **more}
    outcome = {"host": host, "results": [{"id": number, "error": None}, row]}
    with transaction(cloud.engine) as connection:
        volume_action(connection, {"plans": planned["hosts"], "outcomes": [outcome]})
    return t.cast("dict[str, t.Any]", planned["hosts"][host])


def test_an_image_of_a_volume(cloud: Cloud, doors: Doors) -> None:
    number = made(doors.member)
    answer = act(doors.member, number, UPLOAD, {"image_name": "golden", "disk_format": "qcow2"})[UPLOAD]
    assert {key: answer[key] for key in ("id", "status", "size", "image_name", "disk_format", "container_format")} == {
        **{"id": number, "status": "uploading", "size": 1, "image_name": "golden"},
        **{"disk_format": "qcow2", "container_format": "bare"},
    }
    assert answer["volume_type"]["name"] and "visibility" not in answer
    assert shown(doors.member, number)["status"] == "uploading"
    (image,) = images(cloud)
    assert (image.id, image.status, image.min_disk_gb) == (answer["image_id"], "saving", 1)
    (job,) = doors.jobs()
    assert (job["kind"], job["variables"]) == ("volume_upload", {"volumes": [number]})
    act(doors.member, number, UPLOAD, {"image_name": "golden"}, 400)
    plan = carry_out(cloud, number)
    (upload,) = plan["uploads"]
    assert (upload["uuid"], upload["image_id"], upload["disk_format"]) == (number, image.id, "qcow2")
    assert upload["volume"]["id"] == number and upload["volume"]["instance_uuid"] is None
    assert [volume["id"] for volume in plan["volumes"]] == [number]  # nothing was made of it before
    (image,) = images(cloud)
    assert (image.status, image.source, image.virtual_size) == ("active", FILE["source"], 1 << 30)
    assert public_properties(image.properties) == {}
    assert shown(doors.member, number)["status"] == "available"


def test_a_volume_in_use_is_copied_by_force(cloud: Cloud, doors: Doors) -> None:
    number = made(doors.member)
    server, _attachment = hung(cloud, doors, number)
    act(doors.member, number, UPLOAD, {"image_name": "golden"}, 400)
    act(doors.member, number, UPLOAD, {"image_name": "golden", "force": "True"})
    plan = carry_out(cloud, number)
    (upload,) = plan["uploads"]
    assert (upload["volume"]["instance_uuid"], upload["disk_format"]) == (server, "raw")
    assert shown(doors.member, number)["status"] == "in-use"


def test_the_image_has_what_the_volumes_image_had(cloud: Cloud, doors: Doors) -> None:
    with transaction(cloud.engine) as connection:
        properties = {"os_admin_user": "me", "os_host_mount": "yes"}
        image = rows.add_image(connection, "base", properties=properties, min_ram_mb=64)
    number = made(doors.member, imageRef=image)
    cloud.write(sa.update(tables.tables_volumes.volume).values(status="available", made_at=1))
    act(doors.member, number, UPLOAD, {"image_name": "golden"})
    (golden,) = images(cloud)
    assert public_properties(golden.properties) == {"os_admin_user": "me"} and golden.min_ram_mb == 64


@pytest.mark.parametrize("error", ["no space left", None])
def test_what_goes_wrong_leaves_no_image(cloud: Cloud, doors: Doors, error: str | None) -> None:
    number = made(doors.member)
    act(doors.member, number, UPLOAD, {"image_name": "golden"})
    if error is not None:
        carry_out(cloud, number, error)
    else:
        with transaction(cloud.engine) as connection:
            job_outcomes.settle_volumes(connection, "volume_upload", {"volumes": [number]}, "its worker is gone")
    assert images(cloud) == [] and shown(doors.member, number)["status"] == "available"


def test_an_image_that_is_deleted_meanwhile_stays_so(cloud: Cloud, doors: Doors) -> None:
    number = made(doors.member)
    act(doors.member, number, UPLOAD, {"image_name": "golden"})
    cloud.write(sa.delete(tables.image).where(tables.image.c.name == "golden"))
    with transaction(cloud.engine) as connection:
        assert volume_action(connection, {"volumes": [number]})["hosts"] == {}
    assert images(cloud) == [] and shown(doors.member, number)["status"] == "available"


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"image_name": ""},
        {"image_name": "golden", "disk_format": "vmdk"},
        {"image_name": "golden", "container_format": "ova"},
        {"image_name": "golden", "force": "perhaps"},
    ],
)
def test_uploads_that_cannot_be(cloud: Cloud, doors: Doors, said: dict[str, t.Any]) -> None:
    number = made(doors.member)
    act(doors.member, number, UPLOAD, said, 400)
    assert images(cloud) == [] and doors.jobs() == [] and shown(doors.member, number)["status"] == "available"


def test_who_may_publish_one(cloud: Cloud, doors: Doors) -> None:
    number = made(doors.member)
    for user, visibility, status in (
        *((doors.member, "public", 403), (doors.reader, "private", 403), (doors.stranger, "private", 404)),
        (doors.admin, "public", 202),
    ):
        headers = {**user.headers, "OpenStack-API-Version": "volume 3.1"}
        body = {UPLOAD: {"image_name": "golden", "visibility": visibility, "protected": True}}
        answer = user.client.post(f"{user.base}/volumes/{number}/action", json=body, headers=headers)
        assert answer.status_code == status, answer.get_json()
    assert (answer.get_json()[UPLOAD]["visibility"], answer.get_json()[UPLOAD]["protected"]) == ("public", True)
