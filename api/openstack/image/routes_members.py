# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whom an image is shared with: its owner says so, and they accept it or not."""

from __future__ import annotations

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError, NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.catalog import image_members
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection

from ...web import validation
from ...web.bodies import Answer, Record, the_one
from ...web.context import current
from ...web.errors import ForbiddenError, TooLargeError, in_words
from ...web.schemas import NAME, an_object, of
from ...web.services import reads, writes
from . import finding, views
from .blueprint import image

STATUS = an_object({"status": {"enum": list(image_members.STATES)}}, ["status"], more=True)


@image.get("/images/<image_id>/members", "image:members:read", reads)
def list_members(connection: Connection, image_id: str) -> Answer:
    rows = _seen(connection, finding.seen(connection, image_id))
    return {"members": [views.member(row) for row in rows], "schema": "/v2/schemas/members"}, 200


@image.get("/images/<image_id>/members/<member>", "image:members:read", reads)
def show_member(connection: Connection, image_id: str, member: str) -> Answer:
    return views.member(_one(connection, finding.seen(connection, image_id), member)), 200


@image.post("/images/<image_id>/members", "image:members:write", writes)
def add_member(connection: Connection, image_id: str) -> Answer:
    _check_shared(finding.own(connection, image_id))
    member = validation.body(of("member", NAME))["member"]
    with in_words({NovaliteError: TooLargeError}):
        row = image_members.add_member(connection, image_id, member)
    return views.member(row), 200


@image.put("/images/<image_id>/members/<member>", "image:members:write", writes)
def change_member(connection: Connection, image_id: str, member: str) -> Answer:
    row = finding.seen(connection, image_id)
    _one(connection, row, member)
    _check_shared(row)
    status = validation.body(STATUS)["status"]
    if member != current().project and not current().is_admin:
        raise ForbiddenError("Only a member itself accepts or rejects an image.")
    image_members.set_status(connection, image_id, member, status)
    return views.member(_one(connection, row, member)), 200


@image.delete("/images/<image_id>/members/<member>", "image:members:write", writes)
def remove_member(connection: Connection, image_id: str, member: str) -> Answer:
    _one(connection, finding.own(connection, image_id), member)
    image_members.remove_member(connection, image_id, member)
    return "", 204


def _seen(connection: Connection, row: Record) -> list[Record]:
    """The members that the caller may know of: its own image's, else itself."""
    if row["visibility"] != "shared":
        return []
    everybody = row["owner"] == current().project or current().is_admin
    return image_members.members(connection, row["id"], None if everybody else current().project)


def _one(connection: Connection, row: Record, member: str) -> Record:
    missing = NotFoundError(f"{member[:60]} not found in the member list of the image {row['id']}.")
    return the_one(_seen(connection, row), "member", member, missing)


def _check_shared(row: Record) -> None:
    if row["visibility"] != "shared":
        raise ForbiddenError(f"Only shared images have members, and this one is {row['visibility']}.")
