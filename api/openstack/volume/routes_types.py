# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Volume types: which there are, what is said of them, who may use them."""

from __future__ import annotations

from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.catalog import volume_types
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.catalog.volume_type_records import (
    VolumeType,
    access_of,
    type_seen,
    types_seen,
)

from ...web import policy
from ...web.bodies import Answer, Record
from ...web.context import current
from ...web.errors import BadRequestError
from ...web.maps import Change, Map, Texts
from ...web.schemas import Schema, an_object
from ...web.services import reads, takes, writes_checked
from ...work.calls import calling
from . import listing, schemas, views
from .blueprint import cinder_writes, volume


@volume.get("/<project>/types", "volume:read", reads, strict_slashes=True)
def list_types(connection: Connection) -> Answer:
    caller = current()
    rows = types_seen(connection, caller.project, policy.allowed("volume:private_types"))
    is_public = request.args.get("is_public", "").lower()
    if is_public in ("true", "false"):
        rows = [row for row in rows if row.is_public == (is_public == "true")]
    body = listing.page("volume_types", rows, views.volume_type, views.volume_type)
    if links := body.pop("volume_types_links", None):
        body["volume_type_links"] = links  # Cinder's name of them
    return body, 200


@volume.get("/<project>/types/<type_id>", "volume:read", reads)
def show_type(connection: Connection, type_id: str) -> Answer:
    return {"volume_type": views.volume_type(_seen(connection, type_id))}, 200


@volume.post("/<project>/types", "volume:admin", takes(schemas.NEW_TYPE), writes_checked, strict_slashes=True)
def create_type(connection: Connection, body: Record) -> Answer:
    type_values = {
        "name": body["name"],
        "description": body.get("description"),
        "extra_specs": body.get("extra_specs") or {},
        "is_public": schemas.truth(body.get("os-volume-type-access:is_public", True)),
    }
    return {"volume_type": views.new_volume_type(volume_types.create(calling(connection), type_values))}, 200


@volume.put("/<project>/types/<type_id>", "volume:admin", takes(schemas.TYPE_CHANGES), writes_checked)
def update_type(connection: Connection, body: Record, type_id: str) -> Answer:
    type_values = {key: value for key, value in body.items() if value is not None}
    if "is_public" in type_values:
        type_values["is_public"] = schemas.truth(type_values["is_public"])
    row = volume_types.update(calling(connection), _seen(connection, type_id), type_values)
    return {"volume_type": views.changed_volume_type(row)}, 200


@volume.delete("/<project>/types/<type_id>", "volume:admin", cinder_writes)
def delete_type(connection: Connection, type_id: str) -> Answer:
    volume_types.delete(calling(connection), _seen(connection, type_id))
    return "", 202


ENCRYPTION = an_object({"encryption": {"type": "object"}}, ["encryption"])

# --- Extra specs ----------------------------------------------------------------------------------------------------


def _specify(connection: Connection, change: Change, before: Texts, number: str) -> Texts:
    specs = {"extra_specs": change.of(before)}
    return volume_types.update(calling(connection), _seen(connection, number), specs).extra_specs


Map(
    name="volume_type_specs",
    path="/<project>/types/<type_id>/extra_specs",
    reads="volume:read",
    writes="volume:admin",
    word="extra_specs",
    schema=schemas.SPECS,
    find=lambda connection, number: _seen(connection, number).extra_specs,
    write=_specify,
    item=None,
    missing="Volume Type has no extra spec with key {key}.",
    deleted=202,
    more=True,
).put_into(volume)


@volume.get("/<project>/types/<type_id>/encryption", "volume:admin", reads)
def show_encryption(connection: Connection, type_id: str) -> Answer:
    """Show a type's encryption. No type encrypts its volumes: as in Cinder, an empty body says so."""
    _seen(connection, type_id)
    return {}, 200


@volume.post("/<project>/types/<type_id>/encryption", "volume:admin", takes(ENCRYPTION), reads)
def create_encryption(connection: Connection, _body: Record, type_id: str) -> Answer:
    _seen(connection, type_id)
    raise BadRequestError("Volumes are not encrypted here: a type cannot have an encryption.")


# --- Access ---------------------------------------------------------------------------------------------------------

PROJECT: Schema = {"type": "string", "pattern": "^[0-9a-fA-F-]{1,36}$"}
ACCESS = an_object(
    dict.fromkeys(("addProjectAccess", "removeProjectAccess"), an_object({"project": PROJECT}, ["project"], more=True)),
    minProperties=1,
    maxProperties=1,
)


@volume.get("/<project>/types/<type_id>/os-volume-type-access", "volume:admin", reads)
def list_access(connection: Connection, type_id: str) -> Answer:
    row = _seen(connection, type_id)
    if row.is_public:
        raise NotFoundError("Access list not available for public volume types.")
    projects = access_of(connection, row.id)
    return {"volume_type_access": [{"volume_type_id": row.id, "project_id": project} for project in projects]}, 200


@volume.post("/<project>/types/<type_id>/action", "volume:admin", takes(ACCESS), writes_checked)
def change_access(connection: Connection, body: Record, type_id: str) -> Answer:
    ((name, access),) = body.items()
    change = volume_types.grant if name == "addProjectAccess" else volume_types.revoke
    change(calling(connection), _seen(connection, type_id), access["project"])
    return "", 202


def _seen(connection: Connection, number: str) -> VolumeType:
    caller = current()
    return type_seen(connection, number, caller.project, policy.allowed("volume:private_types"))
