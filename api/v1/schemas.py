# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""JSON Schemas of what the native part takes and answers."""

from __future__ import annotations

import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._json import JsonObject
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import consoles
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.jobs import job_records
from ansible_collections.novalite.cloud.plugins.module_utils._rules import ha_wishes
from ansible_collections.novalite.cloud.plugins.module_utils._samples.rates import MEASURES
from ansible_collections.novalite.cloud.plugins.module_utils._samples.rings import WINDOWS

from ..jobs import kinds, queue
from ..jobs.kind import Kind
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


def _job_request(kind: Kind) -> Schema:
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
        "state": {"type": "string", "enum": list(job_records.STATES)},
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
        "state": {"enum": list(job_records.STATES)},
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
    "Snapshots": answered({"snapshots": array(reference("SnapshotRecord"))}),
    "Document": {"type": "object"},
}
