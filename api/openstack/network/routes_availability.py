# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Counts of a network's addresses, all and those that are taken: for administrators, as in Neutron."""

from __future__ import annotations

import collections

from flask import request
from netaddr import IPRange

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection

from ...web.bodies import Answer, Record, the_one
from ...web.services import reads
from . import listing, records
from .blueprint import network, not_found

PLURAL = "network_ip_availabilities"
ATTRIBUTES = ("network_id", "network_name", "tenant_id", "project_id", "ip_version")
HIDDEN = ("id", "ip_version")  # what a list is walked and filtered by


@network.get("/network-ip-availabilities", "network:ip_availability:read", reads)
def list_availabilities(connection: Connection) -> Answer:
    version = request.args.get("ip_version")
    rows = [{"id": row["network_id"], "ip_version": version, **row} for row in _availabilities(connection, version)]
    body = listing.answer(PLURAL, rows, ATTRIBUTES)
    body[PLURAL] = [{key: row[key] for key in row if key not in HIDDEN} for row in body[PLURAL]]
    return body, 200


@network.get("/network-ip-availabilities/<network_id>", "network:ip_availability:read", reads)
def show_availability(connection: Connection, network_id: str) -> Answer:
    missing = not_found("Network", network_id)
    row = the_one(_availabilities(connection), "network_id", network_id.lower(), missing)
    return {"network_ip_availability": row}, 200


def _availabilities(connection: Connection, version: str | None = None) -> list[Record]:
    """Networks with their subnets, of one IP `version` or of both."""
    subnets: dict[str, list[Record]] = collections.defaultdict(list)
    used = _used(connection)
    for subnet in records.KINDS["subnets"].find(connection, None):
        if version not in (None, str(subnet["ip_version"])):
            continue
        total = sum(IPRange(pool["start"], pool["end"]).size for pool in subnet["allocation_pools"])
        subnets[subnet["network_id"]].append(
            {
                "subnet_id": subnet["id"],
                "subnet_name": subnet["name"],
                "cidr": subnet["cidr"],
                "ip_version": subnet["ip_version"],
                "total_ips": total,
                "used_ips": used[subnet["id"]] or used[subnet["network_id"]],
            }
        )
    return [
        {
            "network_id": row["id"],
            "network_name": row["name"],
            "tenant_id": row["tenant_id"],
            "project_id": row["project_id"],
            "subnet_ip_availability": subnets[row["id"]],
            **{key: sum(subnet[key] for subnet in subnets[row["id"]]) for key in ("total_ips", "used_ips")},
        }
        for row in records.KINDS["networks"].find(connection, None)
    ]


def _used(connection: Connection) -> collections.Counter[str]:
    """Number of addresses in use of each subnet, and of each floating pool by its network."""
    of_ports = (
        address["subnet_id"] for port in records.KINDS["ports"].find(connection, None) for address in port["fixed_ips"]
    )
    of_pools = (row["floating_network_id"] for row in records.KINDS["floatingips"].find(connection, None))
    return collections.Counter([*of_ports, *of_pools])
