# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Flavors and their extra specs. Everybody looks at the public ones; administrators make and remove them."""

from __future__ import annotations

import typing as t

from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.catalog import flavors
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.catalog.flavor_records import (
    NewFlavor,
    SeenFlavor,
    access_of,
    flavors_seen,
)

from ...web import policy
from ...web.bodies import Answer, Body, Record, the_one
from ...web.context import current
from ...web.errors import BadRequestError, in_words
from ...web.listing import ordered
from ...web.maps import Change, Map, Texts
from ...web.schemas import NAME, Schema, an_object, size, wrapped
from ...web.services import reads, takes, writes, writes_checked
from ...work.calls import calling
from .blueprint import CLEAN, NOVA, compute, from_version, known, microversion, page, since
from .servers.schemas import BOOLEAN, FALSE, TRUE
from .servers.views import RenderContext, render_context

SORTABLE = {
    **{name: name for name in ("flavorid", "name", "memory_mb", "vcpus", "root_gb", "ephemeral_gb", "id", "is_public")},
    **dict.fromkeys(("created_at", "updated_at", "disabled", "rxtx_factor", "vcpu_weight"), "id"),
    "description": "description",
    "swap": "swap_mb",
}
DESCRIPTION: Schema = {"type": ["string", "null"], "maxLength": 65535}
# Nova's: no blank at either end
ID: Schema = {
    "anyOf": [
        {**NAME, "pattern": "^(?! )[a-zA-Z0-9. _-]*[a-zA-Z0-9._-]$"},
        {"type": "integer", "minimum": 0, "maximum": 2**31 - 1},
        {"type": "null"},
    ]
}
SPECS: Schema = {
    "type": "object",
    "propertyNames": {"pattern": "^[a-zA-Z0-9-_:. ]{1,255}$"},
    "additionalProperties": {"type": ["string", "number"], "maxLength": 255},
    "maxProperties": 128,
}
TENANT = an_object({"tenant": NAME}, ["tenant"])
ACCESS = an_object({"addTenantAccess": TENANT, "removeTenantAccess": TENANT}, minProperties=1, maxProperties=1)


def _create_schema() -> Schema:
    properties: Schema = {
        "name": {**NAME, "pattern": r"^\S(.*\S)?$"},
        "id": ID,
        "ram": size(1),
        "vcpus": size(1),
        "disk": size(0),
        "swap": size(0),
        "OS-FLV-EXT-DATA:ephemeral": size(0),
        "rxtx_factor": {"type": ["number", "string"], "maxLength": 20},
        "os-flavor-access:is_public": BOOLEAN,
        **from_version((2, 55), {"description": DESCRIPTION}),
    }
    return wrapped("flavor", properties, ["name", "ram", "vcpus", "disk"])


# --- Flavors --------------------------------------------------------------------------------------------------------


def brief(row: SeenFlavor, context: RenderContext) -> Body:
    """An item of GET /flavors."""
    return {
        "id": row["flavorid"],
        "name": row["name"],
        "links": context.links("flavors", row["flavorid"]),
        **from_version((2, 55), {"description": row["description"]}),
    }


def detail(row: SeenFlavor, context: RenderContext) -> Body:
    """An item of GET /flavors/detail; also GET /flavors/{id}."""
    swap = row["swap_mb"]
    return {
        **brief(row, context),
        "vcpus": row["vcpus"],
        "ram": row["memory_mb"],
        "disk": row["root_gb"],
        "swap": swap if swap or microversion() >= (2, 75) else "",
        "OS-FLV-EXT-DATA:ephemeral": row["ephemeral_gb"],
        "OS-FLV-DISABLED:disabled": False,
        "os-flavor-access:is_public": bool(row["is_public"]),
        "rxtx_factor": 1.0,
        **from_version((2, 61), {"extra_specs": row["extra_specs"]}),
    }


FLAVOR_QUERY = known(CLEAN, "limit marker is_public minRam minDisk sort_key sort_dir")


@compute.get("/flavors", "compute:flavors:read", defaults={"view": brief})
@compute.get("/flavors/detail", "compute:flavors:read", FLAVOR_QUERY, reads, defaults={"view": detail})
def list_flavors(connection: Connection, view: t.Callable[[SeenFlavor, RenderContext], Body]) -> Answer:
    args, caller, private = request.args, current(), policy.allowed("compute:flavors:private")
    rows = flavors_seen(connection, private, caller.project)
    memory, disk = NOVA.whole("minRam", 0), NOVA.whole("minDisk", 0)
    rows = [row for row in rows if row["memory_mb"] >= memory and row["root_gb"] >= disk]
    public = _is_public(args.get("is_public"), private)
    if public is not None:
        rows = [row for row in rows if bool(row["is_public"]) == public or (public and row["granted"])]
    order = NOVA.checked([(args.get("sort_key", "flavorid"), args.get("sort_dir", "asc"))], SORTABLE)
    rows = ordered(rows, [(SORTABLE[key], direction) for key, direction in order])
    context = render_context()
    return page("flavors", rows, lambda row: view(row, context), "flavorid", "flavor"), 200


def _is_public(text: str | None, private: bool) -> bool | None:
    """Public ones for everybody; administrators may ask for others, or with None for all."""
    if not private or text is None:
        return True
    if text.lower() == "none":
        return None
    if text.lower() not in (*TRUE, *FALSE):
        raise BadRequestError(f"Invalid is_public filter [{text[:60]}]")
    return text.lower() in TRUE


@compute.get("/flavors/<flavor_id>", "compute:flavors:read", reads)
def show_flavor(connection: Connection, flavor_id: str) -> Answer:
    return {"flavor": detail(_flavor(connection, flavor_id), render_context())}, 200


@compute.post("/flavors", "compute:flavors:write", takes(_create_schema), writes_checked)
def create_flavor(connection: Connection, body: Record) -> Answer:
    number = body.get("id")
    new_flavor: NewFlavor = {
        "flavorid": None if number in (None, "auto") else str(number),
        "name": body["name"],
        "vcpus": int(body["vcpus"]),
        "memory_mb": int(body["ram"]),
        "root_gb": int(body["disk"]),
        "ephemeral_gb": int(body.get("OS-FLV-EXT-DATA:ephemeral", 0)),
        "swap_mb": int(body.get("swap", 0)),
        "is_public": body.get("os-flavor-access:is_public", True) in TRUE,
        "description": body.get("description"),
    }
    return {"flavor": detail(flavors.create(calling(connection), new_flavor), render_context())}, 200


@compute.put(
    "/flavors/<flavor_id>",
    "compute:flavors:write",
    since("2.55"),
    takes(wrapped("flavor", {"description": DESCRIPTION}, ["description"])),
    writes,
)
def update_flavor(connection: Connection, body: Record, flavor_id: str) -> Answer:
    row = flavors.describe(calling(connection), _flavor(connection, flavor_id), body["description"])
    return {"flavor": detail(row, render_context())}, 200


@compute.delete("/flavors/<flavor_id>", "compute:flavors:write", writes)
def delete_flavor(connection: Connection, flavor_id: str) -> Answer:
    flavors.delete(calling(connection), _flavor(connection, flavor_id))
    return "", 202


@compute.get("/flavors/<flavor_id>/os-flavor-access", "compute:flavors:write", reads)
def list_access(connection: Connection, flavor_id: str) -> Answer:
    """The projects that a private flavor was given to; administrators see it anyway."""
    row = _flavor(connection, flavor_id)
    if row["is_public"]:
        raise NotFoundError("Access list not available for public flavors.")
    return _access(connection, row), 200


@compute.post("/flavors/<flavor_id>/action", "compute:flavors:write", takes(ACCESS), writes)
def change_access(connection: Connection, body: Record, flavor_id: str) -> Answer:
    ((action, access),) = body.items()
    row = _flavor(connection, flavor_id)
    if action == "addTenantAccess":
        with in_words({NotFoundError: BadRequestError}):
            flavors.grant(calling(connection), row, access["tenant"])
    else:
        flavors.revoke(calling(connection), row, access["tenant"])
    return _access(connection, row), 200


def _access(connection: Connection, row: SeenFlavor) -> Record:
    projects = access_of(connection, row["id"])
    return {"flavor_access": [{"flavor_id": row["flavorid"], "tenant_id": project} for project in projects]}


def _flavor(connection: Connection, flavor_id: str) -> SeenFlavor:
    rows = flavors_seen(connection, policy.allowed("compute:flavors:private"), current().project)
    return the_one(rows, "flavorid", flavor_id, NotFoundError(f"Flavor {flavor_id[:255]} could not be found."))


# --- Extra specs ----------------------------------------------------------------------------------------------------


def _write(connection: Connection, change: Change, before: Texts, flavor_id: str) -> Texts:
    row = _flavor(connection, flavor_id)
    return flavors.write_specs(calling(connection), row, change.of)["extra_specs"]


def _specs(connection: Connection, flavor_id: str) -> Texts:
    return _flavor(connection, flavor_id)["extra_specs"]


Map(
    name="flavor_specs",
    path="/flavors/<flavor_id>/os-extra_specs",
    reads="compute:flavors:read",
    writes="compute:flavors:write",
    word="extra_specs",
    schema=SPECS,
    find=_specs,
    write=_write,
    item=None,
    missing="Flavor {0} has no extra specs with key {key}.",
    deleted=200,
).put_into(compute)
