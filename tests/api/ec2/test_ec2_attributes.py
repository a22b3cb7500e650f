# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Attributes, filters, pages and the console of instances through the EC2 dialect."""

from __future__ import annotations

import base64
import types
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute import server_actions
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from api.work import waiting
from tests.api.ec2.test_ec2_instances import NOBODYS, RUN, became, described, jobs, names, run
from tests.api.ec2_door import Client, Door, refused


def test_protection_from_termination(door: Door, demo: Client) -> None:
    number = run(demo, DisableApiTermination=True)["InstanceId"]
    became(door.api, number)
    asked = {"InstanceId": number, "Attribute": "disableApiTermination"}
    assert demo.describe_instance_attribute(**asked)["DisableApiTermination"] == {"Value": True}
    with refused("OperationNotPermitted"):
        demo.terminate_instances(InstanceIds=[number])
    demo.modify_instance_attribute(InstanceId=number, DisableApiTermination={"Value": False})
    assert demo.describe_instance_attribute(**asked)["DisableApiTermination"] == {"Value": False}
    demo.modify_instance_attribute(InstanceId=number, DisableApiStop={"Value": True})
    with refused("OperationNotPermitted"):
        demo.stop_instances(InstanceIds=[number])
    demo.terminate_instances(InstanceIds=[number])


def test_attributes(door: Door, demo: Client) -> None:
    group = demo.create_security_group(GroupName="web", Description="x")["GroupId"]
    number = run(demo, UserData="hello")["InstanceId"]
    became(door.api, number)

    def attribute(name: str, client: Client = demo) -> t.Any:
        answer = client.describe_instance_attribute(InstanceId=number, Attribute=name)
        return answer[name[0].upper() + name[1:] if name != "groupSet" else "Groups"]

    assert attribute("instanceType") == {"Value": "m1.tiny"}
    assert attribute("userData") == {"Value": base64.b64encode(b"hello").decode()}
    assert attribute("userData", door.client("reader")) == {}
    assert attribute("instanceInitiatedShutdownBehavior") == {"Value": "stop"}
    assert [membership["GroupName"] for membership in attribute("groupSet")] == ["default"]
    demo.modify_instance_attribute(InstanceId=number, Groups=[group])
    assert [membership["GroupName"] for membership in attribute("groupSet")] == ["web"]
    demo.modify_instance_attribute(InstanceId=number, Attribute="disableApiTermination", Value="true")
    assert attribute("disableApiTermination") == {"Value": True}
    with refused("InvalidParameterValue"):
        demo.describe_instance_attribute(InstanceId=number, Attribute="nosuch")


def test_a_stopped_instance_gets_another_type(door: Door, demo: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    number = run(demo)["InstanceId"]
    uuid = became(door.api, number)
    wish: dict[str, t.Any] = {"InstanceId": number, "InstanceType": {"Value": "m1.small"}}
    with refused("IncorrectInstanceState"):
        demo.modify_instance_attribute(**wish)
    became(door.api, number, vm_state="stopped", power_state=4)
    with refused("InvalidParameterValue"):
        demo.modify_instance_attribute(**{**wish, "InstanceType": {"Value": "nosuch"}})
    with refused("DryRunOperation"):
        demo.modify_instance_attribute(**wish, DryRun=True)
    with refused("InvalidInstanceID.NotFound"):
        door.client("alt").modify_instance_attribute(**wish)
    with refused("UnauthorizedOperation"):
        door.client("reader").modify_instance_attribute(**wish)
    demo.modify_instance_attribute(**{**wish, "InstanceType": {"Value": "m1.tiny"}})  # as it is
    assert "resize" not in [job.kind for job in jobs(door.api)]

    def ended(job_id: str) -> t.Any:
        """What its host does."""
        (job,) = (job for job in jobs(door.api) if job.id == job_id)
        assert (job.kind, job.variables) == ("resize", {"confirm": True})
        with transaction(door.api.engine) as connection:
            server_actions.finish(connection, "resize", [uuid], error="No valid host was found.")
        return types.SimpleNamespace(state="failed", message="No valid host was found.")

    monkeypatch.setattr(waiting, "ended", ended)
    with refused("InsufficientInstanceCapacity"):
        demo.modify_instance_attribute(**wish)
    monkeypatch.undo()
    demo.modify_instance_attribute(InstanceId=number, Attribute="instanceType", Value="m1.small")
    assert described(demo, number)["State"]["Name"] == "stopped"
    with refused("IncorrectInstanceState"):
        demo.modify_instance_attribute(**wish)  # it is under way
    with refused("IncorrectInstanceState"):
        demo.start_instances(InstanceIds=[number])

    def changed(job_id: str) -> None:
        """What its host does, in the end."""
        became(door.api, number, vm_state="stopped", power_state=4)

    monkeypatch.setattr(waiting, "ended", changed)
    started = demo.start_instances(InstanceIds=[number])["StartingInstances"]
    assert started[0]["CurrentState"]["Name"] == "pending"


def test_shutdown_behavior(demo: Client) -> None:
    def kept(number: str) -> t.Any:
        asked = {"InstanceId": number, "Attribute": "instanceInitiatedShutdownBehavior"}
        return demo.describe_instance_attribute(**asked)["InstanceInitiatedShutdownBehavior"]["Value"]

    number = run(demo, InstanceInitiatedShutdownBehavior="terminate")["InstanceId"]
    assert kept(number) == "terminate"
    demo.modify_instance_attribute(InstanceId=number, InstanceInitiatedShutdownBehavior={"Value": "stop"})
    assert kept(number) == "stop"
    demo.modify_instance_attribute(InstanceId=number, Attribute="instanceInitiatedShutdownBehavior", Value="terminate")
    assert kept(number) == "terminate"
    for wrong in ("hibernate", "Stop"):
        with refused("InvalidParameterValue"):
            run(demo, InstanceInitiatedShutdownBehavior=wrong)


@pytest.mark.parametrize(("power", "name"), [(1, "running"), (4, "stopped")])
def test_one_that_waits_to_be_confirmed_is_what_its_guest_is(door: Door, demo: Client, power: int, name: str) -> None:
    number = run(demo)["InstanceId"]
    became(door.api, number, vm_state="resized", power_state=power)
    assert described(demo, number)["State"]["Name"] == name


def test_filters(door: Door, demo: Client) -> None:
    tagged = run(demo, TagSpecifications=[{"ResourceType": "instance", "Tags": [{"Key": "a", "Value": "b*c"}]}])
    plain = run(demo, InstanceType="m1.nano", KeyName="test")
    became(door.api, tagged["InstanceId"])
    both = [tagged["InstanceId"], plain["InstanceId"]]

    def filtered_ids(*filters: tuple[str, list[str]]) -> list[str]:
        asked = [{"Name": name, "Values": values} for name, values in filters]
        return names(demo.describe_instances(Filters=asked))

    assert filtered_ids() == both
    assert filtered_ids(("instance-state-name", ["running"])) == both[:1]
    assert filtered_ids(("instance-state-name", ["running", "pending"])) == both
    assert filtered_ids(("instance-state-code", ["0"])) == both[1:]
    assert filtered_ids(("tag:a", ["b*"])) == both[:1]
    assert filtered_ids(("tag:a", [r"b\*c"])) == both[:1]
    assert filtered_ids(("tag:a", [r"b\*d"])) == filtered_ids(("tag:a", ["?"])) == []
    assert filtered_ids(("tag-key", ["a"])) == filtered_ids(("tag:a", ["b??"])) == both[:1]
    assert filtered_ids(("instance-type", ["m1.n*"])) == filtered_ids(("key-name", ["test"])) == both[1:]
    assert filtered_ids(("instance-type", ["m1.*"]), ("instance-state-name", ["pending"])) == both[1:]
    assert filtered_ids(("image-id", ["ami-tiny"])) == filtered_ids(("image-id", ["ami-6a6f*"])) == both
    assert filtered_ids(("vpc-id", ["vpc-*"]), ("availability-zone", ["nova"])) == both
    assert filtered_ids(("reservation-id", [demo.describe_instances()["Reservations"][0]["ReservationId"]])) == both[:1]
    with refused("InvalidParameterValue"):
        filtered_ids(("nosuch", ["x"]))
    statuses = demo.describe_instance_status()["InstanceStatuses"]
    assert [status["InstanceId"] for status in statuses] == both[:1]
    assert statuses[0]["InstanceStatus"]["Status"] == "ok"
    statuses = demo.describe_instance_status(IncludeAllInstances=True)["InstanceStatuses"]
    assert [status["InstanceId"] for status in statuses] == both


def test_what_reads_as_an_images_id_is_no_name(demo: Client) -> None:
    name = "ami-0123456789abcdef0"
    number = demo.register_image(Name=name, ImageLocation="amazon/ami-tiny")["ImageId"]
    instance = run(demo, ImageId=number)["InstanceId"]
    assert names(demo.describe_instances(Filters=[{"Name": "image-id", "Values": [number]}])) == [instance]
    assert names(demo.describe_instances(Filters=[{"Name": "image-id", "Values": [name]}])) == []


def test_pages(demo: Client) -> None:
    demo.run_instances(**{**RUN, "MinCount": 7, "MaxCount": 7})
    pages = list(demo.get_paginator("describe_instances").paginate(PaginationConfig={"PageSize": 5}))
    assert [len(names(page)) for page in pages] == [5, 2]
    assert len({name for page in pages for name in names(page)}) == 7
    for wrong in ("x", "eyJ4IjogMX0=", base64.urlsafe_b64encode(b'"x"').decode()):
        with refused("InvalidNextToken"):
            demo.describe_instances(NextToken=wrong)
    with refused("InvalidParameterValue"):
        demo.describe_instances(MaxResults=4)
    with refused("InvalidParameterCombination"):
        demo.describe_instances(MaxResults=5, InstanceIds=[NOBODYS])


def test_what_is_anothers_is_not_there(door: Door, demo: Client) -> None:
    number = run(demo)["InstanceId"]
    became(door.api, number)
    alt = door.client("alt")
    assert alt.describe_instances()["Reservations"] == []
    for unknown in (number, NOBODYS):
        for call in (
            alt.describe_instances,
            alt.describe_instance_status,
            alt.start_instances,
            alt.stop_instances,
            alt.reboot_instances,
            alt.terminate_instances,
        ):
            with refused("InvalidInstanceID.NotFound"):
                call(InstanceIds=[unknown])
        with refused("InvalidInstanceID.NotFound"):
            alt.get_console_output(InstanceId=unknown)
        with refused("InvalidInstanceID.NotFound"):
            alt.describe_instance_attribute(InstanceId=unknown, Attribute="userData")
        with refused("InvalidInstanceID.NotFound"):
            alt.create_tags(Resources=[unknown], Tags=[{"Key": "a", "Value": "b"}])
    with refused("InvalidInstanceID.Malformed"):
        demo.describe_instances(InstanceIds=["nosuch"])
    reader = door.client("reader")
    assert names(reader.describe_instances()) == [number]
    for call in (reader.start_instances, reader.stop_instances, reader.reboot_instances, reader.terminate_instances):
        with refused("UnauthorizedOperation"):
            call(InstanceIds=[number])


def test_what_the_guest_is_told_as_its_id_leads_to_it(demo: Client) -> None:
    number = run(demo)["InstanceId"]
    assert described(demo, "i-00000001")["InstanceId"] == number


def test_console_output(door: Door, demo: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    number = run(demo)["InstanceId"]
    assert demo.get_console_output(InstanceId=number).get("Output", "") == ""
    became(door.api, number)
    monkeypatch.setattr(waiting, "console_output", lambda *_arguments: "login: ☃\n")
    assert demo.get_console_output(InstanceId=number, Latest=True)["Output"] == "login: ☃\n"
    assert demo.get_password_data(InstanceId=number)["PasswordData"] == ""
