# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Images: described, made of instances, registered under another name, deregistered."""

from __future__ import annotations

import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, ForbiddenError, QuotaError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import servers
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.catalog import image_data
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.catalog import (
    images as image_operations,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.catalog import image_views
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.catalog.image_views import (
    SeenImage,
    images_seen,
    members,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute import server_listing
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.ec2 import ec2_attributes
from ansible_collections.novalite.cloud.plugins.module_utils._rules.records import checked_names

from ...web.context import Caller, current
from ...web.errors import in_words
from ...web.ledger import home, writing_ledger
from ...work.calls import calling, writing_call
from .. import block_devices, filters, ids, images, snapshots
from ..blueprint import action, reads, refuse_dry_run, writes
from ..common import Body, Parameters, Record, forget_tags, keep_tags, moment, tag_set, tags_for
from ..faults import Ec2Error, as_codes, missing, unsupported
from ..parameters import LISTING, TAG_SPECIFICATIONS, TEXTS, Boolean, Group, Ignored, ListOf, Text, an_attribute, each
from ..views_instances import ROOT_DEVICE, ROOT_DEVICE_TYPE
from .instances import find_live
from .tags import change as change_tags

KIND = "image"
DESCRIPTION = "description"  # the property that holds it, as in Glance
AMAZONS_OWNERS = ("amazon", "aws-marketplace", "aws-backup-vault", "microsoft")
IMAGE_FILTERS = filters.like(
    "image-id name description is-public architecture hypervisor image-type root-device-name root-device-type "
    "virtualization-type creation-date kernel-id ramdisk-id state=imageState owner-id=imageOwnerId "
    "owner-alias=imageOwnerAlias manifest-location=imageLocation "
    "block-device-mapping.device-name=blockDeviceMapping.deviceName "
    "block-device-mapping.volume-size=blockDeviceMapping.ebs.volumeSize "
    "block-device-mapping.snapshot-id=blockDeviceMapping.ebs.snapshotId"
)
_STATES = {
    "active": "available",
    "deactivated": "disabled",
    **dict.fromkeys(("queued", "saving", "uploading", "importing"), "pending"),
}
ATTRIBUTES = ("description", "kernel", "ramdisk", "launchPermission", "productCodes", "blockDeviceMapping", "bootMode")


@reads(
    "DescribeImages",
    "image:read",
    {**each(TEXTS, "ImageId Owner ExecutableBy"), **each(Boolean(), "IncludeDeprecated IncludeDisabled"), **LISTING},
)
def describe_images(connection: Connection, caller: Caller, parameters: Parameters) -> Body:
    project = caller.project
    rows = images_seen(connection, project)
    if "ImageId" in parameters:
        image_uuids = {images.find(connection, project, image_id)["id"] for image_id in parameters["ImageId"]}
        rows = [row for row in rows if row["id"] in image_uuids]
    elif not parameters.get("Owner"):
        # whose names mean nothing to the project is shown to who asks for that owner
        rows = list(images.named(rows, project))
    tags = ec2_attributes.tags_of(connection, project)
    parameters = images.with_ids(connection, project, parameters)
    rows = [row for row in rows if _is_owned(row, parameters.get("Owner", []), project)]
    rows = [row for row in rows if _is_executable(row, parameters.get("ExecutableBy", []), project)]
    return filters.listed(parameters, "imagesSet", "imageId", [_image(row, tags) for row in rows], IMAGE_FILTERS)


def _is_owned(row: SeenImage, owners: t.Sequence[str], project: str) -> bool:
    """Public images are the cloud's own: those that Amazon's tools look for under Amazon's name."""
    if not owners:
        return True
    if row["owner"] == project:
        return "self" in owners or project in owners
    return row["owner"] in owners if row["owner"] else bool(set(AMAZONS_OWNERS) & set(owners))


def _is_public(row: SeenImage) -> bool:
    return bool(row["visibility"] == "public")


def _is_executable(row: SeenImage, whom: t.Sequence[str], project: str) -> bool:
    if not whom:
        return True
    own = row["owner"] == project or row["member_status"] is not None
    return ("all" in whom and _is_public(row)) or (bool({"self", project} & set(whom)) and own)


def _image(row: SeenImage, tags: Record) -> Body:
    number = images.image_id(row)
    made_of = row["properties"].get("instance_uuid")
    return {
        "imageId": number,
        "sourceInstanceId": ids.of("i", made_of) if made_of and row["owner"] else None,
        "imageLocation": f"{row['owner'] or 'amazon'}/{row['handle']}",
        "imageState": _STATES.get(row["status"], "failed"),
        "imageOwnerId": row["owner"] or "amazon",
        "imageOwnerAlias": None if row["owner"] else "amazon",
        "isPublic": _is_public(row),
        "creationDate": moment(row["created_at"]),
        "architecture": "x86_64",
        "imageType": "machine",
        "kernelId": f"aki-{number[4:]}" if row["kernel"] else None,
        "ramdiskId": f"ari-{number[4:]}" if row["ramdisk"] else None,
        "name": row["name"] or row["handle"],
        "description": row["properties"].get(DESCRIPTION, ""),
        "rootDeviceType": ROOT_DEVICE_TYPE,
        "rootDeviceName": ROOT_DEVICE,
        "blockDeviceMapping": block_devices.of_image(row),
        "virtualizationType": "hvm",
        "hypervisor": "kvm",
        "enaSupport": False,
        "productCodes": [],
        "platformDetails": "Linux/UNIX",
        "usageOperation": "RunInstances",
        "tagSet": tag_set(tags.get(number, {})),
    }


@reads("DescribeImageAttribute", "image:read", *an_attribute("ImageId", ATTRIBUTES))
def describe_image_attribute(connection: Connection, caller: Caller, parameters: Parameters) -> Body:
    row = images.find(connection, caller.project, parameters["ImageId"])
    whose = caller.reach in (None, row["owner"])
    shared_with = members(connection, row["id"]) if whose else []
    shown, name = _image(row, {}), parameters["Attribute"]
    values: Body = {
        "description": {"value": shown["description"]},
        "kernel": {"value": shown["kernelId"]} if shown["kernelId"] else {},
        "ramdisk": {"value": shown["ramdiskId"]} if shown["ramdiskId"] else {},
        "launchPermission": [
            *([{"group": "all"}] if shown["isPublic"] else []),
            *({"userId": member["member"]} for member in shared_with),
        ],
        "productCodes": [],
        "blockDeviceMapping": shown["blockDeviceMapping"],
        "bootMode": {"value": "legacy-bios"},
    }
    return {"imageId": shown["imageId"], name: values[name]}


_DESCRIPTION = Text(takes_empty=True)
_PERMISSIONS = ListOf(Group({"UserId": Text(64), "Group": Text(16)}), 100)


@writes(
    "ModifyImageAttribute",
    "image:write",
    {
        "ImageId": Text(),
        "Attribute": Text(choices=("description", "launchPermission")),
        "Value": _DESCRIPTION,
        "Description": Group({"Value": _DESCRIPTION}),
        "LaunchPermission": Group({"Add": _PERMISSIONS, "Remove": _PERMISSIONS}),
        "OperationType": Text(choices=("add", "remove")),
        "UserId": ListOf(Text(64), 100),
        "UserGroup": ListOf(Text(16), 10),
    },
    ["ImageId"],
)
def modify_image_attribute(connection: Connection, caller: Caller, parameters: Parameters) -> None:
    """Change an image's description, and which projects may launch it. Only the operator makes an image public."""
    text = parameters.get("Description", {}).get("Value", parameters.get("Value"))
    changes = {way: parameters.get("LaunchPermission", {}).get(way, []) for way in ("Add", "Remove")}
    changes[parameters.get("OperationType", "add").capitalize()] += [
        *({"UserId": user_id} for user_id in parameters.get("UserId", [])),
        *({"Group": group} for group in parameters.get("UserGroup", [])),
    ]
    if text is None and not any(changes.values()):
        raise missing("Description.Value")
    if any("Group" in permission for change in changes.values() for permission in change):
        raise unsupported("To let everybody launch an image (the operator makes one public)")
    if not all(permission.get("UserId") for change in changes.values() for permission in change):
        raise missing("UserId")  # an empty one is that of nobody
    with as_codes({}):
        call, row = calling(connection), _own(connection, caller, parameters["ImageId"])
        if text is not None:
            row = image_operations.update(call, row, {**row, "properties": {**row["properties"], DESCRIPTION: text}})
        add, remove = ([permission["UserId"] for permission in changes[way]] for way in ("Add", "Remove"))
        image_operations.change_members(call, row, add=add, remove=remove)


def _own(connection: Connection, caller: Caller, image_id: str) -> SeenImage:
    row = images.find(connection, caller.project, image_id)
    refused = Ec2Error("AuthFailure", f"Not authorized for image: {images.image_id(row)}", 403)
    with in_words({ForbiddenError: lambda _message: refused}):
        image_operations.check_own(calling(connection), row)
    return row


@writes(
    "RegisterImage",
    "image:write",
    {
        "Name": Text(),
        "ImageLocation": Text(1024),
        "Description": Text(),
        "Architecture": Text(choices=("x86_64",)),
        "VirtualizationType": Text(choices=("hvm",)),
        "RootDeviceName": Text(32),
        "BlockDeviceMapping": block_devices.PARAMETER,
        "BootMode": Text(choices=("legacy-bios",)),
        "TagSpecification": TAG_SPECIFICATIONS,
        **each(Ignored(), "EnaSupport SriovNetSupport ImdsSupport"),
    },
    ["Name"],
)
def register_image(connection: Connection, caller: Caller, parameters: Parameters) -> Body:
    """An image of snapshots of volumes, or a name of one's own for an image that is there: `ImageLocation` says which,
    as DescribeImages does, or the root disk's snapshot does. There is no place like S3 that files are fetched from:
    they come in by the Image API."""
    tags = tags_for(parameters, KIND)[KIND]
    of_volumes = block_devices.for_new_image(connection, caller, parameters)
    row = None if of_volumes else _registered(connection, caller, parameters)
    refused: t.Mapping[type[Exception], str] = {
        ConflictError: "InvalidAMIName.Duplicate",
        QuotaError: "AMIQuotaExceeded",
    }
    with as_codes({}, "InvalidAMIName.Malformed"):
        checked_names("image", [{"name": parameters["Name"]}])
    with as_codes(refused):
        name, description = parameters["Name"], parameters.get("Description", "")
        if row is None:
            uuid = image_operations.register_snapshots(calling(connection), name, description, of_volumes)
        else:
            uuid = image_operations.register(calling(connection), name, description, row)
    number = ids.of("ami", uuid)
    keep_tags(connection, number, tags)
    return {"imageId": number}


def _registered(connection: Connection, caller: Caller, parameters: Parameters) -> SeenImage:
    """The image that another one is registered of. Raises Ec2Error."""
    mappings = parameters.get("BlockDeviceMapping", [])
    of_snapshots = [mapping["Ebs"]["SnapshotId"] for mapping in mappings if mapping.get("Ebs", {}).get("SnapshotId")]
    if len(of_snapshots) > 1:
        raise unsupported("Another disk in an image than the root disk")
    if of_snapshots:
        return ids.find("snap", of_snapshots[0], snapshots.of_images(connection, caller.project))
    location: str = parameters.get("ImageLocation", "")
    if not location:
        raise missing("ImageLocation")
    for owner in ("amazon", caller.project):
        location = location.removeprefix(f"{owner}/")
    return images.find(connection, caller.project, location)


@writes(
    "CreateImage",
    "compute:servers:create_image",
    {
        **each(Text(), "InstanceId Name Description"),
        "NoReboot": Boolean(),
        "BlockDeviceMapping": block_devices.PARAMETER,
        "TagSpecification": TAG_SPECIFICATIONS,
        "SnapshotLocation": Ignored(),
    },
    ["InstanceId", "Name"],
)
def create_image(connection: Connection, caller: Caller, parameters: Parameters) -> Body:
    """Make an image of an instance's root disk. The guest may run or not: it is never rebooted for this."""
    if parameters.get("BlockDeviceMapping"):
        raise unsupported("Another disk in an image than the root disk")
    tags = tags_for(parameters, KIND, "snapshot")
    description = {DESCRIPTION: parameters["Description"]} if parameters.get("Description") else {}
    record = find_live(connection, caller.project, parameters["InstanceId"])
    row = server_listing.instance_row(connection, record["uuid"], caller.project)
    own = [image for image in images_seen(connection, caller.project) if image["owner"] == caller.project]
    if any(parameters["Name"] in (image["name"], image["handle"]) for image in own):
        raise Ec2Error("InvalidAMIName.Duplicate", f"AMI name {parameters['Name']} is already in use")
    with as_codes({}, "InvalidAMIName.Malformed"):
        details = image_views.details_of(parameters["Name"], description, caller.user_id)
    with as_codes({ConflictError: "IncorrectInstanceState", QuotaError: "AMIQuotaExceeded"}):
        servers.create_image(calling(connection), row, details)
    made = images_seen(connection, caller.project, details["image_id"])[0]
    keep_tags(connection, images.image_id(made), tags[KIND])
    of_volumes = [ids.of("snap", volume.of or "") for volume in snapshots.volumes_of(made)]
    for number in of_volumes:
        change_tags(connection, caller, number, lambda _before: tags["snapshot"])
    if not of_volumes:
        keep_tags(connection, snapshots.snapshot_id(made), tags["snapshot"])
    return {"imageId": images.image_id(made)}


@action("DeregisterImage", "image:write", {"ImageId": Text(), "DeleteAssociatedSnapshots": Boolean()}, ["ImageId"])
def deregister_image(parameters: Parameters) -> None:
    """Instances have copies of what they need of it. Its snapshot goes with it."""
    with writing_ledger() as connection:
        row = _own(connection, current(), parameters["ImageId"])
        protected = Ec2Error("OperationNotPermitted", f"Image {images.image_id(row)} is protected from deregistration.")
        with in_words({image_operations.ProtectedImageError: lambda _message: protected}):
            image_operations.delete(calling(connection), row)
        for number in (images.image_id(row), snapshots.snapshot_id(row)):
            forget_tags(connection, number)
        refuse_dry_run()
    image_data.remove_data(writing_call, row["id"], home())
