# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What clients ask a Block Storage service beside volumes. The project in a path is the token's, or it is not there."""

from __future__ import annotations

import re
import time
import typing as t

from flask import Blueprint, Response, current_app, g, request
from werkzeug.exceptions import NotFound

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger import hypervisor_records, project_usage

from .. import policy
from ..context import authenticate, current
from ..errors import BadRequestError, ForbiddenError, NotAcceptableError
from ..ledger import reading_ledger

Answer = tuple[t.Any, int]

volume_versions = Blueprint("volume_versions", __name__, url_prefix="/volume")
volume = Blueprint("volume", __name__, url_prefix="/volume/v3")

policy.grant({"volume:read": "reader", "volume:write": "member"})

MIN_VERSION, MAX_VERSION = (3, 0), (3, 71)
UPDATED = "2026-01-01T00:00:00Z"
# Cinder's names; of all of them there is none, and none may be made
QUOTAS = (
    "volumes", "snapshots", "gigabytes", "backups", "backup_gigabytes", "groups", "per_volume_gigabytes",
)  # fmt: skip


@volume.before_request
def _begin() -> None:
    view = current_app.view_functions.get(request.endpoint or "")
    if policy.POLICY.get(getattr(view, "policy_action", "")) != "public":
        authenticate()
    _negotiate()
    project = (request.view_args or {}).pop("project", None)
    if project is not None and project != current().project:
        raise NotFound()


def _negotiate() -> None:
    """Find out what the request speaks: the header is Nova's, with another service's name."""
    g.volume_version = MIN_VERSION
    for part in request.headers.get("OpenStack-API-Version", "").split(","):
        service, _blank, version = part.strip().partition(" ")
        if service.lower() not in ("volume", "block-storage") or not version:
            continue
        if version.strip() == "latest":
            g.volume_version = MAX_VERSION
            continue
        found = re.fullmatch(r"([1-9][0-9]{0,3})\.(0|[1-9][0-9]{0,3})", version.strip())
        if found is None:
            raise BadRequestError(
                f"API Version String {version[:40]} is of invalid format. Must be of format MajorNum.MinorNum."
            )
        g.volume_version = int(found[1]), int(found[2])
        if not MIN_VERSION <= g.volume_version <= MAX_VERSION:
            raise NotAcceptableError(f"Version {version[:40]} is not supported by the API.")


@volume.after_request
def _end(response: Response) -> Response:
    response.headers["OpenStack-API-Version"] = "volume {}.{}".format(*g.get("volume_version", MIN_VERSION))
    response.vary.add("OpenStack-API-Version")
    return response


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


# --- What there is none of ------------------------------------------------------------------------------------------

# path: the key of the list
EMPTY = {
    "volumes": "volumes",
    "volumes/detail": "volumes",
    "snapshots": "snapshots",
    "snapshots/detail": "snapshots",
    "backups": "backups",
    "backups/detail": "backups",
    "types": "volume_types",
    "attachments": "attachments",
    "attachments/detail": "attachments",
    "os-services": "services",
    "scheduler-stats/get_pools": "pools",
}


def _empty(key: str) -> t.Callable[[], Answer]:
    @policy.allows("volume:read")
    def listed() -> Answer:
        return {key: []}, 200

    return listed


for _path, _key in EMPTY.items():
    for _prefix in ("/", "/<project>/"):
        volume.add_url_rule(f"{_prefix}{_path}", f"list {_prefix}{_path}", _empty(_key))


@volume.get("/<project>/<any(volumes, snapshots, backups, types, attachments):kind>/<number>")
@policy.allows("volume:read")
def show_none(kind: str, number: str) -> Answer:
    raise NotFoundError(f"{kind.rstrip('s').capitalize()} {number[:60]} could not be found.")


@volume.route(
    "/<project>/<any(volumes, snapshots, backups, types, attachments):kind>/<number>", methods=["PUT", "DELETE"]
)
@policy.allows("volume:write")
def change_none(kind: str, number: str) -> Answer:
    return show_none(kind, number)


@volume.post("/<project>/<any(volumes, snapshots, backups, types, attachments):kind>")
@policy.allows("volume:write")
def create_none(kind: str) -> Answer:
    raise ForbiddenError(f"there is no storage for {kind} yet: launch servers from images")


# --- What is asked beside -------------------------------------------------------------------------------------------


@volume.get("/limits")
@volume.get("/<project>/limits")
@policy.allows("volume:read")
def show_limits() -> Answer:
    return {
        "limits": {
            "rate": [],
            "absolute": {
                "totalVolumesUsed": 0,
                "totalGigabytesUsed": 0,
                "totalSnapshotsUsed": 0,
                "totalBackupsUsed": 0,
                "totalBackupGigabytesUsed": 0,
                "maxTotalVolumes": 0,
                "maxTotalVolumeGigabytes": 0,
                "maxTotalSnapshots": 0,
                "maxTotalBackups": 0,
                "maxTotalBackupGigabytes": 0,
            },
        }
    }, 200


@volume.get("/os-quota-sets/<target>")
@volume.get("/<project>/os-quota-sets/<target>")
@policy.allows("volume:read")
def show_quotas(target: str) -> Answer:
    _check_target(target)
    usage = request.args.get("usage", "").lower() in ("true", "1")
    empty = {"limit": 0, "in_use": 0, "reserved": 0} if usage else 0
    return {"quota_set": {"id": target, **dict.fromkeys(QUOTAS, empty)}}, 200


@volume.get("/os-quota-sets/<target>/defaults")
@volume.get("/<project>/os-quota-sets/<target>/defaults")
@policy.allows("volume:read")
def show_default_quotas(target: str) -> Answer:
    _check_target(target)
    return {"quota_set": {"id": target, **dict.fromkeys(QUOTAS, 0)}}, 200


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


@volume.get("/extensions")
@volume.get("/<project>/extensions")
@policy.allows("volume:read")
def list_extensions() -> Answer:
    aliases = {"os-quota-sets": "Quotas", "os-availability-zone": "AvailabilityZones"}
    return {
        "extensions": [
            {"alias": alias, "name": name, "description": name, "updated": UPDATED, "links": []}
            for alias, name in aliases.items()
        ]
    }, 200
