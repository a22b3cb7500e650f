# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Extensions, quotas, zones: what clients ask beside the resources."""

from __future__ import annotations

import time
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.catalog import project_usage
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity.quotas import (
    default_limits,
    quota_limits,
    reset_quotas,
    write_quotas,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.placement import hypervisor_records

from ...web.bodies import Answer, Record, the_one
from ...web.context import current
from ...web.ledger import reading_ledger
from ...web.services import reads, takes, writes
from ..projects import check_project
from . import listing, schemas, views
from .blueprint import network, not_found, word

# Those of Neutron's whose behaviour is found here
EXTENSIONS = {
    "security-group": "security-group",
    "router": "Neutron L3 Router",
    "external-net": "Neutron external network",
    "allowed-address-pairs": "Allowed Address Pairs",
    "port-security": "Port Security",
    "binding": "Port Binding",
    "provider": "Provider Network",
    "net-mtu": "Network MTU",
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
}
UPDATED = "2026-01-01T00:00:00-00:00"

# Neutron's resources, and what our quotas call them; -1: nobody counts them
RESOURCES = {
    "network": "networks",
    "subnet": "subnets",
    "port": "ports",
    "router": "routers",
    "floatingip": "floating_ips",
    "security_group": "security_groups",
    "security_group_rule": "security_group_rules",
    "subnetpool": None,
    "rbac_policy": None,
}


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
        {key: value for key, value in zone.items() if key != "id"} for zone in body["availability_zones"]
    ]
    return body, 200


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
    limits = _limits(quota_limits(connection, owner))
    used = project_usage.used(connection, owner)
    return {
        "quota": {
            name: {"limit": limit, "used": used.get(RESOURCES[name] or "", 0), "reserved": 0}
            for name, limit in limits.items()
        }
    }, 200


@network.put("/quotas/<project>", "network:quotas:update", takes(schemas.UPDATE_QUOTA), writes)
def update_quotas(connection: Connection, wanted: Record, project: str) -> Answer:
    owner = _project(connection, project)
    limits = {RESOURCES[name]: limit for name, limit in wanted.items() if name in RESOURCES}
    write_quotas(connection, owner, {name: limit for name, limit in limits.items() if name is not None})
    return {"quota": _limits(quota_limits(connection, owner))}, 200


@network.delete("/quotas/<project>", "network:quotas:update", writes)
def delete_quotas(connection: Connection, project: str) -> Answer:
    owner = _project(connection, project)
    reset_quotas(connection, owner, [name for name in RESOURCES.values() if name is not None])
    return "", 204


def _limits(limits: t.Mapping[str, int]) -> dict[str, int]:
    return {name: -1 if ours is None else limits[ours] for name, ours in RESOURCES.items()}


def _project(connection: Connection, number: str) -> str:
    return check_project(connection, number, word(404, "ProjectNotFound"))


# --- Agents ---------------------------------------------------------------------------------------------------------


@network.get("/agents", "network:agents:read")
def list_agents() -> Answer:
    """Nothing of ours runs on the hosts. Who asks for agents wants to know which hosts answer: an administrator."""
    attributes = ("id", "agent_type", "binary", "host", "alive", "admin_state_up", "topic", "availability_zone")
    with reading_ledger() as connection:
        agents = _agents(connection)
    return listing.answer("agents", agents, attributes), 200


@network.get("/agents/<agent_id>", "network:agents:read", reads)
def show_agent(connection: Connection, agent_id: str) -> Answer:
    agent = the_one(_agents(connection), "id", agent_id, not_found("Agent", agent_id))
    return {"agent": listing.fields(agent)}, 200


def _agents(connection: Connection) -> list[Record]:
    rows = hypervisor_records.hosts(connection, int(time.time())) if current().is_admin else []
    return [views.agent(row, time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(row.last_seen_at))) for row in rows]
