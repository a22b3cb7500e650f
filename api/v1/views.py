# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Records as the bodies of answers. Pure functions."""

from __future__ import annotations

import datetime
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._json import JsonMapping, JsonObject
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volumes.backup_ages import Ages
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volumes.replica_records import Replica
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volumes.server_backup_rows import (
    ServerBackup,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volumes.server_snapshot_rows import (
    ServerSnapshot,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volumes.volume_views import Volume
from ansible_collections.novalite.cloud.plugins.module_utils._samples import rings
from ansible_collections.novalite.cloud.plugins.module_utils._samples.rates import MEASURES
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling import explain
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.explain import lines_of

from ..web.host_names import HostNameMask
from . import schemas, schemas_backups

Body = JsonObject
Record = JsonMapping

_HOST_PUBLIC = ("name", "up", "enabled", "zone", "aggregates", "instances", "building", "capacity")
_HOST_INTERNAL = ("down_reason", "disabled_reason", "failed_builds", "facts")
_TIMES = ("created_at", "started_at", "finished_at")


def moment(seconds: float | None) -> str | None:
    """Seconds since the epoch as RFC 3339 has it."""
    if seconds is None:
        return None
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).isoformat().replace("+00:00", "Z")


def job(record: Record, mask: HostNameMask, console: bool) -> Body:
    """A job. What a guest wrote on its console is told if `console`: guests print passwords and keys there."""
    body = {name: record.get(name) for name in schemas.JOB["properties"]}
    masked = {"message": mask.over(body["message"])}
    if body["kind"] != "console":  # what a guest wrote is its owner's
        masked["result"] = mask.over(body["result"])
    elif not console:
        masked["result"] = None
    return {**body, **masked, **{name: moment(record.get(name)) for name in _TIMES}}


def event(record: Record, mask: HostNameMask) -> Body:
    body = {name: record.get(name) for name in schemas.EVENT["properties"]}
    masked = {name: mask.over(body[name]) for name in ("host", "text")}
    return {**body, **masked, "created_at": moment(record["created_at"])}


def host(record: Record, internal: bool) -> Body:
    """A compute host; what only its operators are told is left out (null) unless `internal`."""
    body = {name: record[name] for name in _HOST_PUBLIC}
    body["last_seen_at"] = moment(record["last_seen_at"])
    return {**body, **{name: record[name] if internal else None for name in _HOST_INTERNAL}}


def snapshot(record: ServerSnapshot, mask: HostNameMask) -> Body:
    """A snapshot of a server; why it failed, without names of hosts that the caller may not know."""
    body = {name: getattr(record, name) for name in schemas.SNAPSHOT["properties"] if name not in ("host", "message")}
    said = {"host": mask.over(record.host), "message": mask.over(record.fault and record.fault["message"])}
    return {**body, **said, **{name: moment(body[name]) for name in ("created_at", "updated_at")}}


def backup(record: ServerBackup, mask: HostNameMask) -> Body:
    """A backup of a server, likewise."""
    body = {
        name: getattr(record, name) for name in schemas_backups.BACKUP["properties"] if name not in ("host", "message")
    }
    body["disks"] = [{"volume": None, **disk} for disk in record.disks]
    said = {"host": mask.over(record.host), "message": mask.over(record.fault and record.fault["message"])}
    names = [name for name in body if name.endswith("_at") and body[name] is not None]
    times = {name: moment(body[name]) for name in names}
    return {**body, **said, **times}


def replica(record: Replica, mask: HostNameMask) -> Body:
    """Return the copy of a server's disks on a second host."""
    body = {name: getattr(record, name) for name in schemas_backups.REPLICA["properties"]}
    said = {name: mask.over(body[name]) for name in ("host", "next_host", "reason", "fault")}
    return {**body, **said, "taken_at": moment(record.taken_at), "tried_at": moment(record.tried_at)}


def volume_of_backup(record: Volume) -> Body:
    """A volume, and of which disk of which backup it is made."""
    saved = record.backup_disk
    return {
        **{"id": record.id, "name": record.display_name or record.name, "status": record.status},
        **{"size": record.size_gb, "type": record.type},
        **({"backup": saved["backup"], "disk": saved["disk"]} if saved else {}),
    }


def backup_ages(record: Ages) -> Body:
    """The times of a server's newest backups."""
    times = {"newest_at": record.newest, "whole_at": record.whole, "proven_at": record.proven}
    about = {"instance_uuid": record.uuid, "server": record.name, "late": record.late}
    policy = record.policy and record.policy.name
    return {**about, "policy": policy, **{name: moment(at or None) for name, at in times.items()}}


def samples(records: t.Sequence[rings.Record], step: int) -> Body:
    measures = {
        name: {
            "unit": unit,
            "mean": [record.mean[name] for record in records],
            "peak": [record.peak[name] for record in records],
        }
        for name, unit in MEASURES.items()
    }
    return {"begins_at": moment(records[0].at), "step_seconds": step, "measures": measures}


def explanation(record: Record | None) -> Body | None:
    """Render the reasons for a host. Those of an instance that kept its host are one line."""
    if record is None:
        return None
    empty: Body = {"choice": "", "hosts": 0, "alternates": [], "filters": [], "weights": [], "message": "", "lines": []}
    body = {**empty, **{name: record[name] for name in empty if name in record}}
    body["weights"] = [{name: weight[name] for name in ("host", "score", "details")} for weight in body["weights"]]
    return body


def placement(record: Record) -> Body:
    return {
        **{name: record[name] for name in ("uuid", "name", "host", "attempts", "silent_for")},
        "decided_at": moment(record["decided_at"]),
        "explanation": explanation(record["explanation"]),
    }


def plan(requested_servers: Record, placed: Record, reasons: bool) -> Body:
    """`requested_servers` is what the operation `server` returned, `placed` the operation `scheduler`. Why a host was
    removed, and its weights, tell of its size: without `reasons`, filters are named with their counts."""
    explained = placed["explanations"] if reasons else [_without_reasons(record) for record in placed["explanations"]]
    # what found no host is told in short; what was given up for another of its request names no host
    short = (
        {} if reasons else {record["name"]: record["message"] for record in explained if record.get("weights") == []}
    )
    summary = placed["msg"] if reasons else f"placed {len(placed['instances'])} of {len(explained)} instances"
    return {
        "message": summary,
        "placed": [
            {name: instance[name] for name in ("name", "host", "alternates")} for instance in placed["instances"]
        ],
        "unplaced": [
            {"name": name, "message": short.get(name, refusal["message"])}
            for refusal in placed["unplaced"]
            for name in [refusal["instance"]["name"]]
        ],
        "existing": [
            {name: instance[name] for name in ("name", "uuid", "host")} for instance in requested_servers["existing"]
        ],
        "explanations": {record["name"]: explanation(record) for record in explained},
    }


def _without_reasons(explained: Record) -> Record:
    """Return of scheduler.explanation() what is no operator's: which filters removed which hosts."""
    if "filters" not in explained:
        return {**explained, "message": "", "lines": []}  # it keeps its host; nothing was decided
    short = {
        **explained,
        "filters": [
            {**step, "removed": dict.fromkeys(step["removed"], "an administrator is told why")}
            for step in explained["filters"]
        ],
        "weights": [{**weight, "details": {}, "used_by_others": ""} for weight in explained["weights"]],
    }
    if not short["weights"]:
        steps = [(step["filter"], step["start"] - step["end"]) for step in short["filters"]]
        removed = ", ".join(f"{name} removed {count}" for name, count in steps if count)
        short["message"] = f"{explain.NO_HOST}: {removed or 'there is no compute host'}"
    return {**short, "lines": lines_of(short)}
