# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Records of images as Glance's resources. Pure functions."""

from __future__ import annotations

import typing as t
from datetime import datetime, timezone

Record = dict[str, t.Any]

# Attributes of every image, with their JSON types; what is beside them are properties
BASE: dict[str, t.Any] = {
    "id": {"type": "string", "readOnly": True},
    "name": {"type": ["null", "string"], "maxLength": 255},
    "status": {"type": "string", "readOnly": True, "enum": ["active"]},
    "visibility": {"type": "string", "enum": ["public", "private"]},
    "owner": {"type": ["null", "string"], "maxLength": 255},
    "protected": {"type": "boolean"},
    "os_hidden": {"type": "boolean"},
    "checksum": {"type": ["null", "string"], "readOnly": True},
    "os_hash_algo": {"type": ["null", "string"], "readOnly": True},
    "os_hash_value": {"type": ["null", "string"], "readOnly": True},
    "size": {"type": ["null", "integer"], "readOnly": True},
    "virtual_size": {"type": ["null", "integer"], "readOnly": True},
    "container_format": {"type": ["null", "string"], "enum": ["bare"]},
    "disk_format": {"type": ["null", "string"], "enum": ["raw", "qcow2"]},
    "min_disk": {"type": "integer"},
    "min_ram": {"type": "integer"},
    "tags": {"type": "array", "items": {"type": "string", "maxLength": 255}},
    "created_at": {"type": "string", "readOnly": True},
    "updated_at": {"type": "string", "readOnly": True},
    "self": {"type": "string", "readOnly": True},
    "file": {"type": "string", "readOnly": True},
    "schema": {"type": "string", "readOnly": True},
}
READ_ONLY = {name for name, schema in BASE.items() if schema.get("readOnly")}


def image(row: Record) -> Record:
    algorithm, _colon, value = row["checksum"].partition(":")
    path = f"/v2/images/{row['id']}"
    described = dict(row["properties"])
    if row["cmdline"]:
        described["os_command_line"] = row["cmdline"]  # Nova's name for it
    return {
        **described,
        "id": row["id"],
        "name": row["name"],
        "status": "active",
        "visibility": "private" if row["owner"] else "public",
        "owner": row["owner"] or None,
        "protected": row["protected"],
        "os_hidden": False,
        "checksum": None,  # an MD5, which nobody should compare
        "os_hash_algo": algorithm,
        "os_hash_value": value,
        "size": row["size"],
        "virtual_size": row["virtual_size"],
        "container_format": "bare",
        "disk_format": row["disk_format"],
        "min_disk": row["min_disk_gb"],
        "min_ram": row["min_ram_mb"],
        "tags": row["tags"],
        "created_at": time(row["created_at"]),
        "updated_at": time(row["updated_at"]),
        "self": path,
        "file": f"{path}/file",
        "schema": "/v2/schemas/image",
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
    member = {
        "member_id": {"type": "string"},
        "image_id": {"type": "string"},
        "status": {"type": "string"},
        "created_at": {"type": "string"},
        "updated_at": {"type": "string"},
        "schema": {"type": "string", "readOnly": True},
    }
    if name == "member":
        return {"name": "member", "properties": member}
    if name in ("images", "members"):
        items = schema(name[:-1])
        properties = {
            name: {"type": "array", "items": items},
            "first": {"type": "string"},
            "next": {"type": "string"},
            "schema": {"type": "string"},
        }
        return {
            "name": name,
            "properties": properties if name == "images" else {key: properties[key] for key in (name, "schema")},
            "links": [{"rel": "describedby", "href": "{schema}"}],
        }
    return None
