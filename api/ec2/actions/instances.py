# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Instances: described, started, stopped, rebooted, terminated."""

from __future__ import annotations

import base64
import time
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.ec2 import ec2_records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import server_listing

from ...openstack.compute.servers import console
from ...openstack.compute.servers.routes_actions import ACTIONS as SERVER_ACTIONS
from ...openstack.compute.servers.routes_servers import delete
from ...web.context import Caller, current
from ...web.host_names import veil_faults
from ...web.ledger import reading_ledger
from .. import filters, ids, images
from ..blueprint import action, refuse_dry_run, writing
from ..common import Asked, Body, moment
from ..faults import Ec2Error, as_codes
from ..parameters import FILTERS, PAGING, TEXTS, Boolean, Text
from ..views_instances import (
    PENDING,
    RUNNING,
    STOPPED,
    STOPPING,
    change,
    grouped,
    instance_id,
    reservation,
    state,
    status,
)

Record = dict[str, t.Any]
Do = t.Callable[[Connection, Record, t.Any, Caller], None]

_OF_INSTANCE = {
    "instance-id": "instanceId",
    "instance-state-name": "instanceState.name",
    "instance-state-code": "instanceState.code",
    "instance-type": "instanceType",
    "image-id": "imageId",
    "key-name": "keyName",
    "availability-zone": "placement.availabilityZone",
    "placement-group-name": "placement.groupName",
    "tenancy": "placement.tenancy",
    "architecture": "architecture",
    "hypervisor": "hypervisor",
    "virtualization-type": "virtualizationType",
    "root-device-type": "rootDeviceType",
    "root-device-name": "rootDeviceName",
    "launch-index": "amiLaunchIndex",
    "launch-time": "launchTime",
    "client-token": "clientToken",
    "private-ip-address": "privateIpAddress",
    "private-dns-name": "privateDnsName",
    "ip-address": "ipAddress",
    "dns-name": "dnsName",
    "reason": "reason",
    "state-reason-code": "stateReason.code",
    "state-reason-message": "stateReason.message",
    "monitoring-state": "monitoring.state",
    "source-dest-check": "sourceDestCheck",
    "subnet-id": "subnetId",
    "vpc-id": "vpcId",
    "group-id": "groupSet.groupId",
    "group-name": "groupSet.groupName",
    "instance.group-id": "groupSet.groupId",
    "instance.group-name": "groupSet.groupName",
    "block-device-mapping.device-name": "blockDeviceMapping.deviceName",
    "block-device-mapping.volume-id": "blockDeviceMapping.ebs.volumeId",
    "block-device-mapping.status": "blockDeviceMapping.ebs.status",
    "block-device-mapping.delete-on-termination": "blockDeviceMapping.ebs.deleteOnTermination",
    "network-interface.network-interface-id": "networkInterfaceSet.networkInterfaceId",
    "network-interface.mac-address": "networkInterfaceSet.macAddress",
    "network-interface.subnet-id": "networkInterfaceSet.subnetId",
    "network-interface.vpc-id": "networkInterfaceSet.vpcId",
    "network-interface.group-id": "networkInterfaceSet.groupSet.groupId",
    "network-interface.addresses.private-ip-address": "networkInterfaceSet.privateIpAddressesSet.privateIpAddress",
    "association.public-ip": "networkInterfaceSet.association.publicIp",
    "network-interface.association.public-ip": "networkInterfaceSet.association.publicIp",
}
INSTANCE_FILTERS = {
    "reservation-id": "reservationId",
    "owner-id": "ownerId",
    "requester-id": "ownerId",
    **{name: f"instancesSet.{path}" for name, path in _OF_INSTANCE.items()},
}
STATUS_FILTERS = {
    "availability-zone": "availabilityZone",
    "instance-id": "instanceId",
    "instance-state-name": "instanceState.name",
    "instance-state-code": "instanceState.code",
    "system-status.status": "systemStatus.status",
    "system-status.reachability": "systemStatus.details.status",
    "instance-status.status": "instanceStatus.status",
    "instance-status.reachability": "instanceStatus.details.status",
}
MAX_OUTPUT = 64 * 1024  # bytes, as Amazon
_WRONG_STATE: t.Mapping[type[Exception], str] = {ConflictError: "IncorrectInstanceState"}


def find(connection: Connection, project: str, wanted: t.Sequence[str] | None) -> list[Record]:
    """The project's instances with these ids (None: all), in the order of their making. Raises Ec2Error."""
    known = ec2_records.instance_ids(connection, project)
    numbers = list(known)
    if wanted is not None:
        by_id: dict[str, int] = {ids.of("i", uuid): number for number, uuid in known.items()}
        by_id.update({f"i-{number:08x}": number for number in known})  # what guests are told
        numbers = sorted(set(ids.find_all("i", wanted, by_id)))
    records = ec2_records.load(connection, numbers)
    veil_faults(connection, current().reach, records)
    return records


@action("DescribeInstances", "compute:servers:detail", {"InstanceId": TEXTS, "Filter": FILTERS, **PAGING})
def describe_instances(asked: Asked) -> Body:
    if "InstanceId" in asked and "MaxResults" in asked:
        raise Ec2Error(
            "InvalidParameterCombination", "The parameter instancesSet cannot be used with the parameter maxResults"
        )
    with reading_ledger() as connection:
        records = find(connection, current().project, asked.get("InstanceId"))
        asked = images.with_ids(connection, current().project, asked)
    page, token = filters.page(
        filters.filtered(map(reservation, records), asked, INSTANCE_FILTERS), asked, lambda body: int(body["number"])
    )
    return {"reservationSet": grouped(page), "nextToken": token}


@action(
    "DescribeInstanceStatus",
    "compute:servers:detail",
    {"InstanceId": TEXTS, "IncludeAllInstances": Boolean(), "Filter": FILTERS, **PAGING},
)
def describe_instance_status(asked: Asked) -> Body:
    with reading_ledger() as connection:
        records = find(connection, current().project, asked.get("InstanceId"))
    if not asked.get("IncludeAllInstances"):
        records = [record for record in records if state(record) is RUNNING]
    numbers = {instance_id(record): record["id"] for record in records}
    page, token = filters.page(
        filters.filtered(map(status, records), asked, STATUS_FILTERS),
        asked,
        lambda body: int(numbers[body["instanceId"]]),
    )
    return {"instanceStatusSet": [{**body, "tagSet": None} for body in page], "nextToken": token}


# --- what is done to them -------------------------------------------------------------------------------------------


def _act(asked: Asked, do: Do, doing: str | None = None) -> list[tuple[Record, Record]]:
    """Do the same to all of them or, if one refuses, to none; returns each as it was and as it is.

    `doing` is what cannot be done to one that is gone; None: that is no error.
    """
    with writing() as (connection, caller):
        before = find(connection, caller.project, asked["InstanceId"])
        for record in before:
            if record["deleted"]:
                if doing is not None:
                    raise _wrong(record, doing)
                continue
            with as_codes(_WRONG_STATE):
                do(connection, record, server_listing.one(connection, record["uuid"], caller.project), caller)
        after = ec2_records.load(connection, [record["id"] for record in before])
    return list(zip(before, after))


def _changes(pairs: list[tuple[Record, Record]]) -> Body:
    return {"instancesSet": [change(after, state(before)) for before, after in pairs]}


def _wrong(record: Record, doing: str) -> Ec2Error:
    name = state(record)[1]
    message = f"The instance '{instance_id(record)}' is not in a state from which it can be {doing}: it is {name}."
    return Ec2Error("IncorrectInstanceState", message)


_ASKED = {"InstanceId": TEXTS}


@action("StartInstances", "compute:servers:start", {**_ASKED, "AdditionalInfo": Text()}, ["InstanceId"])
def start_instances(asked: Asked) -> Body:
    """One that was hibernated (suspended) goes on where it was."""
    actions = {"stopped": "os-start", "suspended": "resume", "paused": "unpause"}

    def start(connection: Connection, record: Record, row: t.Any, caller: Caller) -> None:
        if state(record) in (RUNNING, PENDING):
            return
        name = actions.get(record["vm_state"])
        if name is None or record["task_state"] is not None:
            raise _wrong(record, "started")
        SERVER_ACTIONS[name].do(connection, row, None, caller)

    return _changes(_act(asked, start, "started"))


@action(
    "StopInstances",
    "compute:servers:stop",
    {**_ASKED, "Force": Boolean(), "Hibernate": Boolean(), "SkipOsShutdown": Boolean()},
    ["InstanceId"],
)
def stop_instances(asked: Asked) -> Body:
    name = "suspend" if asked.get("Hibernate") else "os-stop"

    def stop(connection: Connection, record: Record, row: t.Any, caller: Caller) -> None:
        if state(record) in (STOPPED, STOPPING):
            return
        if state(record) is not RUNNING:
            raise _wrong(record, "stopped")
        if record["ec2"]["disable_api_stop"]:
            raise _protected(record, "disableApiStop")
        SERVER_ACTIONS[name].do(connection, row, None, caller)

    return _changes(_act(asked, stop, "stopped"))


@action("RebootInstances", "compute:servers:reboot", _ASKED, ["InstanceId"])
def reboot_instances(asked: Asked) -> Body:
    def reboot(connection: Connection, record: Record, row: t.Any, caller: Caller) -> None:
        if state(record) is not RUNNING:
            raise _wrong(record, "rebooted")
        SERVER_ACTIONS["reboot"].do(connection, row, {"type": "SOFT"}, caller)

    _act(asked, reboot, "rebooted")
    return {"return": True}


@action(
    "TerminateInstances",
    "compute:servers:delete",
    {**_ASKED, "Force": Boolean(), "SkipOsShutdown": Boolean()},
    ["InstanceId"],
)
def terminate_instances(asked: Asked) -> Body:
    """One that is gone already is no error, for as long as it is shown."""

    def terminate(connection: Connection, record: Record, row: t.Any, caller: Caller) -> None:
        if record["ec2"]["disable_api_termination"]:
            raise _protected(record, "disableApiTermination")
        delete(connection, row, caller)

    return _changes(_act(asked, terminate))


def _protected(record: Record, attribute: str) -> Ec2Error:
    return Ec2Error(
        "OperationNotPermitted",
        f"The instance '{instance_id(record)}' may not be changed so. Modify its '{attribute}' instance attribute and "
        "try again.",
    )


# --- what a guest says ----------------------------------------------------------------------------------------------


@action(
    "GetConsoleOutput", "compute:servers:console_output", {"InstanceId": Text(), "Latest": Boolean()}, ["InstanceId"]
)
def get_console_output(asked: Asked) -> Body:
    """The last 64 KiB, in base64. The host is asked each time, so that it is always the latest."""
    record = _one(asked)
    refuse_dry_run()
    said = ""
    if record["host"] is not None and not record["deleted"]:
        with as_codes({ConflictError: "IncorrectState"}):
            said = console.output(record["uuid"], None, current())
    return {
        "instanceId": instance_id(record),
        "timestamp": moment(time.time()),
        "output": base64.b64encode(said.encode()[-MAX_OUTPUT:]).decode(),
    }


@action("GetPasswordData", "compute:server-parts:read", {"InstanceId": Text()}, ["InstanceId"])
def get_password_data(asked: Asked) -> Body:
    """What a guest encrypted and left here: none does."""
    record = _one(asked)
    return {"instanceId": instance_id(record), "timestamp": moment(time.time()), "passwordData": ""}


def _one(asked: Asked) -> Record:
    with reading_ledger() as connection:
        (record,) = find(connection, current().project, [asked["InstanceId"]])
    return record
