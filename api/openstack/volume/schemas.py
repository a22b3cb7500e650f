# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""JSON schemas of the Block Storage API."""

from __future__ import annotations

import typing as t

from ...web.bodies import Json
from ...web.schemas import LIMIT, NAME, OPTIONAL, Schema, an_object, or_null, size

UUID = NAME  # what is none is not found
BOOLEAN: Schema = {"enum": [True, False, "true", "false", "True", "False", "1", "0", "yes", "no", "on", "off"]}
SIZE = size(1)
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


NULL: Schema = {"type": "null"}
CHANGES = {
    **dict.fromkeys(("name", "display_name", "description", "display_description"), OPTIONAL),
    "metadata": METADATA,
}
VOLUME = wrapped(
    "volume",
    {
        **CHANGES,
        **dict.fromkeys(("volume_type", "availability_zone", "imageRef", "snapshot_id", "source_volid"), OPTIONAL),
        "size": {"anyOf": [SIZE, NULL]},
        "multiattach": {"anyOf": [BOOLEAN, NULL]},
        **dict.fromkeys(("consistencygroup_id", "group_id", "backup_id"), NULL),
    },
)
VOLUME_CHANGES = wrapped("volume", CHANGES, minProperties=1)
SNAPSHOT_CHANGES = wrapped("snapshot", CHANGES, minProperties=1)
SNAPSHOT = wrapped("snapshot", {**CHANGES, "volume_id": OPTIONAL, "force": {"anyOf": [BOOLEAN, NULL]}}, ["volume_id"])
SPECS = {**METADATA, "type": "object", "minProperties": 1}
TYPE = {"name": NAME, "description": OPTIONAL, "extra_specs": METADATA, "os-volume-type-access:is_public": BOOLEAN}
NEW_TYPE = wrapped("volume_type", TYPE, ["name"])
TYPE_CHANGES = wrapped(
    "volume_type",
    {**{key: TYPE[key] for key in ("description", "extra_specs")}, "name": or_null(NAME), "is_public": BOOLEAN},
    minProperties=1,
)
CONNECTOR = an_object(
    {"host": NAME, "mountpoint": OPTIONAL, "mode": {"enum": ["rw", "ro", None]}}, ["host"], more=True, maxProperties=64
)
CONNECTED_ATTACHMENT = wrapped("attachment", {"connector": CONNECTOR}, ["connector"])
COMPLETE = an_object({"os-complete": {}}, ["os-complete"])  # clients write null, {} or the attachment's id there
ATTACHMENT = wrapped(
    "attachment",
    {
        "volume_uuid": UUID,
        "instance_uuid": or_null(UUID),
        "connector": {"type": ["object", "null"]},
        "mode": {"enum": ["rw", "ro", None]},
    },
    ["volume_uuid"],
    more=True,
)
TRANSFER = wrapped("transfer", {"volume_id": UUID, "name": OPTIONAL}, ["volume_id"])
TRANSFER_355 = wrapped("transfer", {"volume_id": UUID, "name": OPTIONAL, "no_snapshots": BOOLEAN}, ["volume_id"])
ACCEPT = wrapped("accept", {"auth_key": {"type": ["string", "integer"]}}, ["auth_key"])
WHOSE_QUOTAS = {"id": OPTIONAL, "tenant_id": OPTIONAL}  # cinderclient and Horizon repeat what the path says
QUOTAS = wrapped("quota_set", WHOSE_QUOTAS, minProperties=1, more=LIMIT)
QUOTA_CLASS = wrapped("quota_class_set", {}, minProperties=1, more=LIMIT)
SNAPSHOT_STATES = ("creating", "available", "deleting", "error", "error_deleting")
STATES = (*SNAPSHOT_STATES, "error_extending", "attaching", "detaching", "in-use", "maintenance")
