# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Neutron's resources as the asker sees them: what routes list, find by id, and check the owner of."""

from __future__ import annotations

import time
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network import network_records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.carriers import (
    ATTRIBUTES as PROVIDER,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.group_records import groups_of
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.network_records import (
    Network,
    Port,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.pool_records import (
    Pool,
    find_pool,
    pools_seen,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.router_records import (
    Router,
    routers_of,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.subnet_pool_records import (
    AddressScope,
    SubnetPool,
    scopes_seen,
    subnet_pools_seen,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.subnet_records import (
    Subnet,
    subnets_of,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.tag_records import tags_of
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.placement import hypervisor_records

from ...web import policy
from ...web.bodies import Answer, Record, the_one
from ...web.context import current
from ...web.services import Service, reads
from ...work.networks import network_row
from . import listing, views
from .blueprint import not_found, refused

OWNED = ("id", "name", "tenant_id", "project_id", "description", "revision_number")
STATE = ("admin_state_up", "status")
ZONES = ("availability_zone_hints", "availability_zones")
NETWORK = (
    *(*OWNED, *STATE, *ZONES, "subnets", "mtu", "shared", "router:external", "port_security_enabled", "is_default"),
    *("ipv4_address_scope", "ipv6_address_scope"),
    *PROVIDER,
)
SUBNET = (
    *(*OWNED, "network_id", "ip_version", "cidr", "gateway_ip", "enable_dhcp", "ipv6_ra_mode", "ipv6_address_mode"),
    *("subnetpool_id", "dns_nameservers", "host_routes", "service_types", "allocation_pools"),
)
SUBNET_POOL = (
    *(*OWNED, "prefixes", "default_quota", "min_prefixlen", "max_prefixlen", "default_prefixlen", "ip_version"),
    *("address_scope_id", "is_default", "shared"),
)
ADDRESS_SCOPE = ("id", "name", "tenant_id", "project_id", "ip_version", "shared")
PORT = (
    *(*OWNED, *STATE, "network_id", "mac_address", "fixed_ips", "device_id", "device_owner", "security_groups"),
    *("binding:vnic_type", "binding:host_id", "binding:vif_type", "port_security_enabled"),
)
PORT_FILTERS = ("id", "network_id", "device_id", "mac_address")  # of which the database knows
ROUTER = (*OWNED, *STATE, *ZONES, "external_gateway_info", "routes")
NAMELESS = ("id", "tenant_id", "project_id", "description", "revision_number")
FLOATING = (
    *(*NAMELESS, "floating_ip_address", "floating_network_id", "port_id", "fixed_ip_address", "router_id", "status"),
)
GROUP = (*OWNED, "stateful", "shared", "security_group_rules")
RULE = (
    *(*NAMELESS, "security_group_id", "direction", "ethertype", "protocol", "port_range_min", "port_range_max"),
    *("remote_ip_prefix", "normalized_cidr", "remote_group_id", "remote_address_group_id"),
)
AGENT = ("id", "agent_type", "binary", "host", "alive", "admin_state_up", "topic", "availability_zone")


def _networks(connection: Connection, _number: str | None) -> list[Record]:
    provider = policy.allowed("network:provider_attributes")
    rows = network_records.networks_seen(connection, current().reach, bare=True)
    subnets = subnets_of(connection, rows)
    return [
        *(views.network(row, subnets[row.id], provider) for row in rows),
        *(views.pool_network(row, provider) for row in pools_seen(connection)),
    ]


def _subnets(connection: Connection, _number: str | None) -> list[Record]:
    """List the subnets; those of floating pools only for administrators: as in Neutron, no other has a port there."""
    rows = network_records.networks_seen(connection, current().reach, bare=True)
    subnets = subnets_of(connection, rows)
    pools = pools_seen(connection) if policy.allowed("network:operate") else []
    return [
        *(views.subnet(row, subnet) for row in rows for subnet in subnets[row.id]),
        *(subnet for row in pools for subnet in views.pool_subnets(row)),
    ]


def _subnet_pools(connection: Connection, _number: str | None) -> list[Record]:
    return [views.subnet_pool(row) for row in subnet_pools_seen(connection, current().reach)]


def _address_scopes(connection: Connection, _number: str | None) -> list[Record]:
    return [views.address_scope(row) for row in scopes_seen(connection, current().reach)]


def _ports(connection: Connection, number: str | None) -> list[Record]:
    caller = current()
    if number is not None:
        rows = network_records.ports_of(connection, caller.reach, number)
    else:
        # what the database knows of a query; listing.answer() sees to all of it
        values = (listing.values(name) for name in PORT_FILTERS)
        choice = network_records.PortChoice(*values)
        rows = network_records.ports_chosen(connection, caller.reach, choice, listing.page(PORT_FILTERS))
        rows.sort(key=lambda row: row.id)  # Neutron's order where none is asked for, of pages and of the whole
    binding = policy.allowed("network:ports:binding")
    return [views.port(row, binding) for row in rows]


def _routers(connection: Connection, number: str | None) -> list[Record]:
    return [views.router(row) for row in routers_of(connection, current().reach, number)]


def _floating_ips(connection: Connection, number: str | None) -> list[Record]:
    rows = network_records.floating_ips_of(connection, current().reach, number)
    return [views.floating_ip(row) for row in rows]


def _groups(connection: Connection, number: str | None) -> list[Record]:
    return [views.security_group(row) for row in groups_of(connection, current().project, number)]


def _rules(connection: Connection, _number: str | None) -> list[Record]:
    return [rule for group in _groups(connection, None) for rule in group["security_group_rules"]]


def _agents(connection: Connection, _number: str | None) -> list[Record]:
    """Nothing of ours runs on the hosts. Who asks for agents wants to know which hosts answer: an administrator."""
    rows = hypervisor_records.hosts(connection) if policy.allowed("network:agents:list") else []
    return [views.agent(row, time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(row.last_seen_at))) for row in rows]


class Kind(t.NamedTuple):
    """The word for one in a body, in an error; its attributes; what there is of it, or the one with an id at least."""

    word: str
    shown: str
    attributes: tuple[str, ...]
    find: t.Callable[[Connection, str | None], list[Record]]


KINDS: dict[str, Kind] = {
    "networks": Kind("network", "Network", NETWORK, _networks),
    "subnets": Kind("subnet", "Subnet", SUBNET, _subnets),
    "subnetpools": Kind("subnetpool", "Subnet Pool", SUBNET_POOL, _subnet_pools),
    "address_scopes": Kind("address_scope", "Address Scope", ADDRESS_SCOPE, _address_scopes),
    "ports": Kind("port", "Port", PORT, _ports),
    "routers": Kind("router", "Router", ROUTER, _routers),
    "floatingips": Kind("floatingip", "Floating IP", FLOATING, _floating_ips),
    "security_groups": Kind("security_group", "Security Group", GROUP, _groups),
    "security_group_rules": Kind("security_group_rule", "Security Group Rule", RULE, _rules),
    "agents": Kind("agent", "Agent", AGENT, _agents),
}


def with_tags(connection: Connection, rows: list[Record]) -> list[Record]:
    """The resources, each that can have tags with its own."""
    tags = tags_of(connection, [row["id"] for row in rows])
    return [{**row, "tags": tags.get(row["id"], [])} if "tags" in row else row for row in rows]


def put_into(service: Service, plural: str, operation: str, lists: bool = True) -> None:
    """The routes by which one of a kind is shown, and (`lists`) all of it."""
    kind, path = KINDS[plural], f"/{plural.replace('_', '-')}"

    if lists:

        @service.get(path, operation, reads, endpoint=f"list_{plural}")
        def list_all(connection: Connection) -> Answer:
            return list_kind(connection, plural), 200

    @service.get(f"{path}/<resource_id>", operation, reads, endpoint=f"show_{kind.word}")
    def show(connection: Connection, resource_id: str) -> Answer:
        return {kind.word: listing.fields(find(connection, plural, resource_id))}, 200


def list_kind(connection: Connection, plural: str) -> Record:
    """The body of a list."""
    kind = KINDS[plural]
    return listing.answer(plural, with_tags(connection, kind.find(connection, None)), kind.attributes)


def find(connection: Connection, plural: str, number: str) -> Record:
    """Return the record of this id, in upper or lower case. Raises NeutronError for what the asker does not see."""
    kind = KINDS[plural]
    row = the_one(kind.find(connection, number.lower()), "id", number.lower(), not_found(kind.shown, number))
    return with_tags(connection, [row])[0]


def create_some(connection: Connection, plural: str, body: Record, create: t.Callable[[Record], str]) -> Record:
    """Have what `body` asks for made, one or several; returns the body that tells of it."""
    word = KINDS[plural].word
    numbers = [create(item) for item in body.get(plural) or [body[word]]]
    rows = {row["id"]: row for row in KINDS[plural].find(connection, None)}
    bodies = with_tags(connection, [rows[number] for number in numbers])
    return {plural: bodies} if plural in body else {word: bodies[0]}


def network_or_pool(connection: Connection, number: str) -> Network | Pool:
    """The network with this UUID, or the floating pool that it is. Raises NeutronError."""
    return find_pool(connection, number.lower()) or network_row(connection, number)


def subnet_row(connection: Connection, number: str) -> tuple[Network, Subnet]:
    """A subnet with the row of the network that it is of. Raises NeutronError."""
    rows = network_records.networks_seen(connection, current().reach, bare=True)
    subnets = subnets_of(connection, rows)
    for row in rows:
        for subnet in subnets[row.id]:
            if subnet.id == number.lower():
                return row, subnet
    if find_pool(connection, number.lower(), of_subnet=True) is not None:
        raise refused(f"subnet {number} is the cloud's operator's floating pool")
    raise not_found("Subnet", number)


def port_row(connection: Connection, number: str) -> Port:
    rows = network_records.ports_of(connection, current().reach, number.lower())
    return the_one(rows, "id", number.lower(), not_found("Port", number))


def router_row(connection: Connection, number: str) -> Router:
    rows = routers_of(connection, current().reach, number.lower())
    return the_one(rows, "id", number.lower(), not_found("Router", number))


def subnet_pool_row(connection: Connection, number: str) -> SubnetPool:
    rows = subnet_pools_seen(connection, current().reach)
    return the_one(rows, "id", number.lower(), not_found("Subnet Pool", number))


def address_scope_row(connection: Connection, number: str) -> AddressScope:
    rows = scopes_seen(connection, current().reach)
    return the_one(rows, "id", number.lower(), not_found("Address Scope", number))
