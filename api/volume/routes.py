# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is asked beside the volumes: versions, limits, quotas, zones, services, extensions."""

from __future__ import annotations

import time
import typing as t

from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger import hypervisor_records, project_usage
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.quotas import DEFAULTS, quota_limits, write_quotas

from .. import policy, validation
from ..context import current
from ..errors import BadRequestError
from ..ledger import reading_ledger, writing_ledger
from . import schemas
from .blueprint import MAX_VERSION, MIN_VERSION, UPDATED, Answer, Record, volume, volume_versions
from .views import time as moment

# Cinder's names. Of the last three there is none, and none may be made.
QUOTAS = ("volumes", "snapshots", "gigabytes", "per_volume_gigabytes")
NONE = ("backups", "backup_gigabytes", "groups")
EXTENSIONS = {
    "os-quota-sets": "Quotas", "os-availability-zone": "AvailabilityZones", "os-services": "Services",
    "os-types-manage": "TypesManage", "os-types-extra-specs": "TypesExtraSpecs",
    "os-volume-type-access": "VolumeTypeAccess", "os-volume-actions": "VolumeActions",
    "os-extended-snapshot-attributes": "ExtendedSnapshotAttributes", "os-used-limits": "UsedLimits",
}  # fmt: skip


def _document() -> dict[str, t.Any]:
    return {
        "id": "v3.0",
        "status": "CURRENT",
        "version": "{}.{}".format(*MAX_VERSION),
        "min_version": "{}.{}".format(*MIN_VERSION),
        "updated": UPDATED,
        "links": [{"rel": "self", "href": f"{request.url_root}volume/v3/"}],
        "media-types": [{"base": "application/json", "type": "application/vnd.openstack.volume+json;version=3"}],
    }


@volume_versions.get("/", strict_slashes=False)
@policy.allows("version")
def list_versions() -> Answer:
    return {"versions": [_document()]}, 300


@volume.get("/", strict_slashes=False)
@policy.allows("version")
def show_version() -> Answer:
    return {"versions": [_document()]}, 200


@volume.get("/limits")
@volume.get("/<project>/limits")
@policy.allows("volume:read")
def show_limits() -> Answer:
    target = current().project
    asked = request.args.get("project_id")
    if asked and current().is_admin:
        target = asked
    with reading_ledger() as connection:
        limits, used = quota_limits(connection, target), project_usage.used(connection, target)
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


@volume.get("/os-quota-sets/<target>")
@volume.get("/<project>/os-quota-sets/<target>")
@policy.allows("volume:read")
def show_quotas(target: str) -> Answer:
    _check_target(target)
    with reading_ledger() as connection:
        limits, used = quota_limits(connection, target), project_usage.used(connection, target)
    shown = _shown(limits)
    if request.args.get("usage", "").lower() in ("true", "1"):
        shown = {
            name: {"limit": limit, "in_use": used.get(name, 0), "reserved": 0} for name, limit in shown.items()
        }
    return {"quota_set": {"id": target, **shown}}, 200


@volume.get("/os-quota-sets/<target>/defaults")
@volume.get("/<project>/os-quota-sets/<target>/defaults")
@policy.allows("volume:read")
def show_default_quotas(target: str) -> Answer:
    _check_target(target)
    return {"quota_set": {"id": target, **_shown(DEFAULTS)}}, 200


@volume.put("/<project>/os-quota-sets/<target>")
@policy.allows("volume:admin")
def update_quotas(target: str) -> Answer:
    body = validation.body(schemas.QUOTAS)["quota_set"]
    _check_target(target)
    for name in body:
        if name not in QUOTAS:
            known = ", ".join(QUOTAS)
            raise BadRequestError(f"Bad key(s) in quota set: {name[:60]}; there are limits for {known}")
    with writing_ledger() as connection:
        write_quotas(connection, target, {name: int(limit) for name, limit in body.items()})
        return {"quota_set": _shown(quota_limits(connection, target))}, 200


@volume.delete("/<project>/os-quota-sets/<target>")
@policy.allows("volume:admin")
def reset_quotas(target: str) -> Answer:
    _check_target(target)
    with writing_ledger() as connection:
        write_quotas(connection, target, {name: DEFAULTS[name] for name in QUOTAS})
    return "", 200


def _shown(limits: t.Mapping[str, int]) -> Record:
    return {**{name: limits[name] for name in QUOTAS}, **dict.fromkeys(NONE, 0)}


def _check_target(target: str) -> None:
    caller = current()
    if target == caller.project:
        return
    with reading_ledger() as connection:
        if caller.is_admin and project_usage.is_project(connection, target):
            return
    raise NotFoundError(f"Project {target[:64]} could not be found.")


@volume.get("/os-availability-zone")
@volume.get("/<project>/os-availability-zone")
@policy.allows("volume:read")
def list_zones() -> Answer:
    with reading_ledger() as connection:
        zones = hypervisor_records.zones(connection, int(time.time()))
    return {
        "availabilityZoneInfo": [
            {"zoneName": name, "zoneState": {"available": any(host["active"] for host in hosts.values())}}
            for name, hosts in zones.items()
        ]
    }, 200


@volume.get("/os-services")
@volume.get("/<project>/os-services")
@policy.allows("volume:admin")
def list_services() -> Answer:
    """Hosts store their volumes themselves: each compute host is what Cinder calls a volume service."""
    now = int(time.time())
    with reading_ledger() as connection:
        zones = hypervisor_records.zones(connection, now)
    args = request.args
    services = [
        {
            "binary": "cinder-volume",
            "host": f"{name}@file",
            "zone": zone,
            "status": "enabled" if host["active"] else "disabled",
            "state": "up" if host["available"] else "down",
            "updated_at": moment(host["last_seen_at"] or now),
            "disabled_reason": None,
        }
        for zone, hosts in zones.items()
        for name, host in hosts.items()
    ]
    wanted = {key: args[key] for key in ("host", "binary") if key in args}
    found = [
        one
        for one in services
        if all(str(one[key]) == value or str(one[key]).partition("@")[0] == value for key, value in wanted.items())
    ]
    return {"services": found}, 200


@volume.get("/<project>/scheduler-stats/get_pools")
@policy.allows("volume:admin")
def list_pools() -> Answer:
    return {"pools": []}, 200


@volume.get("/extensions")
@volume.get("/<project>/extensions")
@policy.allows("volume:read")
def list_extensions() -> Answer:
    return {
        "extensions": [
            {"alias": alias, "name": name, "description": name, "updated": UPDATED, "links": []}
            for alias, name in EXTENSIONS.items()
        ]
    }, 200
