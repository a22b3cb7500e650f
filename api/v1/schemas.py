# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""JSON Schemas of what the native part takes and answers."""

from __future__ import annotations

import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._json import JsonObject
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.jobs import job_rows
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import consoles
from ansible_collections.novalite.cloud.plugins.module_utils._rules import backup_policies, ha_wishes, retention
from ansible_collections.novalite.cloud.plugins.module_utils._samples.rates import MEASURES
from ansible_collections.novalite.cloud.plugins.module_utils._samples.rings import WINDOWS

from ..jobs import kinds, queue
from ..web.context import ROLES
from .problems import PROBLEM

Schema = JsonObject

PAGE, LARGEST_PAGE = 100, 1000
UUID: Schema = {"type": "string", "format": "uuid", "pattern": kinds.UUID["pattern"]}
TIME: Schema = {"type": "string", "format": "date-time"}
TEXT: Schema = {"type": "string"}
COUNT: Schema = {"type": "integer", "minimum": 0}
TRUTH: Schema = {"type": "boolean"}


def nullable(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def array(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def taken(properties: t.Mapping[str, Schema], required: t.Sequence[str] = ()) -> Schema:
    """Return the schema of an object that comes in: nothing but `properties`."""
    schema: Schema = {"type": "object", "properties": dict(properties), "additionalProperties": False}
    return {**schema, "required": list(required)} if required else schema


def answered(properties: t.Mapping[str, Schema], description: str = "") -> Schema:
    """Return the schema of an object that goes out: all of `properties`, and nothing else."""
    schema = taken(properties, list(properties))
    return {"description": description, **schema} if description else schema


def reference(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


# --- In -------------------------------------------------------------------------------------------------------------

KEY: Schema = {"type": "string", "minLength": 1, "maxLength": queue.MAX_KEY, "pattern": "^[!-~]+$"}

_INSTANCES: Schema = {
    "type": "array",
    "items": UUID,
    "minItems": 1,
    "maxItems": 1000,
    "uniqueItems": True,
    "description": "UUIDs of those that it is done to",
}
_TIMEOUT: Schema = {"type": "integer", "minimum": 1, "maximum": queue.MAX_TIMEOUT}

NEW_CONSOLE = taken({"type": {"enum": list(consoles.TYPES)}}, ["type"])

# What every request for a job is
JOB_REQUEST = taken(
    {
        "kind": {"enum": sorted(kinds.KINDS), "description": "which playbook"},
        "variables": {"type": "object"},
        "instances": _INSTANCES,
        "check_mode": TRUTH,
        "timeout_seconds": _TIMEOUT,
    },
    ["kind"],
)


def _job_request(kind: kinds.Kind) -> Schema:
    properties: dict[str, Schema] = {
        "kind": {"const": kind.name},
        "variables": {**kind.schema, "description": "for the playbook"},
        "timeout_seconds": _TIMEOUT,
    }
    required = ["kind"]
    if kind.instances == "required":
        properties["instances"] = _INSTANCES
        required.append("instances")
    else:
        properties["check_mode"] = {**TRUTH, "description": "say what would be done, and do nothing"}
    return {"title": kind.name, "description": kind.description, **taken(properties, required)}


# And what one for a job of a kind is
JOB_REQUESTS = {name: _job_request(kind) for name, kind in kinds.KINDS.items()}
JOBS_QUERY = taken(
    {
        "kind": {"type": "string", "enum": sorted(kinds.KINDS)},
        "state": {"type": "string", "enum": list(job_rows.STATES)},
        "instance": UUID,
        "all_projects": {**TRUTH, "description": "administrators: jobs of every project, and of none"},
        "limit": {"type": "integer", "minimum": 1, "maximum": LARGEST_PAGE, "default": PAGE},
        "marker": {**UUID, "description": "the last job of the page before"},
    }
)
EVENTS_QUERY = taken(
    {
        "after": {"type": "integer", "minimum": 0, "maximum": 10**15 - 1, "description": "`seq` of the last one seen"},
        "limit": {"type": "integer", "minimum": 1, "maximum": LARGEST_PAGE, "default": LARGEST_PAGE},
    }
)
PLAN_REQUEST = taken(
    {
        "servers": {"type": "array", "items": kinds.SERVER, "minItems": 1, "maxItems": 100},
        "all_or_nothing": {**TRUTH, "default": True},
        "scheduler": {"enum": ["filter_scheduler", "simple", "chance", "zone"], "default": "filter_scheduler"},
    },
    ["servers"],
)

SAMPLES_QUERY = taken({"window": {"type": "string", "enum": list(WINDOWS), "default": "day"}})

# --- Out ------------------------------------------------------------------------------------------------------------

JOB = answered(
    {
        "id": UUID,
        "kind": TEXT,
        "state": {"enum": list(job_rows.STATES)},
        **dict.fromkeys(("project_id", "user_id", "request_id", "idempotency_key", "message"), nullable(TEXT)),
        "variables": {"type": "object"},
        "instances": array(UUID),
        "check_mode": TRUTH,
        "cancel_requested": TRUTH,
        "timeout_seconds": COUNT,
        "retry_of": nullable(UUID),
        "result": {},
        "created_at": TIME,
        **dict.fromkeys(("started_at", "finished_at"), nullable(TIME)),
    },
    "What was asked for, and how far it got. Jobs that wait at the same time may go into one run of their playbook.",
)
KIND = answered(
    {
        "kind": TEXT,
        "description": TEXT,
        "role": {"enum": ["any", *ROLES], "description": "what it takes to ask for it"},
        "instances": {"enum": ["required", "none"]},
        "variables": {"type": "object", "description": "JSON Schema of its variables"},
    }
)
EVENT = answered(
    {
        "seq": COUNT,
        "created_at": TIME,
        "event": TEXT,
        **dict.fromkeys(("play", "task", "host", "status", "text"), nullable(TEXT)),
        "duration": nullable({"type": "number"}),
    }
)
RESOURCE = answered(
    {
        "total": {"type": "integer"},
        "reserved": {"type": "integer"},
        "ratio": {"type": "number"},
        "limit": {**COUNT, "description": "what may be promised: (total - reserved) * ratio"},
        "used": {"type": "integer"},
        "others": {"type": "integer", "description": "what of it guests take that are not novalite's"},
    }
)
LOSS = answered(
    {
        "host": TEXT,
        "instances": COUNT,
        "takers": {"type": "object", "additionalProperties": COUNT},
        "stranded": array(answered({"uuid": TEXT, "name": TEXT, "reason": TEXT})),
    }
)
_HA: dict[str, Schema] = {
    "ha": {**TRUTH, "description": "whether it runs again on another host when its own dies"},
    "ha_priority": {"type": "integer", "minimum": ha_wishes.LEAST, "maximum": ha_wishes.MOST},
    "ha_rebuild": {**TRUTH, "description": "whether a new disk of its image will do"},
}
HA_WISHES: Schema = {**taken(_HA), "minProperties": 1}
WATCHED_HOST = answered(
    {
        "host": TEXT,
        "state": {**nullable(TEXT), "description": "null: it was never watched"},
        "armed": TRUTH,
        "enabled": TRUTH,
        "means": {**array(TEXT), "description": "what can prove its death, beside a person"},
        "epoch": nullable(COUNT),
        "switch_armed": nullable(TRUTH),
        **dict.fromkeys(("since", "silent_since"), nullable({"type": "number"})),
        "proof": {"type": ["object", "null"]},
        **dict.fromkeys(("note", "confirmed_by"), nullable(TEXT)),
    }
)
HEALING = answered(
    {
        "armed": TRUTH,
        "watching": TRUTH,
        "controller": nullable(TEXT),
        "balance": {
            "anyOf": [
                answered({"plan": TEXT, "at": {"type": "number"}, "moves": COUNT, "text": TEXT}),
                {"type": "null"},
            ],
            "description": "moves that are suggested to even out the load of the hosts",
        },
        "hosts": array(reference("WatchedHost")),
        "servers": array(
            answered({"uuid": TEXT, "name": TEXT, "host": TEXT, "ha_priority": {"type": "integer"}, "ha_reason": TEXT})
        ),
    }
)
ARMING = taken({"armed": TRUTH, "host": kinds.HOST}, ["armed"])
HOST = answered(
    {
        "name": TEXT,
        "up": TRUTH,
        "enabled": TRUTH,
        "zone": TEXT,
        "aggregates": array(TEXT),
        "last_seen_at": nullable(TIME),
        "instances": COUNT,
        "building": COUNT,
        "capacity": answered(
            {"vcpus": reference("Resource"), "memory_mb": reference("Resource"), "disk_gb": reference("Resource")},
            "memory in MiB, disk in GiB",
        ),
        # for administrators; null for others
        "down_reason": nullable(TEXT),
        "disabled_reason": nullable(TEXT),
        "failed_builds": nullable(COUNT),
        "facts": nullable({"type": "object"}),
    }
)
EXPLANATION = answered(
    {
        "choice": TEXT,
        "hosts": {**COUNT, "description": "how many there were"},
        "alternates": array(TEXT),
        "filters": array(
            answered(
                {
                    "filter": TEXT,
                    "start": COUNT,
                    "end": COUNT,
                    "removed": {"type": "object", "additionalProperties": TEXT},
                }
            )
        ),
        "weights": array(
            answered(
                {
                    "host": TEXT,
                    "score": {"anyOf": [{"type": "number"}, array({"type": "number"})]},
                    "details": {"type": "object", "additionalProperties": {"type": "number"}},
                }
            )
        ),
        "message": TEXT,
        "lines": array(TEXT),
    },
    "Which hosts each filter removed and why, what the others weighed, and the same as lines for people",
)
PLACEMENT = answered(
    {
        "uuid": UUID,
        "name": TEXT,
        "host": nullable(TEXT),
        "attempts": array(TEXT),
        "silent_for": {
            **nullable(COUNT),
            "description": "Seconds without a sign of life, where the run at it is dead.",
        },
        "decided_at": nullable(TIME),
        "explanation": nullable(reference("Explanation")),
    }
)
PLAN = answered(
    {
        "message": TEXT,
        "placed": array(answered({"name": TEXT, "host": TEXT, "alternates": array(TEXT)})),
        "unplaced": array(answered({"name": TEXT, "message": TEXT})),
        "existing": array(answered({"name": TEXT, "uuid": UUID, "host": nullable(TEXT)})),
        "explanations": {"type": "object", "additionalProperties": reference("Explanation")},
    },
    "What a launch would do, by what hosts last reported",
)


_VALUES = array(nullable({"type": "number"}))
SNAPSHOT = answered(
    {
        "id": UUID,
        "name": TEXT,
        "description": TEXT,
        "status": {"enum": ["creating", "available", "reverting", "deleting", "error"]},
        "consistency": {
            "enum": ["off", "frozen", "crash", None],
            "description": "off: the guest was; frozen: its file systems were at rest; crash: as after a power failure",
        },
        "size": {**nullable(COUNT), "description": "bytes that it takes on its host"},
        "volumes": array(UUID),
        **dict.fromkeys(("host", "message", "user_id", "image_id"), nullable(TEXT)),
        "created_at": TIME,
        "updated_at": TIME,
    },
    "All disks of an instance as they were at one moment",
)

_SECONDS = {**COUNT, "description": "seconds"}
_KEPT = {period: {"type": "integer", "minimum": 1, "maximum": retention.MOST} for period in retention.OPTIONS}
BACKUP_POLICY = answered(
    {
        "name": TEXT,
        "scope": {"enum": list(backup_policies.SCOPES)},
        "target": {**nullable(TEXT), "description": "name of the server, flavor or project that it is for"},
        "every": _SECONDS,
        "keep": {"type": "object", "description": "how many backups of each period are kept"},
        "verify_every": nullable(_SECONDS),
        "boot_every": nullable(_SECONDS),
    },
    "The times between backups and proofs of instances; of the policies for an instance, the narrowest holds.",
)
NEW_BACKUP_POLICY = taken(
    {
        "every": {**TEXT, "maxLength": 16, "description": "hourly, daily, weekly, monthly, or 12h"},
        "verify_every": {**TEXT, "maxLength": 16},
        "boot_every": {**TEXT, "maxLength": 16, "description": "likewise, or never; weekly, if left out"},
        **{word: {**TEXT, "minLength": 1, "maxLength": 255} for word in ("server", "flavor", "project")},
        **_KEPT,
    }
)
BACKUP_AGES_QUERY = taken(
    {
        "limit": {"type": "integer", "minimum": 1, "maximum": LARGEST_PAGE, "default": PAGE},
        "marker": {**UUID, "description": "the last instance of the page before"},
    }
)
AGES = answered(
    {
        **{"instance_uuid": UUID, "server": TEXT, "newest_at": nullable(TIME)},
        "whole_at": {**nullable(TIME), "description": "when the newest one was taken that was found whole"},
        "proven_at": {**nullable(TIME), "description": "when the newest one was taken that was booted, and was up"},
        "policy": nullable(TEXT),
        "late": {**nullable(TEXT), "description": "what is older than twice what the policy says"},
    },
    "The newest backups of an instance.",
)
NEW_VOLUME_OF_BACKUP = taken(
    {
        "disk": {
            **{**TEXT, "minLength": 1, "maxLength": 64},
            "description": "place of the disk in the guest, such as vdb, or the id of the volume that it was",
        },
        "name": {**TEXT, "maxLength": 255},
        "size": {"type": "integer", "minimum": 1, "description": "GiB; those of the disk, if left out"},
        "type": {**TEXT, "maxLength": 255, "description": "volume type"},
        "availability_zone": {**TEXT, "maxLength": 255},
    },
    required=("disk",),
)
VOLUME_OF_BACKUP = answered(
    {
        **{"id": UUID, "name": TEXT, "status": TEXT, "size": {**COUNT, "description": "GiB"}, "type": TEXT},
        **{"backup": UUID, "disk": TEXT},
    },
    "A volume that is made of a disk of a backup.",
)
_DISK = {**dict.fromkeys(("name", "kind", "reason"), TEXT), "size": COUNT}
BACKUP = answered(
    {
        "id": UUID,
        "instance_uuid": UUID,
        "server": {**TEXT, "description": "name that the instance had"},
        "name": TEXT,
        "status": {"enum": ["creating", "available", "restoring", "verifying", "deleting", "error"]},
        "kind": {"enum": ["full", "incremental", None]},
        "reason": {**nullable(TEXT), "description": "why it is a full one"},
        "parent_id": {**nullable(UUID), "description": "backup that an incremental one changes"},
        "consistency": {
            "enum": ["crash", "filesystem", None],
            "description": "crash: as after a power failure; filesystem: the file systems were at rest",
        },
        "disks": array(
            answered(
                {**dict.fromkeys(("name", "kind", "reason"), TEXT), "size": COUNT, "volume": nullable(UUID)}, "A disk"
            )
        ),
        "gigabytes": {**COUNT, "description": "of its disks, as the quota counts them"},
        "moved": {**nullable(COUNT), "description": "bytes that were read of the disks"},
        "size": {**nullable(COUNT), "description": "bytes of data that it has in the store"},
        "verified_at": nullable(TIME),
        "complaint": {**nullable(TEXT), "description": "why it cannot be restored, as it was verified last"},
        "proven_at": {**nullable(TIME), "description": "when it was booted, and its guest was up"},
        "booted_at": {**nullable(TIME), "description": "when it was booted last"},
        "boot": nullable(
            answered(
                {"by": nullable(TEXT), "seconds": nullable({"type": "number"}), "error": nullable(TEXT)},
                "By what its guest was known to be up, or why it was not",
            )
        ),
        **dict.fromkeys(("host", "message", "user_id", "image_id"), nullable(TEXT)),
        "created_at": TIME,
        "updated_at": TIME,
    },
    "All disks of an instance as they were at one moment, in the store",
)

SAMPLES = answered(
    {
        "begins_at": {**TIME, "description": "when the first step begins"},
        "step_seconds": COUNT,
        "measures": answered(
            {
                name: answered({"unit": {"const": unit}, "mean": _VALUES, "peak": _VALUES})
                for name, unit in MEASURES.items()
            }
        ),
    },
    "What was measured in each step of a time that ends now; null where nothing was",
)


def page(name: str, schema: str) -> Schema:
    following = {**nullable(TEXT), "description": "path of the next page"}
    return answered({name: array(reference(schema)), "next": following})


SCHEMAS: dict[str, Schema] = {
    "Problem": PROBLEM,
    "Job": answered({"job": reference("JobRecord")}),
    "JobRecord": JOB,
    "Jobs": page("jobs", "JobRecord"),
    "JobRequest": {"oneOf": list(JOB_REQUESTS.values())},
    "Kind": KIND,
    "Kinds": answered({"kinds": array(reference("Kind"))}),
    "Event": EVENT,
    "Events": page("events", "Event"),
    "Resource": RESOURCE,
    "HostRecord": HOST,
    "Host": answered({"host": reference("HostRecord")}),
    "Hosts": answered({"hosts": array(reference("HostRecord"))}),
    "Loss": LOSS,
    "Reserve": answered({"reserve": array(reference("Loss"))}),
    "WatchedHost": WATCHED_HOST,
    "Healing": answered({"ha": HEALING}),
    "InstanceHa": answered({"ha": answered(_HA)}),
    "Explanation": EXPLANATION,
    "PlacementRecord": PLACEMENT,
    "Placement": answered({"placement": reference("PlacementRecord")}),
    "PlanRecord": PLAN,
    "Plan": answered({"plan": reference("PlanRecord")}),
    "Console": answered({"console": answered({"type": NEW_CONSOLE["properties"]["type"], "url": TEXT})}),
    "SamplesRecord": SAMPLES,
    "Samples": answered({"samples": reference("SamplesRecord")}),
    "SnapshotRecord": SNAPSHOT,
    "BackupRecord": BACKUP,
    "VolumeOfBackupRecord": VOLUME_OF_BACKUP,
    "BackupPolicyRecord": BACKUP_POLICY,
    "BackupPolicies": answered({"backup_policies": array(reference("BackupPolicyRecord"))}),
    "BackupAgesRecord": AGES,
    "BackupAges": answered({"ages": array(reference("BackupAgesRecord")), "next": nullable(TEXT)}),
    "VolumeOfBackup": answered({"volume": reference("VolumeOfBackupRecord")}),
    "Backups": answered({"backups": array(reference("BackupRecord"))}),
    "Snapshots": answered({"snapshots": array(reference("SnapshotRecord"))}),
    "Document": {"type": "object"},
}
