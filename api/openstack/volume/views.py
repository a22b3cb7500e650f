# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Volumes, snapshots, types and attachments as Cinder's resources."""

from __future__ import annotations

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.catalog.volume_type_records import (
    VolumeType,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volumes.transfer_records import Transfer
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volumes.volume_views import (
    Attachment,
    Reservation,
    Snapshot,
    Stored,
    Volume,
)
from ansible_collections.novalite.cloud.plugins.module_utils._model.instance import Image

from ...web import policy
from ...web.addresses import base_url
from ...web.bodies import Body, Record, same
from ...web.context import current
from ...web.times import precise
from .blueprint import speaks


def links(kind: str, number: str, project: str) -> list[Body]:
    return [
        {"rel": "self", "href": f"{base_url()}/volume/v3/{project}/{kind}/{number}"},
        {"rel": "bookmark", "href": f"{base_url()}/volume/{project}/{kind}/{number}"},
    ]


def name(row: Stored) -> str | None:
    """Return the name that is shown: null where it was made without one."""
    made_up = str(row.name).endswith((f"-{row.id[:8]}", row.id))
    shown = row.name if row.display_name is None and not made_up else row.display_name
    return shown or None


def _times(row: Stored) -> Body:
    return {"created_at": precise(row.created_at), "updated_at": precise(row.updated_at)}


def brief_volume(row: Volume) -> Body:
    return {"id": row.id, "name": name(row), "links": links("volumes", row.id, row.project_id)}


def new_volume(row: Volume) -> Body:
    """Return a volume as it is shown to a client that makes or changes it."""
    body: Body = {
        **brief_volume(row),
        "description": row.description,
        "size": row.size_gb,
        "status": row.shown_status,
        "availability_zone": row.availability_zone or "nova",
        **_times(row),
        "volume_type": row.type,
        "attachments": [attached(row, record) for record in row.shown_holders],
        "snapshot_id": row.snapshot_id,
        "source_volid": row.source_volume_id,
        "metadata": row.metadata,
        "bootable": "true" if row.bootable else "false",
        "encrypted": False,
        "multiattach": row.multiattach,
        **dict.fromkeys(("replication_status", "consistencygroup_id", "migration_status")),
        "user_id": row.user_id or row.project_id,
    }
    if speaks(13):
        body["group_id"] = None
    if speaks(48):
        body.update(service_uuid=None, shared_targets=False)
    if speaks(63):
        body["volume_type_id"] = row.type_id
    if speaks(65):
        body["consumes_quota"] = True
    return body


def volume(row: Volume) -> Body:
    body = {**new_volume(row), "os-vol-tenant-attr:tenant_id": row.project_id}
    if row.image and (known := image_metadata(row.image)):
        body["volume_image_metadata"] = known
    if policy.allowed("volume:host_attributes"):
        body["os-vol-mig-status-attr:migstat"] = body["os-vol-mig-status-attr:name_id"] = None
        body["os-vol-host-attr:host"] = f"{row.host}@{row.backend}#{row.type}" if row.host else None
    return body


def image_metadata(image: Image | Record) -> Body:
    """Render a volume's record of the image that it was made of, in texts; of no image, what it was given as such."""
    known: Body = {
        "image_id": image.get("id"),
        "image_name": image.get("name"),
        "disk_format": image.get("disk_format"),
        "container_format": "bare",
        "min_disk": image.get("min_disk_gb", 0),
        "min_ram": image.get("min_ram_mb", 0),
        "size": image.get("size", 0),
        "checksum": str(image.get("checksum") or "").partition(":")[2],
    }
    described = {**(known if image.get("id") else {}), **(image.get("properties") or {})}
    return {key: str(value) for key, value in described.items() if value is not None}


def attached(row: Volume, record: Attachment | Reservation) -> Body:
    return {
        "id": row.id,
        "attachment_id": record.id,
        "volume_id": row.id,
        "server_id": record.instance_uuid if isinstance(record, Attachment) else None,
        "host_name": record.host if policy.allowed("volume:host_attributes") else None,
        "device": device(record),
        "attached_at": precise(record.attached_at or record.created_at),
    }


def device(record: Attachment | Reservation) -> str | None:
    return f"/dev/{record.device}" if record.device and not record.device.startswith("/") else record.device


def attachment(row: Volume, record: Attachment | Reservation) -> Body:
    """An attachment as a resource of its own."""
    if isinstance(record, Reservation):
        return {
            **brief_attachment(row, record),
            **{"attached_at": precise(record.attached_at) or "", "detached_at": ""},
            "attach_mode": record.mode or "null",  # Cinder's word for nobody's
            "connection_info": {},  # hosts let nobody else have their volumes
        }
    return {
        **brief_attachment(row, record),
        "attached_at": precise(record.created_at if row.waits_for_unshelve else record.attached_at),
        "detached_at": None,
        "attach_mode": "ro" if record.readonly else "rw",
        "connection_info": {},
    }


def brief_attachment(row: Volume, record: Attachment | Reservation) -> Body:
    if isinstance(record, Reservation):
        return {"id": record.id, "status": record.status, "instance": None, "volume_id": row.id}
    status = {"in-use": "attached"}.get(row.shown_status, row.status)
    return {"id": record.id, "status": status, "instance": record.instance_uuid, "volume_id": row.id}


def new_snapshot(row: Snapshot) -> Body:
    body: Body = {
        "id": row.id,
        "name": name(row),
        **same(row, "description", "volume_id", "status"),
        "size": row.size_gb,
        "metadata": row.metadata,
        **_times(row),
    }
    if speaks(14):
        body["group_snapshot_id"] = None
    if speaks(41):
        body["user_id"] = row.user_id
    if speaks(65):
        body["consumes_quota"] = True
    return body


def snapshot(row: Snapshot) -> Body:
    return {
        **new_snapshot(row),
        "os-extended-snapshot-attributes:progress": "100%" if row.status == "available" else "0%",
        "os-extended-snapshot-attributes:project_id": row.project_id,
    }


def volume_type(row: VolumeType) -> Body:
    return {**new_volume_type(row), "qos_specs_id": None}


def new_volume_type(row: VolumeType) -> Body:
    """Return a type as it is shown to a client that makes it."""
    return {**changed_volume_type(row), "os-volume-type-access:is_public": row.is_public}


def changed_volume_type(row: VolumeType) -> Body:
    """Return a type as it is shown to a client that changes it."""
    return {**same(row, "id", "name", "description", "is_public", "extra_specs")}


def brief_transfer(row: Transfer) -> Body:
    shown = links("os-volume-transfer", row.id, current().project)
    return {"id": row.id, "volume_id": row.volume_id, "name": row.name, "links": shown}


def transfer(row: Transfer) -> Body:
    body: Body = {**brief_transfer(row), "created_at": precise(row.created_at)}
    if speaks(55):
        body["no_snapshots"] = row.no_snapshots
    if speaks(57):  # what was accepted is gone, here and in Cinder's lists
        body.update(source_project_id=row.project_id, destination_project_id=None, accepted=False)
    return body
