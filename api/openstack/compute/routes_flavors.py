# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Flavors and their extra specs. Everybody looks at the public ones; administrators make and remove them."""

from __future__ import annotations

import typing as t
import uuid

from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.catalog import flavor_records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection

from ...web import policy, validation
from ...web.context import current
from ...web.errors import BadRequestError, as_bad_request
from ...web.ledger import reading_ledger, writing_ledger
from . import paging, views_flavors
from .blueprint import Answer, compute
from .microversions import microversion, since
from .servers.schemas import BOOLEAN, TRUE
from .servers.views import Lens

Record = dict[str, t.Any]
Schema = dict[str, t.Any]


LARGEST = 2**31 - 1
SORTABLE = {
    "flavorid": "flavorid",
    "name": "name",
    "memory_mb": "memory_mb",
    "vcpus": "vcpus",
    "root_gb": "root_gb",
    "ephemeral_gb": "ephemeral_gb",
    "swap": "swap_mb",
    "id": "id",
    "is_public": "is_public",
    "description": "description",
    "created_at": "id",
    "updated_at": "id",
    "disabled": "id",
    "rxtx_factor": "id",
    "vcpu_weight": "id",
}


def _size(low: int) -> Schema:
    return {
        "anyOf": [
            {"type": "integer", "minimum": low, "maximum": LARGEST},
            {"type": "string", "pattern": "^[0-9]{1,9}$" if low == 0 else "^0*[1-9][0-9]{0,8}$"},
        ]
    }


DESCRIPTION: Schema = {"type": ["string", "null"], "maxLength": 65535}
# Nova's: no blank at either end
ID: Schema = {
    "anyOf": [
        {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^(?! )[a-zA-Z0-9. _-]*[a-zA-Z0-9._-]$"},
        {"type": "integer", "minimum": 0, "maximum": LARGEST},
        {"type": "null"},
    ]
}
SPECS: Schema = {
    "type": "object",
    "propertyNames": {"pattern": "^[a-zA-Z0-9-_:. ]{1,255}$"},
    "additionalProperties": {"type": ["string", "number"], "maxLength": 255},
    "maxProperties": 128,
}


def _create_schema() -> Schema:
    properties: Schema = {
        "name": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": r"^\S(.*\S)?$"},
        "id": ID,
        "ram": _size(1),
        "vcpus": _size(1),
        "disk": _size(0),
        "swap": _size(0),
        "OS-FLV-EXT-DATA:ephemeral": _size(0),
        "rxtx_factor": {"type": ["number", "string"], "maxLength": 20},
        "os-flavor-access:is_public": BOOLEAN,
    }
    if microversion() >= (2, 55):
        properties["description"] = DESCRIPTION
    return _wrapped("flavor", properties, ["name", "ram", "vcpus", "disk"])


def _wrapped(name: str, properties: Schema, required: t.Sequence[str] = ()) -> Schema:
    one = {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}
    return {"type": "object", "properties": {name: one}, "required": [name], "additionalProperties": False}


def lens() -> Lens:
    return Lens(microversion(), current().is_admin, request.url_root)


# --- Flavors --------------------------------------------------------------------------------------------------------


@compute.get("/flavors")
@policy.allows("compute:flavors:read")
def list_flavors() -> Answer:
    return _list(views_flavors.brief)


@compute.get("/flavors/detail")
@policy.allows("compute:flavors:read")
def list_flavors_in_detail() -> Answer:
    return _list(views_flavors.detail)


def _list(view: t.Callable[[Record, Lens], Record]) -> Answer:
    args, caller = request.args, current()
    with reading_ledger() as connection:
        rows = flavor_records.flavors_seen(connection, caller.is_admin, caller.project)
    memory, disk = paging.number("minRam"), paging.number("minDisk")
    rows = [row for row in rows if row["memory_mb"] >= memory and row["root_gb"] >= disk]
    public = _is_public(args.get("is_public"), caller.is_admin)
    if public is not None:
        rows = [row for row in rows if bool(row["is_public"]) == public or (public and row["granted"])]
    key, direction = args.get("sort_key", "flavorid"), args.get("sort_dir", "asc")
    if key not in SORTABLE:
        raise BadRequestError(f"Invalid input for query parameters sort_key. Value: {key[:60]}.")
    if direction not in ("asc", "desc"):
        raise BadRequestError(f"Invalid input for query parameters sort_dir. Value: {direction[:60]}.")
    rows.sort(key=lambda row: (row[SORTABLE[key]] is not None, row[SORTABLE[key]] or 0), reverse=direction == "desc")
    shown, links = paging.page(rows, lambda row: row["flavorid"], "flavor")
    looking = lens()
    body: Record = {"flavors": [view(row, looking) for row in shown]}
    if links:
        body["flavors_links"] = links
    return body, 200


def _is_public(text: str | None, admin: bool) -> bool | None:
    """Public ones for everybody; administrators may ask for others, or with None for all."""
    if not admin or text is None:
        return True
    if text.lower() == "none":
        return None
    if text.lower() not in ("true", "false", "1", "0", "t", "f", "yes", "no", "on", "off", "y", "n"):
        raise BadRequestError(f"Invalid is_public filter [{text[:60]}]")
    return text.lower() in ("true", "1", "t", "yes", "on", "y")


@compute.get("/flavors/<flavor_id>")
@policy.allows("compute:flavors:read")
def show_flavor(flavor_id: str) -> Answer:
    with reading_ledger() as connection:
        return {"flavor": views_flavors.detail(_flavor(connection, flavor_id), lens())}, 200


@compute.post("/flavors")
@policy.allows("compute:flavors:write")
def create_flavor() -> Answer:
    wanted = validation.body(_create_schema())["flavor"]
    number = wanted.get("id")
    number = str(uuid.uuid4()) if number in (None, "auto") else str(number)
    record = {
        "flavorid": number,
        "name": wanted["name"],
        "vcpus": int(wanted["vcpus"]),
        "memory_mb": int(wanted["ram"]),
        "root_gb": int(wanted["disk"]),
        "ephemeral_gb": int(wanted.get("OS-FLV-EXT-DATA:ephemeral", 0)),
        "swap_mb": int(wanted.get("swap", 0)),
        "is_public": wanted.get("os-flavor-access:is_public", True) in TRUE,
        "description": wanted.get("description"),
    }
    with writing_ledger() as connection, as_bad_request():
        flavor_records.create_flavor(connection, record)
        return {"flavor": views_flavors.detail(_flavor(connection, number), lens())}, 200


@compute.put("/flavors/<flavor_id>")
@policy.allows("compute:flavors:write")
@since("2.55")
def update_flavor(flavor_id: str) -> Answer:
    wanted = validation.body(_wrapped("flavor", {"description": DESCRIPTION}, ["description"]))["flavor"]
    with writing_ledger() as connection:
        flavor_records.describe_flavor(connection, _flavor(connection, flavor_id)["name"], wanted["description"])
        return {"flavor": views_flavors.detail(_flavor(connection, flavor_id), lens())}, 200


@compute.delete("/flavors/<flavor_id>")
@policy.allows("compute:flavors:write")
def delete_flavor(flavor_id: str) -> Answer:
    with writing_ledger() as connection:
        flavor_records.delete_flavor(connection, _flavor(connection, flavor_id)["name"])
    return "", 202


@compute.get("/flavors/<flavor_id>/os-flavor-access")
@policy.allows("compute:flavors:write")
def list_access(flavor_id: str) -> Answer:
    """The projects that a private flavor was given to; administrators see it anyway."""
    with reading_ledger() as connection:
        row = _flavor(connection, flavor_id)
        if row["is_public"]:
            raise NotFoundError("Access list not available for public flavors.")
        return _access(connection, row), 200


@compute.post("/flavors/<flavor_id>/action")
@policy.allows("compute:flavors:write")
def change_access(flavor_id: str) -> Answer:
    tenant: Schema = {"type": "string", "minLength": 1, "maxLength": 255}
    one = {"type": "object", "properties": {"tenant": tenant}, "required": ["tenant"], "additionalProperties": False}
    wanted = validation.body(
        {
            "type": "object",
            "properties": {"addTenantAccess": one, "removeTenantAccess": one},
            "minProperties": 1,
            "maxProperties": 1,
            "additionalProperties": False,
        }
    )
    ((action, given),) = wanted.items()
    project = given["tenant"]
    with writing_ledger() as connection:
        row = _flavor(connection, flavor_id)
        if row["is_public"]:
            raise ConflictError("Can not add or remove access to a public flavor.")
        if action == "addTenantAccess":
            try:
                added = flavor_records.grant_access(connection, row["id"], project)
            except NotFoundError as error:
                raise BadRequestError(str(error)) from error
            if not added:
                raise ConflictError(f"Flavor access already exists for flavor {flavor_id} and project {project[:64]}")
        elif not flavor_records.revoke_access(connection, row["id"], project):
            raise NotFoundError(f"Flavor access not found for {flavor_id} / {project[:64]} combination.")
        return _access(connection, row), 200


def _access(connection: Connection, row: Record) -> Record:
    found = flavor_records.access_of(connection, row["id"])
    return {"flavor_access": [{"flavor_id": row["flavorid"], "tenant_id": project} for project in found]}


def _flavor(connection: Connection, flavor_id: str) -> Record:
    for row in flavor_records.flavors_seen(connection, current().is_admin, current().project):
        if row["flavorid"] == flavor_id:
            return row
    raise NotFoundError(f"Flavor {flavor_id[:255]} could not be found.")


# --- Extra specs ----------------------------------------------------------------------------------------------------


@compute.get("/flavors/<flavor_id>/os-extra_specs")
@policy.allows("compute:flavors:read")
def list_specs(flavor_id: str) -> Answer:
    with reading_ledger() as connection:
        return {"extra_specs": _flavor(connection, flavor_id)["extra_specs"]}, 200


@compute.get("/flavors/<flavor_id>/os-extra_specs/<key>")
@policy.allows("compute:flavors:read")
def show_spec(flavor_id: str, key: str) -> Answer:
    with reading_ledger() as connection:
        return {key: _spec(_flavor(connection, flavor_id), key)}, 200


@compute.post("/flavors/<flavor_id>/os-extra_specs")
@policy.allows("compute:flavors:write")
def create_specs(flavor_id: str) -> Answer:
    schema = {"type": "object", "properties": {"extra_specs": SPECS}, "required": ["extra_specs"]}
    wanted = validation.body({**schema, "additionalProperties": False})["extra_specs"]
    return {"extra_specs": _write(flavor_id, wanted)}, 200


@compute.put("/flavors/<flavor_id>/os-extra_specs/<key>")
@policy.allows("compute:flavors:write")
def update_spec(flavor_id: str, key: str) -> Answer:
    wanted = validation.body({**SPECS, "minProperties": 1, "maxProperties": 1})
    if key not in wanted:
        raise BadRequestError("Request body and URI mismatch")
    return _write(flavor_id, wanted), 200


@compute.delete("/flavors/<flavor_id>/os-extra_specs/<key>")
@policy.allows("compute:flavors:write")
def delete_spec(flavor_id: str, key: str) -> Answer:
    with writing_ledger() as connection:
        row = _flavor(connection, flavor_id)
        _spec(row, key)
        kept = {name: value for name, value in row["extra_specs"].items() if name != key}
        flavor_records.write_specs(connection, row["name"], kept)
    return "", 200


def _write(flavor_id: str, wanted: Record) -> Record:
    """Add these specs, and return them as they are now."""
    with writing_ledger() as connection, as_bad_request():
        row = _flavor(connection, flavor_id)
        flavor_records.write_specs(connection, row["name"], {**row["extra_specs"], **wanted})
        specs = _flavor(connection, flavor_id)["extra_specs"]
    return {key: specs[key] for key in wanted}


def _spec(row: Record, key: str) -> str:
    if key not in row["extra_specs"]:
        raise NotFoundError(f"Flavor {row['flavorid']} has no extra specs with key {key[:255]}.")
    return str(row["extra_specs"][key])
