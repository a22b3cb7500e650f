# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Images, tags, addresses, networks and volumes through the EC2 dialect."""

from __future__ import annotations

import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute import server_actions
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from tests.api.ec2.test_ec2_instances import became, jobs, run
from tests.api.ec2.test_ec2_things import AMI
from tests.api.ec2_door import Client, Door, refused
from tests.api.seeds import IMAGE_ID


def test_nobody_takes_the_name_or_the_id_of_anothers_image(door: Door, demo: Client) -> None:
    alt = door.api.client_as("alt")
    disk = {"disk_format": "raw", "container_format": "bare", "visibility": "community"}
    foreign = []
    for name in ("ami-tiny", AMI, "theirs"):
        made = alt.post("/image/v2/images", json={**disk, "name": name})
        assert made.status_code == 201
        foreign.append(made.get_json()["id"])
        sent = {"Content-Type": "application/octet-stream"}
        assert alt.put(f"/image/v2/images/{foreign[-1]}/file", data=bytes(512), headers=sent).status_code == 204
    same_digits = f"{IMAGE_ID[:20]}fff-ffffffffffff"
    assert alt.post("/image/v2/images", json={**disk, "id": same_digits, "name": "x"}).status_code == 409
    for name in ("ami-tiny", AMI, AMI[:12]):
        assert [image["ImageId"] for image in demo.describe_images(ImageIds=[name])["Images"]] == [AMI]
        assert run(demo, ImageId=name)["ImageId"] == AMI
    with refused("InvalidAMIID.Malformed"):
        demo.describe_images(ImageIds=["theirs"])
    # by its id it can be had, and it is shown to who asks for its owner
    theirs = f"ami-{foreign[2].replace('-', '')[:17]}"
    assert demo.describe_images(ImageIds=[theirs])["Images"][0]["Name"] == "theirs"
    assert [image["ImageId"] for image in demo.describe_images()["Images"]] == [AMI]
    assert len(demo.describe_images(Owners=[door.api.projects["alt"]])["Images"]) == 3


def test_images(door: Door, demo: Client) -> None:
    for name in ("ami-tiny", AMI, AMI[:12]):
        (image,) = demo.describe_images(ImageIds=[name])["Images"]
        assert (image["ImageId"], image["Name"], image["State"]) == (AMI, "ami-tiny", "available")
        assert image["Public"]
    assert demo.describe_images(Owners=["self"])["Images"] == []
    assert len(demo.describe_images(Owners=["amazon"], Filters=[{"Name": "name", "Values": ["ami-*"]}])["Images"]) == 1
    with refused("AuthFailure"):
        demo.deregister_image(ImageId=AMI)  # it is the cloud's
    number = demo.register_image(Name="mine", ImageLocation="amazon/ami-tiny", Description="a copy")["ImageId"]
    (image,) = demo.describe_images(Owners=["self"])["Images"]
    assert (image["ImageId"], image["Name"], image["Description"]) == (number, "mine", "a copy")
    assert run(demo, ImageId=number)["ImageId"] == number
    with refused("InvalidAMIName.Duplicate"):
        demo.register_image(Name="mine", ImageLocation=AMI)
    with refused("InvalidAMIID.NotFound"):
        demo.register_image(Name="other", ImageLocation="ami-nosuch")
    with refused("InvalidAMIName.Malformed"):
        demo.register_image(Name="a\tb", ImageLocation=AMI)
    with transaction(door.api.engine) as connection:  # as of before properties were judged
        bad = sa.update(tables.image).values(properties={"os_admin_user": 'a"b'})
        connection.execute(bad.where(tables.image.c.id == IMAGE_ID))
    with refused("InvalidParameterValue"):
        demo.register_image(Name="other", ImageLocation="amazon/ami-tiny")
    demo.modify_image_attribute(ImageId=number, Description={"Value": "new"})
    asked = {"ImageId": number, "Attribute": "description"}
    assert demo.describe_image_attribute(**asked)["Description"] == {"Value": "new"}
    launch = {"ImageId": AMI, "Attribute": "launchPermission"}
    assert demo.describe_image_attribute(**launch)["LaunchPermissions"] == [{"Group": "all"}]
    alt = door.client("alt")
    for call in (alt.deregister_image, lambda ImageId: alt.describe_images(ImageIds=[ImageId])):
        with refused("InvalidAMIID.NotFound"):
            call(ImageId=number)
    demo.deregister_image(ImageId=number)
    with refused("InvalidAMIID.NotFound"):
        demo.describe_images(ImageIds=[number])


def test_a_dry_run_keeps_the_data_of_an_image(door: Door, demo: Client) -> None:
    glance = door.api.client_as("demo")
    made = glance.post("/image/v2/images", json={"disk_format": "raw", "container_format": "bare", "name": "mine"})
    path = f"/image/v2/images/{made.get_json()['id']}/file"
    sent = {"Content-Type": "application/octet-stream"}
    assert glance.put(path, data=bytes(512), headers=sent).status_code == 204
    (image,) = demo.describe_images(Owners=["self"])["Images"]
    with refused("DryRunOperation"):
        demo.deregister_image(ImageId=image["ImageId"], DryRun=True)
    assert demo.describe_images(Owners=["self"])["Images"] == [image]
    answer = glance.get(path)
    assert (answer.status_code, answer.data) == (200, bytes(512))
    demo.deregister_image(ImageId=image["ImageId"])
    assert glance.get(path).status_code == 404


@pytest.mark.parametrize(
    "change",
    [
        {"LaunchPermission": {"Add": [{"UserId": ""}]}},
        {"LaunchPermission": {"Add": [{"Group": ""}]}},
        {"LaunchPermission": {"Remove": [{"UserId": ""}]}},
        {"Attribute": "launchPermission", "OperationType": "add", "UserIds": [""]},
    ],
)
def test_nobody_is_no_member_of_an_image(door: Door, demo: Client, change: dict[str, t.Any]) -> None:
    number = demo.register_image(Name="mine", ImageLocation=AMI)["ImageId"]
    with refused("MissingParameter"):
        demo.modify_image_attribute(ImageId=number, **change)
    launch = {"ImageId": number, "Attribute": "launchPermission"}
    assert demo.describe_image_attribute(**launch)["LaunchPermissions"] == []


def test_an_image_of_an_instance(door: Door, demo: Client) -> None:
    number = run(demo)["InstanceId"]
    with refused("IncorrectInstanceState"):
        demo.create_image(InstanceId=number, Name="mine")
    uuid = became(door.api, number)
    made = demo.create_image(InstanceId=number, Name="mine", Description="a copy")["ImageId"]
    (image,) = demo.describe_images(ImageIds=[made])["Images"]
    assert (image["State"], image["Name"], image["SourceInstanceId"]) == ("pending", "mine", number)
    assert [record["ImageId"] for record in demo.describe_images(Owners=["self"])["Images"]] == [made]
    assert jobs(door.api)[-1].kind == "createImage"
    with refused("IncorrectInstanceState"):
        demo.create_image(InstanceId=number, Name="other")  # one at a time
    with refused("InvalidAMIID.NotFound"):
        door.client("alt").describe_images(ImageIds=[made])
    with refused("InvalidInstanceID.NotFound"):
        door.client("alt").create_image(InstanceId=number, Name="mine")
    with transaction(door.api.engine) as connection:
        server_actions.finish(connection, "createImage", [uuid], error="no room")
    with refused("InvalidAMIID.NotFound"):
        demo.describe_images(ImageIds=[made])


def test_tags(door: Door, demo: Client) -> None:
    number = run(demo)["InstanceId"]
    group = demo.create_security_group(GroupName="web", Description="x")["GroupId"]
    key = demo.describe_key_pairs()["KeyPairs"][0]["KeyPairId"]
    subnet = demo.describe_subnets()["Subnets"][0]["SubnetId"]
    every = [number, group, key, subnet, AMI]
    demo.create_tags(Resources=every, Tags=[{"Key": "k", "Value": "v"}, {"Key": "Name", "Value": "mine"}])
    tags = demo.describe_tags(Filters=[{"Name": "key", "Values": ["k"]}])["Tags"]
    assert {(tag["ResourceId"], tag["ResourceType"], tag["Value"]) for tag in tags} == {
        (number, "instance", "v"),
        (group, "security-group", "v"),
        (key, "key-pair", "v"),
        (subnet, "subnet", "v"),
        (AMI, "image", "v"),
    }
    assert len(demo.describe_tags(Filters=[{"Name": "resource-id", "Values": [number]}])["Tags"]) == 2
    assert len(demo.describe_tags(Filters=[{"Name": "tag:Name", "Values": ["m*"]}])["Tags"]) == 5
    # an instance's are its metadata, and its name is its name
    (server,) = door.api.client_as("demo").get("/compute/v2.1/servers/detail").get_json()["servers"]
    assert (server["name"], server["metadata"]) == ("mine", {"k": "v", "Name": "mine"})
    groups = demo.describe_security_groups(Filters=[{"Name": "tag:k", "Values": ["v"]}])["SecurityGroups"]
    assert [record["GroupId"] for record in groups] == [group]
    demo.delete_tags(Resources=every, Tags=[{"Key": "k", "Value": "another"}])
    assert len(demo.describe_tags()["Tags"]) == 10
    demo.delete_tags(Resources=every, Tags=[{"Key": "k"}])
    assert len(demo.describe_tags()["Tags"]) == 5
    demo.delete_tags(Resources=every)
    assert demo.describe_tags()["Tags"] == []
    assert door.client("alt").describe_tags()["Tags"] == []
    for resource_id in (group, key, "vol-0123456789abcdef0", "igw-0123456789abcdef0"):
        with pytest.raises(Exception, match="NotFound"):
            door.client("alt").create_tags(Resources=[resource_id], Tags=[{"Key": "a", "Value": "b"}])
    with refused("InvalidID"):
        demo.create_tags(Resources=["nosuch"], Tags=[{"Key": "a", "Value": "b"}])
    with refused("TagLimitExceeded"):
        demo.create_tags(Resources=[group], Tags=[{"Key": f"k{at}", "Value": "v"} for at in range(51)])


@pytest.mark.usefixtures("own_network")
def test_addresses(door: Door, demo: Client) -> None:
    with refused("InsufficientAddressCapacity"):
        demo.allocate_address(Domain="vpc")
    pool, address = tables.floating_pool, tables.floating_ip
    with transaction(door.api.engine) as connection:
        connection.execute(sa.insert(pool).values(name="public", cidr="198.51.100.0/24", interface="eth0"))
        for at in range(3):
            row = {"id": f"0000000{at}-0000-4000-8000-000000000000", "pool": "public"}
            connection.execute(sa.insert(address).values(**row, address=(198 << 24) + (51 << 16) + (100 << 8) + 1 + at))
    made = demo.allocate_address(Domain="vpc")
    assert made["PublicIp"].startswith("198.51.100.") and made["Domain"] == "vpc"
    number = run(demo, PrivateIpAddress="10.20.0.50")["InstanceId"]
    became(door.api, number)
    linked = demo.associate_address(AllocationId=made["AllocationId"], InstanceId=number)["AssociationId"]
    (shown,) = demo.describe_addresses(PublicIps=[made["PublicIp"]])["Addresses"]
    assert (shown["InstanceId"], shown["PrivateIpAddress"], shown["AssociationId"]) == (number, "10.20.0.50", linked)
    instance = demo.describe_instances(InstanceIds=[number])["Reservations"][0]["Instances"][0]
    assert instance["PublicIpAddress"] == made["PublicIp"]
    other = run(demo, PrivateIpAddress="10.20.0.51")["InstanceId"]
    with refused("Resource.AlreadyAssociated"):
        demo.associate_address(AllocationId=made["AllocationId"], InstanceId=other)
    with refused("InvalidIPAddress.InUse"):
        demo.release_address(AllocationId=made["AllocationId"])
    alt = door.client("alt")
    with refused("InvalidAllocationID.NotFound"):
        alt.release_address(AllocationId=made["AllocationId"])
    with refused("InvalidAddress.NotFound"):
        alt.describe_addresses(PublicIps=[made["PublicIp"]])
    demo.disassociate_address(AssociationId=linked)
    demo.release_address(AllocationId=made["AllocationId"])
    assert demo.describe_addresses()["Addresses"] == []
    assert "floating_ips" in [job.kind for job in jobs(door.api)]


@pytest.mark.usefixtures("own_network")
def test_the_networks_are_a_default_vpc(door: Door, demo: Client) -> None:
    (vpc,) = demo.describe_vpcs(Filters=[{"Name": "is-default", "Values": ["true"]}])["Vpcs"]
    assert vpc["CidrBlock"] == "10.20.0.0/24" and vpc["State"] == "available"
    (subnet,) = demo.describe_subnets(
        Filters=[{"Name": "vpc-id", "Values": [vpc["VpcId"]]}, {"Name": "default-for-az", "Values": ["true"]}]
    )["Subnets"]
    assert (subnet["CidrBlock"], subnet["AvailabilityZone"]) == ("10.20.0.0/24", "nova")
    (table,) = demo.describe_route_tables()["RouteTables"]
    assert table["VpcId"] == vpc["VpcId"] and table["Associations"][0]["Main"]
    (gateway,) = demo.describe_internet_gateways()["InternetGateways"]
    assert gateway["Attachments"][0]["VpcId"] == vpc["VpcId"]
    assert demo.describe_network_acls()["NetworkAcls"][0]["IsDefault"]
    assert demo.describe_dhcp_options(DhcpOptionsIds=[vpc["DhcpOptionsId"]])["DhcpOptions"]
    assert demo.describe_vpc_attribute(VpcId=vpc["VpcId"], Attribute="enableDnsSupport")["EnableDnsSupport"]["Value"]
    number = run(demo, PrivateIpAddress="10.20.0.50")["InstanceId"]
    (nic,) = demo.describe_network_interfaces(Filters=[{"Name": "attachment.instance-id", "Values": [number]}])[
        "NetworkInterfaces"
    ]
    assert (nic["PrivateIpAddress"], nic["SubnetId"]) == ("10.20.0.50", subnet["SubnetId"])
    asked = {"NetworkInterfaceId": nic["NetworkInterfaceId"], "Attribute": "groupSet"}
    assert demo.describe_network_interface_attribute(**asked)["Groups"][0]["GroupName"] == "default"
    with refused("InvalidNetworkInterfaceID.NotFound"):
        door.client("alt").describe_network_interfaces(NetworkInterfaceIds=[nic["NetworkInterfaceId"]])
    with refused("InvalidVpcID.NotFound"):
        door.client("alt").describe_vpcs(VpcIds=[vpc["VpcId"]])


def test_places_and_sizes(demo: Client) -> None:
    assert [zone["ZoneName"] for zone in demo.describe_availability_zones()["AvailabilityZones"]] == ["nova"]
    assert [region["RegionName"] for region in demo.describe_regions()["Regions"]] == ["RegionOne"]
    with refused("InvalidParameterValue"):
        demo.describe_availability_zones(ZoneNames=["nosuch"])
    (kind,) = demo.describe_instance_types(InstanceTypes=["m1.small"])["InstanceTypes"]
    assert (kind["MemoryInfo"]["SizeInMiB"], kind["VCpuInfo"]["DefaultVCpus"]) == (2048, 1)
    with refused("InvalidInstanceType"):
        demo.describe_instance_types(InstanceTypes=["nosuch"])
    offered = demo.describe_instance_type_offerings(LocationType="availability-zone")["InstanceTypeOfferings"]
    assert {"InstanceType": "m1.tiny", "LocationType": "availability-zone", "Location": "nova"} in offered
    attributes = demo.describe_account_attributes(AttributeNames=["max-instances"])["AccountAttributes"]
    assert attributes[0]["AttributeValues"] == [{"AttributeValue": "10"}]


def test_volumes_and_snapshots(door: Door, demo: Client) -> None:
    made = demo.create_volume(
        AvailabilityZone="nova",
        Size=1,
        VolumeType="gp3",
        ClientToken="t",
        TagSpecifications=[{"ResourceType": "volume", "Tags": [{"Key": "Name", "Value": "data"}]}],
    )
    number = made["VolumeId"]
    again = demo.create_volume(
        AvailabilityZone="nova",
        Size=1,
        VolumeType="gp3",
        ClientToken="t",
        TagSpecifications=[{"ResourceType": "volume", "Tags": [{"Key": "Name", "Value": "data"}]}],
    )
    assert again["VolumeId"] == number
    (volume,) = demo.describe_volumes(Filters=[{"Name": "tag:Name", "Values": ["data"]}])["Volumes"]
    assert (volume["State"], volume["Size"], volume["AvailabilityZone"]) == ("available", 1, "nova")
    instance = run(demo)["InstanceId"]
    with refused("IncorrectState"):
        demo.attach_volume(VolumeId=number, InstanceId=instance, Device="/dev/sdf")  # it is not built yet
    uuid = became(door.api, instance)
    linked = demo.attach_volume(VolumeId=number, InstanceId=instance, Device="/dev/sdf")
    assert (linked["State"], linked["Device"], linked["InstanceId"]) == ("attaching", "/dev/vdf", instance)
    with refused("VolumeInUse"):
        demo.attach_volume(VolumeId=number, InstanceId=instance, Device="/dev/sdg")
    with refused("VolumeInUse"):
        demo.delete_volume(VolumeId=number)
    volumes = tables.tables_volumes
    with transaction(door.api.engine) as connection:
        connection.execute(sa.update(volumes.volume).values(status="in-use", made_at=1))
        connection.execute(sa.update(volumes.volume_attachment).values(attached_at=1))
    (shown,) = demo.describe_instances(InstanceIds=[instance])["Reservations"][0]["Instances"][0]["BlockDeviceMappings"]
    assert (shown["DeviceName"], shown["Ebs"]["VolumeId"], shown["Ebs"]["Status"]) == ("/dev/vdf", number, "attached")
    snapshot = demo.create_snapshot(VolumeId=number, Description="before")["SnapshotId"]
    (taken,) = demo.describe_snapshots(OwnerIds=["self"])["Snapshots"]
    assert (taken["SnapshotId"], taken["State"], taken["VolumeId"]) == (snapshot, "pending", number)
    assert demo.detach_volume(VolumeId=number)["State"] == "detaching"
    alt = door.client("alt")
    for call, parameters, code in (
        (alt.describe_volumes, {"VolumeIds": [number]}, "InvalidVolume.NotFound"),
        (alt.delete_volume, {"VolumeId": number}, "InvalidVolume.NotFound"),
        (alt.attach_volume, {"VolumeId": number, "InstanceId": instance, "Device": "x"}, "InvalidVolume.NotFound"),
        (alt.detach_volume, {"VolumeId": number}, "InvalidVolume.NotFound"),
        (alt.modify_volume, {"VolumeId": number, "Size": 2}, "InvalidVolume.NotFound"),
        (alt.create_snapshot, {"VolumeId": number}, "InvalidVolume.NotFound"),
        (alt.delete_snapshot, {"SnapshotId": snapshot}, "InvalidSnapshot.NotFound"),
        (alt.create_volume, {"AvailabilityZone": "nova", "SnapshotId": snapshot}, "InvalidSnapshot.NotFound"),
        (demo.create_volume, {"AvailabilityZone": "nosuch", "Size": 1}, "InvalidZone.NotFound"),
        (demo.create_volume, {"AvailabilityZone": "nova", "Size": 5000}, "VolumeLimitExceeded"),
        (demo.create_volume, {"AvailabilityZone": "nova", "Size": 1, "Encrypted": True}, "UnsupportedOperation"),
        (demo.modify_volume, {"VolumeId": number, "VolumeType": "nosuch"}, "UnsupportedOperation"),
        (demo.delete_volume, {"VolumeId": "nosuch"}, "InvalidVolumeID.Malformed"),
    ):
        with refused(code):
            call(**parameters)
    with transaction(door.api.engine) as connection:
        connection.execute(sa.delete(volumes.volume_attachment))
        connection.execute(sa.update(volumes.volume).values(status="available"))
        connection.execute(sa.update(volumes.volume_snapshot).values(status="available"))
    change = demo.modify_volume(VolumeId=number, Size=3)["VolumeModification"]
    assert (change["ModificationState"], change["TargetSize"], change["OriginalSize"]) == ("modifying", 3, 1)
    (change,) = demo.describe_volumes_modifications()["VolumesModifications"]
    assert change["TargetSize"] == 3
    demo.delete_snapshot(SnapshotId=snapshot)
    kinds = [job.kind for job in jobs(door.api) if job.kind.startswith("volume")]
    assert kinds == [
        "volume_attach",
        "volume_snapshot_create",
        "volume_detach",
        "volume_extend",
        "volume_snapshot_delete",
    ]
    assert uuid
