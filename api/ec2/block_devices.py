# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Block device mappings of a launch: the root disk, which is the image's, and volumes made with the instance."""

from __future__ import annotations

import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volume_views import volumes_by
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.volumes import volumes as volume_states
from ansible_collections.novalite.cloud.plugins.module_utils._rules.volume_asks import (
    BLANK,
    MAX_VOLUMES,
    SNAPSHOT,
    VolumeRequest,
)

from ..web.context import current
from . import ids, views_instances, volumes
from .common import Asked, Body, Tags
from .faults import Ec2Error, invalid, unsupported
from .parameters import Boolean, Group, Ignored, Number, Text

ROOT_DEVICES = (views_instances.ROOT_DEVICE, "/dev/sda1", "/dev/sda", "/dev/xvda", "vda", "sda1")
SHAPE = Group(
    {
        "DeviceName": Text(32),
        "VirtualName": Text(32),
        "NoDevice": Text(32),
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
)


def wanted(connection: Connection, project: str, asked: Asked, flavor: Body) -> tuple[VolumeRequest, ...]:
    """The volumes that the instances get beside their root disks, which may be named with their size. Raises Ec2Error.

    As with Amazon, what is not said to be deleted with its instance stays, and a snapshot says the size.
    """
    requests: list[VolumeRequest] = []
    named: set[str] = set()
    for mapping in asked.get("BlockDeviceMapping", []):
        if "NoDevice" in mapping or mapping.get("VirtualName", "").startswith("ephemeral"):
            continue
        ebs = mapping.get("Ebs", {})
        if ebs.get("Encrypted"):
            raise unsupported("A volume with Encrypted")
        if mapping.get("DeviceName") in ROOT_DEVICES:
            _check_root(ebs, flavor)
            continue
        request = _volume(connection, project, mapping.get("DeviceName", ""), ebs)
        if request.device is not None:
            if request.device in named:
                raise invalid("BlockDeviceMapping.DeviceName", mapping["DeviceName"], "it was given twice")
            named.add(request.device)
        requests.append(request)
    if len(requests) > MAX_VOLUMES:
        raise Ec2Error("AttachmentLimitExceeded", f"An instance gets at most {MAX_VOLUMES} volumes.")
    return tuple(requests)


def tag(connection: Connection, instances: t.Sequence[str], tags: Tags) -> None:
    """Give the volumes of these new instances their tags."""
    if not tags:
        return
    for row in volumes_by(connection, instances=instances):
        volume_states.update_volume(connection, row.id, {"name": tags.get("Name"), "metadata": tags})


def _check_root(ebs: Body, flavor: Body) -> None:
    """It is the image's, on a local disk of the flavor's size: a mapping of it may say just that."""
    if ebs.get("SnapshotId"):
        raise unsupported("A root disk made of a snapshot")
    if ebs.get("VolumeSize", 0) > flavor["root_gb"]:
        raise invalid(
            "BlockDeviceMapping.Ebs.VolumeSize",
            ebs["VolumeSize"],
            f"the root disk of {flavor['name']} has {flavor['root_gb']} GiB",
        )


def _volume(connection: Connection, project: str, device: str, ebs: Body) -> VolumeRequest:
    snapshot = None
    if ebs.get("SnapshotId"):
        snapshot = ids.find("snap", ebs["SnapshotId"], volumes.snapshots_of_project(connection, project)).id
    elif "VolumeSize" not in ebs:
        raise Ec2Error("MissingParameter", f"The device {device} needs a size or a snapshot")
    return VolumeRequest(
        source=BLANK if snapshot is None else SNAPSHOT,
        of=snapshot,
        size_gb=ebs.get("VolumeSize"),
        type=volumes.type_named(connection, current(), ebs.get("VolumeType")),
        device=volumes.device_name(device),
        delete_on_termination=ebs.get("DeleteOnTermination", False),
    )
