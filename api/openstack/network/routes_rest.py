# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Versions, extensions, zones, quotas, agents and tags: what clients ask beside the resources."""

from __future__ import annotations

import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.identity import quotas
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.network import tags
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import counts
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.identity.quota_records import (
    default_limits,
    projects_with_quotas,
    quota_limits,
)

from ...web.addresses import base_url
from ...web.bodies import Answer, Record
from ...web.context import check_project
from ...web.maps import Tags, Update
from ...web.schemas import NAME
from ...web.services import reads, takes, writes
from ...work.calls import calling
from ...work.networks import network_row
from . import listing, records, schemas
from .blueprint import NeutronError, network, network_versions, not_found, word

# Those of Neutron's whose behaviour is found here
EXTENSIONS = {
    "security-group": "security-group",
    "security-groups-normalized-cidr": "Normalized CIDR field for security group rules",
    "router": "Neutron L3 Router",
    "external-net": "Neutron external network",
    "allowed-address-pairs": "Allowed Address Pairs",
    "port-security": "Port Security",
    "extra_dhcp_opt": "Neutron Extra DHCP options",
    "binding": "Port Binding",
    "provider": "Provider Network",
    "net-mtu": "Network MTU",
    "network-ip-availability": "Network IP Availability",
    "quotas": "Quota management support",
    "quota_details": "Quota details management support",
    "availability_zone": "Availability Zone",
    "network_availability_zone": "Network Availability Zone",
    "pagination": "Pagination support",
    "sorting": "Sorting support",
    "project-id": "project_id field enabled",
    "filter-validation": "Filter parameters validation",
    "fip-port-details": "Floating IP Port Details Extension",
    "port-security-groups-filtering": "Port filtering on security groups",
    "ip-substring-filtering": "IP address substring filtering",
    "ext-gw-mode": "Neutron L3 Configurable external gateway mode",
    "router_availability_zone": "Router Availability Zone",
    "standard-attr-description": "standard-attr-description",
    "standard-attr-tag": "Tag support for resources with standard attributes",
    "tag": "Tag support",
    "subnet_allocation": "Subnet Allocation",
    "default-subnetpools": "Default Subnetpools",
    "address-scope": "Address scope",
}
UPDATED = "2026-01-01T00:00:00-00:00"

# Neutron's resources, and what our quotas call them
COUNTED = {
    "network": "networks",
    "subnet": "subnets",
    "port": "ports",
    "router": "routers",
    "floatingip": "floating_ips",
    "security_group": "security_groups",
    "security_group_rule": "security_group_rules",
    "subnetpool": "subnet_pools",
    "rbac_policy": "rbac_policies",
}


records.put_into(network, "agents", "network:agents:read")


@network_versions.get("/", "version", strict_slashes=False)
def list_versions() -> Answer:
    links = [{"rel": "self", "href": f"{base_url()}/network/v2.0/"}]
    return {"versions": [{"id": "v2.0", "status": "CURRENT", "links": links}]}, 200


@network.get("/", "version", strict_slashes=False)
def show_version() -> Answer:
    names = (
        *("network", "subnet", "port", "security_group", "security_group_rule", "floatingip", "router", "extension"),
        *("subnetpool", "address_scope"),
    )
    plurals = {name: f"{name}s".replace("_", "-") for name in names}
    root = f"{base_url()}/network/v2.0/"
    return {
        "resources": [
            {"name": name, "collection": plural, "links": [{"rel": "self", "href": root + plural}]}
            for name, plural in plurals.items()
        ]
    }, 200


@network.get("/extensions", "network:read")
def list_extensions() -> Answer:
    return {"extensions": [_extension(alias) for alias in EXTENSIONS]}, 200


@network.get("/extensions/<alias>", "network:read")
def show_extension(alias: str) -> Answer:
    if alias not in EXTENSIONS:
        raise not_found("Extension", alias)
    return {"extension": _extension(alias)}, 200


def _extension(alias: str) -> Record:
    name = EXTENSIONS[alias]
    return {"alias": alias, "name": name, "description": name, "updated": UPDATED, "links": []}


@network.get("/availability_zones", "network:read")
def list_zones() -> Answer:
    zones = [{"id": kind, "name": "nova", "resource": kind, "state": "available"} for kind in ("network", "router")]
    body = listing.answer("availability_zones", zones, ("name", "resource", "state"))
    body["availability_zones"] = [
        {key: zone[key] for key in zone if key != "id"} for zone in body["availability_zones"]
    ]
    return body, 200


@network.get("/quotas", "network:quotas:list", reads)
def list_quotas(connection: Connection) -> Answer:
    """List the quotas that an administrator changed, as Neutron lists them."""
    return {
        "quotas": [
            {**_limits(quota_limits(connection, project)), "tenant_id": project, "project_id": project}
            for project in projects_with_quotas(connection, list(COUNTED.values()))
        ]
    }, 200


@network.get("/quotas/<project>", "network:read", reads)
def show_quotas(connection: Connection, project: str) -> Answer:
    return {"quota": _limits(quota_limits(connection, _project(connection, project)))}, 200


@network.get("/quotas/<project>/default", "network:read", reads)
def show_default_quotas(connection: Connection, project: str) -> Answer:
    _project(connection, project)
    return {"quota": _limits(default_limits(connection))}, 200


@network.get("/quotas/<project>/details.json", "network:read")
@network.get("/quotas/<project>/details", "network:read", reads)
def show_quota_details(connection: Connection, project: str) -> Answer:
    owner = _project(connection, project)
    limits, used = _limits(quota_limits(connection, owner)), counts.used(connection, owner)
    counted = {name: used.get(ours, 0) for name, ours in COUNTED.items()}
    return {"quota": {name: {"limit": limits[name], "used": counted[name], "reserved": 0} for name in limits}}, 200


@network.put("/quotas/<project>", "network:quotas:update", takes(schemas.UPDATE_QUOTA), writes)
def update_quotas(connection: Connection, body: Record, project: str) -> Answer:
    owner = _project(connection, project)
    limits = {ours: body[name] for name, ours in COUNTED.items() if name in body}
    # Neutron without the extension quota-check-limit takes limits below what there is
    return {"quota": _limits(quotas.set_limits(calling(connection), owner, limits, force=True))}, 200


@network.delete("/quotas/<project>", "network:quotas:update", writes)
def delete_quotas(connection: Connection, project: str) -> Answer:
    quotas.reset(calling(connection), _project(connection, project), list(COUNTED.values()))
    return "", 204


def _limits(limits: t.Mapping[str, int]) -> dict[str, int]:
    return {name: limits[ours] for name, ours in COUNTED.items()}


def _project(connection: Connection, number: str) -> str:
    return check_project(connection, number, word(404, "ProjectNotFound"))


# --- Tags -----------------------------------------------------------------------------------------------------------

TAGGED = "any(networks, subnets, subnetpools, ports, routers, 'security-groups', floatingips)"


def _tags(connection: Connection, path: str, number: str) -> list[str]:
    """The tags of a resource that the asker sees. Raises NeutronError."""
    return t.cast("list[str]", records.find(connection, path.replace("-", "_"), number)["tags"])


def _write(connection: Connection, update: Update, plural: str, number: str) -> list[str]:
    _tags(connection, plural, number)
    tags.change(calling(connection), number.lower(), update, of=_owned(connection, plural, number))
    return _tags(connection, plural, number)


def _owned(connection: Connection, plural: str, number: str) -> tags.Owned | None:
    """The network or subnet pool that such a resource is, or is of; None: others see no such resource."""
    if plural == "subnets":
        return records.subnet_row(connection, number)[0]
    if plural == "networks":
        return network_row(connection, number)
    return records.subnet_pool_row(connection, number) if plural == "subnetpools" else None


Tags(
    name="tags",
    path=f"/<{TAGGED}:plural>/<resource_id>/tags",
    reads="network:tags:read",
    writes="network:tags:write",
    schema=NAME,
    most=50,
    find=_tags,
    write=_write,
    missing=lambda tag, _plural, _number: NeutronError(404, "TagNotFound", f"Tag {tag[:255]} could not be found."),
).put_into(network)
