# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Instances through the EC2 dialect, asked for by boto3 over a socket. Hosts are not there: what they would do is told
to the ledger as their playbooks tell it."""

from __future__ import annotations

import base64
import time
import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute import server_actions
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from api.ec2.blueprint import ACTIONS
from tests.api.ec2_door import Client, Door, refused
from tests.api.seeds import IMAGE_ID, Api

RUN: dict[str, t.Any] = {"ImageId": "ami-tiny", "InstanceType": "m1.tiny", "MinCount": 1, "MaxCount": 1}
NOBODYS = "i-0123456789abcdef0"


def run(client: Client, **more: t.Any) -> dict[str, t.Any]:
    """One new instance."""
    return dict(client.run_instances(**{**RUN, **more})["Instances"][0])


def described(client: Client, number: str) -> dict[str, t.Any]:
    return dict(client.describe_instances(InstanceIds=[number])["Reservations"][0]["Instances"][0])


def uuid_of(api: Api, number: str) -> str:
    with transaction(api.engine) as connection:
        rows = connection.execute(sa.select(tables.instance.c.uuid)).scalars()
        return next(uuid for uuid in rows if f"i-{uuid.replace('-', '')[:17]}" == number)


def became(api: Api, number: str, **values: t.Any) -> str:
    """Write down what its host did. Returns the UUID."""
    uuid = uuid_of(api, number)
    with transaction(api.engine) as connection:
        row = {"vm_state": "active", "task_state": None, "power_state": 1, "host": "hv1", "launched_at": 1, **values}
        connection.execute(sa.update(tables.instance).where(tables.instance.c.uuid == uuid).values(**row))
    return uuid


def jobs(api: Api) -> list[t.Any]:
    job = tables.tables_jobs.job
    with transaction(api.engine) as connection:
        return list(connection.execute(sa.select(job).order_by(job.c.created_at)))


HOPS = "HttpPutResponseHopLimit"
# Every action that takes a hop limit, and how it is asked for one
HOP_DOORS: dict[str, t.Callable[[Client, str, int], t.Any]] = {
    "RunInstances": lambda demo, _number, hops: run(demo, MetadataOptions={HOPS: hops})["MetadataOptions"],
    "ModifyInstanceMetadataOptions": lambda demo, number, hops: demo.modify_instance_metadata_options(
        InstanceId=number, **{HOPS: hops}
    )["InstanceMetadataOptions"],
}


def takes_hops(shape: t.Any) -> bool:
    below = getattr(shape, "_fields", {"": shape._member} if hasattr(shape, "_member") else {})
    return HOPS in below or any(map(takes_hops, below.values()))


@pytest.mark.usefixtures("door")
def test_each_action_that_takes_a_hop_limit_is_asked() -> None:
    assert {name for name, action in ACTIONS.items() if takes_hops(action.shape)} == HOP_DOORS.keys()


@pytest.mark.parametrize("door_name", HOP_DOORS)
def test_a_hop_limit_is_what_answers_travel_or_is_refused(door: Door, demo: Client, door_name: str) -> None:
    """Nothing on a host shortens the way of an answer: a limit that is taken would be a promise that nobody keeps."""
    number, ask = run(demo)["InstanceId"], HOP_DOORS[door_name]
    count = len(jobs(door.api))
    for hops in (*range(-1, 64), 65, 255, 2**31):
        with refused("InvalidParameterValue") as caught:
            ask(demo, number, hops)
        assert str(hops) in str(caught.value) and "travel 64 hops: leave it out" in str(caught.value)
    assert len(jobs(door.api)) == count
    assert ask(demo, number, 64)[HOPS] == described(demo, number)["MetadataOptions"][HOPS] == 64


def test_what_is_run_is_recorded_with_its_job(door: Door, demo: Client) -> None:
    group = demo.create_security_group(GroupName="web", Description="x")["GroupId"]
    made = demo.run_instances(
        ImageId="ami-tiny",
        InstanceType="m1.nano",
        MinCount=2,
        MaxCount=2,
        KeyName="test",
        SecurityGroups=["web"],
        UserData="#!/bin/sh\n",
        Placement={"AvailabilityZone": "nova"},
        Monitoring={"Enabled": True},
        MetadataOptions={"HttpTokens": "required"},
        TagSpecifications=[{"ResourceType": "instance", "Tags": [{"Key": "Name", "Value": "web"}]}],
    )
    first, second = made["Instances"]
    assert made["OwnerId"] == door.api.projects["demo"]
    assert first["InstanceId"].startswith("i-") and len(first["InstanceId"]) == 19
    assert first["MetadataOptions"]["HttpTokens"] == "required"
    demo.modify_instance_metadata_options(InstanceId=first["InstanceId"], HttpTokens="optional")
    assert first["MetadataOptions"]["HttpPutResponseHopLimit"] == 64
    assert described(demo, first["InstanceId"])["MetadataOptions"]["HttpTokens"] == "optional"
    assert first["State"] == {"Code": 0, "Name": "pending"}
    assert (first["InstanceType"], first["KeyName"]) == ("m1.nano", "test")
    assert first["ImageId"] == f"ami-{IMAGE_ID.replace('-', '')[:17]}"
    assert first["SecurityGroups"] == [{"GroupId": group, "GroupName": "web"}]
    assert first["Tags"] == [{"Key": "Name", "Value": "web"}]
    assert (first["AmiLaunchIndex"], second["AmiLaunchIndex"]) == (0, 1)
    assert first["SubnetId"].startswith("subnet-") and first["Placement"]["AvailabilityZone"] == "nova"
    (job,) = jobs(door.api)
    assert job.kind == "launch"
    # the other doors see the same
    servers = door.api.client_as("demo").get("/compute/v2.1/servers/detail").get_json()["servers"]
    assert {server["name"] for server in servers} == {"web-1", "web-2"}
    assert {f"i-{server['id'].replace('-', '')[:17]}" for server in servers} == {
        first["InstanceId"],
        second["InstanceId"],
    }
    with transaction(door.api.engine) as connection:
        user_data = connection.execute(sa.select(tables.instance.c.user_data)).scalars().all()
    assert {base64.b64decode(text) for text in user_data} == {b"#!/bin/sh\n"}


def test_as_many_as_there_is_room_for(demo: Client) -> None:
    instances = demo.run_instances(**{**RUN, "MinCount": 1, "MaxCount": 50})["Instances"]
    assert len(instances) == 10  # the quota
    with refused("InstanceLimitExceeded"):
        demo.run_instances(**RUN)


def test_the_same_client_token_is_the_same_request(door: Door, demo: Client) -> None:
    first = demo.run_instances(**RUN, ClientToken="tok1")
    again = demo.run_instances(**RUN, ClientToken="tok1")
    assert again["ReservationId"] == first["ReservationId"]
    assert [i["InstanceId"] for i in again["Instances"]] == [i["InstanceId"] for i in first["Instances"]]
    assert first["Instances"][0]["ClientToken"] == "tok1"
    with refused("IdempotentParameterMismatch"):
        demo.run_instances(**{**RUN, "InstanceType": "m1.nano"}, ClientToken="tok1")
    assert len(jobs(door.api)) == 1
    other = door.client("alt").run_instances(**RUN, ClientToken="tok1")  # a token is its project's own
    assert other["Instances"][0]["InstanceId"] != first["Instances"][0]["InstanceId"]


def test_a_dry_run_changes_nothing(door: Door, demo: Client) -> None:
    number = run(demo)["InstanceId"]
    with refused("DryRunOperation") as caught:
        demo.run_instances(**RUN, DryRun=True, ClientToken="dry")
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 412
    for call in (demo.terminate_instances, demo.start_instances, demo.describe_instances):
        with refused("DryRunOperation"):
            call(InstanceIds=[number], DryRun=True)
    with refused("DryRunOperation"):
        demo.create_key_pair(KeyName="k", DryRun=True)
    with refused("InvalidAMIID.NotFound"):
        demo.run_instances(**{**RUN, "ImageId": "ami-nosuch"}, DryRun=True)
    with refused("UnauthorizedOperation"):
        door.client("reader").run_instances(**RUN, DryRun=True)
    assert described(demo, number)["State"]["Name"] == "pending" and len(names(demo.describe_instances())) == 1
    assert demo.describe_key_pairs(KeyNames=["test"])["KeyPairs"] and len(jobs(door.api)) == 1
    run(demo, ClientToken="dry")


@pytest.mark.usefixtures("own_network")
@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"ImageId": "ami-nosuch"}, "InvalidAMIID.NotFound"),
        ({"ImageId": "ami-00000000"}, "InvalidAMIID.NotFound"),
        ({"ImageId": "nosuch"}, "InvalidAMIID.Malformed"),
        ({"InstanceType": "nosuch"}, "InvalidParameterValue"),
        ({"KeyName": "nosuch"}, "InvalidKeyPair.NotFound"),
        ({"SecurityGroups": ["nosuch"]}, "InvalidGroup.NotFound"),
        ({"SecurityGroupIds": ["sg-0123456789abcdef0"]}, "InvalidGroup.NotFound"),
        ({"SecurityGroupIds": ["nosuch"]}, "InvalidGroupId.Malformed"),
        ({"SubnetId": "subnet-0123456789abcdef0"}, "InvalidSubnetID.NotFound"),
        ({"PrivateIpAddress": "x"}, "InvalidParameterValue"),
        ({"PrivateIpAddress": "192.0.2.9"}, "InvalidParameterValue"),
        ({"Placement": {"AvailabilityZone": "nosuch"}}, "InvalidParameterValue"),
        ({"Placement": {"AvailabilityZone": "nova:hv1"}}, "UnauthorizedOperation"),
        ({"Placement": {"Tenancy": "dedicated"}}, "InvalidParameterValue"),
        ({"MinCount": 2}, "InvalidParameterCombination"),
        ({"MinCount": 0, "MaxCount": 0}, "InvalidParameterValue"),
        ({"MinCount": 20, "MaxCount": 20}, "InstanceLimitExceeded"),
        ({"UserData": "x" * 60_000}, "InvalidParameterValue"),
        ({"LaunchTemplate": {"LaunchTemplateName": "x"}}, "UnsupportedOperation"),
        ({"InstanceInitiatedShutdownBehavior": "hibernate"}, "InvalidParameterValue"),
        ({"BlockDeviceMappings": [{"DeviceName": "/dev/vda", "Ebs": {"VolumeSize": 50}}]}, "InvalidParameterValue"),
        ({"BlockDeviceMappings": [{"DeviceName": "/dev/sdf", "Ebs": {}}]}, "MissingParameter"),
        ({"BlockDeviceMappings": [{"DeviceName": "/dev/sdf", "Ebs": {"VolumeSize": 5000}}]}, "VolumeLimitExceeded"),
        (
            {"BlockDeviceMappings": [{"DeviceName": "/dev/sdf", "Ebs": {"SnapshotId": "snap-0123456789abcdef0"}}]},
            "InvalidSnapshot.NotFound",
        ),
        (
            {"BlockDeviceMappings": [{"DeviceName": "/dev/sdf", "Ebs": {"VolumeSize": 1, "VolumeType": "nosuch"}}]},
            "InvalidParameterValue",
        ),
        (
            {"BlockDeviceMappings": [{"DeviceName": name, "Ebs": {"VolumeSize": 1}} for name in ("sdf", "/dev/xvdf")]},
            "InvalidParameterValue",
        ),
        (
            {"BlockDeviceMappings": [{"DeviceName": "sdf", "Ebs": {"VolumeSize": 1, "Encrypted": True}}]},
            "UnsupportedOperation",
        ),
        ({"BlockDeviceMappings": [{"DeviceName": "", "Ebs": {"VolumeSize": 1}}] * 21}, "AttachmentLimitExceeded"),
        ({"TagSpecifications": [{"ResourceType": "vpc", "Tags": []}]}, "InvalidParameterValue"),
        (
            {"TagSpecifications": [{"ResourceType": "instance", "Tags": [{"Key": "aws:x", "Value": "y"}]}]},
            "InvalidParameterValue",
        ),
        ({"PrivateIpAddress": "10.20.0.9", "NetworkInterfaces": [{"DeviceIndex": 0}]}, "InvalidParameterCombination"),
    ],
)
def test_what_cannot_be_run_is_refused(door: Door, demo: Client, changes: dict[str, t.Any], code: str) -> None:
    with refused(code):
        demo.run_instances(**{**RUN, **changes})
    assert demo.describe_instances()["Reservations"] == [] and jobs(door.api) == []


def test_volumes_are_made_with_their_instances(door: Door, demo: Client) -> None:
    made = demo.run_instances(
        **{**RUN, "MinCount": 2, "MaxCount": 2},
        BlockDeviceMappings=[
            {"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 1}},  # the root disk, as it is
            {"DeviceName": "/dev/sdf", "Ebs": {"VolumeSize": 2, "VolumeType": "gp3", "DeleteOnTermination": True}},
            {"DeviceName": "/dev/xvdg", "Ebs": {"VolumeSize": 1}},
            {"DeviceName": "/dev/sdh", "NoDevice": ""},
        ],
        TagSpecifications=[{"ResourceType": "volume", "Tags": [{"Key": "Name", "Value": "data"}]}],
    )["Instances"]
    volumes = demo.describe_volumes(Filters=[{"Name": "tag:Name", "Values": ["data"]}])["Volumes"]
    attachments = sorted(
        (linked["InstanceId"], linked["Device"], volume["Size"], linked["DeleteOnTermination"])
        for volume in volumes
        for linked in volume["Attachments"]
    )
    assert attachments == sorted(
        entry
        for each in made
        for entry in ((each["InstanceId"], "/dev/vdf", 2, True), (each["InstanceId"], "/dev/vdg", 1, False))
    )
    assert [job.kind for job in jobs(door.api)] == ["launch"]  # whose hosts make them


@pytest.mark.usefixtures("own_network")
def test_subnet_and_address_can_be_chosen(demo: Client) -> None:
    (subnet,) = demo.describe_subnets()["Subnets"]
    number = subnet["SubnetId"]
    first = run(demo, SubnetId=number, PrivateIpAddress="10.20.0.77")
    assert first["PrivateIpAddress"] == "10.20.0.77"
    second = run(
        demo,
        NetworkInterfaces=[
            {"DeviceIndex": 0, "SubnetId": number, "PrivateIpAddress": "10.20.0.78", "AssociatePublicIpAddress": False}
        ],
    )
    (nic,) = second["NetworkInterfaces"]
    assert (nic["PrivateIpAddress"], nic["SubnetId"]) == ("10.20.0.78", number)
    with refused("InvalidIPAddress.InUse"):
        run(demo, SubnetId=number, PrivateIpAddress="10.20.0.77")


def test_its_states_are_amazons(door: Door, demo: Client) -> None:
    number = run(demo)["InstanceId"]
    for values, state, code in (
        ({}, "running", 16),
        ({"task_state": "rebooting"}, "running", 16),
        ({"task_state": "powering-off"}, "stopping", 64),
        ({"vm_state": "stopped", "power_state": 4}, "stopped", 80),
        ({"vm_state": "stopped", "task_state": "powering-on"}, "pending", 0),
        ({"vm_state": "suspended"}, "stopped", 80),
        ({"vm_state": "paused"}, "stopped", 80),
        ({"vm_state": "rescued"}, "running", 16),
        ({"vm_state": "resized"}, "running", 16),
        ({"vm_state": "error"}, "running", 16),
        ({"vm_state": "error", "power_state": 4}, "stopped", 80),
        ({"vm_state": "error", "launched_at": None, "host": None}, "terminated", 48),
        ({"task_state": "deleting"}, "shutting-down", 32),
    ):
        became(door.api, number, **values)
        assert described(demo, number)["State"] == {"Name": state, "Code": code}, values


def test_one_that_found_no_host_says_so(door: Door, demo: Client) -> None:
    number = run(demo)["InstanceId"]
    fault = {"code": 500, "message": "nowhere", "created": 1, "reason": "no-valid-host"}
    became(door.api, number, vm_state="error", launched_at=None, host=None, fault=fault)
    assert described(demo, number)["StateReason"]["Code"] == "Server.InsufficientInstanceCapacity"
    assert demo.terminate_instances(InstanceIds=[number])["TerminatingInstances"][0]["CurrentState"]["Code"] == 32


def test_stop_start_reboot_terminate(door: Door, demo: Client) -> None:
    number = run(demo)["InstanceId"]
    with refused("IncorrectInstanceState"):
        demo.stop_instances(InstanceIds=[number])
    uuid = became(door.api, number)

    def finish(action: str) -> None:
        with transaction(door.api.engine) as connection:
            assert server_actions.finish(connection, action, [uuid]) == [uuid]

    (change,) = demo.stop_instances(InstanceIds=[number])["StoppingInstances"]
    assert (change["PreviousState"]["Name"], change["CurrentState"]["Name"]) == ("running", "stopping")
    demo.stop_instances(InstanceIds=[number])  # it is on its way
    finish("stop")
    assert described(demo, number)["State"]["Name"] == "stopped"
    with refused("IncorrectInstanceState"):
        demo.reboot_instances(InstanceIds=[number])
    (change,) = demo.start_instances(InstanceIds=[number])["StartingInstances"]
    assert (change["PreviousState"]["Name"], change["CurrentState"]["Name"]) == ("stopped", "pending")
    finish("start")
    demo.reboot_instances(InstanceIds=[number])
    with refused("IncorrectInstanceState"):
        demo.reboot_instances(InstanceIds=[number])  # one at a time
    finish("reboot")
    demo.stop_instances(InstanceIds=[number], Hibernate=True)
    finish("suspend")
    assert described(demo, number)["State"]["Name"] == "stopped"
    demo.start_instances(InstanceIds=[number])
    finish("resume")
    (change,) = demo.terminate_instances(InstanceIds=[number])["TerminatingInstances"]
    assert (change["PreviousState"]["Name"], change["CurrentState"]["Name"]) == ("running", "shutting-down")
    kinds = [job.kind for job in jobs(door.api)]
    assert kinds == ["launch", "stop", "start", "reboot", "suspend", "resume", "terminate"]


def test_one_that_is_gone_is_shown_for_an_hour(door: Door, demo: Client) -> None:
    number = run(demo)["InstanceId"]
    uuid = became(door.api, number)
    table = tables.instance
    for ago, there in ((10, True), (4000, False)):
        gone = {"vm_state": "deleted", "deleted": table.c.id, "terminated_at": int(time.time()) - ago}
        door.api.write(sa.update(table).where(table.c.uuid == uuid).values(**gone))
        if there:
            assert described(demo, number)["State"] == {"Code": 48, "Name": "terminated"}
            (change,) = demo.terminate_instances(InstanceIds=[number])["TerminatingInstances"]
            assert change["CurrentState"]["Name"] == "terminated"
            with refused("IncorrectInstanceState"):
                demo.start_instances(InstanceIds=[number])
        else:
            with refused("InvalidInstanceID.NotFound"):
                described(demo, number)
            assert demo.describe_instances()["Reservations"] == []


def test_all_or_none(door: Door, demo: Client) -> None:
    first, second = run(demo)["InstanceId"], run(demo)["InstanceId"]
    became(door.api, first)
    with refused("IncorrectInstanceState"):
        demo.stop_instances(InstanceIds=[first, second])  # the other is not built yet
    assert described(demo, first)["State"]["Name"] == "running"
    with refused("InvalidInstanceID.NotFound"):
        demo.terminate_instances(InstanceIds=[first, NOBODYS])
    assert described(demo, first)["State"]["Name"] == "running"


def names(answer: dict[str, t.Any]) -> list[str]:
    return [i["InstanceId"] for r in answer["Reservations"] for i in r["Instances"]]
