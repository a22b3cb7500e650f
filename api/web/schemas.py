# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Building blocks of JSON schemas, for every service."""

from __future__ import annotations

import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._json import JsonObject

Schema = JsonObject

UUID: Schema = {"type": "string", "pattern": "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"}
NAME: Schema = {"type": "string", "minLength": 1, "maxLength": 255}
TEXT: Schema = {"type": "string", "maxLength": 255}
OPTIONAL: Schema = {"type": ["string", "null"], "maxLength": 255}
# numbers come as text, too: Nova and Cinder convert
LIMIT: Schema = {
    "anyOf": [
        {"type": "integer", "minimum": -1, "maximum": 2**31 - 1},
        {"type": "string", "pattern": "^(-1|[0-9]{1,9})$"},
    ]
}
ACTION: Schema = {"type": "object", "minProperties": 1, "maxProperties": 1}


def size(least: int) -> Schema:
    """A whole number from `least` (0 or 1) on, or a text that is one."""
    pattern = "^0*[1-9][0-9]{0,8}$" if least else "^[0-9]{1,9}$"
    return {
        "anyOf": [{"type": "integer", "minimum": least, "maximum": 2**31 - 1}, {"type": "string", "pattern": pattern}]
    }


def an_object(
    properties: t.Mapping[str, Schema], required: t.Sequence[str] = (), more: bool | Schema = False, **rules: int
) -> Schema:
    """An object with `properties`, of which it needs the `required` ones. `more`: what others may be like."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": more,
        **rules,
    }


def of(name: str, schema: Schema) -> Schema:
    """An object that holds just this."""
    return an_object({name: schema}, [name])


def wrapped(name: str, properties: t.Mapping[str, Schema], required: t.Sequence[str] = (), **rules: int) -> Schema:
    """{"<name>": {...}}, as most bodies are."""
    return of(name, an_object(properties, required, False, **rules))


def a_list(items: Schema, most: int, least: int = 0) -> Schema:
    return {"type": "array", "items": items, "minItems": least, "maxItems": most}


def or_null(schema: Schema) -> Schema:
    """The same, or null."""
    return {**schema, "type": [schema["type"], "null"]}
