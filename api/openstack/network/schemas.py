# Copyright (c) 2026 novalite contributors
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
    inner = {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}
    return {"type": "object", "properties": {name: inner}, "required": [name], "additionalProperties": False}


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
        "remote_group_id": {"type": ["string", "null"], "maxLength": 255},  # what is none is not found
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
    {"port_id": OPTIONAL_UUID, "fixed_ip_address": {"type": ["string", "null"], "maxLength": 64}, "description": TEXT},
)
LIMIT: Schema = {"type": "integer", "minimum": -1, "maximum": 2**31 - 1}
UPDATE_QUOTA = wrapped(
    "quota",
    {
        **dict.fromkeys(("network", "subnet", "port", "router", "floatingip", "security_group"), LIMIT),
        "security_group_rule": LIMIT,
        # what nobody counts here has no limit
        "subnetpool": {"const": -1},
        "rbac_policy": {"const": -1},
        "force": BOOLEAN,
        "check_limit": BOOLEAN,
        **OWNER,
    },
)
TAG: Schema = {"type": "string", "minLength": 1, "maxLength": 255}
TAGS: Schema = {
    "type": "object",
    "properties": {"tags": {"type": "array", "items": TAG, "maxItems": 50}},
    "required": ["tags"],
    "additionalProperties": False,
}


def one_or_many(name: str, properties: Schema, required: t.Sequence[str] = ()) -> Schema:
    """{"<name>": {...}}, or {"<name>s": [...]} for several at once."""
    inner = {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}
    many = {"type": "array", "items": inner, "minItems": 1, "maxItems": MANY}
    return {
        "type": "object",
        "properties": {name: inner, f"{name}s": many},
        "minProperties": 1,
        "maxProperties": 1,
        "additionalProperties": False,
    }


MANY = 100
ANY_NAME: Schema = {"type": "string", "maxLength": 255}
TRUE: Schema = {"const": True}
FALSE: Schema = {"const": False}
ADDRESS: Schema = {"type": "string", "maxLength": 45}
ZONES: Schema = {"type": "array", "items": {"const": "nova"}, "maxItems": 1}
NETWORK: Schema = {
    "name": ANY_NAME,
    "description": DESCRIPTION,
    # a network that is down, or that is another's to see, is not done here
    "admin_state_up": TRUE,
    "shared": FALSE,
    "router:external": FALSE,
    "is_default": FALSE,
    "port_security_enabled": TRUE,
}
CREATE_NETWORK: Schema = {
    **NETWORK,
    "mtu": {"type": ["integer", "null"], "minimum": 0, "maximum": 65535},
    "availability_zone_hints": ZONES,
    **OWNER,
}
POOLS: Schema = {
    "type": "array",
    "maxItems": 32,
    "items": {
        "type": "object",
        "properties": {"start": ADDRESS, "end": ADDRESS},
        "required": ["start", "end"],
        "additionalProperties": False,
    },
}
ROUTES: Schema = {
    "type": "array",
    "maxItems": 64,
    "items": {
        "type": "object",
        "properties": {"destination": {"type": "string", "maxLength": 43}, "nexthop": ADDRESS},
        "required": ["destination", "nexthop"],
        "additionalProperties": False,
    },
}
UPDATE_SUBNET: Schema = {
    "name": ANY_NAME,
    "description": DESCRIPTION,
    "gateway_ip": {"type": ["string", "null"], "maxLength": 45},
    "allocation_pools": POOLS,
    "dns_nameservers": {"type": "array", "items": ADDRESS, "maxItems": 64},
    "host_routes": ROUTES,
    "enable_dhcp": BOOLEAN,
    "service_types": {"type": "array", "maxItems": 0},
    "segment_id": {"type": "null"},
}
MODE: Schema = {"enum": ["slaac", None]}
CREATE_SUBNET: Schema = {
    **UPDATE_SUBNET,
    "network_id": UUID,
    "ip_version": {"enum": [4, 6, "4", "6"]},
    "cidr": {"type": "string", "maxLength": 64},
    "ipv6_ra_mode": MODE,
    "ipv6_address_mode": MODE,
    "subnetpool_id": {"type": "null"},
    **OWNER,
}
FIXED_IPS: Schema = {
    "type": ["array", "null"],
    "maxItems": 16,
    "items": {
        "type": "object",
        "properties": {"subnet_id": UUID, "ip_address": ADDRESS},
        "additionalProperties": False,
    },
}
PAIRS: Schema = {
    "type": ["array", "null"],
    "maxItems": 64,
    "items": {
        "type": "object",
        "properties": {
            "ip_address": {"type": "string", "maxLength": 43},
            "mac_address": {"type": "string", "maxLength": 40},
        },
        "required": ["ip_address"],
        "additionalProperties": False,
    },
}
UPDATE_PORT: Schema = {
    "name": ANY_NAME,
    "description": DESCRIPTION,
    "admin_state_up": BOOLEAN,
    "fixed_ips": FIXED_IPS,
    "security_groups": {"type": ["array", "null"], "items": UUID, "maxItems": 64},
    "allowed_address_pairs": PAIRS,
    "device_id": ANY_NAME,
    "device_owner": ANY_NAME,
    "port_security_enabled": TRUE,
    "extra_dhcp_opts": {"type": ["array", "null"], "maxItems": 0},
    "binding:vnic_type": {"const": "normal"},
    "binding:profile": {"type": ["object", "null"], "maxProperties": 0},
    "binding:host_id": {"enum": [None, ""]},  # a port is where its server is
}
CREATE_PORT: Schema = {
    **UPDATE_PORT,
    "network_id": UUID,
    "mac_address": {"type": ["string", "null"], "maxLength": 40},
    **OWNER,
}
GATEWAY: Schema = {
    "anyOf": [
        {"type": "null"},
        {
            "type": "object",
            "properties": {
                "network_id": UUID,
                "enable_snat": BOOLEAN,
                # guests leave under the address of their own host
                "external_fixed_ips": {"type": "array", "maxItems": 0},
            },
            "required": ["network_id"],
            "additionalProperties": False,
        },
        {"type": "object", "maxProperties": 0},
    ]
}
UPDATE_ROUTER: Schema = {
    "name": ANY_NAME,
    "description": DESCRIPTION,
    "admin_state_up": BOOLEAN,
    "external_gateway_info": GATEWAY,
    "distributed": FALSE,
    "ha": FALSE,
}
CREATE_ROUTER: Schema = {**UPDATE_ROUTER, "availability_zone_hints": ZONES, **OWNER}
INTERFACE: Schema = {
    "type": "object",
    "properties": {"subnet_id": UUID, "port_id": UUID},
    "minProperties": 1,
    "maxProperties": 1,
    "additionalProperties": False,
}
