# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Servers that start from a volume: images of them, servers of such an image, and rebuilds."""

from __future__ import annotations

import json
import typing as t
import uuid

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute import plans, reimage
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables, tables_volumes
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute.views import instances_by
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volumes.volume_views import (
    Snapshot,
    snapshots_by,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.volumes import volume_snapshots, volumes
from ansible_collections.novalite.cloud.plugins.module_utils._rules.volume_mappings import NO_IMAGE
from tests.api import seeds
from tests.api.compute.test_server_volumes import create, jobs
from tests.api.compute.test_servers_anew import OTHER_IMAGE, SERVERS, ClientAs, Does, does, finish, row, server

__all__ = ["does", "server"]


@pytest.fixture(autouse=True)
def no_domains(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "guest_of", lambda instance, facts, **_where: instance)
    monkeypatch.setattr(plans, "render", lambda guest: "")


@pytest.fixture
def root(api: seeds.Api, server: str) -> str:
    """Id of the volume, made of the seeds' image, that the server starts from; another one is attached, too."""
    image = row(api, server).image
    volume_ids = []
    for name, device, index in (("root", "/dev/vda", 0), ("data", "/dev/vdb", None)):
        with transaction(api.engine) as connection:
            made = volumes.create_volume(connection, api.projects["demo"], {"size_gb": 1, "name": name})
        values = {"host": "hv1", "status": "in-use", "made_at": 1, "bootable": index == 0, "image": image}
        api.write(sa.update(tables_volumes.volume).where(tables_volumes.volume.c.id == made.id).values(**values))
        api.insert(
            tables_volumes.volume_attachment,
            id=str(uuid.uuid4()),
            volume_id=made.id,
            instance_uuid=server,
            device=device,
            boot_index=index,
            created_at=1,
            attached_at=1,
        )
        volume_ids.append(str(made.id))
    return volume_ids[0]


def snapshots(api: seeds.Api) -> list[Snapshot]:
    with api.engine.connect() as connection:
        return snapshots_by(connection, project_id=api.projects["demo"])


def plan(api: seeds.Api, uuid: str, action: str = "rebuild") -> t.Any:
    with transaction(api.engine) as connection:
        instances = instances_by(connection, uuids=[uuid])
        return reimage.plans(connection, {"action": action, "state_dir": "/x"}, instances)["hv1"]


def test_an_image_of_its_volumes_launches_a_server(
    api: seeds.Api, does: Does, server: str, root: str, client_as: ClientAs
) -> None:
    answer = does({"createImage": {"name": "friday", "metadata": {"why": "a test"}}}, "2.45")
    assert answer.status_code == 202, answer.get_json()
    image_id = answer.get_json()["image_id"]
    image = client_as("demo").get(f"/image/v2/images/{image_id}").get_json()
    assert (image["status"], image["size"], image["bdm_v2"], image["why"]) == ("active", 0, "True", "a test")
    devices = json.loads(image["block_device_mapping"])
    assert [(device["boot_index"], device["device_name"], device["volume_size"]) for device in devices] == [
        (0, "/dev/vda", 1),
        (None, "/dev/vdb", 1),
    ]
    assert row(api, server).task_state is None
    (variables,) = jobs(api, "volume_snapshot_create")
    assert variables["snapshots"] == [device["snapshot_id"] for device in devices]
    assert {snapshot.display_name for snapshot in snapshots(api)} == {"snapshot for friday"}
    assert create(api, [], imageRef=image_id).status_code == 409  # they are being taken
    with transaction(api.engine) as connection:
        for snapshot_id in variables["snapshots"]:
            volume_snapshots.finish_snapshot(connection, snapshot_id)
    # as a client that tags it; the mapping is longer than other properties may be
    tagged = client_as("demo").put(f"/image/v2/images/{image_id}/tags/mine")
    assert tagged.status_code == 204
    answer = create(api, [], imageRef=image_id)
    assert answer.status_code == 202, answer.get_json()
    with api.engine.connect() as connection:
        (twin,) = instances_by(connection, uuids=[answer.get_json()["server"]["id"]])
    assert [(volume["device"], volume["boot_index"], volume["copied"]) for volume in twin["volumes"]] == [
        ("/dev/vda", 0, True),
        ("/dev/vdb", None, True),
    ]
    assert twin["image"]["id"] == seeds.IMAGE_ID  # a kernel may be beside the disk
    assert client_as("demo").get(f"/image/v2/images/{image_id}/file").status_code == 204


@pytest.mark.parametrize(
    "mapping", ["{", "[]", "5", '["x"]', '[{"snapshot_id": 1}]', '[{"snapshot_id": "x", "volume_size": -1}]', "[" * 200]
)
def test_a_mapping_that_a_user_wrote_is_judged(api: seeds.Api, mapping: str, client_as: ClientAs) -> None:
    client = client_as("demo")
    body = {"name": "mine", "disk_format": "qcow2", "container_format": "bare", "block_device_mapping": mapping}
    answer = client.post("/image/v2/images", json=body)
    assert answer.status_code == 201
    image_id = answer.get_json()["id"]
    api.write(sa.update(tables.image).where(tables.image.c.id == image_id).values(status="active"))
    answer = create(api, [], imageRef=image_id)
    assert answer.status_code == 400 and "block_device_mapping" in answer.get_json()["badRequest"]["message"]


def test_it_has_no_backups_as_in_nova(api: seeds.Api, does: Does, server: str, root: str) -> None:
    answer = does({"createBackup": {"name": "friday", "backup_type": "daily", "rotation": 1}})
    message = "Backup is not supported for volume-backed instances."
    assert (answer.status_code, answer.get_json()["badRequest"]["message"]) == (400, message)
    assert row(api, server).task_state is None and snapshots(api) == []


def test_nobody_else_gets_the_snapshots(api: seeds.Api, does: Does, root: str, client_as: ClientAs) -> None:
    image_id = does({"createImage": {"name": "friday"}}, "2.45").get_json()["image_id"]
    api.write(sa.update(tables.image).where(tables.image.c.id == image_id).values(visibility="public"))
    server = {"name": "x", "flavorRef": "1", "imageRef": image_id}
    assert client_as("alt").post(SERVERS, json={"server": server}).status_code == 400


def test_before_2_93_a_rebuild_keeps_the_volume(api: seeds.Api, does: Does, server: str, root: str) -> None:
    answer = does({"rebuild": {"imageRef": OTHER_IMAGE}}, "2.92")
    assert (answer.status_code, answer.get_json()["badRequest"]["message"]) == (
        *(400, "Unable to rebuild with a different image for a volume-backed server."),
    )
    assert does({"rebuild": {"imageRef": seeds.IMAGE_ID}}, "2.92").status_code == 202
    assert plan(api, server)["volumes_anew"] == []


def test_a_rebuild_makes_the_root_volume_anew(api: seeds.Api, does: Does, server: str, root: str) -> None:
    assert does({"rebuild": {"imageRef": OTHER_IMAGE}}, "2.93").status_code == 202
    of_host = plan(api, server)
    (anew,) = of_host["volumes_anew"]
    assert (anew["id"], anew["create"], anew["source"]) == (root, True, {"checksum": "sha256:" + "9" * 64})
    assert [image["checksum"] for image in of_host["images"]] == ["sha256:" + "9" * 64]
    assert of_host["volumes"] == [] and of_host["injections"] == []  # no host mounts this image
    finish(api, "rebuild", server)
    with api.engine.connect() as connection:
        kept = connection.execute(sa.select(tables_volumes.volume.c.image).where(tables_volumes.volume.c.id == root))
        assert kept.scalar_one()["id"] == OTHER_IMAGE
    assert row(api, server).vm_state == "active"


def test_keys_are_injected_into_a_volume_that_is_made_anew(api: seeds.Api, does: Does, server: str, root: str) -> None:
    properties = {"os_host_mount": "yes"}
    api.write(sa.update(tables.image).where(tables.image.c.id == OTHER_IMAGE).values(properties=properties))
    assert does({"rebuild": {"imageRef": OTHER_IMAGE}}, "2.93").status_code == 202
    (injection,) = plan(api, server)["injections"]
    assert injection["volume"]["id"] == root and injection["keys"] == ["ssh-rsa x"]


def test_an_image_that_is_larger_than_the_volume(api: seeds.Api, does: Does, server: str, root: str) -> None:
    api.write(sa.update(tables.image).where(tables.image.c.id == OTHER_IMAGE).values(virtual_size=2 << 30))
    answer = does({"rebuild": {"imageRef": OTHER_IMAGE}}, "2.93")
    assert answer.status_code == 400 and "does not fit on the root volume" in answer.get_json()["badRequest"]["message"]
    assert row(api, server).task_state is None


def test_a_rescue_has_the_root_volume_as_its_second_disk(api: seeds.Api, does: Does, server: str, root: str) -> None:
    answer = does({"rescue": {"rescue_image_ref": OTHER_IMAGE}}, "2.86")
    assert answer.status_code == 400 and "volume-backed instance" in answer.get_json()["badRequest"]["message"]
    assert does({"rescue": {"rescue_image_ref": OTHER_IMAGE}}, "2.87").status_code == 200
    of_host = plan(api, server, "rescue")
    (disk,) = of_host["disks"]
    assert disk["rescue"] and disk["base"] == "sha256:" + "9" * 64 and of_host["volumes_gone"] == []
    finish(api, "rescue", server)
    assert row(api, server).vm_state == "rescued"
    assert does({"unrescue": None}).status_code == 202


def test_a_volume_of_no_image_is_rescued_with_another_one(api: seeds.Api, does: Does, server: str, root: str) -> None:
    api.write(sa.update(tables.instance).where(tables.instance.c.uuid == server).values(image=NO_IMAGE))
    answer = does({"rescue": None}, "2.87")
    assert answer.status_code == 400 and "name one" in answer.get_json()["badRequest"]["message"]
