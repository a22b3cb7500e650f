# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Metadata definitions, of which there are none, their schemas, and what a project uses of its quota of images.

Words and fields are Glance's (glance/api/v2/metadef_namespaces.py, glance/api/v2/info.py).
"""

from __future__ import annotations

import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import counts
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.identity import quota_records

from ...web.bodies import Answer, Body
from ...web.context import current
from ...web.schemas import Schema
from ...web.services import reads
from .blueprint import image
from .views import READ_TEXT, TEXT

_TIMES: Schema = dict.fromkeys(("created_at", "updated_at"), READ_TEXT)
_LINKS: Schema = dict.fromkeys(("schema", "self"), READ_TEXT)
_LIST: Schema = {"type": "array"}
_NUMBER: Schema = {"type": "integer"}
_FLAG: Schema = {"type": "boolean"}
_PROPERTY: Schema = {
    **dict.fromkeys(("name", "title", "description", "type"), TEXT),
    **dict.fromkeys(("enum", "required"), _LIST),
    **dict.fromkeys(("minimum", "maximum", "minLength", "maxLength"), _NUMBER),
    **dict.fromkeys(("readonly", "uniqueItems", "additionalItems"), _FLAG),
    "operators": _LIST,
    "items": {"type": "object"},
    "pattern": TEXT,
    "default": {},
}
# What a client needs of each kind to make records of a list: by the schema's name, its plural and its properties
SCHEMAS: t.Mapping[str, tuple[str, Schema]] = {
    "namespace": (
        "namespaces",
        {
            **dict.fromkeys(("namespace", "display_name", "description", "owner"), TEXT),
            "visibility": {"type": "string", "enum": ["public", "private"]},
            "protected": _FLAG,
            **dict.fromkeys(("resource_type_associations", "objects", "tags"), _LIST),
            "properties": {"type": "object"},
            **_TIMES,
            **_LINKS,
        },
    ),
    "object": (
        "objects",
        {
            **dict.fromkeys(("name", "description"), TEXT),
            "required": _LIST,
            "properties": {"type": "object"},
            **_TIMES,
            **_LINKS,
        },
    ),
    "property": ("properties", _PROPERTY),
    "resource_type_association": (
        "resource_type_associations",
        {**dict.fromkeys(("name", "prefix", "properties_target"), TEXT), **_TIMES},
    ),
    "tag": ("tags", {"name": TEXT, **_TIMES}),
}
# Glance's paths for an association name what it is of
SHORT_NAMES = {"resource_type": "resource_type_association", "resource_types": "resource_type_associations"}


@image.get("/metadefs/namespaces", "image:read")
def list_namespaces() -> Answer:
    return {"first": "/v2/metadefs/namespaces", "namespaces": [], "schema": "/v2/schemas/metadefs/namespaces"}, 200


@image.get("/metadefs/resource_types", "image:read")
def list_resource_types() -> Answer:
    return {"resource_types": []}, 200


@image.get("/metadefs/namespaces/<namespace>", "image:read", endpoint="show_namespace")
@image.get("/metadefs/namespaces/<namespace>/<kind>", "image:read", endpoint="list_in_namespace")
@image.get("/metadefs/namespaces/<namespace>/<kind>/<name>", "image:read", endpoint="show_in_namespace")
def show_namespace(namespace: str, **_below: str) -> Answer:
    raise NotFoundError(f"Metadata definition namespace={namespace[:80]} was not found.")


@image.get("/schemas/metadefs/<name>", "image:read")
def show_metadefs_schema(name: str) -> Answer:
    schema_name = SHORT_NAMES.get(name, name)
    for singular, (plural, properties) in SCHEMAS.items():
        schema: Body = {"name": singular, "properties": properties, "additionalProperties": False}
        if schema_name == singular:
            return schema, 200
        if schema_name == plural:
            items: Body = {
                plural: {"type": "array", "items": schema},
                **dict.fromkeys(("first", "next", "schema"), TEXT),
            }
            return {"name": plural, "properties": items, "links": [{"rel": "describedby", "href": "{schema}"}]}, 200
    raise NotFoundError(f"there is no schema metadefs/{name[:60]}")


@image.get("/info/usage", "image:read", reads)
def show_usage(connection: Connection) -> Answer:
    """Show the use of what is limited here: the size of all images, in MiB."""
    limit = quota_records.quota_limits(connection, current().project)["image_size_total"]
    used = counts.image_mib(connection, current().project)
    return {"usage": {"image_size_total": {"usage": used, "limit": limit}}}, 200
