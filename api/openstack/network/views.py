# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Records of the ledger as Neutron's resources. Pure functions."""

from __future__ import annotations

import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.carriers import (
    ATTRIBUTES as PROVIDER,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.carriers import attributes_of
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.network_records import (
    FloatingIp,
    Network,
    Port,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.pool_records import Pool
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.router_records import Router
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.subnet_pool_records import (
    AddressScope,
    SubnetPool,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.subnet_records import (
    Subnet,
    derived_id,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.placement.hypervisor_records import Host

from ...web.bodies import Body, Record, same

DEFAULT_MTU = 1500  # bytes, what a bridge has that nobody gave another
ZONE = "nova"
IN_ZONE: Body = {"availability_zone_hints": [], "availability_zones": [ZONE]}
RUNNING = 1  # Nova's power state

# what our rules call otherwise than Neutron
PROTOCOLS = {"any": None, "icmpv6": "ipv6-icmp"}


def network(row: Network, subnets: t.Sequence[Subnet], admin: bool = False) -> Body:
    """A network with these subnets."""
    numbers = [subnet.id for subnet in subnets]
    shown = _network(row.uuid, shown_name(row), row.owner or row.made_by, numbers, row.mtu or DEFAULT_MTU)
    shown.update({"shared": row.owner == "", "router:external": False, "description": row.description})
    shown.update(same(row, "port_security_enabled", "admin_state_up", "is_default"))
    for subnet in subnets:
        if subnet.address_scope_id is not None:
            shown[f"ipv{subnet.version}_address_scope"] = subnet.address_scope_id
    if admin:
        shown.update(attributes_of(row))
    return shown


def shown_name(row: Network) -> str:
    """Return a network's name in the Network API: names that projects give need not be unique."""
    return str(row.name if row.display_name is None else row.display_name)


def pool_network(row: Pool, admin: bool = False) -> Body:
    """A floating pool as the external network that clients take floating IPs from."""
    numbers = [row.subnet_uuid] if row.cidr else []
    shown = _network(row.uuid, row.shown_name, row.made_by, numbers, row.mtu or DEFAULT_MTU)
    shown.update(same(row, "description", "port_security_enabled"))
    carrier = dict(zip(PROVIDER, ("flat", row.interface, None))) if admin else {}
    return {**shown, "shared": False, "router:external": True, **carrier}


def _owned(number: str, owner: str, description: str | None = "") -> Body:
    """Return the attributes that all resources have."""
    return {
        "id": number,
        "tenant_id": owner,
        "project_id": owner,
        "description": description or "",
        "tags": [],
        "revision_number": 1,
    }


def _network(number: str, name: str, owner: str, subnets: list[str], mtu: int) -> Body:
    return {
        **_owned(number, owner),
        "name": name,
        "admin_state_up": True,
        "status": "ACTIVE",
        "subnets": subnets,
        "mtu": mtu,
        **IN_ZONE,
        **dict.fromkeys(("ipv4_address_scope", "ipv6_address_scope")),
        "port_security_enabled": True,
        "is_default": False,
    }


def subnet(row: Network, record: Subnet) -> Body:
    """A subnet of the network `row`."""
    return {
        **_subnet(record.id, row.uuid, record.version, row.owner or row.made_by),
        **same(record, "name", "description", "cidr", "enable_dhcp", "subnetpool_id"),
        "gateway_ip": record.gateway,
        "dns_nameservers": record.dns,
        "allocation_pools": _ranges(record.pools),
        "host_routes": record.routes,
        **{f"ipv6_{mode}": getattr(record, mode) for mode in ("ra_mode", "address_mode")},
    }


def pool_subnets(row: Pool) -> list[Body]:
    if not row.cidr:  # it has none yet
        return []
    name = row.shown_name if row.subnet_name is None else row.subnet_name
    shown = {**_subnet(row.subnet_uuid, row.uuid, 4, row.made_by), "name": name, "cidr": row.cidr}
    shown["gateway_ip"] = row.gateway
    return [{**shown, "enable_dhcp": False, "dns_nameservers": [], "allocation_pools": _ranges(row.ranges)}]


def _subnet(number: str, network_uuid: str, version: int, owner: str) -> Body:
    return {
        **_owned(number, owner),
        "network_id": network_uuid,
        "ip_version": version,
        **dict.fromkeys(("ipv6_ra_mode", "ipv6_address_mode", "subnetpool_id")),
        "host_routes": [],
        "service_types": [],
    }


def subnet_pool(row: SubnetPool) -> Body:
    return {
        **_owned(row.id, row.project_id, row.description),
        **same(row, "name", "ip_version", "prefixes", "default_quota", "address_scope_id", "is_default", "shared"),
        # as text, which Neutron answers
        **{name: str(getattr(row, name)) for name in ("min_prefixlen", "max_prefixlen", "default_prefixlen")},
    }


def address_scope(row: AddressScope) -> Body:
    owner = {"tenant_id": row.project_id, "project_id": row.project_id}
    return {**same(row, "id", "name", "ip_version", "shared"), **owner}


def _ranges(ranges: t.Iterable[t.Sequence[str]]) -> list[Body]:
    return [{"start": low, "end": high} for low, high in ranges]


def fixed_ips(row: Port) -> list[dict[str, str]]:
    return [
        {"subnet_id": row.subnet_ids[address], "ip_address": address}
        for address in (row.ip, *row.more_ips, row.ipv6)
        if address
    ]


def port(row: Port, admin: bool = False) -> Body:
    attached = row.instance_uuid is not None
    runs = row.router_id is not None or (attached and row.power_state == RUNNING and row.status != "attaching")
    up = True if row.admin_state_up is None else bool(row.admin_state_up)
    binding = row.binding or {}
    shown = {
        **_owned(row.id, row.project_id, row.description),
        "name": row.name or "",
        "network_id": row.network_uuid,
        "admin_state_up": up,
        "status": "ACTIVE" if runs and up else "DOWN",
        "mac_address": row.mac,
        "fixed_ips": fixed_ips(row),
        "device_id": row.instance_uuid if attached else row.device_id,
        "device_owner": f"compute:{row.availability_zone or ZONE}" if attached else row.device_owner,
        "security_groups": row.groups_in_force,
        "allowed_address_pairs": [
            {"ip_address": pair["ip_address"], "mac_address": pair.get("mac_address") or row.mac}
            for pair in row.allowed_address_pairs or ()
        ],
        "binding:vnic_type": binding.get("vnic_type", "normal"),
        "extra_dhcp_opts": row.extra_dhcp_opts or [],
        "port_security_enabled": row.port_security_enabled,
    }
    if admin:
        shown["binding:host_id"] = row.host or ("" if attached else binding.get("host_id", ""))
        shown["binding:vif_type"] = "bridge" if attached else "unbound"
        shown.update({"binding:profile": binding.get("profile", {}), "binding:vif_details": {}})
    return shown


def router(row: Router) -> Body:
    leads: Body | None = None
    if row.network_uuid is not None:
        leads = {"network_id": row.network_uuid, "enable_snat": bool(row.enable_snat)}
        of_subnet = {"subnet_id": derived_id(row.network_uuid, 4)}
        leads["external_fixed_ips"] = [{**of_subnet, "ip_address": address} for address in row.addresses]
    return {
        **_owned(row.id, row.project_id, row.description),
        "name": row.name,
        "admin_state_up": bool(row.admin_state_up),
        "status": "ACTIVE",
        "external_gateway_info": leads,
        "routes": [],
        **IN_ZONE,
    }


def agent(row: Host, seen: str) -> Body:
    """A compute host as the agent that its network is done by."""
    return {
        "id": row.service_uuid,
        "agent_type": "Linux bridge agent",
        "binary": "novalite",
        "topic": "N/A",
        "host": row.name,
        "availability_zone": None,
        "admin_state_up": bool(row.state.enabled),
        "alive": bool(row.state.up),
        **dict.fromkeys(("created_at", "started_at", "heartbeat_timestamp"), seen),
        "description": None,
        "resources_synced": None,
        "configurations": {},
    }


def security_group(row: Record) -> Body:
    return {
        **_owned(row["uuid"], row["project_id"], row["description"]),
        "name": row["name"],
        "stateful": True,
        "shared": False,
        "security_group_rules": [rule(entry, row["project_id"]) for entry in row["rules"]],
    }


def rule(row: Record, project_id: str) -> Body:
    # what lets everything out anywhere has no prefix, as in the groups that Neutron makes
    anywhere = row["direction"] == "egress" and row["protocol"] == "any" and row["cidr"] in ("0.0.0.0/0", "::/0")
    return {
        **_owned(row["id"], project_id, row.get("description")),
        "security_group_id": row["group_uuid"],
        **same(row, "direction", "ethertype"),
        "protocol": row["protocol_said"] or PROTOCOLS.get(row["protocol"], row["protocol"]),
        "port_range_min": row["port_min"],
        "port_range_max": row["port_max"],
        "remote_ip_prefix": None if anywhere else row["cidr_said"] or row["said_cidr"],
        "normalized_cidr": None if anywhere else row["said_cidr"],
        "remote_group_id": row["remote_group_uuid"],
        "remote_address_group_id": None,
    }


def floating_ip(row: FloatingIp) -> Body:
    led = row.vif_id is not None
    return {
        **_owned(row.id, row.project_id, row.description),
        "floating_ip_address": row.address,
        "floating_network_id": row.pool_uuid,
        "port_id": row.vif_id,
        "fixed_ip_address": row.fixed_ip,
        "router_id": row.router_id,
        "status": "ACTIVE" if led else "DOWN",
        "port_details": {
            "name": "",
            "network_id": row.network_uuid,
            "mac_address": row.mac,
            "admin_state_up": True,
            "status": "ACTIVE" if row.power_state == RUNNING else "DOWN",
            "device_id": row.instance_uuid or "",
            "device_owner": f"compute:{ZONE}" if row.instance_uuid else "",
        }
        if led
        else None,
        "port_forwardings": [],
    }
