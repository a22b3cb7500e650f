# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""JSON Schemas of requests about servers, by microversion, as in nova/api/openstack/compute/schemas."""

from __future__ import annotations

import functools

from ....web.schemas import NAME, OPTIONAL, TEXT, UUID, Schema, a_list, an_object, wrapped
from ..blueprint import Version

TRUE = [True, "True", "TRUE", "true", "1", "ON", "On", "on", "YES", "Yes", "yes", "y", "t"]
FALSE = [False, "False", "FALSE", "false", "0", "OFF", "Off", "off", "NO", "No", "no", "n", "f"]

MAX_USER_DATA = 65535  # characters of base64
MAX_TAGS = 50  # of one server

OPTIONAL_NAME: Schema = {"type": ["string", "null"], "minLength": 1, "maxLength": 255}
BOOLEAN: Schema = {"enum": [*TRUE, *FALSE]}
COUNT: Schema = {"type": ["integer", "string"], "pattern": "^[1-9][0-9]{0,8}$", "minimum": 1, "maximum": 10**9}
METADATA: Schema = {
    "type": "object",
    "propertyNames": {"pattern": "^[a-zA-Z0-9-_:. ]{1,255}$"},
    "additionalProperties": TEXT,
}
TAG: Schema = {"type": "string", "minLength": 1, "maxLength": 60, "pattern": "^[^,/]*$"}
TAGS = a_list(TAG, MAX_TAGS)
HOSTNAME: Schema = {"type": "string", "maxLength": 63, "pattern": "^[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?$"}
DISK_CONFIG: Schema = {"enum": ["AUTO", "MANUAL"]}
ADDRESS: Schema = {"anyOf": [{"type": "string", "maxLength": 45}, {"type": "null"}]}
UUIDS: Schema = {"anyOf": [UUID, a_list(UUID, 100, 1)]}
HINTS = an_object(
    {
        "group": UUID,
        "different_host": UUIDS,
        "same_host": UUIDS,
        "query": {"type": ["string", "object", "array"]},
        "target_cell": NAME,
        "different_cell": {"type": ["string", "array"]},
        "build_near_host_ip": {"type": "string", "maxLength": 45},
        "cidr": {"type": "string", "pattern": "^/[0-9]{1,3}$"},
    },
    more=True,
)
FILE = an_object({"path": {"type": "string", "maxLength": 4096}, "contents": {"type": "string"}}, ["path", "contents"])
PERSONALITY = a_list(FILE, 100)
NETWORK_IDS: Schema = {"type": ["string", "null"], "pattern": UUID["pattern"]}
DEVICE_TAG = TAG
BLOCK_DEVICE = an_object(
    {
        "source_type": {"enum": ["volume", "image", "snapshot", "blank"]},
        "destination_type": {"enum": ["local", "volume", None]},
        "uuid": {"type": ["string", "null"], "maxLength": 255},
        "boot_index": {"type": ["integer", "string", "null"], "pattern": "^-?[0-9]{1,9}$"},
        "delete_on_termination": BOOLEAN,
        "device_name": OPTIONAL_NAME,
        "device_type": NAME,
        "disk_bus": NAME,
        "guest_format": NAME,
        "image_id": TEXT,
        "no_device": {},
        "tag": DEVICE_TAG,
        "volume_size": {"type": ["integer", "string", "null"]},
        "volume_type": OPTIONAL,
    }
)


SHOWN: Schema = {"name": NAME, "OS-DCF:diskConfig": DISK_CONFIG, "accessIPv4": ADDRESS, "accessIPv6": ADDRESS}
USER_DATA: Schema = {"type": ["string", "null"], "maxLength": MAX_USER_DATA}
# What requests got later, and with which microversion
_LATER: dict[str, tuple[Version, Schema]] = {
    "description": ((2, 19), OPTIONAL),
    "tags": ((2, 52), TAGS),
    "trusted_image_certificates": ((2, 63), {"type": ["array", "null"], "maxItems": 50}),
    **dict.fromkeys(("host", "hypervisor_hostname"), ((2, 74), NAME)),
    "hostname": ((2, 90), HOSTNAME),
}


def later(version: Version, *names: str) -> Schema:
    """Return the schemas of those `names` that a request in this microversion may have."""
    return {name: _LATER[name][1] for name in names if version >= _LATER[name][0]}


def personality(version: Version) -> Schema:
    return {"personality": PERSONALITY} if version < (2, 57) else {}


@functools.lru_cache(maxsize=128)
def create(version: Version) -> Schema:
    """The body of POST /servers."""
    network: Schema = {"uuid": NETWORK_IDS, "port": NETWORK_IDS, "fixed_ip": {"type": "string", "maxLength": 45}}
    if version >= (2, 42) or (2, 32) <= version <= (2, 36):
        network["tag"] = DEVICE_TAG
    networks = a_list(an_object(network), 10)
    if version >= (2, 37):
        networks = {"oneOf": [networks, {"enum": ["auto", "none"]}]}
    server: Schema = {
        **SHOWN,
        "imageRef": TEXT,
        "flavorRef": {"type": ["string", "integer"], "minLength": 1, "maxLength": 255},
        "adminPass": TEXT,
        "metadata": METADATA,
        "networks": networks,
        "availability_zone": NAME,
        "config_drive": {"enum": [*TRUE, *FALSE, None, ""]},
        "key_name": NAME,
        "min_count": COUNT,
        "max_count": COUNT,
        "return_reservation_id": BOOLEAN,
        "security_groups": a_list(an_object({"name": NAME}), 100),
        "user_data": USER_DATA,
        "block_device_mapping": {"type": "array"},
        "block_device_mapping_v2": a_list(BLOCK_DEVICE, 100),
        **personality(version),
        **later(version, *_LATER),
    }
    required = ["name", "flavorRef", *(["networks"] if version >= (2, 37) else [])]
    hints = dict.fromkeys(("os:scheduler_hints", "OS-SCH-HNT:scheduler_hints"), HINTS)
    return an_object({"server": an_object(server, required), **hints}, ["server"])


@functools.lru_cache(maxsize=128)
def update(version: Version) -> Schema:
    """The body of PUT /servers/{id}."""
    return wrapped("server", {**SHOWN, **later(version, "description", "hostname")})
