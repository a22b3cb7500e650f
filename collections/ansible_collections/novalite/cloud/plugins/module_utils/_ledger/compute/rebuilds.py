# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rebuilding: a server keeps its place, its address and its claim, and gets its disks anew, from the same image or
another one. Rescue: it runs from another disk for a while, with its own one beside it."""

from __future__ import annotations

import dataclasses
import typing as t

import sqlalchemy as sa

from ..._errors import NovaliteError
from ..._guest import image_properties
from ..._json import JsonMapping, JsonObject
from ..._model import devices, hardware, numa, pci
from ..._model.instance import Image
from ..._model.rows import InstanceRow
from ..._rules import guest_requests, server_requests
from ..db import clock
from ..db.tables import compute_host, instance
from ..instances import actions
from ..queries import lookups
from ..queries.compute.instance_rows import instance_row
from ..queries.compute.views import image_of
from ..queries.identity import quota_records
from ..queries.volumes.volume_views import Volume, root_volume
from ..volumes import volumes
from . import cdroms, server_changes

RUNNING, SHUTDOWN = 1, 4  # Nova's power states
GUEST_FIELDS = ("user_data", "user_data_encoding", "files")
HASH = "password_hash"  # beside the image in the row, as long as a rescue lasts


def ask_rebuild(connection: sa.Connection, uuid: str, request: JsonMapping) -> JsonObject:
    """Write to the instance what of `request` only concerns what it is told, and return the details for begin().

    `image` (a record; None for the one that it has), `key` (a key pair's record, or None for none), `metadata`,
    `display_name`, `description`, `hostname`, `access_ip_v4`, `access_ip_v6`, `disk_config`, `user_data`,
    `user_data_encoding`, `files`, `password_hash`, `password_optional`: what is not in it stays as it is. With
    `reimage`, the volume that the instance starts from is made anew, too. Raises NovaliteError, QuotaError.
    """
    row = instance_row(connection, uuid)
    image = row.image if request.get("image") is None else image_of(request["image"])
    root = root_volume(connection, uuid)
    if root is None:
        server_requests.check_fits(row.name, row.flavor, image)
        cdroms.check_root(row.name, row.flavor["root_gb"], image)
    elif request.get("reimage"):
        _check_reimage(row, root, image)
    image_properties.check(image)
    _check_hardware(connection, row, image)
    _check_numa(row, image)
    guest = guest_requests.checked(
        row.name, {field: request[field] for field in GUEST_FIELDS if request.get(field) is not None}
    )
    guest_requests.check_quota(row.name, guest, quota_records.quota_limits(connection, row.project_id))
    plain = ("display_name", "description", "hostname", "access_ip_v4", "access_ip_v6", "disk_config")
    values: JsonObject = {field: request[field] for field in plain if field in request}
    if "key" in request:
        key = request["key"] or {"name": None, "public_key": None}
        values |= {"key_name": key["name"], "public_key": key["public_key"]}
    if "user_data" in request:
        values["user_data"] = guest.user_data
    if "files" in request:
        values["files"] = guest.file_records
    if request.get("password_hash") is not None:
        values |= {field: request[field] for field in ("password_hash", "password_optional") if field in request}
    if guest_requests.needs_config_drive(image):
        values["config_drive"] = True
    if values:
        server_changes.change(connection, row, values)
    if request.get("metadata") is not None:
        # begin() looks at the lock
        server_changes.change_metadata(connection, row, request["metadata"], replace=True, by_admin=True)
    reimage = {"reimage": True} if root is not None and request.get("reimage") else {}
    return {**reimage, **({} if request.get("image") is None else {"image": image["id"]})}


def _check_reimage(row: InstanceRow, root: Volume, image: Image) -> None:
    """Raise NovaliteError for an image that the root volume cannot be made anew of."""
    server_requests.check_fits(row.name, {**row.flavor, "root_gb": 0}, image)
    if not image["source"]:
        raise NovaliteError(f"Image {image['id']} has no data to make volume {root.id} of: name another image")
    if max(image["virtual_size"], image["min_disk_gb"] << 30) > root.size_gb << 30:
        raise NovaliteError(
            f"Image {image['id']} does not fit on the root volume {root.id} of '{row.name}', which has {root.size_gb} "
            "GiB: name a smaller image, or extend the volume"
        )


def volumes_anew(connection: sa.Connection, uuids: t.Iterable[str]) -> dict[str, Volume]:
    """UUID -> the root volume that its rebuild makes anew, with the image of which."""
    details_by_uuid = actions.open_details(connection, "rebuild", uuids)
    volume_by_uuid: dict[str, Volume] = {}
    for uuid, details in details_by_uuid.items():
        root = root_volume(connection, uuid) if details.get("reimage") else None
        if root is not None:
            volume_by_uuid[uuid] = dataclasses.replace(root, image=instance_row(connection, uuid).image)
    return volume_by_uuid


def begun_rebuild(connection: sa.Connection, row: InstanceRow, details: JsonObject) -> JsonObject:
    """The instance stands on its new image from now on: whatever becomes of the run, that is what it was asked for."""
    details |= {"disk_before": row.disk_image, "cdroms_before": row.cdroms}
    image = row.image
    if details.get("image") is not None:
        details["before"] = row.image
        image = image_of(lookups.image_by_id(connection, details["image"], row.project_id))
    inside = cdroms.at_start(connection, row.project_id, image)  # what was put in later stays, where the image has none
    return {"image": image, "disk_image": None, "cdroms": row.cdroms if inside is None else inside}


def ended_rebuild(
    connection: sa.Connection, row: InstanceRow, details: JsonObject, error: str | None, host_result: JsonMapping
) -> JsonObject:
    """`host_result` has `untouched` where the host failed before it came to the guest. Otherwise nobody knows what
    there is of the guest's disks, and the instance is an error until it is rebuilt."""
    now = clock.seconds(connection)
    if error is None:
        root = root_volume(connection, row.uuid) if details.get("reimage") else None
        if root is not None:
            volumes.write(connection, "volume", root.id, {"image": row.image, "bootable": True})
        stopped = row.vm_state == "stopped"
        return {
            "vm_state": "stopped" if stopped else "active",
            "power_state": SHUTDOWN if stopped else RUNNING,
            "launched_at": now,
        }
    if host_result.get("untouched"):
        former = {"image": details["before"]} if details.get("before") else {}
        return {
            "vm_state": row.vm_state,
            "disk_image": details.get("disk_before"),
            "cdroms": details.get("cdroms_before"),
            **former,
        }
    return {"vm_state": "error", "fault": {"code": 500, "message": error, "created": now}}


def running_after(connection: sa.Connection, uuids: t.Iterable[str]) -> set[str]:
    """Return those of the instances being rebuilt that are to run afterwards: all but those that were stopped."""
    rows = connection.execute(
        sa.select(instance.c.uuid).where(instance.c.uuid.in_(sorted(set(uuids))), instance.c.vm_state != "stopped")
    )
    return set(rows.scalars())


class Rescue(t.NamedTuple):
    """Image of a rescue, and the hash of the password there."""

    image: Image
    password_hash: str | None


def ask_rescue(connection: sa.Connection, uuid: str, image_id: str | None, password_hash: str | None) -> JsonObject:
    """Record what the instance is to be rescued with, and return the details for begin(); None: its own image. Raises
    NotFoundError for an image that its project does not see, NovaliteError for one that cannot be used."""
    row = instance_row(connection, uuid)
    details: JsonObject = {} if image_id is None else {"image": image_id}
    chosen = {**_rescue_image(connection, row, details), HASH: password_hash}
    connection.execute(sa.update(instance).where(instance.c.id == row.id).values(rescue_image=chosen))
    return details


def begun_rescue(connection: sa.Connection, row: InstanceRow, details: JsonObject) -> JsonObject:
    rescue_image = connection.execute(sa.select(instance.c.rescue_image).where(instance.c.id == row.id)).scalar_one()
    return {} if rescue_image is not None else {"rescue_image": {**_rescue_image(connection, row, details), HASH: None}}


def ended_rescue(
    connection: sa.Connection, row: InstanceRow, details: JsonObject, error: str | None, host_result: JsonMapping
) -> JsonObject:
    """`host_result` has `untouched` where the host failed before it came to the guest."""
    if error is None or host_result.get("untouched"):
        return {}
    return {"vm_state": "error", "fault": {"code": 500, "message": error, "created": clock.seconds(connection)}}


def rescue_images(connection: sa.Connection, uuids: t.Iterable[str]) -> dict[str, Rescue]:
    """UUID -> what the instance is rescued with."""
    rows = connection.execute(
        sa.select(instance.c.uuid, instance.c.rescue_image).where(
            instance.c.uuid.in_(sorted(set(uuids))), instance.c.rescue_image.is_not(None)
        )
    )
    kept = {row.uuid: dict(row.rescue_image) for row in rows}
    return {uuid: Rescue(password_hash=image.pop(HASH), image=t.cast(Image, image)) for uuid, image in kept.items()}


def _rescue_image(connection: sa.Connection, row: InstanceRow, details: JsonObject) -> Image:
    image = row.image
    if details.get("image") is not None:
        image = image_of(lookups.image_by_id(connection, details["image"], row.project_id))
    if not image["source"]:
        raise NovaliteError(f"'{row.name}' has no image to be rescued with: name one")
    image_properties.check(image)
    devices.check_rescue(image)
    _check_hardware(connection, row, image)
    return image


def _check_numa(row: InstanceRow, image: Image) -> None:
    """Raise NovaliteError, as Nova does, for an image that the place on its host was not chosen for."""
    for of in (numa.recorded_numa_of, pci.recorded_asked_of):
        if of(row.flavor, image) != of(row.flavor, row.image):
            raise NovaliteError(
                f"image '{image['name']}' asks for other CPUs, NUMA nodes or pages than '{row.name}' has, or for "
                "devices nearer or farther: use another image"
            )


def _check_hardware(connection: sa.Connection, row: InstanceRow, image: Image) -> None:
    """Raise NovaliteError for an image that asks for what the instance's host has not: no other one is chosen."""
    asked = hardware.checked(row.flavor, image)
    if hardware.hardware_of(row.flavor, row.image).tpm is not None:
        return  # the action itself is refused
    if asked.tpm is not None:
        raise NovaliteError(
            f"image '{image['name']}' asks for a TPM, which an instance gets at its launch: use another"
        )
    facts = connection.execute(sa.select(compute_host.c.facts).where(compute_host.c.name == row.host)).scalar()
    if facts is None:
        return
    of_devices = devices.lacking(devices.devices_of(row.flavor, image), asked.machine_on(facts), facts)
    if (lack := hardware.lacking(asked, facts) or of_devices) is not None:
        raise NovaliteError(f"image '{image['name']}' does not suit {row.host}, which {lack}")
