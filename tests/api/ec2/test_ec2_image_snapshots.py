# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Images with an EBS root, as Amazon's clients know them: each has a snapshot, which they tag and delete."""

from __future__ import annotations

import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from tests.api.ec2.test_ec2_instances import became, described, run
from tests.api.ec2.test_ec2_things import AMI
from tests.api.ec2_door import Client, Door, refused


def root_of(client: Client, image: str) -> dict[str, t.Any]:
    (shown,) = client.describe_images(ImageIds=[image])["Images"]
    assert shown["RootDeviceType"] == "ebs"
    (mapping,) = shown["BlockDeviceMappings"]
    assert mapping["DeviceName"] == shown["RootDeviceName"]
    return dict(mapping["Ebs"])


@pytest.fixture
def made(door: Door, demo: Client) -> str:
    """The image that was made of an instance."""
    number = run(demo)["InstanceId"]
    became(door.api, number)
    tags = [{"ResourceType": kind, "Tags": [{"Key": "of", "Value": kind}]} for kind in ("image", "snapshot")]
    image = demo.create_image(InstanceId=number, Name="mine", TagSpecifications=tags)["ImageId"]
    assert demo.describe_snapshots(OwnerIds=["self"])["Snapshots"][0]["State"] == "pending"
    with transaction(door.api.engine) as connection:
        saved = {"status": "active", "source": "/nowhere", "checksum": "sha256:1", "virtual_size": 3 << 30}
        connection.execute(sa.update(tables.image).where(tables.image.c.name == "mine").values(**saved))
    return str(image)


def test_instances_and_images_have_a_root_that_stays(demo: Client) -> None:
    assert root_of(demo, AMI)["SnapshotId"].startswith("snap-")
    instance = run(demo)
    assert instance["RootDeviceType"] == "ebs"
    both = [{"Name": "root-device-type", "Values": ["ebs"]}]
    assert [shown["ImageId"] for shown in demo.describe_images(Filters=both)["Images"]] == [AMI]


def test_an_images_snapshot_is_described_and_tagged(door: Door, demo: Client, made: str) -> None:
    number = root_of(demo, made)["SnapshotId"]
    (shown,) = demo.describe_snapshots(SnapshotIds=[number])["Snapshots"]
    assert (shown["State"], shown["VolumeSize"], shown["OwnerId"]) == ("completed", 3, door.api.projects["demo"])
    assert made in shown["Description"] and shown["Tags"] == [{"Key": "of", "Value": "snapshot"}]
    demo.create_tags(Resources=[made, number], Tags=[{"Key": "k", "Value": "v"}])
    tagged = demo.describe_snapshots(Filters=[{"Name": "tag:k", "Values": ["v"]}])["Snapshots"]
    assert [snapshot["SnapshotId"] for snapshot in tagged] == [number]
    tags = demo.describe_tags(Filters=[{"Name": "resource-type", "Values": ["snapshot"]}])["Tags"]
    assert {tag["Key"] for tag in tags} == {"of", "k"}
    alt = door.client("alt")
    assert alt.describe_snapshots()["Snapshots"] == []
    for call in (
        lambda: alt.describe_snapshots(SnapshotIds=[number]),
        lambda: alt.create_tags(Resources=[number], Tags=[{"Key": "k", "Value": "v"}]),
        lambda: alt.delete_snapshot(SnapshotId=number),
        lambda: alt.create_volume(AvailabilityZone="nova", SnapshotId=number),
    ):
        with refused("InvalidSnapshot.NotFound"):
            call()


def test_it_goes_with_its_image(demo: Client, made: str) -> None:
    number = root_of(demo, made)["SnapshotId"]
    with refused("InvalidSnapshot.InUse"):
        demo.delete_snapshot(SnapshotId=number)
    demo.deregister_image(ImageId=made)
    demo.delete_snapshot(SnapshotId=number)  # as Packer does then, with force_delete_snapshot
    assert demo.describe_snapshots()["Snapshots"] == demo.describe_tags()["Tags"] == []
    with refused("InvalidSnapshot.NotFound"):
        demo.describe_snapshots(SnapshotIds=[number])
    with refused("InvalidSnapshot.NotFound"):
        demo.delete_snapshot(SnapshotId="snap-0123456789abcdef0")


def test_volumes_images_and_instances_are_made_of_it(door: Door, demo: Client, made: str) -> None:
    number = root_of(demo, made)["SnapshotId"]
    assert demo.create_volume(AvailabilityZone="nova", SnapshotId=number)["Size"] == 3
    root: dict[str, t.Any] = {"DeviceName": "/dev/sda1", "Ebs": {"SnapshotId": number, "DeleteOnTermination": True}}
    named = demo.register_image(Name="again", RootDeviceName="/dev/sda1", BlockDeviceMappings=[root])["ImageId"]
    assert root_of(demo, named)["VolumeSize"] == 3
    data = {"DeviceName": "/dev/sdb", "Ebs": {"SnapshotId": number}}
    asked = {"InstanceType": "m1.small", "ImageId": made}
    with refused("UnsupportedOperation"):
        run(demo, **{**asked, "ImageId": AMI}, BlockDeviceMappings=[root])
    with transaction(door.api.engine) as connection:  # it fits
        connection.execute(sa.update(tables.image).where(tables.image.c.name == "mine").values(virtual_size=1 << 20))
    instance = run(demo, **asked, BlockDeviceMappings=[root, data])["InstanceId"]
    (mapping,) = described(demo, instance)["BlockDeviceMappings"]
    assert mapping["DeviceName"] == "/dev/vdb"
    with refused("UnsupportedOperation"):
        demo.register_image(Name="two", RootDeviceName="/dev/sda1", BlockDeviceMappings=[root, data])
