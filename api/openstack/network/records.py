# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Networks, subnets, ports and routers as the asker sees them: what routes list, find by id, and check the owner of."""

from __future__ import annotations

import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.network import routers
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.network.resource_tags import tags_of
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.network.routers import Router
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.network.tenant_networks import subnets_of
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import network_records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network_records import Network, Port

from ...web.bodies import Answer, Record, the_one
from ...web.context import current
from ...web.services import Service, reads
from . import listing, views
from .blueprint import NeutronError, not_found

OWNED = ("id", "name", "tenant_id", "project_id", "description", "revision_number")
STATE = ("admin_state_up", "status")
ZONES = ("availability_zone_hints", "availability_zones")
NETWORK = (
    *(*OWNED, *STATE, *ZONES, "subnets", "mtu", "shared", "router:external", "port_security_enabled", "is_default"),
    *("ipv4_address_scope", "ipv6_address_scope"),
    *("provider:network_type", "provider:physical_network", "provider:segmentation_id"),
)
SUBNET = (
    *(*OWNED, "network_id", "ip_version", "cidr", "gateway_ip", "enable_dhcp", "ipv6_ra_mode", "ipv6_address_mode"),
    *("subnetpool_id", "dns_nameservers", "host_routes", "service_types", "allocation_pools"),
)
PORT = (
    *(*OWNED, *STATE, "network_id", "mac_address", "fixed_ips", "device_id", "device_owner", "security_groups"),
    *("binding:vnic_type", "binding:host_id", "binding:vif_type", "port_security_enabled"),
)
ROUTER = (*OWNED, *STATE, *ZONES, "external_gateway_info", "routes")


def _networks(connection: Connection) -> list[Record]:
    caller = current()
    rows = network_records.networks_seen(connection, current().reach, bare=True)
    return [
        *(views.network(row, caller.is_admin) for row in rows),
        *(views.pool_network(row) for row in network_records.pools_seen(connection)),
    ]


def _subnets(connection: Connection) -> list[Record]:
    """Those of floating pools are for administrators: as in Neutron, nobody else has a port there."""
    rows = network_records.networks_seen(connection, current().reach, bare=True)
    said = subnets_of(connection, [row.id for row in rows])
    pools = network_records.pools_seen(connection) if current().is_admin else []
    return [
        *(subnet for row in rows for subnet in views.subnets(row, said)),
        *(subnet for row in pools for subnet in views.pool_subnets(row)),
    ]


def _ports(connection: Connection) -> list[Record]:
    caller = current()
    return [views.port(row, caller.is_admin) for row in network_records.ports_of(connection, current().reach)]


def _routers(connection: Connection) -> list[Record]:
    return [views.router(row) for row in routers.routers_of(connection, current().reach)]


class Kind(t.NamedTuple):
    """The word for one in a body, in an error; its attributes; what there is of it."""

    word: str
    shown: str
    attributes: tuple[str, ...]
    find: t.Callable[[Connection], list[Record]]


KINDS: dict[str, Kind] = {
    "networks": Kind("network", "Network", NETWORK, _networks),
    "subnets": Kind("subnet", "Subnet", SUBNET, _subnets),
    "ports": Kind("port", "Port", PORT, _ports),
    "routers": Kind("router", "Router", ROUTER, _routers),
}


def with_tags(connection: Connection, found: list[Record]) -> list[Record]:
    """The resources, each with its tags."""
    tags = tags_of(connection, [row["id"] for row in found])
    return [{**row, "tags": tags.get(row["id"], [])} for row in found]


def put_into(service: Service, plural: str, operation: str) -> None:
    """The routes by which a kind is listed, and one of it is shown."""
    kind = KINDS[plural]

    @service.get(f"/{plural}", operation, reads, endpoint=f"list_{plural}")
    def list_all(connection: Connection) -> Answer:
        rows = with_tags(connection, kind.find(connection))
        return listing.answer(plural, rows, kind.attributes), 200

    @service.get(f"/{plural}/<resource_id>", operation, reads, endpoint=f"show_{kind.word}")
    def show(connection: Connection, resource_id: str) -> Answer:
        return {kind.word: listing.fields(find(connection, plural, resource_id))}, 200


def find(connection: Connection, plural: str, number: str) -> Record:
    """Raises NeutronError for what the asker does not see."""
    kind = KINDS[plural]
    row = the_one(kind.find(connection), "id", number, not_found(kind.shown, number))
    return with_tags(connection, [row])[0]


def some(connection: Connection, plural: str, numbers: t.Sequence[str], many: bool) -> Record:
    """The body that tells of what was made: one, or several."""
    found = {row["id"]: row for row in KINDS[plural].find(connection)}
    bodies = with_tags(connection, [found[number] for number in numbers])
    return {plural: bodies} if many else {KINDS[plural].word: bodies[0]}


def network_row(connection: Connection, number: str, write: bool = False) -> Network:
    """The ledger's row of a network that the asker sees. Raises NeutronError, to `write` also for the operator's."""
    for row in network_records.networks_seen(connection, current().reach, bare=True):
        if row.uuid == number.lower():
            if write and not row.tenant:
                raise NeutronError(
                    403,
                    "PolicyNotAuthorized",
                    f"network {number} is the cloud's operator's, who changes it with novalite.cloud.network",
                )
            return row
    for pool in network_records.pools_seen(connection):
        if network_records.pool_network_id(pool.name) == number.lower():
            raise NeutronError(403, "PolicyNotAuthorized", f"network {number} is the cloud's operator's floating pool")
    raise not_found("Network", number)


def subnet_row(connection: Connection, number: str, write: bool = False) -> tuple[Network, int]:
    """The row of the network that a subnet is of, and its IP version. Raises NeutronError."""
    for row in network_records.networks_seen(connection, current().reach, bare=True):
        for version in (4, 6):
            if row.range_of(version) is not None and network_records.subnet_id(row.uuid, version) == number.lower():
                if write:
                    network_row(connection, row.uuid, write=True)
                return row, version
    for pool in network_records.pools_seen(connection):
        if network_records.subnet_id(network_records.pool_network_id(pool.name), 4) == number.lower():
            raise NeutronError(403, "PolicyNotAuthorized", f"subnet {number} is the cloud's operator's floating pool")
    raise not_found("Subnet", number)


def port_row(connection: Connection, number: str) -> Port:
    rows = network_records.ports_of(connection, current().reach, number.lower())
    return the_one(rows, "id", number.lower(), not_found("Port", number))


def router_row(connection: Connection, number: str) -> Router:
    rows = routers.routers_of(connection, current().reach, number.lower())
    return the_one(rows, "id", number.lower(), not_found("Router", number))
