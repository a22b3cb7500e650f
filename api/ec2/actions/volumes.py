# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Volumes and their snapshots. What hosts do is a job in the transaction that begins it."""

from __future__ import annotations

import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._errors import (
    ConflictError,
    NotFoundError,
    QuotaError,
    RootVolumeError,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import attachments
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import volumes as volume_operations
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.catalog.image_views import SeenImage
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.ec2 import ec2_attributes
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volumes.volume_views import (
    Volume,
    volumes_by,
)
from ansible_collections.novalite.cloud.plugins.module_utils._rules.volume_asks import IMAGE

from ...web.context import Caller
from ...web.host_names import host_name_mask
from ...work.calls import calling
from .. import filters, ids, images, snapshots, volumes
from ..blueprint import once, reads, writes
from ..common import DEFAULT_ZONE, Body, Parameters, Record, tags_for, zones
from ..faults import Ec2Error, as_codes, invalid, missing, unsupported
from ..parameters import TAG_SPECIFICATIONS, TEXTS, TOKEN, Boolean, Ignored, Number, Text, an_attribute, each
from .instances import find as find_instances
from .instances import find_live

VOLUME_FILTERS = {
    **filters.like(
        "volume-id size snapshot-id availability-zone status create-time encrypted volume-type multi-attach-enabled"
    ),
    **filters.like(
        "instance-id device status attach-time delete-on-termination", at="attachment", element="attachmentSet"
    ),
}
STATUS_FILTERS = filters.like(
    "availability-zone volume-status.status=volumeStatus.status "
    "volume-status.details-name=volumeStatus.details.name volume-status.details-status=volumeStatus.details.status"
)
MODIFICATION_FILTERS = filters.like("volume-id modification-state target-size original-size")


@filters.describes("DescribeVolumes", "volume:read", "volume", VOLUME_FILTERS, "vol")
def describe_volumes(connection: Connection, caller: Caller, parameters: Parameters) -> t.Iterable[Body]:
    return map(volumes.volume, volumes_by(connection, project_id=caller.project))


@filters.describes("DescribeVolumeStatus", "volume:read", "volumeStatus", STATUS_FILTERS, "vol", "volumeId")
def describe_volume_status(connection: Connection, caller: Caller, parameters: Parameters) -> t.Iterable[Body]:
    return map(_status, volumes_by(connection, project_id=caller.project))


def _status(row: Volume) -> Body:
    word, passed = ("impaired", "failed") if row.status.startswith("error") else ("ok", "passed")
    return {
        "volumeId": volumes.volume_id(row),
        "availabilityZone": row.availability_zone or DEFAULT_ZONE,
        "volumeStatus": {"status": word, "details": [{"name": "io-enabled", "status": passed}]},
        "eventsSet": [],
        "actionsSet": [],
    }


@reads("DescribeVolumeAttribute", "volume:read", *an_attribute("VolumeId", ("autoEnableIO", "productCodes")))
def describe_volume_attribute(connection: Connection, caller: Caller, parameters: Parameters) -> Body:
    row = ids.find("vol", parameters["VolumeId"], volumes.of_project(connection, caller.project))
    value = {"autoEnableIO": {"value": True}, "productCodes": []}[parameters["Attribute"]]
    return {"volumeId": volumes.volume_id(row), parameters["Attribute"]: value}


@writes(
    "CreateVolume",
    "volume:write",
    {
        **each(Text(), "AvailabilityZone AvailabilityZoneId SnapshotId VolumeType"),
        "Size": Number(1, volumes.LARGEST),
        "Encrypted": Boolean(),
        "MultiAttachEnabled": Boolean(),
        "TagSpecification": TAG_SPECIFICATIONS,
        "ClientToken": TOKEN,
        **each(Ignored(), "Iops Throughput KmsKeyId VolumeInitializationRate"),
    },
)
def create_volume(connection: Connection, caller: Caller, parameters: Parameters) -> Body:
    for name in ("Encrypted", "MultiAttachEnabled"):
        if parameters.get(name):
            raise unsupported(f"A volume with {name}")
    zone = parameters.get("AvailabilityZone") or parameters.get("AvailabilityZoneId")
    if not zone:
        raise missing("AvailabilityZone")
    if zone not in zones(connection):
        raise Ec2Error("InvalidZone.NotFound", f"The zone '{zone[:60]}' does not exist.")
    made = once(connection, parameters, lambda: [_create(connection, caller, parameters, zone)])
    row = next(iter(volumes_by(connection, ids=made)), None)
    if row is None:
        raise Ec2Error("InvalidVolume.NotFound", "The volume that this client token stands for is gone.")
    return volumes.volume(row)


def _create(connection: Connection, caller: Caller, parameters: Parameters, zone: str) -> str:
    """Record the volume, and the job that makes it if something has to be made now. Returns its UUID."""
    tags = tags_for(parameters, "volume")["volume"]
    params: Record = {
        "name": tags.get("Name"),
        "availability_zone": zone,
        "metadata": tags,
        "size_gb": parameters.get("Size"),
    }
    if parameters.get("SnapshotId"):
        source, of = snapshots.source_named(connection, caller.project, parameters["SnapshotId"])
        params["image" if source == IMAGE else "snapshot_id"] = of
    elif "Size" not in parameters:
        raise missing("Size")
    params["type"] = volumes.type_named(connection, caller, parameters.get("VolumeType"))
    with as_codes(volumes.LIMITS):
        return volume_operations.create(calling(connection), params).id


@writes("DeleteVolume", "volume:write", {"VolumeId": Text()}, ["VolumeId"])
def delete_volume(connection: Connection, caller: Caller, parameters: Parameters) -> None:
    row = ids.find("vol", parameters["VolumeId"], volumes.of_project(connection, caller.project))
    if row.status != "deleting":
        with as_codes({ConflictError: "VolumeInUse" if row.attachments else "IncorrectState"}):
            volume_operations.delete(calling(connection), row.id, project_id=caller.project)


@writes(
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
def modify_volume(connection: Connection, caller: Caller, parameters: Parameters) -> Body:
    """Make it larger. What else Amazon can change of one, a volume here has not."""
    row = ids.find("vol", parameters["VolumeId"], volumes.of_project(connection, caller.project))
    if parameters.get("VolumeType", row.type) not in (row.type, *volumes.AMAZONS_TYPES):
        raise unsupported("Another type of a volume that is there")
    if parameters.get("MultiAttachEnabled"):
        raise unsupported("A volume of several instances")
    size: int = parameters.get("Size", row.size_gb)
    if size < row.size_gb:
        raise invalid("Size", size, f"the volume has {row.size_gb} GiB, and none can be made smaller")
    after = row
    if size > row.size_gb:
        with as_codes({ConflictError: "IncorrectState", **volumes.LIMITS}):
            after = volume_operations.extend(calling(connection), row.id, size, project_id=caller.project)
    return {"volumeModification": {**_modification(after), "targetSize": size, "originalSize": row.size_gb}}


@filters.describes(
    "DescribeVolumesModifications", "volume:read", "volumeModification", MODIFICATION_FILTERS, "vol", "volumeId"
)
def describe_volumes_modifications(connection: Connection, caller: Caller, parameters: Parameters) -> t.Iterable[Body]:
    """List the modifications under way; a volume that the request names is listed even when it has none any more."""
    rows = volumes_by(connection, project_id=caller.project)
    return [_modification(row) for row in rows if "VolumeId" in parameters or row.status == "extending"]


def _modification(row: Volume) -> Body:
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


@writes(
    "AttachVolume",
    "compute:server-volumes:write",
    {"VolumeId": Text(), "InstanceId": Text(), "Device": Text(32), "EbsCardIndex": Ignored()},
    ["VolumeId", "InstanceId"],
)
def attach_volume(connection: Connection, caller: Caller, parameters: Parameters) -> Body:
    row = ids.find("vol", parameters["VolumeId"], volumes.of_project(connection, caller.project))
    record = find_live(connection, caller.project, parameters["InstanceId"], "IncorrectState")
    with as_codes({ConflictError: "VolumeInUse" if row.attachments else "IncorrectState"}):
        made = attachments.attach_volume(
            calling(connection),
            row.id,
            record["uuid"],
            project_id=caller.project,
            device=volumes.device_name(parameters.get("Device", "")),
        )
    return volumes.attachment(made, "attaching")


@writes(
    "DetachVolume",
    "compute:server-volumes:write",
    {"VolumeId": Text(), "InstanceId": Text(), "Device": Text(32), "Force": Boolean()},
    ["VolumeId"],
)
def detach_volume(connection: Connection, caller: Caller, parameters: Parameters) -> Body:
    row = ids.find("vol", parameters["VolumeId"], volumes.of_project(connection, caller.project))
    instance = None
    if parameters.get("InstanceId"):
        instance = find_instances(connection, caller.project, [parameters["InstanceId"]])[0]["uuid"]
    if not row.attachments:
        raise Ec2Error("IncorrectState", f"Volume '{parameters['VolumeId']}' is in the 'available' state.")
    codes: t.Mapping[type[Exception], str] = {
        NotFoundError: "InvalidAttachment.NotFound",
        RootVolumeError: "OperationNotPermitted",
        ConflictError: "IncorrectState",
    }
    with as_codes(codes):
        attachment = attachments.detach_volume(calling(connection), row.id, instance, project_id=caller.project)
    return volumes.attachment(attachment, "detaching")


# --- snapshots ------------------------------------------------------------------------------------------------------

SNAPSHOT_FILTERS = filters.like(
    "snapshot-id volume-id volume-size status progress owner-id description encrypted start-time storage-tier"
)


@filters.describes(
    "DescribeSnapshots", "volume:read", "snapshot", SNAPSHOT_FILTERS, SnapshotId=TEXTS, Owner=TEXTS, RestorableBy=TEXTS
)
def describe_snapshots(connection: Connection, caller: Caller, parameters: Parameters) -> t.Iterable[Body]:
    known = volumes.snapshots_of_project(connection, caller.project)
    # the names are read where there is something to hide
    hidden = host_name_mask(connection, caller.reach if any(row.fault for row in known.values()) else None)
    tags = ec2_attributes.tags_of(connection, caller.project)
    bodies = {number: volumes.snapshot(row, hidden) for number, row in known.items()}
    of_images = snapshots.of_images(connection, caller.project)
    bodies.update({number: snapshots.snapshot(image, tags) for number, image in of_images.items()})
    owners = [*parameters.get("Owner", []), *parameters.get("RestorableBy", [])]
    requested_bodies = (
        ids.find_all("snap", parameters["SnapshotId"], bodies) if "SnapshotId" in parameters else bodies.values()
    )
    if owners and not {"self", "all", caller.project} & set(owners):
        return []  # of others none is seen
    return requested_bodies


@writes(
    "CreateSnapshot",
    "volume:write",
    {"VolumeId": Text(), "Description": Text(), "TagSpecification": TAG_SPECIFICATIONS, "Location": Ignored()},
    ["VolumeId"],
)
def create_snapshot(connection: Connection, caller: Caller, parameters: Parameters) -> Body:
    """Snapshot a volume, even while an instance uses it: its data is as after a power failure, as Amazon's is, too."""
    tags = tags_for(parameters, "snapshot")["snapshot"]
    row = ids.find("vol", parameters["VolumeId"], volumes.of_project(connection, caller.project))
    with as_codes({ConflictError: "IncorrectState", QuotaError: "SnapshotLimitExceeded"}):
        made = volume_operations.create_snapshot(
            calling(connection),
            {
                "volume_id": row.id,
                "name": tags.get("Name"),
                "description": parameters.get("Description"),
                "metadata": tags,
                "force": True,
            },
        )
    return volumes.snapshot(made)


@writes("DeleteSnapshot", "volume:write", {"SnapshotId": Text()}, ["SnapshotId"])
def delete_snapshot(connection: Connection, caller: Caller, parameters: Parameters) -> None:
    """An image's is its file, which goes with the image: afterwards there is nothing left to delete."""
    number = parameters["SnapshotId"]
    if (image := snapshots.of_images(connection, caller.project).get(number)) is not None:
        raise _in_use(number, image)
    known = volumes.snapshots_of_project(connection, caller.project)
    if number not in known and snapshots.of_an_image_that_is_gone(connection, number):
        return
    row = ids.find("snap", number, known)
    if (image := snapshots.image_that_names(connection, caller.project, row.id)) is not None:
        raise _in_use(number, image)
    if row.status != "deleting":
        with as_codes({ConflictError: "InvalidSnapshot.InUse"}):
            volume_operations.delete_snapshot(calling(connection), row.id, project_id=caller.project)


def _in_use(number: str, image: SeenImage) -> Ec2Error:
    held = f"The snapshot {number} is currently in use by {images.image_id(image)}"
    return Ec2Error("InvalidSnapshot.InUse", held)
