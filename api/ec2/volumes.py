# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Volumes and snapshots: which one an id means, what EC2's words for them mean here, and how it shows them."""

from __future__ import annotations

import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError, VolumeQuotaError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.catalog import volume_type_records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volumes.volume_views import (
    Attachment,
    Snapshot,
    Volume,
    snapshots_by,
    volumes_by,
)

from ..web import policy
from ..web.context import Caller
from ..web.host_names import HostNameMask
from . import ids
from .common import DEFAULT_ZONE, Body, moment, tag_set
from .faults import as_codes

# Amazon's names of types: each is the default type here
AMAZONS_TYPES = ("standard", "gp2", "gp3", "io1", "io2", "st1", "sc1")
LARGEST = 65536  # GiB
LIMITS: t.Mapping[type[Exception], str] = {VolumeQuotaError: "VolumeLimitExceeded"}
# What EC2 has no word for, in words that its clients know
_STATES = {
    **dict.fromkeys(("creating", "downloading", "reverting"), "creating"),
    **dict.fromkeys(("available", "reserved"), "available"),
    **dict.fromkeys(("attaching", "in-use", "detaching", "error_attaching", "error_detaching"), "in-use"),
    "deleting": "deleting",
}
_HELD = {"attaching": "attaching", "detaching": "detaching", "error_attaching": "busy", "error_detaching": "busy"}
_SNAPSHOT_STATES = {"creating": "pending", "available": "completed", "restoring": "completed", "deleting": "pending"}


def volume_id(row: Volume) -> str:
    return ids.of("vol", row.id)


def snapshot_id(row: Snapshot) -> str:
    return ids.of("snap", row.id)


def of_project(connection: Connection, project: str) -> dict[str, Volume]:
    return {volume_id(row): row for row in volumes_by(connection, project_id=project)}


def snapshots_of_project(connection: Connection, project: str) -> dict[str, Snapshot]:
    return {snapshot_id(row): row for row in snapshots_by(connection, project_id=project)}


def type_named(connection: Connection, caller: Caller, name: str | None) -> str | None:
    """The type that a volume of EC2's type `name` gets; None is the default. Raises Ec2Error."""
    if name is None or name in AMAZONS_TYPES:
        return None
    with as_codes({NotFoundError: "InvalidParameterValue"}):
        return str(
            volume_type_records.type_seen(connection, name, caller.project, policy.allowed("volume:private_types")).name
        )


def device_name(name: str) -> str | None:
    """The name in the guest. Amazon's clients write /dev/sdf or /dev/xvdf for what is /dev/vdf here."""
    for prefix in ("/dev/sd", "/dev/xvd", "sd", "xvd"):
        if name.startswith(prefix):
            return f"/dev/vd{name.removeprefix(prefix)}"
    return name or None


def volume(row: Volume) -> Body:
    state = _STATES.get(row.shown_status, "error")
    if row.status == "extending":
        state = "in-use" if row.is_attached else "available"
    return {
        "volumeId": volume_id(row),
        "size": row.size_gb,
        "snapshotId": ids.of("snap", row.snapshot_id) if row.snapshot_id else "",
        "availabilityZone": row.availability_zone or DEFAULT_ZONE,
        "status": state,
        "createTime": moment(row.created_at),
        "attachmentSet": [attachment(holder, row.shown_status) for holder in row.attachments],
        "volumeType": row.type,
        "encrypted": False,
        "multiAttachEnabled": row.multiattach,
        "tagSet": tag_set(row.metadata),
    }


def attachment(holder: Attachment, status: str) -> Body:
    attached = holder.attached_at
    return {
        "volumeId": ids.of("vol", holder.volume_id),
        "instanceId": ids.of("i", holder.instance_uuid),
        "device": holder.device,
        "status": _HELD.get(status, "attached" if attached is not None or status == "in-use" else "attaching"),
        "attachTime": moment(attached or holder.created_at),
        "deleteOnTermination": holder.delete_on_termination,
    }


def snapshot(row: Snapshot, hidden: HostNameMask | None = None) -> Body:
    """A snapshot as EC2 shows it; `hidden` puts ids in the place of hosts' names in what went wrong."""
    state = _SNAPSHOT_STATES.get(row.status, "error")
    return {
        "snapshotId": snapshot_id(row),
        "volumeId": ids.of("vol", row.volume_id),
        "status": state,
        "statusMessage": hidden.over(row.fault["message"]) if row.fault and hidden else None,
        "startTime": moment(row.created_at),
        "progress": "100%" if state == "completed" else "0%",
        "ownerId": row.project_id,
        "volumeSize": row.size_gb,
        "description": row.description or "",
        "encrypted": False,
        "storageTier": "standard",
        "tagSet": tag_set(row.metadata),
    }
