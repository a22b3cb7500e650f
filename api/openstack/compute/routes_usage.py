# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""How much projects used: Nova's simple accounting. Everybody sees its own project's, administrators see all."""

from __future__ import annotations

import time
import typing as t
from datetime import datetime, timedelta, timezone

from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.catalog import project_usage
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.placement import hypervisor_records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import accounting

from ...web import policy
from ...web.context import current
from ...web.errors import BadRequestError
from ...web.ledger import reading_ledger
from .blueprint import Answer, compute

Record = dict[str, t.Any]


HOUR = 3600.0


@compute.get("/os-simple-tenant-usage", strict_slashes=True)  # with a slash, a project's id is missing
@policy.allows("compute:usage:read_all")
def list_usages() -> Answer:
    now = time.time()
    start, stop = _period(now)
    with reading_ledger() as connection:
        rows = accounting.ran_between(connection, None, start, stop)
    of_projects: dict[str, list[Record]] = {}
    for row in rows:
        of_projects.setdefault(row["project_id"], []).append(row)
    usages = [_usage(project, some, start, stop, now) for project, some in sorted(of_projects.items())]
    if request.args.get("detailed", "0").lower() not in ("1", "true"):
        usages = [{key: value for key, value in usage.items() if key != "server_usages"} for usage in usages]
    return {"tenant_usages": usages}, 200


@compute.get("/os-simple-tenant-usage/<project>")
@policy.allows("compute:usage:read")
def show_usage(project: str) -> Answer:
    caller, now = current(), time.time()
    start, stop = _period(now)
    with reading_ledger() as connection:
        if project != caller.project and not (caller.is_admin and project_usage.is_project(connection, project)):
            raise NotFoundError(f"Project {project[:64]} could not be found.")
        rows = accounting.ran_between(connection, project, start, stop)
    return {"tenant_usage": _usage(project, rows, start, stop, now)}, 200


@compute.get("/os-instance_usage_audit_log")
@policy.allows("compute:usage:read_all")
def list_audit_logs() -> Answer:
    return {"instance_usage_audit_logs": _audit(time.time())}, 200


@compute.get("/os-instance_usage_audit_log/<before>")
@policy.allows("compute:usage:read_all")
def show_audit_log(before: str) -> Answer:
    try:
        moment = datetime.fromisoformat(before)
        log = _audit(moment.replace(tzinfo=moment.tzinfo or timezone.utc).timestamp())
    except (ValueError, OverflowError):
        raise BadRequestError(f"Invalid timestamp for date {before[:60]}") from None
    return {"instance_usage_audit_log": log}, 200


def _audit(before: float) -> Record:
    """Nova's record of what each host was asked to write into its log every month: nothing, no host keeps any here."""
    end = datetime.fromtimestamp(before, timezone.utc).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    begin = (end - timedelta(days=1)).replace(day=1)
    with reading_ledger() as connection:
        names = [row.name for row in hypervisor_records.hosts(connection, int(time.time()))]
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
        moment = datetime.fromisoformat(text)
        return moment.replace(tzinfo=moment.tzinfo or timezone.utc).timestamp()
    except (ValueError, OverflowError):
        raise BadRequestError(f"Datetime is in invalid format: {text[:60]}") from None


def _usage(project: str, rows: list[Record], start: float, stop: float, now: float) -> Record:
    servers = [_server(row, now) for row in rows]
    return {
        "tenant_id": project,
        "start": _text(start),
        "stop": _text(stop),
        "total_hours": sum(server["hours"] for server in servers),
        "total_vcpus_usage": sum(server["hours"] * server["vcpus"] for server in servers),
        "total_memory_mb_usage": sum(server["hours"] * server["memory_mb"] for server in servers),
        "total_local_gb_usage": sum(server["hours"] * server["local_gb"] for server in servers),
        "server_usages": servers,
    }


def _server(row: Record, now: float) -> Record:
    flavor = row["flavor"]
    return {
        "instance_id": row["uuid"],
        "name": row["display_name"] or row["name"],
        "tenant_id": row["project_id"],
        "flavor": flavor["name"],
        "vcpus": flavor["vcpus"],
        "memory_mb": flavor["memory_mb"],
        "local_gb": flavor["root_gb"] + flavor["ephemeral_gb"],
        "hours": row["seconds"] / HOUR,
        "started_at": _text(row["launched_at"]),
        "ended_at": None if row["until"] is None else _text(row["until"]),
        "state": "terminated" if row["until"] is not None else row["vm_state"],
        "uptime": int((row["until"] or now) - row["launched_at"]),
    }


def _text(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f")
