# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where volumes are. Hosts store their volumes themselves: each compute host is what Cinder calls a volume service, a
back end and a pool."""

from __future__ import annotations

import time

from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.placement import hypervisor_records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volume_views import (
    snapshots_by,
    volumes_by,
)

from ...web.bodies import Answer, Record
from ...web.errors import BadRequestError
from ...web.ledger import reading_ledger
from ...web.listing import is_true
from ...web.services import reads
from ...web.times import precise as moment
from ...web.validation import body
from .blueprint import volume

BACKEND = "file"
# What Cinder's operators do with a volume service
DONE_ELSEWHERE = "any(enable, disable, 'disable-log-reason', freeze, thaw, failover_host)"


@volume.get("/os-services", "volume:admin")
@volume.get("/<project>/os-services", "volume:admin", reads)
def list_services(connection: Connection) -> Answer:
    services = _services(connection)
    args = request.args
    wanted = {key: args[key] for key in ("host", "binary") if key in args}
    rows = [
        service
        for service in services
        if all(
            str(service[key]) == value or str(service[key]).partition("@")[0] == value for key, value in wanted.items()
        )
    ]
    return {"services": rows}, 200


@volume.put(f"/<project>/os-services/<{DONE_ELSEWHERE}:action>", "volume:admin")
def change_service(action: str) -> Answer:
    """Refused with the reason; as in Cinder, a service that there is none of is not found."""
    named = body({"type": "object"})
    with reading_ledger() as connection:
        services = _services(connection)
    if action in ("enable", "disable") and not any(
        (service["host"], service["binary"]) == (named.get("host"), named.get("binary")) for service in services
    ):
        raise NotFoundError(
            f"Service {str(named.get('binary'))[:60]} could not be found on host {str(named.get('host'))[:60]}."
        )
    raise BadRequestError(f"{action}: a host's volumes are in use where its servers are: use Compute's os-services")


@volume.get("/<project>/os-hosts", "volume:admin", reads)
def list_hosts(connection: Connection) -> Answer:
    services = _services(connection)
    hosts = [
        {
            "host_name": service["host"],
            "service": service["binary"],
            "zone": service["zone"],
            "service-status": "available" if service["state"] == "up" else "unavailable",
            "service-state": service["status"],
            "last-update": service["updated_at"],
        }
        for service in services
    ]
    return {"hosts": hosts}, 200


@volume.get("/<project>/os-hosts/<name>", "volume:admin", reads)
def show_host(connection: Connection, name: str) -> Answer:
    """What a host has: of all projects, and of each."""
    _check(_services(connection), name)
    rows = volumes_by(connection, hosts=[name.partition("@")[0]])
    snapshots = snapshots_by(connection, volumes=[row.id for row in rows])
    projects = sorted({row.project_id for row in (*rows, *snapshots)})
    resources = []
    for project in (None, *projects):
        mine = [row for row in rows if project in (None, row.project_id)]
        shots = [row for row in snapshots if project in (None, row.project_id)]
        resources.append(
            {
                "host": name,
                "project": project or "(total)",
                "volume_count": str(len(mine)),
                "total_volume_gb": str(sum(row.size_gb for row in mine)),
                "snapshot_count": str(len(shots)),
                "total_snapshot_gb": str(sum(row.size_gb for row in shots)),
            }
        )
    return {"host": [{"resource": resource} for resource in resources]}, 200


@volume.get("/<project>/scheduler-stats/get_pools", "volume:admin", reads)
def list_pools(connection: Connection) -> Answer:
    services = _services(connection)
    pools: list[Record] = [{"name": f"{service['host']}#{BACKEND}"} for service in services]
    if is_true("detail"):
        for pool, service in zip(pools, services, strict=True):
            # volumes share their host's disk with its servers: its free space is Compute's to say
            unknown = {"total_capacity_gb": "unknown", "free_capacity_gb": "unknown", "reserved_percentage": 0}
            about = {**_backend(), **unknown, "QoS_support": False, "timestamp": service["updated_at"]}
            pool["capabilities"] = about
    return {"pools": pools}, 200


@volume.get("/<project>/capabilities/<name>", "volume:admin", reads)
def show_capabilities(connection: Connection, name: str) -> Answer:
    _check(_services(connection), name.partition("#")[0])
    return {
        **_backend(),
        "namespace": f"OS::Storage::Capabilities::{name}",
        "pool_name": BACKEND,
        "description": None,
        "visibility": None,
        "display_name": None,
        "replication_targets": [],
        "properties": {},
    }, 200


def _backend() -> Record:
    return {
        "vendor_name": "novalite",
        "driver_version": "1",
        "volume_backend_name": BACKEND,
        "storage_protocol": BACKEND,
    }


def _services(connection: Connection) -> list[Record]:
    now = int(time.time())
    return [
        {
            "binary": "cinder-volume",
            "host": f"{name}@{BACKEND}",
            "zone": zone,
            "status": "enabled" if host["active"] else "disabled",
            "state": "up" if host["available"] else "down",
            "updated_at": moment(host["last_seen_at"] or now),
            "disabled_reason": None,
        }
        for zone, hosts in hypervisor_records.zones(connection, now).items()
        for name, host in hosts.items()
    ]


def _check(services: list[Record], name: str) -> None:
    if not any(service["host"] == name for service in services):
        raise NotFoundError(f"Host {name[:100]} could not be found.")
