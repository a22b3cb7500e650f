# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Block devices in EC2's words: those of an image, and those that an instance is asked for with.

An image holds a disk, or names snapshots of volumes that its instances get copies of (_rules/volume_mappings.py).
"""

from __future__ import annotations

from dataclasses import replace

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.catalog.flavor_records import SeenFlavor
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.catalog.image_views import SeenImage
from ansible_collections.novalite.cloud.plugins.module_utils._rules import volume_mappings
from ansible_collections.novalite.cloud.plugins.module_utils._rules.server_options import MAX_VOLUMES
from ansible_collections.novalite.cloud.plugins.module_utils._rules.volume_asks import BLANK, VolumeRequest, root_of

from ..web.context import Caller
from . import ids, snapshots, volumes
from .common import Body, Parameters
from .faults import Ec2Error, invalid, unsupported
from .parameters import Boolean, Group, Ignored, ListOf, Number, Text, each
from .views_instances import ROOT_DEVICE

ROOT_DEVICES = (ROOT_DEVICE, "/dev/sda1", "/dev/sda", "/dev/xvda", "vda", "sda1")
PARAMETER = ListOf(
    Group(
        {
            **each(Text(32), "DeviceName VirtualName"),
            "NoDevice": Text(32, takes_empty=True),
            "Ebs": Group(
                {
                    "SnapshotId": Text(),
                    "VolumeSize": Number(1),
                    "VolumeType": Text(),
                    "DeleteOnTermination": Boolean(),
                    "Encrypted": Boolean(),
                    "Iops": Ignored(),
                    "Throughput": Ignored(),
                }
            ),
        }
    ),
    26,
)
_PLAIN = {"volumeType": "standard", "encrypted": False}


def of_image(row: SeenImage) -> list[Body]:
    """The devices of an image: its root disk at the least size that it can have, or the volumes of its mapping."""
    mapped = snapshots.volumes_of(row)
    if not mapped:
        ebs = {"snapshotId": snapshots.snapshot_id(row), "volumeSize": snapshots.size_gb(row)}
        return [{"deviceName": ROOT_DEVICE, "ebs": {**ebs, "deleteOnTermination": True, **_PLAIN}}]
    return [
        {
            "deviceName": ROOT_DEVICE if volume.boot else volume.device,
            "ebs": {
                "snapshotId": ids.of("snap", volume.of or ""),
                "volumeSize": volume.size_gb,
                "deleteOnTermination": volume.delete_on_termination,
                **_PLAIN,
            },
        }
        for volume in mapped
    ]


def for_new_image(connection: Connection, caller: Caller, parameters: Parameters) -> tuple[VolumeRequest, ...]:
    """The volumes that a new image is to name: those of BlockDeviceMapping, each of a snapshot of a volume.

    Empty for one whose root device is another image's snapshot, or that says nothing of devices. Raises Ec2Error."""
    known = volumes.snapshots_of_project(connection, caller.project)
    devices = _devices(parameters)
    if not any(mapping.get("Ebs", {}).get("SnapshotId") in known for mapping in devices):
        return ()
    roots = {*ROOT_DEVICES, parameters.get("RootDeviceName", ROOT_DEVICE)}
    requests = []
    for mapping in devices:
        name, ebs = mapping.get("DeviceName", ""), mapping.get("Ebs", {})
        snapshot = known.get(ebs.get("SnapshotId", ""))
        if snapshot is None:
            raise unsupported("An image of a volume's snapshot with a device that is none")
        if snapshot.status != "available":
            raise Ec2Error("IncorrectState", f"Snapshot '{ebs['SnapshotId']}' is not 'completed'.")
        request = _volume(connection, caller, name, ebs)
        if request.type not in (None, snapshot.type):
            raise invalid("VolumeType", ebs["VolumeType"], f"a volume of this snapshot is of the type {snapshot.type}")
        size = request.size_gb or snapshot.size_gb
        if size < snapshot.size_gb:
            raise invalid("VolumeSize", size, f"the snapshot has {snapshot.size_gb} GiB")
        boot = name in roots
        goes: bool = ebs.get("DeleteOnTermination", boot)  # as with Amazon, a root goes with its instance
        device = None if boot else request.device
        requests.append(replace(request, boot=boot, device=device, size_gb=size, delete_on_termination=goes))
    if sum(request.boot for request in requests) != 1:
        raise Ec2Error("InvalidBlockDeviceMapping", "No root snapshot specified in device mapping.")
    return tuple(requests)


def requested(
    connection: Connection, caller: Caller, parameters: Parameters, flavor: SeenFlavor, image: SeenImage
) -> tuple[VolumeRequest, ...]:
    """The volumes that the instances get beside a root disk on their host, which may be named with its size; of an
    image that names volumes, all of them. Raises Ec2Error.

    As with Amazon, what is not said to be deleted with its instance stays, and a snapshot says the size."""
    root = root_of(snapshots.volumes_of(image))
    requests: list[VolumeRequest] = []
    for mapping in _devices(parameters):
        name, ebs = mapping.get("DeviceName", ""), mapping.get("Ebs", {})
        if name not in ROOT_DEVICES:
            requests.append(_volume(connection, caller, name, ebs))
        elif root is None:
            _check_root(ebs, flavor, image)
        else:
            requests.append(_other_root(connection, caller, root, ebs))
    if root is not None:
        without = {volumes.device_name(each.get("DeviceName", "")) for each in _left_out(parameters)}
        merged = volume_mappings.merged(image, tuple(requests))
        requests = [volume for volume in merged if volume.device is None or volume.device not in without]
    if len(requests) > MAX_VOLUMES:
        raise Ec2Error("AttachmentLimitExceeded", f"An instance gets at most {MAX_VOLUMES} volumes.")
    return tuple(requests)


def _is_left_out(mapping: Body) -> bool:
    return "NoDevice" in mapping or bool(mapping.get("VirtualName", "").startswith("ephemeral"))


def _left_out(parameters: Parameters) -> list[Body]:
    return [mapping for mapping in parameters.get("BlockDeviceMapping", []) if "NoDevice" in mapping]


def _devices(parameters: Parameters) -> list[Body]:
    """The entries of BlockDeviceMapping that ask for a disk. Raises Ec2Error for what no disk here can be."""
    mappings = [mapping for mapping in parameters.get("BlockDeviceMapping", []) if not _is_left_out(mapping)]
    named: set[str | None] = set()
    for mapping in mappings:
        if mapping.get("Ebs", {}).get("Encrypted"):
            raise unsupported("A volume with Encrypted")
        name = volumes.device_name(mapping.get("DeviceName", ""))
        if name is not None and name in named:
            raise invalid("BlockDeviceMapping.DeviceName", mapping["DeviceName"], "it was given twice")
        named.add(name)
    return mappings


def _check_root(ebs: Body, flavor: SeenFlavor, image: SeenImage) -> None:
    """Check a mapping of the root disk, which is local: it may name the image's own snapshot, and a size of at most the
    flavor's."""
    if ebs.get("SnapshotId", snapshots.snapshot_id(image)) != snapshots.snapshot_id(image):
        raise unsupported("A root disk made of another snapshot than the image's")
    if ebs.get("VolumeSize", 0) > flavor["root_gb"]:
        raise invalid(
            "BlockDeviceMapping.Ebs.VolumeSize",
            ebs["VolumeSize"],
            f"the root disk of {flavor['name']} has {flavor['root_gb']} GiB",
        )


def _other_root(connection: Connection, caller: Caller, root: VolumeRequest, ebs: Body) -> VolumeRequest:
    """The volume that an image's instance starts from, as the request changes it."""
    number = ids.of("snap", root.of or "")
    if ebs.get("SnapshotId", number) != number:
        raise unsupported("A root volume made of another snapshot than the image's")
    return replace(
        root,
        size_gb=ebs.get("VolumeSize", root.size_gb),
        type=volumes.type_named(connection, caller, ebs.get("VolumeType")),
        delete_on_termination=ebs.get("DeleteOnTermination", root.delete_on_termination),
    )


def _volume(connection: Connection, caller: Caller, device: str, ebs: Body) -> VolumeRequest:
    source, of = BLANK, None
    if ebs.get("SnapshotId"):
        source, of = snapshots.source_named(connection, caller.project, ebs["SnapshotId"])
    elif "VolumeSize" not in ebs:
        raise Ec2Error("MissingParameter", f"The device {device} needs a size or a snapshot")
    return VolumeRequest(
        source=source,
        of=of,
        size_gb=ebs.get("VolumeSize"),
        type=volumes.type_named(connection, caller, ebs.get("VolumeType")),
        device=volumes.device_name(device),
        delete_on_termination=ebs.get("DeleteOnTermination", False),
    )
