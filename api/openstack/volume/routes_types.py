# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Volume types: which there are, what is said of them, who may use them."""

from __future__ import annotations

import typing as t

from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.catalog import volume_types
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.catalog.volume_types import VolumeType
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.volumes import volume_access

from ...web import policy, validation
from ...web.context import current
from ...web.errors import BadRequestError, as_bad_request
from ...web.ledger import reading_ledger, writing_ledger
from . import listing, schemas, views
from .blueprint import Answer, Record, in_cinders_words, volume


@volume.get("/<project>/types", strict_slashes=True)
@policy.allows("volume:read")
def list_types() -> Answer:
    caller = current()
    with reading_ledger() as connection:
        rows = volume_access.types_seen(connection, caller.project, caller.is_admin)
    asked = request.args.get("is_public", "").lower()
    if asked in ("true", "false"):
        rows = [row for row in rows if row.is_public == (asked == "true")]
    return listing.page("volume_types", rows, views.volume_type, views.volume_type), 200


@volume.get("/<project>/types/<number>")
@policy.allows("volume:read")
def show_type(number: str) -> Answer:
    with reading_ledger() as connection:
        return {"volume_type": views.volume_type(_seen(connection, number))}, 200


@volume.post("/<project>/types", strict_slashes=True)
@policy.allows("volume:admin")
def create_type() -> Answer:
    body = validation.body(schemas.NEW_TYPE)["volume_type"]
    wanted = {
        "name": body["name"],
        "description": body.get("description"),
        "extra_specs": body.get("extra_specs") or {},
        "is_public": schemas.truth(body.get("os-volume-type-access:is_public", True)),
    }
    with writing_ledger() as connection, as_bad_request():
        return {"volume_type": views.new_volume_type(volume_types.create_type(connection, wanted))}, 200


@volume.put("/<project>/types/<number>")
@policy.allows("volume:admin")
def update_type(number: str) -> Answer:
    body = validation.body(schemas.TYPE_CHANGES)["volume_type"]
    wanted = {key: value for key, value in body.items() if value is not None}
    if "is_public" in wanted:
        wanted["is_public"] = schemas.truth(wanted["is_public"])
    with writing_ledger() as connection, as_bad_request():
        _seen(connection, number)
        return {"volume_type": views.changed_volume_type(volume_types.change_type(connection, number, wanted))}, 200


@volume.delete("/<project>/types/<number>")
@policy.allows("volume:admin")
def delete_type(number: str) -> Answer:
    with writing_ledger() as connection, in_cinders_words():
        _seen(connection, number)
        volume_types.delete_type(connection, number)
    return "", 202


# --- Extra specs ----------------------------------------------------------------------------------------------------


@volume.get("/<project>/types/<number>/extra_specs")
@policy.allows("volume:read")
def list_specs(number: str) -> Answer:
    with reading_ledger() as connection:
        return {"extra_specs": _seen(connection, number).extra_specs}, 200


@volume.post("/<project>/types/<number>/extra_specs")
@policy.allows("volume:admin")
def add_specs(number: str) -> Answer:
    schema = {"type": "object", "properties": {"extra_specs": schemas.SPECS}, "required": ["extra_specs"]}
    said = validation.body(schema)["extra_specs"]
    _specify(number, lambda old: {**old, **said})
    return {"extra_specs": said}, 200  # as in Cinder, without those that were there before


@volume.get("/<project>/types/<number>/extra_specs/<key>")
@policy.allows("volume:read")
def show_spec(number: str, key: str) -> Answer:
    with reading_ledger() as connection:
        return {key: _spec(_seen(connection, number).extra_specs, key)}, 200


@volume.put("/<project>/types/<number>/extra_specs/<key>")
@policy.allows("volume:admin")
def set_spec(number: str, key: str) -> Answer:
    def changed(old: Record) -> Record:
        said = validation.body({**schemas.SPECS, "maxProperties": 1})
        if key not in said:
            raise BadRequestError("Request body and URI mismatch")
        return {**old, **said}

    return {key: _specify(number, changed)[key]}, 200


@volume.delete("/<project>/types/<number>/extra_specs/<key>")
@policy.allows("volume:admin")
def remove_spec(number: str, key: str) -> Answer:
    def changed(old: Record) -> Record:
        _spec(old, key)
        return {name: value for name, value in old.items() if name != key}

    _specify(number, changed)
    return "", 202


def _specify(number: str, changed: t.Callable[[Record], Record]) -> Record:
    with writing_ledger() as connection, as_bad_request():
        specs = changed(_seen(connection, number).extra_specs)
        return t.cast("Record", volume_types.change_type(connection, number, {"extra_specs": specs}).extra_specs)


def _spec(specs: Record, key: str) -> t.Any:
    if key not in specs:
        raise NotFoundError(f"Volume Type has no extra spec with key {key[:60]}.")
    return specs[key]


# --- Access ---------------------------------------------------------------------------------------------------------

PROJECT: Record = {"type": "string", "pattern": "^[0-9a-fA-F-]{1,36}$"}
ACCESS: Record = {
    "type": "object",
    "properties": {
        name: {"type": "object", "properties": {"project": PROJECT}, "required": ["project"]}
        for name in ("addProjectAccess", "removeProjectAccess")
    },
    "minProperties": 1,
    "maxProperties": 1,
    "additionalProperties": False,
}


@volume.get("/<project>/types/<number>/os-volume-type-access")
@policy.allows("volume:admin")
def list_access(number: str) -> Answer:
    with reading_ledger() as connection:
        row = _seen(connection, number)
        if row.is_public:
            raise NotFoundError("Access list not available for public volume types.")
        projects = volume_access.projects_of(connection, row.id)
    access = [{"volume_type_id": row.id, "project_id": project} for project in projects]
    return {"volume_type_access": access}, 200


@volume.post("/<project>/types/<number>/action")
@policy.allows("volume:admin")
def change_access(number: str) -> Answer:
    ((name, said),) = validation.body(ACCESS).items()
    with writing_ledger() as connection, as_bad_request():
        row = _seen(connection, number)
        change = volume_access.add if name == "addProjectAccess" else volume_access.remove
        change(connection, row, said["project"])
    return "", 202


def _seen(connection: Connection, number: str) -> VolumeType:
    caller = current()
    return volume_access.type_seen(connection, number, caller.project, caller.is_admin)
