# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Records of images as Glance's resources. Pure functions."""

from __future__ import annotations

import typing as t
from datetime import datetime, timezone

Record = dict[str, t.Any]

STORE = "file"
DISK_FORMATS = ("raw", "qcow2", "vmdk", "vhd", "vhdx", "vdi", "ploop", "iso", "ami", "ari", "aki")
CONTAINER_FORMATS = ("bare", "ami", "ari", "aki", "ovf", "ova", "docker", "compressed")
VISIBILITIES = ("public", "private", "shared", "community")
STATES = ("queued", "saving", "uploading", "importing", "active", "killed", "deactivated")
UUID = "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$"
SIZE = {"type": "integer", "minimum": 0, "maximum": 2**31 - 1}
TAG = {"type": "string", "minLength": 1, "maxLength": 255}

# Attributes of every image, with their JSON types; what is beside them are properties
BASE: dict[str, t.Any] = {
    "id": {"type": "string", "pattern": UUID},
    "name": {"type": ["null", "string"], "maxLength": 255},
    "status": {"type": "string", "readOnly": True, "enum": list(STATES)},
    "visibility": {"type": "string", "enum": list(VISIBILITIES)},
    "owner": {"type": ["null", "string"], "maxLength": 32},
    "protected": {"type": "boolean"},
    "os_hidden": {"type": "boolean"},
    "checksum": {"type": ["null", "string"], "readOnly": True},
    "os_hash_algo": {"type": ["null", "string"], "readOnly": True},
    "os_hash_value": {"type": ["null", "string"], "readOnly": True},
    "size": {"type": ["null", "integer"], "readOnly": True},
    "virtual_size": {"type": ["null", "integer"], "readOnly": True},
    "container_format": {"type": ["null", "string"], "enum": [None, *CONTAINER_FORMATS]},
    "disk_format": {"type": ["null", "string"], "enum": [None, *DISK_FORMATS]},
    "min_disk": {**SIZE},
    "min_ram": {**SIZE},
    "tags": {"type": "array", "maxItems": 128, "items": TAG},
    "created_at": {"type": "string", "readOnly": True},
    "updated_at": {"type": "string", "readOnly": True},
    "self": {"type": "string", "readOnly": True},
    "file": {"type": "string", "readOnly": True},
    "schema": {"type": "string", "readOnly": True},
    "stores": {"type": "string", "readOnly": True},
    "direct_url": {"type": "string", "readOnly": True},
    "locations": {"type": "array", "readOnly": True},
}
READ_ONLY = {name for name, schema in BASE.items() if schema.get("readOnly")}
MEMBER: dict[str, t.Any] = {
    "member_id": {"type": "string"},
    "image_id": {"type": "string"},
    "status": {"type": "string", "enum": ["pending", "accepted", "rejected"]},
    "created_at": {"type": "string"},
    "updated_at": {"type": "string"},
    "schema": {"type": "string", "readOnly": True},
}
TASK: dict[str, t.Any] = {
    "id": {"type": "string"},
    "type": {"type": "string", "enum": ["api_image_import"]},
    "status": {"type": "string", "enum": ["pending", "processing", "success", "failure"]},
    "owner": {"type": ["null", "string"]},
    "input": {"type": ["null", "object"]},
    "result": {"type": ["null", "object"]},
    "message": {"type": "string"},
    "created_at": {"type": "string"},
    "updated_at": {"type": "string"},
    "expires_at": {"type": ["null", "string"]},
    "self": {"type": "string"},
    "schema": {"type": "string"},
}


def image(row: Record) -> Record:
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
        "id": row["id"],
        "name": row["name"],
        "status": row["status"],
        "visibility": row["visibility"],
        "owner": row["owner"] or None,
        "protected": row["protected"],
        "os_hidden": row["os_hidden"],
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
        "created_at": time(row["created_at"]),
        "updated_at": time(row["updated_at"]),
        "self": path,
        "file": f"{path}/file",
        "schema": "/v2/schemas/image",
    }


def member(row: Record) -> Record:
    return {
        "member_id": row["member"],
        "image_id": row["image_id"],
        "status": row["status"],
        "created_at": time(row["created_at"]),
        "updated_at": time(row["updated_at"]),
        "schema": "/v2/schemas/member",
    }


def task(row: Record) -> Record:
    done = row["status"] in ("success", "failure")
    return {
        "id": row["id"],
        "type": "api_image_import",
        "status": row["status"],
        "owner": row["project_id"],
        "image_id": row["image_id"],
        "request_id": row["request_id"],
        "user_id": row["user_id"],
        "input": row["input"],
        "result": {"image_id": row["image_id"]} if row["status"] == "success" else None,
        "message": row["message"],
        "created_at": time(row["created_at"]),
        "updated_at": time(row["updated_at"]),
        "expires_at": time(row["updated_at"] + 48 * 3600) if done else None,
        "self": f"/v2/tasks/{row['id']}",
        "schema": "/v2/schemas/task",
    }


def time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def schema(name: str) -> Record | None:
    """The JSON schema `name` of Glance's, or None."""
    if name == "image":
        return {
            "name": "image",
            "properties": BASE,
            "additionalProperties": {"type": "string"},
            "links": [
                {"rel": "self", "href": "{self}"},
                {"rel": "enclosure", "href": "{file}"},
                {"rel": "describedby", "href": "{schema}"},
            ],
        }
    if name == "member":
        return {"name": "member", "properties": MEMBER}
    if name == "task":
        return {"name": "task", "properties": TASK}
    if name in ("images", "members", "tasks"):
        items = schema(name[:-1])
        properties = {
            name: {"type": "array", "items": items},
            "first": {"type": "string"},
            "next": {"type": "string"},
            "schema": {"type": "string"},
        }
        return {
            "name": name,
            "properties": {key: properties[key] for key in (name, "schema")} if name == "members" else properties,
            "links": [{"rel": "describedby", "href": "{schema}"}],
        }
    return None
