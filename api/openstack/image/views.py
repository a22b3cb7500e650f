# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Records of images as Glance's resources. Pure functions."""

from __future__ import annotations

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.catalog.image_views import (
    Member,
    SeenImage,
)

from ...web.bodies import Body, Record, same
from ...web.schemas import NAME, UUID, Schema
from ...web.times import iso
from ..identity.catalog import CLOUD

STORE = "file"
DISK_FORMATS = ("raw", "qcow2", "vmdk", "vhd", "vhdx", "vdi", "ploop", "iso", "ami", "ari", "aki")
CONTAINER_FORMATS = ("bare", "ami", "ari", "aki", "ovf", "ova", "docker", "compressed")
VISIBILITIES = ("public", "private", "shared", "community")
STATES = ("queued", "saving", "uploading", "importing", "active", "killed", "deactivated")
SIZE = {"type": "integer", "minimum": 0, "maximum": 2**31 - 1}
TEXT: Schema = {"type": "string"}
READ_TEXT: Schema = {"type": "string", "readOnly": True}
READ_TEXT_OR_NULL: Schema = {"type": ["null", "string"], "readOnly": True}
READ_NUMBER_OR_NULL: Schema = {"type": ["null", "integer"], "readOnly": True}

# Attributes of every image, with their JSON types; what is beside them are properties
BASE: Schema = {
    "id": UUID,
    "name": {"type": ["null", "string"], "maxLength": 255},
    "status": {"type": "string", "readOnly": True, "enum": list(STATES)},
    "visibility": {"type": "string", "enum": list(VISIBILITIES)},
    "owner": {"type": ["null", "string"], "maxLength": 32},
    "protected": {"type": "boolean"},
    "os_hidden": {"type": "boolean"},
    **dict.fromkeys(("checksum", "os_hash_algo", "os_hash_value"), READ_TEXT_OR_NULL),
    **dict.fromkeys(("size", "virtual_size"), READ_NUMBER_OR_NULL),
    "container_format": {"type": ["null", "string"], "enum": [None, *CONTAINER_FORMATS]},
    "disk_format": {"type": ["null", "string"], "enum": [None, *DISK_FORMATS]},
    "min_disk": {**SIZE},
    "min_ram": {**SIZE},
    "tags": {"type": "array", "maxItems": 128, "items": NAME},
    **dict.fromkeys(("created_at", "updated_at", "self", "file", "schema", "stores", "direct_url"), READ_TEXT),
    "locations": {"type": "array", "readOnly": True},
}
READ_ONLY = {name for name, schema in BASE.items() if schema.get("readOnly")}
MEMBER: Schema = {
    **dict.fromkeys(("member_id", "image_id"), TEXT),
    "status": {"type": "string", "enum": ["pending", "accepted", "rejected"]},
    **dict.fromkeys(("created_at", "updated_at"), TEXT),
    "schema": READ_TEXT,
}
TASK: Schema = {
    "id": TEXT,
    "type": {"type": "string", "enum": ["api_image_import"]},
    "status": {"type": "string", "enum": ["pending", "processing", "success", "failure"]},
    "owner": {"type": ["null", "string"]},
    "input": {"type": ["null", "object"]},
    "result": {"type": ["null", "object"]},
    **dict.fromkeys(("message", "created_at", "updated_at"), TEXT),
    "expires_at": {"type": ["null", "string"]},
    **dict.fromkeys(("self", "schema"), TEXT),
}


def image(row: SeenImage) -> Body:
    algorithm, _colon, value = row["checksum"].partition(":")
    path = f"/v2/images/{row['id']}"
    described = dict(row["properties"])
    if row["cmdline"]:
        described["os_command_line"] = row["cmdline"]  # Nova's name for it
    if row["fault"]:
        described["os_glance_failed_import"] = STORE
    has_data = row["status"] in ("active", "deactivated")
    if has_data and row["md5"]:
        described["stores"] = STORE
    return {
        **described,
        **same(row, "id", "name", "status", "visibility"),
        "owner": row["owner"] or CLOUD,
        **same(row, "protected", "os_hidden"),
        "checksum": row["md5"] if has_data else None,
        "os_hash_algo": algorithm if has_data else None,
        "os_hash_value": value if has_data else None,
        "size": row["size"] if has_data else None,
        "virtual_size": row["virtual_size"] or None,
        "container_format": row["container_format"] or None,
        "disk_format": row["disk_format"] or None,
        "min_disk": row["min_disk_gb"],
        "min_ram": row["min_ram_mb"],
        "tags": row["tags"],
        "created_at": iso(row["created_at"]),
        "updated_at": iso(row["updated_at"]),
        "self": path,
        "file": f"{path}/file",
        "schema": "/v2/schemas/image",
    }


def member(row: Member) -> Body:
    return {
        "member_id": row["member"],
        **same(row, "image_id", "status"),
        "created_at": iso(row["created_at"]),
        "updated_at": iso(row["updated_at"]),
        "schema": "/v2/schemas/member",
    }


def task(row: Record) -> Body:
    done = row["status"] in ("success", "failure")
    return {
        "id": row["id"],
        "type": "api_image_import",
        "status": row["status"],
        "owner": row["project_id"],
        **same(row, "image_id", "request_id", "user_id", "input"),
        "result": {"image_id": row["image_id"]} if row["status"] == "success" else None,
        "message": row["message"],
        "created_at": iso(row["created_at"]),
        "updated_at": iso(row["updated_at"]),
        "expires_at": iso(row["updated_at"] + 48 * 3600) if done else None,
        "self": f"/v2/tasks/{row['id']}",
        "schema": "/v2/schemas/task",
    }


def schema(name: str) -> Body | None:
    """The JSON schema `name` of Glance's, or None."""
    if name == "image":
        relations = {"self": "{self}", "enclosure": "{file}", "describedby": "{schema}"}
        links = [{"rel": rel, "href": href} for rel, href in relations.items()]
        return {"name": name, "properties": BASE, "additionalProperties": TEXT, "links": links}
    if name in ("member", "task"):
        return {"name": name, "properties": MEMBER if name == "member" else TASK}
    if name in ("images", "members", "tasks"):
        items = schema(name[:-1])
        pages = {} if name == "members" else {"first": TEXT, "next": TEXT}
        properties: Body = {name: {"type": "array", "items": items}, **pages, "schema": TEXT}
        return {"name": name, "properties": properties, "links": [{"rel": "describedby", "href": "{schema}"}]}
    return None
