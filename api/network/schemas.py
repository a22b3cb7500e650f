# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What clients may send to the Network API."""

from __future__ import annotations

import typing as t

Schema = dict[str, t.Any]

UUID: Schema = {"type": "string", "pattern": "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"}
OPTIONAL_UUID: Schema = {"anyOf": [{"type": "null"}, UUID]}
PROJECT: Schema = {"type": ["string", "null"], "maxLength": 255}
NAME: Schema = {"type": "string", "minLength": 1, "maxLength": 255}
DESCRIPTION: Schema = {"type": "string", "maxLength": 255}
TEXT: Schema = {"type": ["string", "null"], "maxLength": 255}
# numbers come as text, too: Neutron converts
NUMBER: Schema = {"anyOf": [{"type": ["integer", "null"]}, {"type": "string", "pattern": "^-?[0-9]{1,9}$"}]}
BOOLEAN: Schema = {"type": "boolean"}


def wrapped(name: str, properties: Schema, required: t.Sequence[str] = ()) -> Schema:
    """{"<name>": {...}}, as every body of Neutron's is."""
    one = {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}
    return {"type": "object", "properties": {name: one}, "required": [name], "additionalProperties": False}


OWNER: Schema = {"project_id": PROJECT, "tenant_id": PROJECT}
CREATE_GROUP = wrapped(
    "security_group", {"name": NAME, "description": DESCRIPTION, "stateful": {"const": True}, **OWNER}, ["name"]
)
UPDATE_GROUP = wrapped("security_group", {"name": NAME, "description": DESCRIPTION, "stateful": {"const": True}})
CREATE_RULE = wrapped(
    "security_group_rule",
    {
        "security_group_id": UUID,
        "direction": {"enum": ["ingress", "egress"]},
        "ethertype": {"type": ["string", "null"], "pattern": "^[iI][pP][vV][46]$"},
        "protocol": {"anyOf": [{"type": ["integer", "null"]}, {"type": "string", "maxLength": 40}]},
        "port_range_min": NUMBER,
        "port_range_max": NUMBER,
        "remote_ip_prefix": {"type": ["string", "null"], "maxLength": 64},
        "remote_group_id": OPTIONAL_UUID,
        "remote_address_group_id": {"type": "null"},
        "description": TEXT,
        **OWNER,
    },
    ["security_group_id", "direction"],
)
CREATE_FLOATING = wrapped(
    "floatingip",
    {
        "floating_network_id": UUID,
        "floating_ip_address": {"type": ["string", "null"], "maxLength": 64},
        "subnet_id": OPTIONAL_UUID,
        "port_id": OPTIONAL_UUID,
        "fixed_ip_address": {"type": ["string", "null"], "maxLength": 64},
        "description": TEXT,
        **OWNER,
    },
    ["floating_network_id"],
)
UPDATE_FLOATING = wrapped(
    "floatingip",
    {
        "port_id": OPTIONAL_UUID,
        "fixed_ip_address": {"type": ["string", "null"], "maxLength": 64},
        "description": TEXT,
    },
)
LIMIT: Schema = {"type": "integer", "minimum": -1, "maximum": 2**31 - 1}
UPDATE_QUOTA = wrapped(
    "quota",
    {
        "network": LIMIT,
        "floatingip": LIMIT,
        "security_group": LIMIT,
        "security_group_rule": LIMIT,
        "force": BOOLEAN,
        "check_limit": BOOLEAN,
        **OWNER,
    },
)
TAGS: Schema = {
    "type": "object",
    "properties": {"tags": {"type": "array", "items": {"type": "string", "maxLength": 255}, "maxItems": 50}},
    "required": ["tags"],
    "additionalProperties": False,
}
