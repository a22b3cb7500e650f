# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Volumes: made, attached, made larger, detached, deleted. What hosts do is a job in the transaction that begins it."""

from __future__ import annotations

import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.ec2 import ec2_requests
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.volumes import volume_attachments
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.volumes import volumes as volume_states

from ...web.context import Caller, current, request_id
from ...web.ledger import reading_ledger
from .. import filters, ids, volumes
from ..blueprint import action, what_was_asked, writing
from ..common import Asked, Body, tags_for, zones
from ..faults import Ec2Error, as_codes, invalid, missing, unsupported
from ..parameters import FILTERS, PAGING, TAG_SPECIFICATIONS, TEXTS, TOKEN, Boolean, Ignored, Number, Text
from .instances import find as find_instances

KIND = "volume"
VOLUME_FILTERS = {
    "volume-id": "volumeId",
    "size": "size",
    "snapshot-id": "snapshotId",
    "availability-zone": "availabilityZone",
    "status": "status",
    "create-time": "createTime",
    "encrypted": "encrypted",
    "volume-type": "volumeType",
    "multi-attach-enabled": "multiAttachEnabled",
    "attachment.instance-id": "attachmentSet.instanceId",
    "attachment.device": "attachmentSet.device",
    "attachment.status": "attachmentSet.status",
    "attachment.attach-time": "attachmentSet.attachTime",
    "attachment.delete-on-termination": "attachmentSet.deleteOnTermination",
}
STATUS_FILTERS = {
    "availability-zone": "availabilityZone",
    "volume-status.status": "volumeStatus.status",
    "volume-status.details-name": "volumeStatus.details.name",
    "volume-status.details-status": "volumeStatus.details.status",
}
MODIFICATION_FILTERS = {
    "volume-id": "volumeId",
    "modification-state": "modificationState",
    "target-size": "targetSize",
    "original-size": "originalSize",
}


def _key(body: Body) -> str:
    return str(body["volumeId"])


def _rows(asked: Asked) -> list[volumes.Volume]:
    with reading_ledger() as connection:
        known = volumes.of_project(connection, current().project)
    rows = ids.find_all("vol", asked["VolumeId"], known) if "VolumeId" in asked else list(known.values())
    return sorted(rows, key=volumes.volume_id)


@action("DescribeVolumes", "volume:read", {"VolumeId": TEXTS, "Filter": FILTERS, **PAGING})
def describe_volumes(asked: Asked) -> Body:
    page, token = filters.page(filters.filtered(map(volumes.volume, _rows(asked)), asked, VOLUME_FILTERS), asked, _key)
    return {"volumeSet": page, "nextToken": token}


@action("DescribeVolumeStatus", "volume:read", {"VolumeId": TEXTS, "Filter": FILTERS, **PAGING})
def describe_volume_status(asked: Asked) -> Body:
    bodies = []
    for row in _rows(asked):
        word = "impaired" if row.status.startswith("error") else "ok"
        details = [{"name": "io-enabled", "status": {"ok": "passed"}.get(word, "failed")}]
        bodies.append(
            {
                "volumeId": volumes.volume_id(row),
                "availabilityZone": volumes.volume(row)["availabilityZone"],
                "volumeStatus": {"status": word, "details": details},
                "eventsSet": [],
                "actionsSet": [],
            }
        )
    page, token = filters.page(filters.filtered(bodies, asked, STATUS_FILTERS), asked, _key)
    return {"volumeStatusSet": page, "nextToken": token}


@action(
    "DescribeVolumeAttribute",
    "volume:read",
    {"VolumeId": Text(), "Attribute": Text(choices=("autoEnableIO", "productCodes"))},
    ["VolumeId", "Attribute"],
)
def describe_volume_attribute(asked: Asked) -> Body:
    (row,) = _rows({"VolumeId": [asked["VolumeId"]]})
    value = {"autoEnableIO": {"value": True}, "productCodes": []}[asked["Attribute"]]
    return {"volumeId": volumes.volume_id(row), asked["Attribute"]: value}


@action(
    "CreateVolume",
    "volume:write",
    {
        "AvailabilityZone": Text(),
        "AvailabilityZoneId": Text(),
        "Size": Number(1, volumes.LARGEST),
        "SnapshotId": Text(),
        "VolumeType": Text(),
        "Encrypted": Boolean(),
        "MultiAttachEnabled": Boolean(),
        "TagSpecification": TAG_SPECIFICATIONS,
        "ClientToken": TOKEN,
        **dict.fromkeys(("Iops", "Throughput", "KmsKeyId", "VolumeInitializationRate"), Ignored()),
    },
)
def create_volume(asked: Asked) -> Body:
    for name in ("Encrypted", "MultiAttachEnabled"):
        if asked.get(name):
            raise unsupported(f"A volume with {name}")
    zone = asked.get("AvailabilityZone") or asked.get("AvailabilityZoneId")
    if not zone:
        raise missing("AvailabilityZone")
    token = asked.get("ClientToken", "")
    with writing() as (connection, caller):
        if zone not in zones(connection):
            raise Ec2Error("InvalidZone.NotFound", f"The zone '{zone[:60]}' does not exist.")
        made = None
        if token:
            with as_codes({ConflictError: "IdempotentParameterMismatch"}):
                made = ec2_requests.repeated(connection, caller.project, "CreateVolume", token, what_was_asked())
        if made is None:
            made = [_create(connection, caller, asked, zone)]
            if token:
                ec2_requests.remember(connection, caller.project, "CreateVolume", token, made)
        row = next(iter(volume_states.volumes_by(connection, ids=made)), None)
    if row is None:
        raise Ec2Error("InvalidVolume.NotFound", "The volume that this client token stands for is gone.")
    return volumes.volume(row)


def _create(connection: Connection, caller: Caller, asked: Asked, zone: str) -> str:
    """Record the volume, and the job that makes it if something has to be made now. Returns its UUID."""
    tags = tags_for(asked, KIND)[KIND]
    params: dict[str, t.Any] = {
        "name": tags.get("Name"),
        "availability_zone": zone,
        "metadata": tags,
        "user_id": caller.user_id,
        "size_gb": asked.get("Size"),
    }
    if asked.get("SnapshotId"):
        known = volumes.snapshots_of_project(connection, caller.project)
        params["snapshot_id"] = ids.find("snap", asked["SnapshotId"], known).id
    elif "Size" not in asked:
        raise missing("Size")
    params["type"] = volumes.type_named(connection, caller, asked.get("VolumeType"))
    params["private_types"] = caller.is_admin
    with as_codes(volumes.LIMITS):
        row = volume_states.create_volume(connection, caller.project, params)
    if row.status == "creating":
        volumes.tell(connection, caller, "volume_create", "volumes", row.id, [])
    return str(row.id)


@action("DeleteVolume", "volume:write", {"VolumeId": Text()}, ["VolumeId"])
def delete_volume(asked: Asked) -> Body:
    with writing() as (connection, caller):
        row = ids.find("vol", asked["VolumeId"], volumes.of_project(connection, caller.project))
        if row.status != "deleting":
            with as_codes({ConflictError: "VolumeInUse" if row.attachments else "IncorrectState"}):
                volume_states.begin_delete(connection, row.id, project_id=caller.project)
            volumes.tell(connection, caller, "volume_delete", "volumes", row.id, [])
    return {"return": True}


@action(
    "ModifyVolume",
    "volume:write",
    {
        "VolumeId": Text(),
        "Size": Number(1, volumes.LARGEST),
        "VolumeType": Text(),
        "MultiAttachEnabled": Boolean(),
        "Iops": Ignored(),
        "Throughput": Ignored(),
    },
    ["VolumeId"],
)
def modify_volume(asked: Asked) -> Body:
    """Make it larger. What else Amazon can change of one, a volume here has not."""
    with writing() as (connection, caller):
        row = ids.find("vol", asked["VolumeId"], volumes.of_project(connection, caller.project))
        if asked.get("VolumeType", row.type) not in (row.type, *volumes.AMAZONS_TYPES):
            raise unsupported("Another type of a volume that is there")
        if asked.get("MultiAttachEnabled"):
            raise unsupported("A volume of several instances")
        size: int = asked.get("Size", row.size_gb)
        if size < row.size_gb:
            raise invalid("Size", size, f"the volume has {row.size_gb} GiB, and none can be made smaller")
        after = row
        if size > row.size_gb:
            with as_codes({ConflictError: "IncorrectState", **volumes.LIMITS}):
                after = volume_states.begin_extend(connection, row.id, size, project_id=caller.project)
            if after.status == "extending":
                volumes.tell(connection, caller, "volume_extend", "volumes", row.id, volumes.holders(row))
    return {"volumeModification": {**_modification(after), "targetSize": size, "originalSize": row.size_gb}}


@action("DescribeVolumesModifications", "volume:read", {"VolumeId": TEXTS, "Filter": FILTERS, **PAGING})
def describe_volumes_modifications(asked: Asked) -> Body:
    """Those under way; of volumes that are asked for by name, also that there is none any more."""
    rows = [row for row in _rows(asked) if "VolumeId" in asked or row.status == "extending"]
    page, token = filters.page(filters.filtered(map(_modification, rows), asked, MODIFICATION_FILTERS), asked, _key)
    return {"volumeModificationSet": page, "nextToken": token}


def _modification(row: volumes.Volume) -> Body:
    state = {"extending": "modifying", "error_extending": "failed"}.get(row.status, "completed")
    return {
        "volumeId": volumes.volume_id(row),
        "modificationState": state,
        "targetSize": row.new_size_gb or row.size_gb,
        "targetVolumeType": row.type,
        "originalSize": row.size_gb,
        "originalVolumeType": row.type,
        "progress": 100 if state == "completed" else 0,
    }


@action(
    "AttachVolume",
    "compute:server-volumes:write",
    {"VolumeId": Text(), "InstanceId": Text(), "Device": Text(32), "EbsCardIndex": Ignored()},
    ["VolumeId", "InstanceId"],
)
def attach_volume(asked: Asked) -> Body:
    with writing() as (connection, caller):
        row = ids.find("vol", asked["VolumeId"], volumes.of_project(connection, caller.project))
        (record,) = find_instances(connection, caller.project, [asked["InstanceId"]])
        if record["deleted"]:
            raise Ec2Error("IncorrectState", f"The instance '{asked['InstanceId']}' is terminated.")
        with as_codes({ConflictError: "VolumeInUse" if row.attachments else "IncorrectState"}):
            made = volume_attachments.begin_attach(
                connection,
                row.id,
                record["uuid"],
                project_id=caller.project,
                device=volumes.device_name(asked.get("Device", "")),
                request_id=request_id(),
                user_id=caller.user_id,
                ignore_lock=caller.is_admin,
            )
        volumes.tell(connection, caller, "volume_attach", "attachments", made.id, [record["uuid"]])
    return volumes.attachment(made, "attaching")


@action(
    "DetachVolume",
    "compute:server-volumes:write",
    {"VolumeId": Text(), "InstanceId": Text(), "Device": Text(32), "Force": Boolean()},
    ["VolumeId"],
)
def detach_volume(asked: Asked) -> Body:
    with writing() as (connection, caller):
        row = ids.find("vol", asked["VolumeId"], volumes.of_project(connection, caller.project))
        instance = None
        if asked.get("InstanceId"):
            instance = find_instances(connection, caller.project, [asked["InstanceId"]])[0]["uuid"]
        if not row.attachments:
            raise Ec2Error("IncorrectState", f"Volume '{asked['VolumeId']}' is in the 'available' state.")
        if any(attachment.boot_index == 0 for attachment in row.attachments):
            raise Ec2Error("OperationNotPermitted", "The root volume of an instance cannot be detached.")
        with as_codes({NotFoundError: "InvalidAttachment.NotFound", ConflictError: "IncorrectState"}):
            attachment = volume_attachments.begin_detach(
                connection,
                row.id,
                instance,
                project_id=caller.project,
                request_id=request_id(),
                user_id=caller.user_id,
                ignore_lock=caller.is_admin,
            )
        volumes.tell(connection, caller, "volume_detach", "attachments", attachment.id, [attachment.instance_uuid])
    return volumes.attachment(attachment, "detaching")
