# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Images as clients describe them: anew, or by JSON patches (RFC 6902: add, replace and remove)."""

from __future__ import annotations

import typing as t

from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.catalog.images import UNTIL_DATA
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.catalog.image_views import (
    NewImage,
    SeenImage,
)
from ansible_collections.novalite.cloud.plugins.module_utils._rules.noun_options import IMAGE
from ansible_collections.novalite.cloud.plugins.module_utils._rules.options import new_values

from ...web import validation
from ...web.bodies import Json, Record
from ...web.context import current
from ...web.errors import BadRequestError, ForbiddenError, UnsupportedMediaTypeError
from ...web.schemas import TEXT, Schema, a_list, an_object
from .views import BASE, READ_ONLY

MOST = 200  # changes in one request
PATH: Schema = {"type": "string", "pattern": "^/", "maxLength": 512}
OPERATIONS = ("add", "replace", "remove")
PATCH = a_list(an_object({"op": {"enum": list(OPERATIONS)}, "path": PATH, "value": {}}, ["op", "path"]), MOST)
# [{"replace": "/name", "value": "x"}], the form of version 2.0
OLD_PATCH = a_list(an_object({**dict.fromkeys(OPERATIONS, PATH), "value": {}}), MOST)
PATCH_TYPES = ("application/openstack-images-v2.1-json-patch", "application/openstack-images-v2.0-json-patch")
# what can be said of what every image has: our field
ALIKE = ("name", "tags", "protected", "os_hidden", "visibility", "owner", *UNTIL_DATA)
FIELDS = {"min_disk": "min_disk_gb", "min_ram": "min_ram_mb", **{name: name for name in ALIKE}}
COMMAND_LINE: Schema = {"type": "string", "maxLength": 2048}
RESERVED = "os_glance"
OWN = an_object({name: rules for name, rules in BASE.items() if name not in READ_ONLY}, more=True, maxProperties=200)


def new_image() -> NewImage:
    """Return a new image from the request's body. Raises BadRequestError for what cannot be, ForbiddenError for what
    clients do not say."""
    body = validation.body({"type": "object"})
    for name in body:
        if name in READ_ONLY or name.startswith(RESERVED):
            raise ForbiddenError(f"Attribute '{name[:60]}' is read-only.")
    validation.check(body, OWN)
    new = new_values(IMAGE)
    row: Record = {
        "id": (body["id"].lower() if "id" in body else None),
        "owner": current().project,
        **{name: new[name] for name in ("cmdline", "min_disk_gb", "min_ram_mb", "properties")},
        "name": None,
        **dict.fromkeys(("disk_format", "container_format"), ""),
        **dict.fromkeys(("protected", "os_hidden"), False),
        "visibility": "shared",
        "tags": [],
    }
    for name, value in body.items():
        if name != "id":
            _say(row, name, value)
    return t.cast("NewImage", row)  # as the schema says


def changes() -> list[Record]:
    """The changes in the request's body. Raises BadRequestError unless it is a list of them."""
    if request.mimetype not in PATCH_TYPES:
        raise UnsupportedMediaTypeError(f"send a JSON patch as {PATCH_TYPES[0]}")
    value = validation.read_json("JSON patch")
    validation.check(value, PATCH if request.mimetype == PATCH_TYPES[0] else OLD_PATCH)
    operations = t.cast("list[Record]", value)  # as the schema says
    return operations if request.mimetype == PATCH_TYPES[0] else [_new_form(change) for change in operations]


def _new_form(change: Record) -> Record:
    named = [op for op in OPERATIONS if op in change]
    if len(named) != 1:
        raise BadRequestError("Each change needs one operation: add, replace or remove")
    return {"op": named[0], "path": change[named[0]], **({"value": change["value"]} if "value" in change else {})}


def applied(row: SeenImage, shown: Record, requested_changes: t.Iterable[Record]) -> SeenImage:
    """`row` after these changes; `shown` is how its owner saw it.

    Raises ForbiddenError for what cannot be changed, ConflictError for the replacement of what is not there.
    """
    after: Record = {**row, "properties": dict(row["properties"])}
    for change in requested_changes:
        op, name = change["op"], _name(change["path"])
        if op != "remove" and "value" not in change:
            raise BadRequestError(f"Operation '{op}' needs a value.")
        if name == "locations" or name.startswith(("locations/", RESERVED)) or name in READ_ONLY or name == "id":
            raise ForbiddenError(f"Attribute '{name[:60]}' is read-only.")
        if name in FIELDS:
            if op == "remove":
                raise ForbiddenError(f"Property '{name}' may not be removed.")
            if change["value"] != shown[name]:
                validation.check(change["value"], BASE[name], f"value of {name}")
                _say(after, name, change["value"])
        else:
            if op != "add" and name not in after["properties"] and not (name == "os_command_line" and row["cmdline"]):
                raise ConflictError(f"Property {name[:60]} does not exist.")
            _say(after, name, None if op == "remove" else change["value"])
    return t.cast("SeenImage", after)  # as the schemas say


def _say(row: Record, name: str, value: Json) -> None:
    """Put one attribute, or property (None: take it away), into a record."""
    if name == "os_command_line":
        if value is not None:
            validation.check(value, COMMAND_LINE, f"value of {name}")
        row["cmdline"] = value or ""
    elif name not in FIELDS:
        if value is None:
            row["properties"].pop(name, None)
            return
        validation.check(value, TEXT, f"value of {name[:60]}")
        row["properties"][name] = value
    else:
        row[FIELDS[name]] = value if name == "name" or value is not None else ""


def _name(path: str) -> str:
    """`/a~1b` names a/b (RFC 6901). Nothing here has parts that have names of their own."""
    name = path[1:]
    if name.startswith("locations/"):
        return name
    if not name or "/" in name:
        raise BadRequestError(f"Invalid JSON pointer for this resource: '{path[:60]}'")
    return name.replace("~1", "/").replace("~0", "~")
