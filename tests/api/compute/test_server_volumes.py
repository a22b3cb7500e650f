# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""os-volume_attachments, and servers that are made with volumes."""

from __future__ import annotations

import typing as t
import uuid

import pytest
import sqlalchemy as sa
from flask.testing import FlaskClient

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables, tables_jobs
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute.views import instances_by
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volumes import volume_views
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volumes.volume_views import volumes_by
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.volumes import (
    volume_attachments,
    volume_snapshots,
    volumes,
)
from tests.api import scenes, seeds

SERVERS = "/compute/v2.1/servers"
LATEST = {"OpenStack-API-Version": "compute 2.96"}
ClientAs = t.Callable[..., FlaskClient]


def a_volume(api: seeds.Api, project: str = "demo", **params: t.Any) -> str:
    with transaction(api.engine) as connection:
        owner = connection.execute(sa.select(tables.project.c.id).where(tables.project.c.name == project)).scalar_one()
        return str(volumes.create_volume(connection, owner, {"size_gb": 1, **params}).id)


def status(api: seeds.Api, volume_id: str) -> str:
    with api.engine.connect() as connection:
        return str(volume_views.one_volume(connection, volume_id).status)


def jobs(api: seeds.Api, kind: str) -> list[dict[str, t.Any]]:
    table = tables_jobs.job
    with api.engine.connect() as connection:
        return list(connection.execute(sa.select(table.c.variables).where(table.c.kind == kind)).scalars())


def test_a_volume_comes_and_goes(api: seeds.Api, scene: scenes.Scene) -> None:
    volume_id, client = a_volume(api), api.client_as("demo")
    url = f"{SERVERS}/{scene.web}/os-volume_attachments"
    answer = client.post(url, json={"volumeAttachment": {"volumeId": volume_id}})
    assert answer.status_code == 200, answer.get_json()
    assert answer.get_json()["volumeAttachment"] == {
        "id": volume_id,
        "volumeId": volume_id,
        "serverId": scene.web,
        "device": "/dev/vdb",
    }
    assert status(api, volume_id) == "attaching"
    (variables,) = jobs(api, "volume_attach")
    with transaction(api.engine) as connection:
        volume_attachments.finish_attach(connection, variables["attachments"][0])
    shown = client.get(f"{url}/{volume_id}", headers=LATEST).get_json()["volumeAttachment"]
    assert shown == {
        "volumeId": volume_id,
        "serverId": scene.web,
        "device": "/dev/vdb",
        "tag": None,
        "delete_on_termination": False,
        "attachment_id": variables["attachments"][0],
        "bdm_uuid": variables["attachments"][0],
    }
    server = client.get(f"{SERVERS}/{scene.web}", headers=LATEST).get_json()["server"]
    assert server["os-extended-volumes:volumes_attached"] == [{"id": volume_id, "delete_on_termination": False}]
    changed = {"volumeAttachment": {"volumeId": volume_id, "delete_on_termination": True}}
    assert client.put(f"{url}/{volume_id}", json=changed, headers=LATEST).status_code == 202
    assert client.get(f"{url}/{volume_id}", headers=LATEST).get_json()["volumeAttachment"]["delete_on_termination"]
    assert client.put(f"{url}/{volume_id}", json={"volumeAttachment": {"volumeId": a_volume(api)}}).status_code == 409
    assert client.delete(f"{url}/{volume_id}").status_code == 202
    assert status(api, volume_id) == "detaching"
    assert jobs(api, "volume_detach") == [variables]
    assert client.delete(f"{url}/{volume_id}").status_code == 400  # it is under way
    actions = client.get(f"{SERVERS}/{scene.web}/os-instance-actions").get_json()["instanceActions"]
    assert {"attach_volume", "detach_volume"} <= {action["action"] for action in actions}


def test_what_is_refused(api: seeds.Api, scene: scenes.Scene) -> None:
    client, mine, foreign = api.client_as("demo"), a_volume(api), a_volume(api, "alt")
    url = f"{SERVERS}/{scene.web}/os-volume_attachments"

    def attach(volume_id: str, where: str = url, **more: t.Any) -> int:
        body = {"volumeAttachment": {"volumeId": volume_id, **more}}
        return client.post(where, json=body).status_code

    assert attach(foreign) == attach(str(uuid.uuid4())) == 404
    assert attach(mine, f"{SERVERS}/{scene.foreign}/os-volume_attachments") == 404
    assert attach("nope") == attach(mine, device="/dev/vdb1") == attach(mine, tag="x") == 400
    assert attach(mine, device="/dev/vda") == 409
    assert api.client_as("reader").post(url, json={"volumeAttachment": {"volumeId": mine}}).status_code == 403
    assert client.get(f"{url}/{mine}").status_code == client.delete(f"{url}/{mine}").status_code == 404
    assert client.get(f"{url}?limit=x").status_code == 400
    elsewhere = a_volume(api, host="hv2" if _host(api, scene.web) == "hv1" else "hv1")
    with transaction(api.engine) as connection:
        volumes.finish_create(connection, elsewhere)
    answer = client.post(url, json={"volumeAttachment": {"volumeId": elsewhere}})
    assert answer.status_code == 400
    assert "is in the storage of the compute host" in answer.get_data(as_text=True)
    assert status(api, mine) == status(api, elsewhere) == "available"


def _host(api: seeds.Api, server: str) -> str:
    with api.engine.connect() as connection:
        return str(instances_by(connection, uuids=[server])[0]["host"])


def create(api: seeds.Api, devices: list[dict[str, t.Any]], **more: t.Any) -> t.Any:
    with api.engine.connect() as connection:
        flavor = connection.execute(sa.select(tables.flavor.c.id).where(tables.flavor.c.name == "m1.tiny")).scalar_one()
    server = {"name": "b", "flavorRef": str(flavor), "block_device_mapping_v2": devices, **more}
    return api.client_as("demo").post(SERVERS, json={"server": server})


def test_a_server_starts_from_a_volume_of_an_image(api: seeds.Api) -> None:
    root = {
        "source_type": "image",
        "destination_type": "volume",
        "boot_index": 0,
        "uuid": seeds.IMAGE_ID,
        "volume_size": 2,
        "delete_on_termination": True,
    }
    blank = {"source_type": "blank", "destination_type": "volume", "volume_size": "1", "boot_index": -1}
    blank["volume_type"] = ""  # the default one, as some clients write it
    answer = create(api, [root, blank], imageRef="")
    assert answer.status_code == 202, answer.get_json()
    uuid_ = answer.get_json()["server"]["id"]
    with api.engine.connect() as connection:
        (server,) = instances_by(connection, uuids=[uuid_])
        volume_rows = volumes_by(connection, instances=[uuid_])
    assert [(disk["device"], disk["boot_index"], disk["delete_on_termination"]) for disk in server["volumes"]] == [
        ("/dev/vda", 0, True),
        ("/dev/vdb", None, False),
    ]
    assert sorted((volume.size_gb, volume.status, volume.host) for volume in volume_rows) == [
        (1, "creating", None),
        (2, "creating", None),
    ]
    shown = api.client_as("demo").get(f"{SERVERS}/{uuid_}").get_json()["server"]
    assert (shown["image"], shown["config_drive"]) == ("", "True")
    assert len(shown["os-extended-volumes:volumes_attached"]) == 2


def test_a_server_starts_from_a_volume_that_there_is_on_its_host(api: seeds.Api) -> None:
    volume_id = a_volume(api, host="hv2", bootable=True)
    with transaction(api.engine) as connection:
        volumes.finish_create(connection, volume_id)
    device = {"source_type": "volume", "destination_type": "volume", "boot_index": "0", "uuid": volume_id}
    answer = create(api, [device])
    assert answer.status_code == 202, answer.get_json()
    assert status(api, volume_id) == "attaching"
    assert create(api, [device]).status_code == 400  # it is taken


@pytest.mark.parametrize(
    "device",
    [
        {"source_type": "volume", "destination_type": "volume", "boot_index": 0},
        {"source_type": "volume", "destination_type": "volume", "boot_index": 0, "uuid": str(uuid.uuid4())},
        {"source_type": "image", "destination_type": "volume", "boot_index": 0, "uuid": seeds.IMAGE_ID},
        {"source_type": "image", "destination_type": "volume", "boot_index": 0, "uuid": "x", "volume_size": 1},
        {"source_type": "blank", "destination_type": "volume", "boot_index": 0},
        {"source_type": "blank", "destination_type": "local", "volume_size": 1},
        {"source_type": "blank", "destination_type": "volume", "volume_size": 10**12},
        {"source_type": "snapshot", "destination_type": "volume", "boot_index": 0, "uuid": "nosuch"},
        {"source_type": "volume", "destination_type": "volume", "uuid": str(uuid.uuid4()), "boot_index": None},
    ],
)
def test_a_mapping_that_makes_no_sense_is_a_bad_request(api: seeds.Api, device: dict[str, t.Any]) -> None:
    assert create(api, [device]).status_code == 400


# --- Nova's verdicts on what a server is to boot from ---------------------------------------------------------------

LOCAL = {"source_type": "image", "destination_type": "local", "uuid": seeds.IMAGE_ID}
NEW_BLANK = {"source_type": "blank", "destination_type": "volume", "volume_size": 1}
OF_IMAGE = {"source_type": "image", "destination_type": "volume", "uuid": seeds.IMAGE_ID, "volume_size": 2}
BOOTABLE = {"source_type": "volume", "destination_type": "volume", "uuid": "bootable"}
PLAIN = {"source_type": "volume", "destination_type": "volume", "uuid": "plain"}
SNAPSHOT = {"source_type": "snapshot", "destination_type": "volume", "uuid": "snapshot"}

# imageRef is given; devices with their boot indexes; Nova's answer; what the guest starts from
# (nova/compute/api.py: _validate_bdm, _check_and_transform_bdm; nova/block_device.py: from_api)
BOOTS: list[t.Any] = [
    (True, [], 202, "image"),
    (False, [], 400, ""),
    (True, [(LOCAL, 0)], 202, "image"),
    (True, [(LOCAL, "0"), (NEW_BLANK, None)], 202, "image"),
    (True, [(LOCAL, 0), (NEW_BLANK, 1), (PLAIN, 2)], 202, "image"),
    (True, [(LOCAL, -1)], 400, ""),
    (True, [(LOCAL, None)], 400, ""),
    (False, [(LOCAL, 0)], 400, ""),
    (True, [(NEW_BLANK, 0)], 202, "blank"),
    (True, [(NEW_BLANK, 0), (PLAIN, -1)], 202, "blank"),
    (False, [(NEW_BLANK, 0)], 202, "blank"),
    (True, [(OF_IMAGE, 0)], 202, "of an image"),
    (False, [(OF_IMAGE, 0)], 202, "of an image"),
    (True, [(BOOTABLE, 0)], 202, "bootable"),
    (False, [(BOOTABLE, 0)], 202, "bootable"),
    (True, [(PLAIN, 0)], 202, "plain"),
    (False, [(PLAIN, 0)], 400, ""),
    (True, [(SNAPSHOT, 0)], 202, "snapshot"),
    (False, [(SNAPSHOT, 0)], 202, "snapshot"),
    *((image, [(device, -1)], 400, "") for image in (True, False) for device in (NEW_BLANK, OF_IMAGE, BOOTABLE)),
    *((image, [(NEW_BLANK, None)], 400, "") for image in (True, False)),
    *((True, [(device, 0), (NEW_BLANK, 0)], 400, "") for device in (LOCAL, NEW_BLANK, BOOTABLE, SNAPSHOT)),
    (True, [(LOCAL, 0), (NEW_BLANK, 2)], 400, ""),
    (True, [(NEW_BLANK, 1)], 400, ""),
    (False, [(BOOTABLE, 0), (NEW_BLANK, 1), (PLAIN, 1)], 400, ""),
    (True, [(LOCAL, "first")], 400, ""),
]


@pytest.mark.parametrize("row", BOOTS, ids=[str(number) for number in range(len(BOOTS))])
def test_what_a_server_boots_from_is_what_nova_takes(api: seeds.Api, row: t.Any) -> None:
    image, devices, status_code, root = row
    ids = {"bootable": a_volume(api, host="hv1", bootable=True), "plain": a_volume(api, host="hv1")}
    with transaction(api.engine) as connection:
        for volume_id in ids.values():
            volumes.finish_create(connection, volume_id)
        taken = volume_snapshots.create_snapshot(connection, api.projects["demo"], {"volume_id": ids["bootable"]})
        volume_snapshots.finish_snapshot(connection, taken.id)
    ids["snapshot"] = taken.id
    mapping = [{**device, "boot_index": index} for device, index in devices]
    for device in mapping:
        if "uuid" in device:
            device["uuid"] = ids.get(device["uuid"], device["uuid"])
    answer = create(api, mapping, imageRef=seeds.IMAGE_ID if image else "")
    assert answer.status_code == status_code, answer.get_json()
    if status_code != 202:
        return
    uuid_ = answer.get_json()["server"]["id"]
    with api.engine.connect() as connection:
        (server,) = instances_by(connection, uuids=[uuid_])
        all_rows = volumes_by(connection, instances=[uuid_])
    roots = [row for row in all_rows if any(each.boot_index == 0 for each in row.attachments)]
    if root == "image":
        assert roots == [] and server["image"]["id"] == seeds.IMAGE_ID
        return
    (volume,) = roots
    assert (volume.id in ids.values()) is (root in ("bootable", "plain")) and (
        root == "snapshot" or volume.id == ids.get(root, volume.id)
    )
    assert (volume.image is not None) is (root == "of an image")
    shown = api.client_as("demo").get(f"{SERVERS}/{uuid_}").get_json()["server"]
    assert shown["image"] == ""
