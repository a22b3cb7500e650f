# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""JSON schemas of the Block Storage API."""

from __future__ import annotations

import typing as t

from ...web.bodies import Json
from ...web.schemas import LIMIT, NAME, OPTIONAL, Schema, an_object, or_null

UUID = NAME  # what is none is not found
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


def wrapped(
    name: str,
    properties: t.Mapping[str, Schema],
    required: t.Sequence[str] = (),
    more: bool | Schema = False,
    **rules: int,
) -> Schema:
    """{"<name>": {...}}; what else a body holds is passed over, as in Cinder."""
    return an_object({name: an_object(properties, required, more, **rules)}, [name], more=True)


def truth(value: Json) -> bool:
    return str(value).lower() in ("true", "1", "yes", "on")


VOLUME = wrapped(
    "volume",
    {
        "name": OPTIONAL,
        "display_name": OPTIONAL,
        "description": OPTIONAL,
        "display_description": OPTIONAL,
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
)
CHANGES = {
    "name": OPTIONAL,
    "display_name": OPTIONAL,
    "description": OPTIONAL,
    "display_description": OPTIONAL,
    "metadata": METADATA,
}
VOLUME_CHANGES = wrapped("volume", CHANGES, minProperties=1)
SNAPSHOT_CHANGES = wrapped("snapshot", CHANGES, minProperties=1)
SNAPSHOT = wrapped(
    "snapshot", {**CHANGES, "volume_id": OPTIONAL, "force": {"anyOf": [BOOLEAN, {"type": "null"}]}}, ["volume_id"]
)
SPECS = {**METADATA, "type": "object", "minProperties": 1}
TYPE = {"name": NAME, "description": OPTIONAL, "extra_specs": METADATA, "os-volume-type-access:is_public": BOOLEAN}
NEW_TYPE = wrapped("volume_type", TYPE, ["name"])
TYPE_CHANGES = wrapped(
    "volume_type",
    {**{key: TYPE[key] for key in ("description", "extra_specs")}, "name": or_null(NAME), "is_public": BOOLEAN},
    minProperties=1,
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
    more=True,
)
QUOTAS = wrapped("quota_set", {}, minProperties=1, more=LIMIT)
QUOTA_CLASS = wrapped("quota_class_set", {}, minProperties=1, more=LIMIT)
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
