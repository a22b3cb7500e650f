# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Usage of projects: Nova's simple accounting. Everybody sees their own project's, administrators see all."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone

from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute import accounting
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.placement import hypervisor_records

from ...web.bodies import Answer, Body, Record, same
from ...web.context import check_project
from ...web.errors import BadRequestError
from ...web.listing import MAX_LIMIT, href
from ...web.services import reads
from ...web.times import parse, with_microseconds
from .blueprint import CLEAN, NOVA, compute, known, microversion

HOUR = 3600.0
USAGE_QUERY = known(CLEAN, "start end detailed limit marker")


# with a slash, a project's id is missing
@compute.get("/os-simple-tenant-usage", "compute:usage:read_all", USAGE_QUERY, reads, strict_slashes=True)
def list_usages(connection: Connection) -> Answer:
    now = time.time()
    start, stop = _period(now)
    rows, links = _page("tenant_usages", accounting.ran_between(connection, None, start, stop))
    of_projects: dict[str, list[Record]] = {}
    for row in rows:
        of_projects.setdefault(row["project_id"], []).append(row)
    usages = [_usage(project, some, start, stop, now) for project, some in of_projects.items()]
    if request.args.get("detailed", "0").lower() not in ("1", "true"):
        usages = [{key: value for key, value in usage.items() if key != "server_usages"} for usage in usages]
    return {"tenant_usages": usages, **links}, 200


@compute.get("/os-simple-tenant-usage/<project>", "compute:usage:read", known(CLEAN, "start end limit marker"), reads)
def show_usage(connection: Connection, project: str) -> Answer:
    now = time.time()
    start, stop = _period(now)
    owner = check_project(connection, project)
    rows, links = _page("tenant_usage", accounting.ran_between(connection, owner, start, stop))
    return {"tenant_usage": _usage(owner, rows, start, stop, now), **links}, 200


def _page(name: str, rows: list[Record]) -> tuple[list[Record], Body]:
    """Return the instances of one page, and the link to the next one: all of them before microversion 2.40.

    As in Nova, a page is one of instances and not of projects, and a full one has a next one, be that empty.
    """
    if microversion() < (2, 40):
        return rows, {}
    start, limit = NOVA.start(rows, "uuid", "instance"), NOVA.limit() or MAX_LIMIT
    shown = rows[start : start + limit]
    if len(shown) < limit:
        return shown, {}
    return shown, {f"{name}_links": [{"rel": "next", "href": href(shown[-1]["uuid"])}]}


@compute.get("/os-instance_usage_audit_log", "compute:usage:read_all", reads)
def list_audit_logs(connection: Connection) -> Answer:
    return {"instance_usage_audit_logs": _audit(connection, time.time())}, 200


@compute.get("/os-instance_usage_audit_log/<before>", "compute:usage:read_all", reads)
def show_audit_log(connection: Connection, before: str) -> Answer:
    try:
        log = _audit(connection, parse(before).timestamp())
    except (ValueError, OverflowError):
        raise BadRequestError(f"Invalid timestamp for date {before[:60]}") from None
    return {"instance_usage_audit_log": log}, 200


def _audit(connection: Connection, before: float) -> Body:
    """Nova's record of what each host was asked to write into its log every month: nothing, no host keeps any here."""
    end = datetime.fromtimestamp(before, timezone.utc).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    begin = (end - timedelta(days=1)).replace(day=1)
    names = [row.name for row in hypervisor_records.named_hosts(connection)]
    return {
        "hosts_not_run": names,
        "log": {},
        "num_hosts": len(names),
        "num_hosts_done": 0,
        "num_hosts_not_run": len(names),
        "num_hosts_running": 0,
        "overall_status": f"0 of {len(names)} hosts done. 0 errors.",
        "period_beginning": f"{begin:%Y-%m-%d %H:%M:%S}",
        "period_ending": f"{end:%Y-%m-%d %H:%M:%S}",
        "total_errors": 0,
        "total_instances": 0,
    }


def _period(now: float) -> tuple[float, float]:
    start, stop = _moment("start", now), _moment("end", now)
    if start > stop:
        raise BadRequestError("Invalid start time. The start time cannot occur after the end time.")
    return start, stop


def _moment(name: str, default: float) -> float:
    text = request.args.get(name)
    if text is None:
        return default
    try:
        return parse(text).timestamp()
    except (ValueError, OverflowError):
        raise BadRequestError(f"Datetime is in invalid format: {text[:60]}") from None


def _usage(project: str, rows: list[Record], start: float, stop: float, now: float) -> Body:
    servers = [_server(row, now) for row in rows]
    hours = {
        f"total_{name}_usage": sum(server["hours"] * server[name] for server in servers)
        for name in ("vcpus", "memory_mb", "local_gb")
    }
    return {
        "tenant_id": project,
        "start": with_microseconds(start),
        "stop": with_microseconds(stop),
        "total_hours": sum(server["hours"] for server in servers),
        **hours,
        "server_usages": servers,
    }


def _server(row: Record, now: float) -> Record:
    flavor = row["flavor"]
    return {
        "instance_id": row["uuid"],
        "name": row["display_name"] or row["name"],
        "tenant_id": row["project_id"],
        "flavor": flavor["name"],
        **same(flavor, "vcpus", "memory_mb"),
        "local_gb": flavor["root_gb"] + flavor["ephemeral_gb"],
        "hours": row["seconds"] / HOUR,
        "started_at": with_microseconds(row["launched_at"]),
        "ended_at": None if row["until"] is None else with_microseconds(row["until"]),
        "state": "terminated" if row["until"] is not None else row["vm_state"],
        "uptime": int((row["until"] or now) - row["launched_at"]),
    }
