# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Changes to an image as clients write them: JSON patches (RFC 6902, of which Glance takes add, replace and remove)."""

from __future__ import annotations

import json
import typing as t

from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError

from .. import validation
from ..errors import BadRequestError, ForbiddenError
from .views import BASE, READ_ONLY

Record = dict[str, t.Any]

MOST = 200  # changes in one request
PATCH: dict[str, t.Any] = {
    "type": "array",
    "maxItems": MOST,
    "items": {
        "type": "object",
        "properties": {
            "op": {"enum": ["add", "replace", "remove"]},
            "path": {"type": "string", "pattern": "^/", "maxLength": 512},
            "value": {},
        },
        "required": ["op", "path"],
        "additionalProperties": False,
    },
}
TAG: dict[str, t.Any] = {"type": "string", "minLength": 1, "maxLength": 255}
TAGS: dict[str, t.Any] = {"type": "array", "maxItems": 128, "items": TAG}
# what can be changed of what every image has: our field and the values that it takes
FIELDS: dict[str, tuple[str, dict[str, t.Any]]] = {
    "name": ("name", {"type": "string", "minLength": 1, "maxLength": 255}),
    "min_disk": ("min_disk_gb", {"type": "integer", "minimum": 0, "maximum": 2**31 - 1}),
    "min_ram": ("min_ram_mb", {"type": "integer", "minimum": 0, "maximum": 2**31 - 1}),
    "tags": ("tags", TAGS),
    "protected": ("protected", {"type": "boolean"}),
}
PROPERTY: dict[str, t.Any] = {"type": "string", "maxLength": 255}


def changes() -> list[Record]:
    """The request's body. Raises BadRequestError unless it is a list of changes."""
    try:
        value = json.loads(request.get_data())
    except (ValueError, RecursionError):
        raise BadRequestError("Malformed request body: give a JSON patch") from None
    validation.check(value, PATCH)
    return t.cast("list[Record]", value)


def applied(row: Record, shown: Record, wanted: t.Iterable[Record]) -> Record:
    """`row` after these changes; `shown` is how its owner saw it.

    Raises ForbiddenError for what cannot be changed, ConflictError for the replacement of what is not there.
    """
    after = {**row, "properties": dict(row["properties"])}
    for change in wanted:
        op, name = change["op"], _name(change["path"])
        if op != "remove" and "value" not in change:
            raise BadRequestError(f"Operation '{op}' needs a value.")
        if name in FIELDS:
            field, schema = FIELDS[name]
            if op == "remove":
                raise ForbiddenError(f"Property '{name}' may not be removed.")
            validation.check(change["value"], schema, f"value of {name}")
            after[field] = change["value"]
        elif name in READ_ONLY:
            raise ForbiddenError(f"Attribute '{name}' is read-only.")
        elif name in BASE:
            if op == "remove" or change["value"] != shown[name]:
                raise ForbiddenError(f"Attribute '{name}' comes with the image's files and its owner: it stays.")
        elif name == "os_command_line":
            raise ForbiddenError(f"Property '{name}' comes with the image's kernel, from the cloud's operator.")
        else:
            _property(after["properties"], op, name, change.get("value"))
    return after


def _property(properties: Record, op: str, name: str, value: t.Any) -> None:
    if op != "add" and name not in properties:
        raise ConflictError(f"Property {name[:60]} does not exist.")
    if op == "remove":
        del properties[name]
        return
    validation.check(value, PROPERTY, f"value of {name[:60]}")
    properties[name] = value


def _name(path: str) -> str:
    """`/a~1b` names a/b (RFC 6901). Nothing here has parts that have names of their own."""
    name = path[1:]
    if not name or "/" in name:
        raise BadRequestError(f"Invalid JSON pointer for this resource: '{path[:60]}'")
    return name.replace("~1", "/").replace("~0", "~")
