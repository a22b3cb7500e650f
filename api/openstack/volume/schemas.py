# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""JSON schemas of the Block Storage API."""

from __future__ import annotations

import typing as t

Schema = dict[str, t.Any]

NAME: Schema = {"type": ["string", "null"], "maxLength": 255}
UUID: Schema = {"type": "string", "minLength": 1, "maxLength": 255}  # what is none is not found
OPTIONAL: Schema = {"type": ["string", "null"], "maxLength": 255}
BOOLEAN: Schema = {"enum": [True, False, "true", "false", "True", "False", "1", "0", "yes", "no", "on", "off"]}
SIZE: Schema = {
    "anyOf": [
        {"type": "integer", "minimum": 1, "maximum": 2**31 - 1},
        {"type": "string", "pattern": "^[1-9][0-9]{0,8}$"},
    ]
}
METADATA: Schema = {
    "type": ["object", "null"],
    "propertyNames": {"minLength": 1, "maxLength": 255},
    "additionalProperties": {"type": "string", "maxLength": 255},
    "maxProperties": 128,
}


def wrapped(name: str, properties: t.Mapping[str, Schema], required: t.Sequence[str] = (), **more: t.Any) -> Schema:
    inner = {"type": "object", "properties": dict(properties), "required": list(required), **more}
    return {"type": "object", "properties": {name: inner}, "required": [name]}


def truth(value: t.Any) -> bool:
    return str(value).lower() in ("true", "1", "yes", "on")


VOLUME = wrapped(
    "volume",
    {
        "name": NAME,
        "display_name": NAME,
        "description": NAME,
        "display_description": NAME,
        "size": {"anyOf": [SIZE, {"type": "null"}]},
        "volume_type": OPTIONAL,
        "availability_zone": OPTIONAL,
        "imageRef": OPTIONAL,
        "snapshot_id": OPTIONAL,
        "source_volid": OPTIONAL,
        "metadata": METADATA,
        "multiattach": {"anyOf": [BOOLEAN, {"type": "null"}]},
        "consistencygroup_id": {"type": "null"},
        "group_id": {"type": "null"},
        "backup_id": {"type": "null"},
    },
    additionalProperties=False,
)
CHANGES = {"name": NAME, "display_name": NAME, "description": NAME, "display_description": NAME, "metadata": METADATA}
VOLUME_CHANGES = wrapped("volume", CHANGES, minProperties=1, additionalProperties=False)
SNAPSHOT_CHANGES = wrapped("snapshot", CHANGES, minProperties=1, additionalProperties=False)
SNAPSHOT = wrapped(
    "snapshot",
    {**CHANGES, "volume_id": OPTIONAL, "force": {"anyOf": [BOOLEAN, {"type": "null"}]}},
    ["volume_id"],
    additionalProperties=False,
)
METADATA_BODY: Schema = {
    "type": "object",
    "properties": {"metadata": {**METADATA, "type": "object"}},
    "required": ["metadata"],
}
META_BODY: Schema = {
    "type": "object",
    "properties": {"meta": {**METADATA, "type": "object", "minProperties": 1, "maxProperties": 1}},
    "required": ["meta"],
}
SPECS = {**METADATA, "type": "object", "minProperties": 1}
TYPE_NAME: Schema = {"type": "string", "minLength": 1, "maxLength": 255}
TYPE = {"name": TYPE_NAME, "description": NAME, "extra_specs": METADATA, "os-volume-type-access:is_public": BOOLEAN}
NEW_TYPE = wrapped("volume_type", TYPE, ["name"], additionalProperties=False)
TYPE_CHANGES = wrapped(
    "volume_type",
    {
        **{key: TYPE[key] for key in ("description", "extra_specs")},
        "name": {**TYPE_NAME, "type": ["string", "null"]},
        "is_public": BOOLEAN,
    },
    minProperties=1,
    additionalProperties=False,
)
ATTACHMENT = wrapped(
    "attachment",
    {
        "volume_uuid": UUID,
        "instance_uuid": UUID,
        "connector": {"type": ["object", "null"]},
        "mode": {"enum": ["rw", "ro", None]},
    },
    ["volume_uuid", "instance_uuid"],
)
LIMIT: Schema = {
    "anyOf": [
        {"type": "integer", "minimum": -1, "maximum": 2**31 - 1},
        {"type": "string", "pattern": "^(-1|[0-9]{1,9})$"},
    ]
}
QUOTAS = wrapped("quota_set", {}, minProperties=1, additionalProperties=LIMIT)
QUOTA_CLASS = wrapped("quota_class_set", {}, minProperties=1, additionalProperties=LIMIT)
STATES = (
    "creating",
    "available",
    "deleting",
    "error",
    "error_deleting",
    "error_extending",
    "attaching",
    "detaching",
    "in-use",
    "maintenance",
)
