# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""JSON Schemas of requests to the Network API."""

from __future__ import annotations

import typing as t

from ...web.schemas import NAME, OPTIONAL, TEXT, UUID, Schema, a_list, an_object, or_null, wrapped

OPTIONAL_UUID: Schema = {"anyOf": [{"type": "null"}, UUID]}
# numbers come as text, too: Neutron converts
NUMBER: Schema = {"anyOf": [{"type": ["integer", "null"]}, {"type": "string", "pattern": "^-?[0-9]{1,9}$"}]}
BOOLEAN: Schema = {"type": "boolean"}


def text(most: int) -> Schema:
    return {"type": "string", "maxLength": most}


NAMED: Schema = {"name": TEXT, "description": TEXT}
OWNER: Schema = {"project_id": OPTIONAL, "tenant_id": OPTIONAL}
MANY = 100


def one_or_many(name: str, properties: Schema, required: t.Sequence[str] = ()) -> Schema:
    """{"<name>": {...}}, or {"<name>s": [...]} for several at once."""
    inner = an_object(properties, required)
    return an_object({name: inner, f"{name}s": a_list(inner, MANY, 1)}, minProperties=1, maxProperties=1)


CREATE_GROUP = one_or_many(
    "security_group", {"name": NAME, "description": TEXT, "stateful": {"const": True}, **OWNER}, ["name"]
)
UPDATE_GROUP = wrapped("security_group", {"name": NAME, "description": TEXT, "stateful": {"const": True}})
CREATE_RULE = one_or_many(
    "security_group_rule",
    {
        "security_group_id": UUID,
        "direction": {"enum": ["ingress", "egress"]},
        "ethertype": {"type": ["string", "null"], "pattern": "^[iI][pP][vV][46]$"},
        "protocol": {"anyOf": [{"type": ["integer", "null"]}, text(40)]},
        **dict.fromkeys(("port_range_min", "port_range_max"), NUMBER),
        "remote_ip_prefix": or_null(text(64)),
        "remote_group_id": OPTIONAL,  # what is none is not found
        "remote_address_group_id": {"type": "null"},
        "description": OPTIONAL,
        **OWNER,
    },
    ["security_group_id", "direction"],
)
CREATE_FLOATING = wrapped(
    "floatingip",
    {
        "floating_network_id": UUID,
        "floating_ip_address": or_null(text(64)),
        **dict.fromkeys(("subnet_id", "port_id"), OPTIONAL_UUID),
        "fixed_ip_address": or_null(text(64)),
        "description": OPTIONAL,
        **OWNER,
    },
    ["floating_network_id"],
)
UPDATE_FLOATING = wrapped(
    "floatingip", {"port_id": OPTIONAL_UUID, "fixed_ip_address": or_null(text(64)), "description": OPTIONAL}
)
LIMIT: Schema = {"type": "integer", "minimum": -1, "maximum": 2**31 - 1}
UPDATE_QUOTA = wrapped(
    "quota",
    {
        **dict.fromkeys(("network", "subnet", "port", "router", "floatingip", "security_group"), LIMIT),
        **dict.fromkeys(("security_group_rule", "subnetpool", "rbac_policy"), LIMIT),
        **dict.fromkeys(("force", "check_limit"), BOOLEAN),
        **OWNER,
    },
)


FALSE: Schema = {"const": False}
ADDRESS: Schema = text(45)
ZONES: Schema = a_list({"const": "nova"}, 1)
NETWORK: Schema = {
    **NAMED,
    "port_security_enabled": BOOLEAN,
    "admin_state_up": BOOLEAN,
    **dict.fromkeys(("shared", "router:external", "is_default"), BOOLEAN),  # the route says which
    **dict.fromkeys(("provider:network_type", "provider:physical_network"), or_null(text(64))),
    "provider:segmentation_id": NUMBER,
}
CREATE_NETWORK: Schema = {
    **NETWORK,
    "mtu": {"type": ["integer", "null"], "minimum": 0, "maximum": 65535},
    "availability_zone_hints": ZONES,
    **OWNER,
}
POOLS = a_list(an_object({"start": ADDRESS, "end": ADDRESS}, ["start", "end"]), 32)
ROUTES = a_list(an_object({"destination": text(43), "nexthop": ADDRESS}, ["destination", "nexthop"]), 64)
UPDATE_SUBNET: Schema = {
    **NAMED,
    "gateway_ip": or_null(text(45)),
    "allocation_pools": POOLS,
    "dns_nameservers": a_list(ADDRESS, 64),
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
    "cidr": text(64),
    "ipv6_ra_mode": MODE,
    "ipv6_address_mode": MODE,
    "subnetpool_id": OPTIONAL_UUID,
    "use_default_subnetpool": BOOLEAN,
    "prefixlen": NUMBER,
    **OWNER,
}
PREFIXES = a_list(text(43), 100, 1)
UPDATE_SUBNET_POOL: Schema = {
    **NAMED,
    "prefixes": PREFIXES,
    **dict.fromkeys(("min_prefixlen", "max_prefixlen", "default_prefixlen"), NUMBER),
    "default_quota": {"type": ["integer", "null"], "minimum": 0, "maximum": 2**31 - 1},
    "address_scope_id": OPTIONAL_UUID,
    "is_default": BOOLEAN,
}
CREATE_SUBNET_POOL: Schema = {**UPDATE_SUBNET_POOL, "shared": BOOLEAN, **OWNER}
UPDATE_ADDRESS_SCOPE: Schema = {"name": TEXT, "shared": BOOLEAN}
CREATE_ADDRESS_SCOPE: Schema = {**UPDATE_ADDRESS_SCOPE, "ip_version": {"enum": [4, 6, "4", "6"]}, **OWNER}
FIXED_IPS = a_list(an_object({"subnet_id": UUID, "ip_address": ADDRESS}), 16)
PAIRS = or_null(a_list(an_object({"ip_address": text(43), "mac_address": text(40)}, ["ip_address"]), 64))
VNIC_TYPES = ("normal", "direct", "direct-physical", "macvtap", "baremetal", "virtio-forwarder", "smart-nic")
DHCP_OPTION = an_object(
    {"opt_name": text(64), "opt_value": or_null(text(255)), "ip_version": {"enum": [4, 6, "4", "6"]}}, ["opt_name"]
)
UPDATE_PORT: Schema = {
    **NAMED,
    "admin_state_up": BOOLEAN,
    "fixed_ips": FIXED_IPS,
    "security_groups": or_null(a_list(UUID, 64)),
    "allowed_address_pairs": PAIRS,
    **dict.fromkeys(("device_id", "device_owner"), TEXT),
    "port_security_enabled": BOOLEAN,
    "extra_dhcp_opts": or_null(a_list(DHCP_OPTION, 32)),
    "binding:vnic_type": {"enum": [*VNIC_TYPES]},
    "binding:profile": {"type": ["object", "null"], "maxProperties": 64},
    "mac_address": text(40),  # administrators', while nobody has the port
    "binding:host_id": or_null(text(255)),  # where nobody asks for it: a port is where its server is
}
CREATE_PORT: Schema = {
    **UPDATE_PORT,
    "network_id": UUID,
    **{"mac_address": or_null(text(40)), "fixed_ips": or_null(FIXED_IPS)},  # null: what there is
    **OWNER,
}
GATEWAY_ADDRESSES = or_null(a_list(an_object({"subnet_id": OPTIONAL_UUID, "ip_address": ADDRESS}), 8))
LEADS = an_object({"network_id": UUID, "enable_snat": BOOLEAN, "external_fixed_ips": GATEWAY_ADDRESSES}, ["network_id"])
GATEWAY: Schema = {"anyOf": [{"type": "null"}, LEADS, {"type": "object", "maxProperties": 0}]}
UPDATE_ROUTER: Schema = {
    **NAMED,
    "admin_state_up": BOOLEAN,
    "external_gateway_info": GATEWAY,
    "routes": {"type": ["array", "null"], "maxItems": 0},  # guests are led by their hosts
    **dict.fromkeys(("distributed", "ha"), FALSE),
}
CREATE_ROUTER: Schema = {**UPDATE_ROUTER, "availability_zone_hints": ZONES, **OWNER}
INTERFACE = an_object({"subnet_id": UUID, "port_id": UUID}, minProperties=1, maxProperties=1)
