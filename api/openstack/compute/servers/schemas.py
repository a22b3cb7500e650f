# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What clients may send about servers, by microversion, as nova/api/openstack/compute/schemas has it."""

from __future__ import annotations

import functools
import typing as t

from ..microversions import Version

Schema = dict[str, t.Any]

TRUE = [True, "True", "TRUE", "true", "1", "ON", "On", "on", "YES", "Yes", "yes", "y", "t"]
FALSE = [False, "False", "FALSE", "false", "0", "OFF", "Off", "off", "NO", "No", "no", "n", "f"]

MAX_USER_DATA = 65535  # characters of base64
MAX_TAGS = 50  # of one server

NAME: Schema = {"type": "string", "minLength": 1, "maxLength": 255}
OPTIONAL_NAME: Schema = {"type": ["string", "null"], "minLength": 1, "maxLength": 255}
TEXT: Schema = {"type": ["string", "null"], "maxLength": 255}
BOOLEAN: Schema = {"enum": [*TRUE, *FALSE]}
UUID: Schema = {"type": "string", "pattern": "^[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$"}
COUNT: Schema = {"type": ["integer", "string"], "pattern": "^[1-9][0-9]{0,8}$", "minimum": 1, "maximum": 10**9}
METADATA: Schema = {
    "type": "object",
    "propertyNames": {"pattern": "^[a-zA-Z0-9-_:. ]{1,255}$"},
    "additionalProperties": {"type": "string", "maxLength": 255},
}
TAG: Schema = {"type": "string", "minLength": 1, "maxLength": 60, "pattern": "^[^,/]*$"}
TAGS: Schema = {"type": "array", "items": TAG, "maxItems": MAX_TAGS}
HOSTNAME: Schema = {"type": "string", "maxLength": 63, "pattern": "^[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?$"}
DISK_CONFIG: Schema = {"enum": ["AUTO", "MANUAL"]}
ADDRESS: Schema = {"anyOf": [{"type": "string", "maxLength": 45}, {"type": "null"}]}
UUIDS: Schema = {"anyOf": [UUID, {"type": "array", "items": UUID, "minItems": 1, "maxItems": 100}]}
HINTS: Schema = {
    "type": "object",
    "properties": {
        "group": UUID,
        "different_host": UUIDS,
        "same_host": UUIDS,
        "query": {"type": ["string", "object", "array"]},
        "target_cell": NAME,
        "different_cell": {"type": ["string", "array"]},
        "build_near_host_ip": {"type": "string", "maxLength": 45},
        "cidr": {"type": "string", "pattern": "^/[0-9]{1,3}$"},
    },
    "additionalProperties": True,
}
PERSONALITY: Schema = {
    "type": "array",
    "maxItems": 100,
    "items": {
        "type": "object",
        "properties": {"path": {"type": "string", "maxLength": 4096}, "contents": {"type": "string"}},
        "required": ["path", "contents"],
        "additionalProperties": False,
    },
}
NETWORK_IDS: Schema = {"type": ["string", "null"], "pattern": UUID["pattern"]}
DEVICE_TAG: Schema = {"type": "string", "minLength": 1, "maxLength": 60, "pattern": "^[^,/]*$"}
BLOCK_DEVICE: Schema = {
    "type": "object",
    "properties": {
        "source_type": {"enum": ["volume", "image", "snapshot", "blank"]},
        "destination_type": {"enum": ["local", "volume", None]},
        "uuid": {"type": ["string", "null"], "maxLength": 255},
        "boot_index": {"type": ["integer", "string", "null"]},
        "delete_on_termination": BOOLEAN,
        "device_name": OPTIONAL_NAME,
        "device_type": NAME,
        "disk_bus": NAME,
        "guest_format": NAME,
        "image_id": {"type": "string", "maxLength": 255},
        "no_device": {},
        "tag": DEVICE_TAG,
        "volume_size": {"type": ["integer", "string", "null"]},
        "volume_type": TEXT,
    },
    "additionalProperties": False,
}


@functools.lru_cache(maxsize=128)
def create(version: Version) -> Schema:
    """The body of POST /servers."""
    network: Schema = {
        "type": "object",
        "properties": {"uuid": NETWORK_IDS, "port": NETWORK_IDS, "fixed_ip": {"type": "string", "maxLength": 45}},
        "additionalProperties": False,
    }
    if version >= (2, 42) or (2, 32) <= version <= (2, 36):
        network["properties"]["tag"] = DEVICE_TAG
    networks: Schema = {"type": "array", "items": network, "maxItems": 10}
    if version >= (2, 37):
        networks = {"oneOf": [networks, {"enum": ["auto", "none"]}]}
    server: Schema = {
        "name": NAME,
        "imageRef": {"type": "string", "maxLength": 255},
        "flavorRef": {"type": ["string", "integer"], "minLength": 1, "maxLength": 255},
        "adminPass": {"type": "string", "maxLength": 255},
        "metadata": METADATA,
        "networks": networks,
        "OS-DCF:diskConfig": DISK_CONFIG,
        "accessIPv4": ADDRESS,
        "accessIPv6": ADDRESS,
        "availability_zone": NAME,
        "config_drive": {"enum": [*TRUE, *FALSE, None, ""]},
        "key_name": NAME,
        "min_count": COUNT,
        "max_count": COUNT,
        "return_reservation_id": BOOLEAN,
        "security_groups": {
            "type": "array",
            "items": {"type": "object", "properties": {"name": NAME}, "additionalProperties": False},
            "maxItems": 100,
        },
        "user_data": {"type": ["string", "null"], "maxLength": MAX_USER_DATA},
        "block_device_mapping": {"type": "array"},
        "block_device_mapping_v2": {"type": "array", "items": BLOCK_DEVICE, "maxItems": 100},
    }
    if version < (2, 57):
        server["personality"] = PERSONALITY
    later: list[tuple[Version, str, Schema]] = [
        ((2, 19), "description", TEXT),
        ((2, 52), "tags", TAGS),
        ((2, 63), "trusted_image_certificates", {"type": ["array", "null"], "maxItems": 50}),
        ((2, 74), "host", NAME),
        ((2, 74), "hypervisor_hostname", NAME),
        ((2, 90), "hostname", HOSTNAME),
    ]
    server.update({name: schema for minimum, name, schema in later if version >= minimum})
    return {
        "type": "object",
        "properties": {
            "server": {
                "type": "object",
                "properties": server,
                "required": ["name", "flavorRef", *(["networks"] if version >= (2, 37) else [])],
                "additionalProperties": False,
            },
            "os:scheduler_hints": HINTS,
            "OS-SCH-HNT:scheduler_hints": HINTS,
        },
        "required": ["server"],
        "additionalProperties": False,
    }


@functools.lru_cache(maxsize=128)
def update(version: Version) -> Schema:
    """The body of PUT /servers/{id}."""
    server: Schema = {"name": NAME, "OS-DCF:diskConfig": DISK_CONFIG, "accessIPv4": ADDRESS, "accessIPv6": ADDRESS}
    if version >= (2, 19):
        server["description"] = TEXT
    if version >= (2, 90):
        server["hostname"] = HOSTNAME
    return of("server", {"type": "object", "properties": server, "additionalProperties": False})


def of(name: str, schema: Schema) -> Schema:
    """An object that holds just this."""
    return {"type": "object", "properties": {name: schema}, "required": [name], "additionalProperties": False}
