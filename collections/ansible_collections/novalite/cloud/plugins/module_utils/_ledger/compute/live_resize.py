# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Another flavor for a server that runs: its claim grows and its record changes before its host does anything, and are
what they were before if the host fails."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._errors import ConflictError, NovaliteError
from ..._json import JsonMapping, JsonObject
from ..._model import hardware, maxima
from ..._model.instance import Flavor, Instance
from ..._model.rows import InstanceRow
from ..._rules import server_requests
from ..db.tables import compute_host
from ..placement import migration_claims
from ..queries import lookups
from ..queries.compute.usage import usage
from ..queries.compute.views import instances_by
from ..queries.identity import quota_records

NAME = "live-resize"
_EVER = 1 << 40  # seconds: its host is where it is, however long nobody looked at that


def details_of(flavor: Flavor | None) -> JsonObject:
    """Return the details of the action, for the flavor that was asked for."""
    if flavor is None:
        raise NovaliteError("name the flavor to resize to")
    return {"flavor": flavor["name"], "new_flavor": dict(flavor)}


def begun(connection: sa.Connection, row: InstanceRow, details: JsonObject) -> JsonObject:
    """Return what a live resize changes at its begin; `details` are those of details_of(). Raises ConflictError for one
    that needs a restart or for which the host has no room, QuotaError, and NovaliteError for what can never be."""
    flavor: Flavor = details["new_flavor"]
    if flavor["name"] == row.flavor["name"]:
        raise NovaliteError("When resizing, instances must change flavor!")
    hardware.checked(flavor, row.image)
    if flavor["memory_mb"] < (row.image.get("min_ram_mb") or 0):
        raise NovaliteError("Flavor's memory is too small for requested image.")
    if reasons := maxima.restart_reasons(row.flavor, flavor, _domain_type(connection, row.host)):
        raise ConflictError(
            f"Cannot '{NAME}' instance {row.uuid} to flavor {flavor['name']}: it needs a restart, for "
            f"{'; '.join(reasons)}. Resize it with a restart (resize.yml)"
        )
    check_quotas(connection, [row], flavor)
    (server,) = instances_by(connection, uuids=[row.uuid])
    place = migration_claims.place(connection, server, flavor, same_host="only", down_time=_EVER, keeps_disks=True)
    if place.host is None:
        raise ConflictError(f"Cannot '{NAME}' instance {row.uuid} to flavor {flavor['name']}: {place.message}")
    details["old_flavor"] = dict(row.flavor)
    return {"flavor": flavor}


def ended(
    connection: sa.Connection, row: InstanceRow, details: JsonObject, error: str | None, _host_result: JsonMapping
) -> JsonObject:
    """Return what the end of a live resize changes; its claim is what the flavor takes that the server has then."""
    flavor: Flavor = details["new_flavor" if error is None else "old_flavor"]
    migration_claims.change_claim(connection, row.uuid, row.host or "", flavor)
    return {"flavor": flavor}


def settled(params: JsonMapping, servers: t.Sequence[Instance]) -> list[Instance]:
    """List those of the servers that have the flavor which they are to get."""
    flavor = (params.get("request") or {}).get("flavor")
    return [
        server
        for server in servers
        if params["action"] == NAME and server["flavor"]["name"] == flavor and server["task_state"] is None
    ]


def shown(server: Instance) -> JsonObject:
    """Return what the difference of a live resize shows of the server's size."""
    flavor = server["flavor"]
    return {"flavor": f"{flavor['name']} ({flavor['vcpus']} vCPUs, {flavor['memory_mb']} MiB)"}


def restart_advice(connection: sa.Connection, server: Instance, flavor: Flavor) -> str:
    """Return a line for a resize that restarts the server: whether it could be done while that runs, or why not."""
    reasons = maxima.restart_reasons(server["flavor"], flavor, _domain_type(connection, server["host"]))
    if reasons:
        return f"needs a restart: {'; '.join(reasons)}"
    return "restarted although it need not be: live_resize.yml changes it while it runs"


def fitting(connection: sa.Connection, host: str | None, own: Flavor, flavors: t.Iterable[Flavor]) -> list[Flavor]:
    """List those of the flavors that a server on `host` can have while it runs, instead of its `own`, if there is
    room."""
    domain_type = _domain_type(connection, host)
    others = (flavor for flavor in flavors if flavor["name"] != own["name"])
    return [flavor for flavor in others if not maxima.restart_reasons(own, flavor, domain_type)]


def check_quotas(connection: sa.Connection, rows: t.Sequence[InstanceRow], flavor: Flavor) -> None:
    """Check the projects' quotas for what the instances will take more than now. Raises QuotaError."""
    for project_id in sorted({row.project_id for row in rows}):
        lookups.lock_project(connection, project_id)
        theirs = [row.flavor for row in rows if row.project_id == project_id]
        more = {
            "cores": sum(max(0, flavor["vcpus"] - record["vcpus"]) for record in theirs),
            "ram": sum(max(0, flavor["memory_mb"] - record["memory_mb"]) for record in theirs),
        }
        limits = quota_records.quota_limits(connection, project_id)
        used = usage(connection, project_id, server_requests.limited(more, limits))
        server_requests.check_quota(more, used, limits)


def _domain_type(connection: sa.Connection, host: str | None) -> str | None:
    facts = connection.execute(sa.select(compute_host.c.facts).where(compute_host.c.name == host)).scalar()
    return (facts or {}).get("domain_type")
