# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Routes besides those of volumes: versions, limits, quotas, zones, extensions, and the hosts of volumes."""

from __future__ import annotations

import typing as t

from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import clock
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.identity import (
    quotas as quota_operations,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import counts
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.identity import quota_records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.jobs import job_records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.placement import hypervisor_records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volumes.volume_views import (
    snapshots_by,
    volumes_by,
)

from ...web import policy
from ...web.addresses import base_url
from ...web.bodies import Answer, Record
from ...web.context import check_project, current
from ...web.errors import BadRequestError
from ...web.listing import is_true
from ...web.microversions import text
from ...web.services import reads, takes, writes
from ...web.times import precise as moment
from ...work.calls import calling
from . import listing, schemas
from .blueprint import MAX_VERSION, MIN_VERSION, UPDATED, speaks, volume, volume_versions

# Cinder's names. Of the last three there is none: their limits are kept, for clients set all of them together.
QUOTAS = ("volumes", "snapshots", "gigabytes", "per_volume_gigabytes", "backups", "backup_gigabytes", "groups")
EXTENSIONS = {
    "backups": "Backups",
    "os-quota-sets": "Quotas",
    "os-quota-class-sets": "QuotaClasses",
    "os-hosts": "Hosts",
    "os-availability-zone": "AvailabilityZones",
    "os-services": "Services",
    "os-types-manage": "TypesManage",
    "os-types-extra-specs": "TypesExtraSpecs",
    "os-volume-type-access": "VolumeTypeAccess",
    "os-volume-actions": "VolumeActions",
    "os-extended-snapshot-attributes": "ExtendedSnapshotAttributes",
    "os-used-limits": "UsedLimits",
    "os-volume-transfer": "VolumeTransfer",
}


def _document() -> Record:
    return {
        "id": "v3.0",
        "status": "CURRENT",
        "version": text(MAX_VERSION),
        "min_version": text(MIN_VERSION),
        "updated": UPDATED,
        "links": [{"rel": "self", "href": f"{base_url()}/volume/v3/"}],
        "media-types": [{"base": "application/json", "type": "application/vnd.openstack.volume+json;version=3"}],
    }


@volume_versions.get("/", "version", strict_slashes=False)
def list_versions() -> Answer:
    return {"versions": [_document()]}, 300


@volume.get("/", "version", strict_slashes=False)
def show_version() -> Answer:
    return {"versions": [_document()]}, 200


@volume.get("/<project>/limits", "volume:read", reads)
def show_limits(connection: Connection) -> Answer:
    caller = current()
    target = (
        request.args.get("project_id") if policy.allowed("volume:limits:other_project") else None
    ) or caller.project
    limits, used = quota_records.quota_limits(connection, target), counts.used(connection, target)
    absolute = {
        "totalVolumesUsed": used["volumes"],
        "totalGigabytesUsed": used["gigabytes"],
        "totalSnapshotsUsed": used["snapshots"],
        "totalBackupsUsed": used["backups"],
        "totalBackupGigabytesUsed": used["backup_gigabytes"],
        "maxTotalVolumes": limits["volumes"],
        "maxTotalVolumeGigabytes": limits["gigabytes"],
        "maxTotalSnapshots": limits["snapshots"],
        "maxTotalBackups": limits["backups"],
        "maxTotalBackupGigabytes": limits["backup_gigabytes"],
    }
    return {"limits": {"rate": [], "absolute": absolute}}, 200


# --- Quotas ---------------------------------------------------------------------------------------------------------


@volume.get("/<project>/os-quota-sets/<target>", "volume:read", reads)
def show_quotas(connection: Connection, target: str) -> Answer:
    owner = check_project(connection, target)
    shown = _shown(quota_records.quota_limits(connection, owner))
    if is_true("usage"):
        used = counts.used(connection, owner)
        shown = {name: {"limit": limit, "in_use": used.get(name, 0), "reserved": 0} for name, limit in shown.items()}
    return {"quota_set": {"id": target, **shown}}, 200


@volume.get("/<project>/os-quota-sets/<target>/defaults", "volume:read", reads)
def show_default_quotas(connection: Connection, target: str) -> Answer:
    check_project(connection, target)
    return {"quota_set": {"id": target, **_shown(quota_records.default_limits(connection))}}, 200


@volume.put("/<project>/os-quota-sets/<target>", "volume:admin", takes(schemas.QUOTAS), writes)
def update_quotas(connection: Connection, body: Record, target: str) -> Answer:
    limits = _limits(body)
    owner = check_project(connection, target)
    # Cinder takes limits below what there is
    return {"quota_set": _shown(quota_operations.set_limits(calling(connection), owner, limits, force=True))}, 200


@volume.delete("/<project>/os-quota-sets/<target>", "volume:admin", writes)
def reset_quotas(connection: Connection, target: str) -> Answer:
    quota_operations.reset(calling(connection), check_project(connection, target), QUOTAS)
    return "", 200


# The only class that there is: what holds for projects without limits of their own. Of any other, Cinder shows the same
@volume.get("/<project>/os-quota-class-sets/<name>", "volume:admin", reads)
def show_quota_class(connection: Connection, name: str) -> Answer:
    return {"quota_class_set": {"id": name, **_shown(quota_records.default_limits(connection))}}, 200


@volume.put("/<project>/os-quota-class-sets/default", "volume:admin", takes(schemas.QUOTA_CLASS), writes)
def update_quota_class(connection: Connection, body: Record) -> Answer:
    limits = quota_operations.set_default_limits(calling(connection), _limits(body))
    return {"quota_class_set": _shown(limits)}, 200


def _limits(body: Record) -> dict[str, int]:
    for name in sorted(body.keys() - {*QUOTAS, *schemas.WHOSE_QUOTAS}):
        raise BadRequestError(f"Bad key(s) in quota set: {name[:60]}; there are limits for {', '.join(QUOTAS)}")
    return {name: int(limit) for name, limit in body.items() if name in QUOTAS}


def _shown(limits: t.Mapping[str, int]) -> Record:
    return {name: limits[name] for name in QUOTAS}


@volume.get("/<project>/os-availability-zone", "volume:read", reads)
def list_zones(connection: Connection) -> Answer:
    zones = hypervisor_records.zones(connection)
    return {
        "availabilityZoneInfo": [
            {"zoneName": name, "zoneState": {"available": any(host["active"] for host in hosts.values())}}
            for name, hosts in zones.items()
        ]
    }, 200


@volume.get("/<project>/extensions", "volume:read")
def list_extensions() -> Answer:
    return {
        "extensions": [
            {"alias": alias, "name": name, "description": name, "updated": UPDATED, "links": []}
            for alias, name in EXTENSIONS.items()
        ]
    }, 200


# --- Hosts ----------------------------------------------------------------------------------------------------------

# Hosts store their volumes themselves: each compute host is what Cinder calls a volume service, a back end and a pool
BACKEND = "file"
BACKEND_NAMES = {
    "vendor_name": "novalite",
    "driver_version": "1",
    "volume_backend_name": BACKEND,
    "storage_protocol": BACKEND,
}
# What Cinder's operators do with a volume service
DONE_ELSEWHERE = "any(enable, disable, 'disable-log-reason', freeze, thaw, failover_host)"


@volume.get("/<project>/os-services", "volume:admin", reads)
def list_services(connection: Connection) -> Answer:
    conditions = {key: request.args[key] for key in ("host", "binary") if key in request.args}
    rows = [
        service
        for service in [*_schedulers(connection), *_services(connection)]
        if all(value in (service[key], service[key].partition("@")[0]) for key, value in conditions.items())
    ]
    return {"services": rows}, 200


@volume.put(
    f"/<project>/os-services/<{DONE_ELSEWHERE}:action>",
    "volume:admin",
    takes({"type": "object", "properties": {}}),
    reads,
)
def change_service(connection: Connection, named: Record, action: str) -> Answer:
    """Refused with the reason; as in Cinder, a service that there is none of is not found."""
    host, binary = named.get("host"), named.get("binary")
    there = any((service["host"], service["binary"]) == (host, binary) for service in _services(connection))
    if action in ("enable", "disable") and not there:
        raise NotFoundError(f"Service {str(binary)[:60]} could not be found on host {str(host)[:60]}.")
    raise BadRequestError(f"{action}: a host's volumes are in use where its servers are: use Compute's os-services")


@volume.get("/<project>/os-hosts", "volume:admin", reads)
def list_hosts(connection: Connection) -> Answer:
    hosts = [
        {
            "host_name": service["host"],
            "service": service["binary"],
            "zone": service["zone"],
            "service-status": "available" if service["state"] == "up" else "unavailable",
            "service-state": service["status"],
            "last-update": service["updated_at"],
        }
        for service in _services(connection)
    ]
    return {"hosts": hosts}, 200


@volume.get("/<project>/os-hosts/<name>", "volume:admin", reads)
def show_host(connection: Connection, name: str) -> Answer:
    """Show the number and size of a host's volumes and snapshots, of all projects and of each."""
    _check(_services(connection), name)
    rows = volumes_by(connection, hosts=[name.partition("@")[0]])
    snapshots = snapshots_by(connection, volumes=[row.id for row in rows])
    projects = sorted({row.project_id for row in (*rows, *snapshots)})
    resources = []
    for project in (None, *projects):
        mine, shots = ([row for row in kind if project in (None, row.project_id)] for kind in (rows, snapshots))
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
    listing.check_pools()
    name = request.args.get("name") if speaks(28) else None
    # volumes share their host's disk with its servers: its free space is Compute's to say
    unknown = {"total_capacity_gb": "unknown", "free_capacity_gb": "unknown", "reserved_percentage": 0}
    pools: list[Record] = []
    for service in _services(connection):
        about = {**BACKEND_NAMES, **unknown, "QoS_support": False, "timestamp": service["updated_at"]}
        details = {"capabilities": about} if is_true("detail") else {}
        pools.append({"name": f"{service['host']}#{BACKEND}", **details})
    pools = [pool for pool in pools if name in (None, pool["name"])]
    return {"pools": pools}, 200


@volume.get("/<project>/capabilities/<name>", "volume:admin", reads)
def show_capabilities(connection: Connection, name: str) -> Answer:
    _check(_services(connection), name.partition("#")[0])
    return {
        **BACKEND_NAMES,
        "namespace": f"OS::Storage::Capabilities::{name}",
        "pool_name": BACKEND,
        **dict.fromkeys(("description", "visibility", "display_name")),
        "replication_targets": [],
        "properties": {},
    }, 200


def _services(connection: Connection) -> list[Record]:
    now = clock.seconds(connection)
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
        for zone, hosts in hypervisor_records.zones(connection).items()
        for name, host in hosts.items()
    ]


def _schedulers(connection: Connection) -> list[Record]:
    """The workers, which choose a volume's host as Cinder's scheduler does."""
    return [
        {
            "binary": "cinder-scheduler",
            "host": machine.name,
            "zone": "nova",
            "status": "enabled",
            "state": "up" if machine.up else "down",
            "updated_at": moment(int(machine.seen_at)),
            "disabled_reason": None,
        }
        for machine in job_records.machines(connection)
    ]


def _check(services: list[Record], name: str) -> None:
    if not any(service["host"] == name for service in services):
        raise NotFoundError(f"Host {name[:100]} could not be found.")
