# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Single attributes of instances, and what of them can be changed."""

from __future__ import annotations

import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, QuotaError
from ansible_collections.novalite.cloud.plugins.module_utils._json import Json
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import attachments, servers
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.catalog import ec2_requests
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute import (
    guest_lookup,
    migration_records,
    server_listing,
    views,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.group_records import groups_of

from ...web.context import Caller, current
from ...web.ledger import reading_ledger, writing_ledger
from ...work import waiting
from ...work.calls import calling
from ..blueprint import action, reads, refuse_dry_run, writes
from ..common import Body, Parameters, Record
from ..faults import Ec2Error, as_codes, missing, unsupported
from ..parameters import METADATA_OPTIONS, TEXTS, Boolean, Group, Ignored, ListOf, Shape, Text, an_attribute, each
from ..views_instances import STOPPED, instance, instance_id, state
from .groups import find_group
from .instances import TYPE_CHANGE, find, find_live
from .run import SHUTDOWN_BEHAVIORS, flavor_of

# attribute: (column of ec2_instance)
_FLAGS = {"disableApiTermination": "disable_api_termination", "disableApiStop": "disable_api_stop"}
NAMES = (
    *("instanceType", "kernel", "ramdisk", "userData", *_FLAGS, "instanceInitiatedShutdownBehavior"),
    *("rootDeviceName", "blockDeviceMapping", "productCodes", "sourceDestCheck", "groupSet", "ebsOptimized"),
    *("sriovNetSupport", "enaSupport", "enclaveOptions"),
)
_FLAG = Group({"Value": Boolean()})
_TEXT = Group({"Value": Text()})
_BEHAVIOR = Text(choices=SHUTDOWN_BEHAVIORS)


@reads("DescribeInstanceAttribute", "compute:servers:show", *an_attribute("InstanceId", NAMES))
def describe_instance_attribute(connection: Connection, caller: Caller, parameters: Parameters) -> Body:
    name = parameters["Attribute"]
    (record,) = find(connection, caller.project, [parameters["InstanceId"]])
    # who may only look is not told it: there may be secrets in it
    shows = name == "userData" and "member" in caller.roles
    user_data = guest_lookup.user_data_of(connection, record["uuid"]) if shows else None
    return {"instanceId": instance_id(record), name: _attribute(record, name, user_data)}


def _attribute(record: Record, name: str, user_data: str | None) -> Json:
    shown = instance(record)
    if name in ("blockDeviceMapping", "productCodes", "groupSet"):
        return shown[name]
    if name in _FLAGS:
        return {"value": record["ec2"][_FLAGS[name]]}
    if name == "enclaveOptions":
        return {"enabled": False}
    values = {
        "instanceType": shown["instanceType"],
        "userData": user_data,
        "instanceInitiatedShutdownBehavior": record["ec2"]["shutdown_behavior"],
        "rootDeviceName": shown["rootDeviceName"],
        "sourceDestCheck": True,
        "ebsOptimized": False,
        "enaSupport": False,
    }
    return {} if values.get(name) is None else {"value": values[name]}


_CHANGES: t.Mapping[str, Shape] = {
    "InstanceId": Text(),
    "Attribute": Text(choices=NAMES),
    "Value": Text(takes_empty=True),
    **each(_FLAG, "DisableApiTermination DisableApiStop SourceDestCheck EbsOptimized EnaSupport"),
    "InstanceInitiatedShutdownBehavior": Group({"Value": _BEHAVIOR}),
    "GroupId": TEXTS,
    "InstanceType": _TEXT,
    **each(Ignored(), "UserData Kernel Ramdisk SriovNetSupport EnclaveOptions"),
    "BlockDeviceMapping": ListOf(
        Group(
            {
                **each(Text(32), "DeviceName VirtualName NoDevice"),
                "Ebs": Group({"DeleteOnTermination": Boolean(), "VolumeId": Text()}),
            }
        ),
        26,
    ),
}


@action("ModifyInstanceAttribute", "compute:servers:update", _CHANGES, ["InstanceId"])
def modify_instance_attribute(parameters: Parameters) -> None:
    """A new type is there when it is answered, as with Amazon: clients start the instance right away."""
    with writing_ledger() as connection:
        job_id = _modify(connection, current(), parameters)
        refuse_dry_run()
    job = None if job_id is None else waiting.ended(job_id)
    if job is not None and job.state != "succeeded":
        message = job.message or "its host did not say why"
        with reading_ledger() as connection:
            uuid = find_live(connection, current().project, parameters["InstanceId"])["uuid"]
            (move,) = migration_records.find(connection, {"instance_uuid": uuid}, limit=1)
        full = move["dest_host"] is None
        raise Ec2Error("InsufficientInstanceCapacity" if full else "InternalError", message, 500)


def _modify(connection: Connection, caller: Caller, parameters: Parameters) -> str | None:
    """Record the changes. Returns the id of the job that changes the type, if there is one to be changed."""
    if "Attribute" in parameters:
        parameters = {**parameters, **_named(parameters["Attribute"], parameters.get("Value"))}
    for name in ("UserData", "Kernel", "Ramdisk", "SriovNetSupport"):
        if name in parameters:
            raise unsupported(f"To change {name} of an instance that is there")
    record = find_live(connection, caller.project, parameters["InstanceId"])
    for name in ("EbsOptimized", "EnaSupport"):
        if parameters.get(name, {}).get("Value"):
            raise unsupported(name)
    if parameters.get("SourceDestCheck", {}).get("Value") is False:
        raise unsupported("An instance that sends from addresses that are not its own")
    values = _own_values(parameters)
    if values:
        ec2_requests.write_attributes(calling(connection), record["uuid"], values)
    if "GroupId" in parameters:
        _change_groups(connection, caller, record, parameters["GroupId"])
    for mapping in parameters.get("BlockDeviceMapping", []):
        _change_device(connection, record, mapping)
    name = parameters.get("InstanceType", {}).get("Value", record["flavor"]["name"])
    return None if name == record["flavor"]["name"] else _change_type(connection, caller, record, name)


def _change_type(connection: Connection, caller: Caller, record: Record, name: str) -> str:
    """Resize the instance, which has to be stopped; there is nothing to confirm. Returns the job's id."""
    flavor = flavor_of(connection, caller, name)
    row = server_listing.instance_row(connection, record["uuid"], caller.project)
    if state(record) is not STOPPED or record["vm_state"] != "stopped":
        raise Ec2Error("IncorrectInstanceState", f"The instance '{instance_id(record)}' is not in the 'stopped' state.")
    with as_codes({ConflictError: "IncorrectInstanceState", QuotaError: "InstanceLimitExceeded"}):
        name, variables = TYPE_CHANGE
        move = servers.move(calling(connection), name, [row.uuid], flavor=views.flavor_of(flavor), variables=variables)
    return move.jobs[0]


def _named(attribute: str, value: str | None) -> Parameters:
    """The older way to say it: an attribute's name, and its value."""
    if value is None:
        raise missing("Value")
    name = attribute[0].upper() + attribute[1:]
    if attribute in ("disableApiTermination", "disableApiStop", "sourceDestCheck", "ebsOptimized", "enaSupport"):
        return {name: {"Value": Boolean().parse(value, "Value")}}
    if attribute in ("instanceType", "instanceInitiatedShutdownBehavior"):
        return {name: {"Value": (Text() if attribute == "instanceType" else _BEHAVIOR).parse(value, "Value")}}
    if attribute == "groupSet":
        return {"GroupId": [value]}
    raise unsupported(f"To change {attribute} of an instance that is there")


def _own_values(parameters: Parameters) -> ec2_requests.Attributes:
    values: Record = {}
    for name, column in (*_FLAGS.items(), ("instanceInitiatedShutdownBehavior", "shutdown_behavior")):
        column_value = parameters.get(name[0].upper() + name[1:], {}).get("Value")
        if column_value is not None:
            values[column] = column_value
    return t.cast("ec2_requests.Attributes", values)  # as the shapes say


def _change_groups(connection: Connection, caller: Caller, record: Record, group_ids: t.Sequence[str]) -> None:
    """Put the instance into these groups, and out of all others."""
    if not group_ids:
        raise missing("GroupId")
    rows = groups_of(connection, caller.project)
    after = {find_group(rows, number, None)["uuid"] for number in group_ids}
    before = {group["uuid"] for group in record["group_records"]}
    row = server_listing.instance_row(connection, record["uuid"], caller.project)
    with as_codes({ConflictError: "IncorrectInstanceState"}):
        servers.replace_groups(calling(connection), row, before, after)


def _change_device(connection: Connection, record: Record, mapping: Body) -> None:
    goes = mapping.get("Ebs", {}).get("DeleteOnTermination")
    for volume in record["volumes"]:
        if volume.device == mapping.get("DeviceName"):
            if goes is not None:
                attachments.update_volume(calling(connection), volume.id, delete_on_termination=goes)
            return
    raise Ec2Error(
        "InvalidInstanceAttributeValue", f"No device is currently mapped at {str(mapping.get('DeviceName'))[:40]}"
    )


@writes(
    "ModifyInstanceMetadataOptions",
    "compute:servers:update",
    {"InstanceId": Text(), **METADATA_OPTIONS},
    ["InstanceId"],
)
def modify_instance_metadata_options(connection: Connection, caller: Caller, parameters: Parameters) -> Body:
    """Set whether programs in the guest need a session token to read its metadata, from now on."""
    (record,) = find(connection, caller.project, [parameters["InstanceId"]])
    if "HttpTokens" in parameters:
        ec2_requests.write_attributes(calling(connection), record["uuid"], {"http_tokens": parameters["HttpTokens"]})
        (record,) = find(connection, caller.project, [parameters["InstanceId"]])
    return {"instanceId": instance_id(record), "instanceMetadataOptions": instance(record)["metadataOptions"]}


@reads("DescribeInstanceCreditSpecifications", "compute:servers:show", {"InstanceId": TEXTS, "Filter": Ignored()})
def describe_instance_credit_specifications(connection: Connection, caller: Caller, parameters: Parameters) -> Body:
    """None: no type here has credits."""
    find(connection, caller.project, parameters.get("InstanceId"))
    return {"instanceCreditSpecificationSet": []}
