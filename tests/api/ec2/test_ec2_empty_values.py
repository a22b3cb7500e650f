# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Empty values, as Amazon's SDK for Go sends them for what its user left out (Packer, Terraform)."""

from __future__ import annotations

from tests.api.ec2.test_ec2_instances import run
from tests.api.ec2_door import Client, refused


def test_an_empty_value_is_none(demo: Client) -> None:
    group = demo.create_security_group(GroupName="web", Description="x", VpcId="")["GroupId"]
    made = run(
        demo,
        SecurityGroupIds=[group],
        SubnetId="",
        KeyName="",
        UserData="",
        IamInstanceProfile={"Name": ""},
        Placement={"AvailabilityZone": ""},
        BlockDeviceMappings=[{"DeviceName": "/dev/sdb", "NoDevice": ""}],
    )
    assert (made["SecurityGroups"], "KeyName" in made) == ([{"GroupId": group, "GroupName": "web"}], False)
    volume = demo.create_volume(AvailabilityZone="nova", Size=1, SnapshotId="", VolumeType="")
    assert volume["Size"] == 1


def test_an_empty_value_does_not_stand_for_what_is_needed(demo: Client) -> None:
    with refused("MissingParameter"):
        demo.create_security_group(GroupName="", Description="x")
    with refused("MissingParameter"):
        demo.delete_security_group(GroupId="")
    with refused("UnsupportedOperation"):
        run(demo, IamInstanceProfile={"Name": "mine"})


def test_what_may_be_empty_stays_so(demo: Client) -> None:
    number = run(demo)["InstanceId"]
    demo.create_tags(Resources=[number], Tags=[{"Key": "blank", "Value": ""}])
    (tag,) = demo.describe_tags(Filters=[{"Name": "key", "Values": ["blank"]}])["Tags"]
    assert tag["Value"] == ""
    image = demo.register_image(Name="mine", ImageLocation="amazon/ami-tiny", Description="a copy")["ImageId"]
    demo.modify_image_attribute(ImageId=image, Description={"Value": ""})
    (shown,) = demo.describe_images(ImageIds=[image])["Images"]
    assert shown.get("Description", "") == ""
