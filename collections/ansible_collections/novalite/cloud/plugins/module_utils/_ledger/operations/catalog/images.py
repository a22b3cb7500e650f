# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operations on images, for every door: what is said of them, whom they are shared with, whether they are in use."""

from __future__ import annotations

import typing as t

from ...._errors import ForbiddenError, NotFoundError
from ...._rules.volume_asks import VolumeRequest
from ...catalog import image_records, image_states
from ...compute import volume_images
from ...queries.catalog import image_views
from ...queries.catalog.image_views import ImageValues, Member, NewImage, SeenImage
from ..call import Call

OF_ALL: t.Final = "image:all_projects"
HOST_MOUNT: t.Final = "image:host_mount"
UNTIL_DATA = ("disk_format", "container_format")


class ProtectedImageError(ForbiddenError):
    """An image that cannot be deleted while it is protected."""


def seen(call: Call, image_id: str) -> SeenImage:
    """Return an image that the caller's project may use, by its id in any case. Raises NotFoundError."""
    rows = image_views.images_seen(call.connection, call.project, image_id.lower(), everything=call.permits(OF_ALL))
    if not rows:
        raise NotFoundError(f"No image found with ID {image_id[:255]}")
    return rows[0]


def check_own(call: Call, row: SeenImage) -> None:
    """Raise ForbiddenError unless the caller may change the image."""
    if not _is_own(call, row):
        raise ForbiddenError("You are not permitted to modify this image: it is another's.")


def formats(values: ImageValues) -> tuple[str, str]:
    """Return what an image has of UNTIL_DATA."""
    return values["disk_format"], values["container_format"]


def create(call: Call, new: NewImage) -> SeenImage:
    """Record an image without data. Raises ForbiddenError for what is not the caller's to say, and as
    image_records.insert_image()."""
    _check_said(call, call.project, "shared", new)
    return seen(call, image_records.insert_image(call.connection, new, by_operator=call.permits(HOST_MOUNT)))


def update(call: Call, row: SeenImage, after: SeenImage) -> SeenImage:
    """Write what of `after` differs from the image. Raises ForbiddenError for what is not the caller's to say, or not
    any more, and as image_records.update_image()."""
    check_own(call, row)
    _check_said(call, row["owner"], row["visibility"], after)
    if row["kernel"] is not None and after["cmdline"] != row["cmdline"]:
        raise ForbiddenError("The kernel's command line comes with the image's kernel, from the cloud's operator.")
    for name, old, new in zip(UNTIL_DATA, formats(row), formats(after)):
        if new != old and row["status"] != "queued":
            raise ForbiddenError(f"Attribute '{name}' may not be changed: the image has its data already.")
    image_records.update_image(call.connection, row, after, by_operator=call.permits(HOST_MOUNT))
    return seen(call, row["id"])


def delete(call: Call, row: SeenImage) -> None:
    """Delete an image. Its data stay until image_data.remove_data(). Raises ForbiddenError, ProtectedImageError."""
    check_own(call, row)
    if row["protected"]:
        raise ProtectedImageError(f"Image {row['id']} is protected and cannot be deleted.")
    image_records.delete_image(call.connection, row["id"])


def delete_named(call: Call, owner: str, names: t.Iterable[str]) -> None:
    """Delete images of an owner ("": the cloud) by their names. Raises ProtectedImageError."""
    kept = image_records.protected_of(call.connection, owner, names)
    if kept:
        raise ProtectedImageError(
            f"image {kept[0]!r} is protected: take its protection off (openstack image set --unprotected) and run again"
        )
    image_records.delete_images_named(call.connection, owner, names)


def set_active(call: Call, row: SeenImage, active: bool) -> None:
    """Reactivate an image, or deactivate it. Raises ForbiddenError for one without data, too."""
    check_own(call, row)
    if not image_states.set_active(call.connection, row["id"], active):
        done = "reactivated" if active else "deactivated"
        raise ForbiddenError(f"Image {row['id']} is {row['status']}: only an active one can be {done}.")


def register(call: Call, name: str, description: str, of: SeenImage) -> str:
    """Record an image with the files of another one that the caller sees; return its id. Raises as
    image_records.register()."""
    return image_records.register(call.connection, call.project, name, description, of)


def register_snapshots(call: Call, name: str, description: str, snapshots: t.Sequence[VolumeRequest]) -> str:
    """Record an image of these snapshots of volumes; return its id. Raises as volume_images.register()."""
    return volume_images.register(call.connection, call.project, name, description, snapshots)


# --- Members ----------------------------------------------------------------------------------------------------------


def members(call: Call, row: SeenImage) -> list[Member]:
    """List the members that the caller may know of: its own image's, else itself. Only shared images have some."""
    if row["visibility"] != "shared":
        return []
    return image_views.members(call.connection, row["id"], None if _is_own(call, row) else call.project)


def member(call: Call, row: SeenImage, project_id: str) -> Member:
    """Return a member that the caller may know of. Raises NotFoundError."""
    for sharing in members(call, row):
        if sharing["member"] == project_id:
            return sharing
    raise NotFoundError(f"{project_id[:60]} not found in the member list of the image {row['id']}.")


def add_member(call: Call, row: SeenImage, project_id: str) -> Member:
    """Share an image with a project. Raises ForbiddenError, also for an image that is not shared, and as
    image_records.add_member()."""
    check_own(call, row)
    if row["visibility"] != "shared":
        raise ForbiddenError(f"Only shared images have members, and this one is {row['visibility']}.")
    return image_records.add_member(call.connection, row["id"], project_id)


def answer_member(call: Call, row: SeenImage, project_id: str, status: str) -> Member:
    """Accept or reject an image that is shared with the project. Raises NotFoundError for no member, ForbiddenError for
    another than the member."""
    member(call, row, project_id)
    if project_id != call.project and not call.permits(OF_ALL):
        raise ForbiddenError("Only a member itself accepts or rejects an image.")
    image_records.set_status(call.connection, row["id"], project_id, status)
    return member(call, row, project_id)


def remove_member(call: Call, row: SeenImage, project_id: str) -> None:
    """Share an image with a project no more. Raises ForbiddenError, NotFoundError for no member."""
    check_own(call, row)
    member(call, row, project_id)
    image_records.remove_member(call.connection, row["id"], project_id)


def change_members(call: Call, row: SeenImage, *, add: t.Iterable[str] = (), remove: t.Iterable[str] = ()) -> None:
    """Share an image with these projects, and with those no more, whether they are members or not. A private image that
    gets one is shared from now on. Raises as update() and add_member()."""
    check_own(call, row)
    for project_id in remove:
        image_records.remove_member(call.connection, row["id"], project_id)
    added = dict.fromkeys(add)
    if added and row["visibility"] == "private":
        row = update(call, row, {**row, "visibility": "shared"})
    there = {sharing["member"] for sharing in image_views.members(call.connection, row["id"])}
    for project_id in added:
        if project_id not in there:
            add_member(call, row, project_id)


def _is_own(call: Call, row: SeenImage) -> bool:
    return row["owner"] == call.project or call.permits(OF_ALL)


def _check_said(call: Call, owner: str, visibility: str, after: ImageValues) -> None:
    """Check what is said of an image that was the owner's, and so visible."""
    if after["owner"] != owner:
        call.check("image:give")
        if not after["owner"]:
            raise ForbiddenError("An image needs an owner.")
    if not after["owner"] and after["visibility"] != "public":
        raise ForbiddenError("This image is the cloud's own, and public: give it an owner first.")
    if after["visibility"] == "public" and visibility != "public":
        call.check("image:publicize")
