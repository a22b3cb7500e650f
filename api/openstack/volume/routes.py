# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is asked beside the volumes: versions, limits, quotas, zones, extensions."""

from __future__ import annotations

import time
import typing as t

from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.catalog import project_usage
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity import quotas
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.placement import hypervisor_records

from ...web import validation
from ...web.bodies import Answer, Record
from ...web.context import current
from ...web.errors import BadRequestError
from ...web.ledger import reading_ledger, writing_ledger
from ...web.listing import is_true
from ...web.microversions import text
from ...web.services import reads, writes
from ..projects import check_project
from . import schemas
from .blueprint import MAX_VERSION, MIN_VERSION, UPDATED, volume, volume_versions

# Cinder's names. Of the last three there is none: their limits are kept, for clients set all of them together.
QUOTAS = ("volumes", "snapshots", "gigabytes", "per_volume_gigabytes", "backups", "backup_gigabytes", "groups")
EXTENSIONS = {
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
}


def _document() -> Record:
    return {
        "id": "v3.0",
        "status": "CURRENT",
        "version": text(MAX_VERSION),
        "min_version": text(MIN_VERSION),
        "updated": UPDATED,
        "links": [{"rel": "self", "href": f"{request.url_root}volume/v3/"}],
        "media-types": [{"base": "application/json", "type": "application/vnd.openstack.volume+json;version=3"}],
    }


@volume_versions.get("/", "version", strict_slashes=False)
def list_versions() -> Answer:
    return {"versions": [_document()]}, 300


@volume.get("/", "version", strict_slashes=False)
def show_version() -> Answer:
    return {"versions": [_document()]}, 200


@volume.get("/limits", "volume:read")
@volume.get("/<project>/limits", "volume:read")
def show_limits() -> Answer:
    caller = current()
    target = (request.args.get("project_id") if caller.is_admin else None) or caller.project
    with reading_ledger() as connection:
        limits, used = quotas.quota_limits(connection, target), project_usage.used(connection, target)
    absolute = {
        "totalVolumesUsed": used["volumes"],
        "totalGigabytesUsed": used["gigabytes"],
        "totalSnapshotsUsed": used["snapshots"],
        "totalBackupsUsed": 0,
        "totalBackupGigabytesUsed": 0,
        "maxTotalVolumes": limits["volumes"],
        "maxTotalVolumeGigabytes": limits["gigabytes"],
        "maxTotalSnapshots": limits["snapshots"],
        "maxTotalBackups": 0,
        "maxTotalBackupGigabytes": 0,
    }
    return {"limits": {"rate": [], "absolute": absolute}}, 200


# --- Quotas ---------------------------------------------------------------------------------------------------------


@volume.get("/os-quota-sets/<target>", "volume:read")
@volume.get("/<project>/os-quota-sets/<target>", "volume:read", reads)
def show_quotas(connection: Connection, target: str) -> Answer:
    check_project(connection, target)
    limits, used = quotas.quota_limits(connection, target), project_usage.used(connection, target)
    shown = _shown(limits)
    if is_true("usage"):
        shown = {name: {"limit": limit, "in_use": used.get(name, 0), "reserved": 0} for name, limit in shown.items()}
    return {"quota_set": {"id": target, **shown}}, 200


@volume.get("/os-quota-sets/<target>/defaults", "volume:read")
@volume.get("/<project>/os-quota-sets/<target>/defaults", "volume:read", reads)
def show_default_quotas(connection: Connection, target: str) -> Answer:
    check_project(connection, target)
    return {"quota_set": {"id": target, **_shown(quotas.default_limits(connection))}}, 200


@volume.put("/<project>/os-quota-sets/<target>", "volume:admin")
def update_quotas(target: str) -> Answer:
    wanted = _limits(validation.body(schemas.QUOTAS)["quota_set"])
    with writing_ledger() as connection:
        check_project(connection, target)
        quotas.write_quotas(connection, target, wanted)
        return {"quota_set": _shown(quotas.quota_limits(connection, target))}, 200


@volume.delete("/<project>/os-quota-sets/<target>", "volume:admin", writes)
def reset_quotas(connection: Connection, target: str) -> Answer:
    check_project(connection, target)
    quotas.reset_quotas(connection, target, QUOTAS)
    return "", 200


# The only class that there is: what holds for projects without limits of their own
@volume.get("/<project>/os-quota-class-sets/default", "volume:admin", reads)
def show_quota_class(connection: Connection) -> Answer:
    return {"quota_class_set": {"id": "default", **_shown(quotas.default_limits(connection))}}, 200


@volume.put("/<project>/os-quota-class-sets/default", "volume:admin")
def update_quota_class() -> Answer:
    wanted = _limits(validation.body(schemas.QUOTA_CLASS)["quota_class_set"])
    with writing_ledger() as connection:
        quotas.write_default_limits(connection, wanted)
        return {"quota_class_set": _shown(quotas.default_limits(connection))}, 200


def _limits(said: Record) -> dict[str, int]:
    for name in said:
        if name not in QUOTAS:
            known = ", ".join(QUOTAS)
            raise BadRequestError(f"Bad key(s) in quota set: {name[:60]}; there are limits for {known}")
    return {name: int(limit) for name, limit in said.items()}


def _shown(limits: t.Mapping[str, int]) -> Record:
    return {name: limits[name] for name in QUOTAS}


@volume.get("/os-availability-zone", "volume:read")
@volume.get("/<project>/os-availability-zone", "volume:read", reads)
def list_zones(connection: Connection) -> Answer:
    zones = hypervisor_records.zones(connection, int(time.time()))
    return {
        "availabilityZoneInfo": [
            {"zoneName": name, "zoneState": {"available": any(host["active"] for host in hosts.values())}}
            for name, hosts in zones.items()
        ]
    }, 200


@volume.get("/extensions", "volume:read")
@volume.get("/<project>/extensions", "volume:read")
def list_extensions() -> Answer:
    return {
        "extensions": [
            {"alias": alias, "name": name, "description": name, "updated": UPDATED, "links": []}
            for alias, name in EXTENSIONS.items()
        ]
    }, 200
