# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Instances: described, started, stopped, rebooted, terminated."""

from __future__ import annotations

import base64
import time
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, ProtectedError
from ansible_collections.novalite.cloud.plugins.module_utils._json import JsonObject
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import servers
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute import server_listing
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.ec2 import ec2_attributes
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.jobs.open_jobs import open_job

from ...web.context import Caller, current
from ...web.host_names import veil_faults
from ...web.ledger import reading_ledger, writing_ledger
from ...work import waiting
from ...work.calls import calling
from .. import filters, ids, images
from ..blueprint import action, reads, refuse_dry_run, writes
from ..common import Body, Parameters, Record, moment
from ..faults import Ec2Error, as_codes
from ..parameters import LISTING, TEXTS, Boolean, Text
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

# What is to be done to an instance: an action of the Compute API and its value, None for nothing
Decide = t.Callable[[Record], "tuple[str, JsonObject | None] | None"]

_OF_INSTANCE = {
    **filters.like(
        "instance-id instance-type image-id key-name architecture hypervisor virtualization-type "
        "root-device-type root-device-name launch-time client-token private-ip-address private-dns-name "
        "ip-address dns-name reason source-dest-check subnet-id vpc-id instance-state-name=instanceState.name "
        "instance-state-code=instanceState.code placement-group-name=placement.groupName "
        "launch-index=amiLaunchIndex state-reason-code=stateReason.code state-reason-message=stateReason.message "
        "monitoring-state=monitoring.state block-device-mapping.device-name=blockDeviceMapping.deviceName"
    ),
    **filters.like("availability-zone tenancy", element="placement"),
    **filters.like("group-id group-name", element="groupSet"),
    **filters.like("group-id group-name", at="instance", element="groupSet"),
    **filters.like(
        "volume-id status delete-on-termination", at="block-device-mapping", element="blockDeviceMapping.ebs"
    ),
    **filters.like(
        "network-interface-id mac-address subnet-id vpc-id group-id=groupSet.groupId "
        "association.public-ip=association.publicIp "
        "addresses.private-ip-address=privateIpAddressesSet.privateIpAddress "
        "addresses.association.public-ip=privateIpAddressesSet.association.publicIp",
        at="network-interface",
        element="networkInterfaceSet",
    ),
    "association.public-ip": "networkInterfaceSet.association.publicIp",
}
INSTANCE_FILTERS = {
    **filters.like("reservation-id owner-id"),
    "requester-id": "ownerId",
    **{name: f"instancesSet.{path}" for name, path in _OF_INSTANCE.items()},
}
STATUS_FILTERS = {
    **filters.like(
        "availability-zone instance-id instance-state-name=instanceState.name instance-state-code=instanceState.code"
    ),
    **filters.like("status reachability=details.status", at="system-status", element="systemStatus"),
    **filters.like("status reachability=details.status", at="instance-status", element="instanceStatus"),
}
DELETE = "delete"
TYPE_CHANGE = ("resize", {"confirm": True})  # the kind and the variables of the job that changes an instance's type
MAX_OUTPUT = 64 * 1024  # bytes, as Amazon
_WRONG_STATE: t.Mapping[type[Exception], str] = {
    ProtectedError: "OperationNotPermitted",
    ConflictError: "IncorrectInstanceState",
}


def find(connection: Connection, project: str, instance_ids: t.Sequence[str] | None) -> list[Record]:
    """The project's instances with these ids (None: all), in the order of their making. Raises Ec2Error."""
    known = ec2_attributes.instance_ids(connection, project)
    numbers = list(known)
    if instance_ids is not None:
        by_id: dict[str, int] = {ids.of("i", uuid): number for number, uuid in known.items()}
        by_id.update({f"i-{number:08x}": number for number in known})  # what guests are told
        numbers = sorted(set(ids.find_all("i", instance_ids, by_id)))
    records = ec2_attributes.load(connection, numbers)
    veil_faults(connection, current().reach, records)
    return records


def find_live(connection: Connection, project: str, number: str, code: str = "IncorrectInstanceState") -> Record:
    """The project's instance with this id. Raises Ec2Error, with `code` for one that is gone."""
    (record,) = find(connection, project, [number])
    if record["deleted"]:
        raise Ec2Error(code, f"The instance '{number}' is terminated.")
    return record


@reads("DescribeInstances", "compute:servers:detail", {"InstanceId": TEXTS, **LISTING})
def describe_instances(connection: Connection, caller: Caller, parameters: Parameters) -> Body:
    if "InstanceId" in parameters and "MaxResults" in parameters:
        raise Ec2Error(
            "InvalidParameterCombination", "The parameter instancesSet cannot be used with the parameter maxResults"
        )
    records = find(connection, caller.project, parameters.get("InstanceId"))
    parameters = images.with_ids(connection, caller.project, parameters)
    page, token = filters.page(
        filters.filtered(map(reservation, records), parameters, INSTANCE_FILTERS),
        parameters,
        lambda body: int(body["number"]),
    )
    return {"reservationSet": grouped(page), "nextToken": token}


@reads(
    "DescribeInstanceStatus",
    "compute:servers:detail",
    {"InstanceId": TEXTS, "IncludeAllInstances": Boolean(), **LISTING},
)
def describe_instance_status(connection: Connection, caller: Caller, parameters: Parameters) -> Body:
    records = find(connection, caller.project, parameters.get("InstanceId"))
    if not parameters.get("IncludeAllInstances"):
        records = [record for record in records if state(record) is RUNNING]
    numbers = {instance_id(record): record["id"] for record in records}
    page, token = filters.page(
        filters.filtered(map(status, records), parameters, STATUS_FILTERS),
        parameters,
        lambda body: int(numbers[body["instanceId"]]),
    )
    return {"instanceStatusSet": [{**body, "tagSet": None} for body in page], "nextToken": token}


# --- what is done to them -------------------------------------------------------------------------------------------


def _act(
    connection: Connection, caller: Caller, parameters: Parameters, decide: Decide, doing: str | None = None
) -> Body:
    """Do to each of them what `decide` says (an action, and its details) or, if one refuses, nothing to any.

    Returns what each was and is. `doing` is what cannot be done to one that is gone; None: that is no error.
    """
    before = find(connection, caller.project, parameters["InstanceId"])
    for record in before:
        if record["deleted"]:
            if doing is not None:
                raise _wrong(record, doing)
            continue
        if (decided := decide(record)) is None:
            continue
        name, details = decided
        with as_codes(_WRONG_STATE):
            row = server_listing.instance_row(connection, record["uuid"], caller.project)
            if name == DELETE:
                servers.delete(calling(connection), row)
            else:
                servers.begin(calling(connection), name, [row.uuid], details, details)
    after = ec2_attributes.load(connection, [record["id"] for record in before])
    return {"instancesSet": [change(now, state(record)) for record, now in zip(before, after)]}


def _wrong(record: Record, doing: str) -> Ec2Error:
    name = state(record)[1]
    message = f"The instance '{instance_id(record)}' is not in a state from which it can be {doing}: it is {name}."
    return Ec2Error("IncorrectInstanceState", message)


_INSTANCE_IDS = {"InstanceId": TEXTS}


@action("StartInstances", "compute:servers:start", {**_INSTANCE_IDS, "AdditionalInfo": Text()}, ["InstanceId"])
def start_instances(parameters: Parameters) -> Body:
    """Start instances. A hibernated (suspended) one goes on where it was; a pending change of type is made before."""
    with reading_ledger() as connection:
        records = find(connection, current().project, parameters["InstanceId"])
        resizes = [open_job(connection, record["uuid"], *TYPE_CHANGE) for record in records]
    for job_id in filter(None, resizes):
        waiting.ended(job_id)
    with writing_ledger() as connection:
        body = _start(connection, current(), parameters)
        refuse_dry_run()
        return body


def _start(connection: Connection, caller: Caller, parameters: Parameters) -> Body:
    actions = {"stopped": "start", "suspended": "resume", "paused": "unpause"}

    def start(record: Record) -> tuple[str, JsonObject | None] | None:
        if state(record) in (RUNNING, PENDING):
            return None
        name = actions.get(record["vm_state"])
        if name is None or record["task_state"] is not None:
            raise _wrong(record, "started")
        return name, None

    return _act(connection, caller, parameters, start, "started")


@writes(
    "StopInstances",
    "compute:servers:stop",
    {**_INSTANCE_IDS, "Force": Boolean(), "Hibernate": Boolean(), "SkipOsShutdown": Boolean()},
    ["InstanceId"],
)
def stop_instances(connection: Connection, caller: Caller, parameters: Parameters) -> Body:
    name = "suspend" if parameters.get("Hibernate") else "stop"

    def stop(record: Record) -> tuple[str, JsonObject | None] | None:
        if state(record) in (STOPPED, STOPPING):
            return None
        if state(record) is not RUNNING:
            raise _wrong(record, "stopped")
        return name, None

    return _act(connection, caller, parameters, stop, "stopped")


@writes("RebootInstances", "compute:servers:reboot", _INSTANCE_IDS, ["InstanceId"])
def reboot_instances(connection: Connection, caller: Caller, parameters: Parameters) -> None:
    def reboot(record: Record) -> tuple[str, JsonObject | None]:
        if state(record) is not RUNNING:
            raise _wrong(record, "rebooted")
        return "reboot", {"type": "SOFT"}

    _act(connection, caller, parameters, reboot, "rebooted")


@writes(
    "TerminateInstances",
    "compute:servers:delete",
    {**_INSTANCE_IDS, "Force": Boolean(), "SkipOsShutdown": Boolean()},
    ["InstanceId"],
)
def terminate_instances(connection: Connection, caller: Caller, parameters: Parameters) -> Body:
    """Terminate instances. An instance that is gone already is not an error, for as long as it is shown."""

    return _act(connection, caller, parameters, lambda _record: (DELETE, None))


# --- what a guest says ----------------------------------------------------------------------------------------------


@action(
    "GetConsoleOutput", "compute:servers:console_output", {"InstanceId": Text(), "Latest": Boolean()}, ["InstanceId"]
)
def get_console_output(parameters: Parameters) -> Body:
    """The last 64 KiB, in base64. The host is asked each time, so that it is always the latest."""
    with reading_ledger() as connection:
        (record,) = find(connection, current().project, [parameters["InstanceId"]])
    refuse_dry_run()
    output = ""
    if record["host"] is not None and not record["deleted"]:
        with as_codes({ConflictError: "IncorrectState"}):
            output = waiting.console_output(record["uuid"])
    return {
        "instanceId": instance_id(record),
        "timestamp": moment(time.time()),
        "output": base64.b64encode(output.encode()[-MAX_OUTPUT:]).decode(),
    }


@reads("GetPasswordData", "compute:server-parts:read", {"InstanceId": Text()}, ["InstanceId"])
def get_password_data(connection: Connection, caller: Caller, parameters: Parameters) -> Body:
    """Return an empty password: no guest encrypts one and leaves it here."""
    (record,) = find(connection, caller.project, [parameters["InstanceId"]])
    return {"instanceId": instance_id(record), "timestamp": moment(time.time()), "passwordData": ""}
