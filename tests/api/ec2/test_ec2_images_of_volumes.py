# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Images that name snapshots of volumes: registered, described, and launched from."""

from __future__ import annotations

import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables_volumes
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volumes.volume_views import volumes_by
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.volumes import server_volumes, volume_snapshots
from tests.api.ec2.test_ec2_image_snapshots import root_of
from tests.api.ec2.test_ec2_instances import became, described, run, uuid_of
from tests.api.ec2_door import Client, Door, refused


@pytest.fixture
def snapshots(door: Door, demo: Client) -> list[str]:
    """Two snapshots, on one host, of volumes of 1 and 2 GiB; nobody has said that either can be started from."""
    snapshot_ids = []
    for size in (1, 2):
        volume = demo.create_volume(AvailabilityZone="nova", Size=size)["VolumeId"]
        snapshot_ids.append(demo.create_snapshot(VolumeId=volume)["SnapshotId"])
    with transaction(door.api.engine) as connection:
        connection.execute(sa.update(tables_volumes.volume).values(host="hv1"))
        for row in volume_snapshots.snapshots_by(connection):
            volume_snapshots.finish_snapshot(connection, row.id)
    return snapshot_ids


def device(name: str, snapshot: str, **ebs: t.Any) -> dict[str, t.Any]:
    return {"DeviceName": name, "Ebs": {"SnapshotId": snapshot, **ebs}}


def register(demo: Client, *devices: t.Any, name: str = "mine", **more: t.Any) -> str:
    asked = {"Name": name, "RootDeviceName": "/dev/sda1", "BlockDeviceMappings": devices, **more}
    return str(demo.register_image(**asked)["ImageId"])


def attached(door: Door, number: str) -> list[tuple[t.Any, ...]]:
    uuid = uuid_of(door.api, number)
    with door.api.engine.connect() as connection:
        rows = volumes_by(connection, instances=[uuid])
    return sorted(
        (held.device, held.boot_index, row.size_gb, held.delete_on_termination)
        for row in rows
        for held in row.attachments
    )


def test_an_instance_starts_from_a_volume_of_the_snapshot(door: Door, demo: Client, snapshots: list[str]) -> None:
    image = register(demo, device("/dev/sda1", snapshots[0]), Description="of a volume")
    assert root_of(demo, image) == {
        **{"SnapshotId": snapshots[0], "VolumeSize": 1, "DeleteOnTermination": True},
        **{"VolumeType": "standard", "Encrypted": False},
    }
    (shown,) = demo.describe_images(Filters=[{"Name": "block-device-mapping.snapshot-id", "Values": snapshots}])[
        "Images"
    ]
    assert (shown["ImageId"], shown["State"], shown["Description"]) == (image, "available", "of a volume")
    instance = run(demo, ImageId=image)
    assert instance["ImageId"] == image
    assert attached(door, instance["InstanceId"]) == [("/dev/vda", 0, 1, True)]
    assert described(demo, instance["InstanceId"])["RootDeviceType"] == "ebs"


def test_each_other_snapshot_gives_a_volume_more(door: Door, demo: Client, snapshots: list[str]) -> None:
    data = device("/dev/sdf", snapshots[1], VolumeSize=3)
    image = register(demo, device("xvda", snapshots[0]), data, RootDeviceName="xvda")
    (shown,) = demo.describe_images(ImageIds=[image])["Images"]
    sizes = {each["DeviceName"]: each["Ebs"]["VolumeSize"] for each in shown["BlockDeviceMappings"]}
    assert sizes == {"/dev/vda": 1, "/dev/vdf": 3}
    plain = run(demo, ImageId=image)["InstanceId"]
    assert attached(door, plain) == [("/dev/vda", 0, 1, True), ("/dev/vdf", None, 3, False)]
    larger = {"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 4, "DeleteOnTermination": False}}
    number = run(demo, ImageId=image, BlockDeviceMappings=[larger])["InstanceId"]
    assert attached(door, number) == [("/dev/vda", 0, 4, False), ("/dev/vdf", None, 3, False)]
    without = {"DeviceName": "/dev/sdf", "NoDevice": ""}
    number = run(demo, ImageId=image, BlockDeviceMappings=[without])["InstanceId"]
    assert attached(door, number) == [("/dev/vda", 0, 1, True)]


def test_a_snapshot_that_an_image_names_is_kept(demo: Client, snapshots: list[str]) -> None:
    image = register(demo, device("/dev/sda1", snapshots[0]))
    assert len(demo.describe_snapshots()["Snapshots"]) == 2  # the image has none of its own
    with refused("InvalidSnapshot.InUse"):
        demo.delete_snapshot(SnapshotId=snapshots[0])
    demo.deregister_image(ImageId=image)
    demo.delete_snapshot(SnapshotId=snapshots[0])


def test_what_no_image_can_be_of(door: Door, demo: Client, snapshots: list[str]) -> None:
    with refused("InvalidBlockDeviceMapping"):
        register(demo, device("/dev/sdb", snapshots[0]))
    with refused("InvalidParameterValue"):
        register(demo, device("/dev/sda1", snapshots[1], VolumeSize=1))
    with refused("UnsupportedOperation"):
        register(demo, device("/dev/sda1", snapshots[0]), {"DeviceName": "/dev/sdb", "Ebs": {"VolumeSize": 1}})
    with refused("InvalidSnapshot.NotFound"):
        register(door.client("alt"), device("/dev/sda1", snapshots[0]))
    volume = demo.create_volume(AvailabilityZone="nova", Size=1)["VolumeId"]
    unfinished = demo.create_snapshot(VolumeId=volume)["SnapshotId"]
    with refused("IncorrectState"):
        register(demo, device("/dev/sda1", unfinished))
    register(demo, device("/dev/sda1", snapshots[0]))
    with refused("InvalidAMIName.Duplicate"):
        register(demo, device("/dev/sda1", snapshots[0]))


def test_an_image_of_an_instance_that_starts_from_a_volume(door: Door, demo: Client, snapshots: list[str]) -> None:
    number = run(demo, ImageId=register(demo, device("/dev/sda1", snapshots[0])))["InstanceId"]
    uuid = uuid_of(door.api, number)
    became(door.api, number)
    with transaction(door.api.engine) as connection:
        server_volumes.running(connection, [uuid])
    tags = [{"ResourceType": kind, "Tags": [{"Key": "of", "Value": kind}]} for kind in ("image", "snapshot")]
    image = demo.create_image(InstanceId=number, Name="copy", TagSpecifications=tags)["ImageId"]
    (shown,) = demo.describe_snapshots(SnapshotIds=[root_of(demo, image)["SnapshotId"]])["Snapshots"]
    assert (shown["VolumeSize"], shown["Tags"]) == (1, [{"Key": "of", "Value": "snapshot"}])
