# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""JSON Schemas of what the native part takes and answers of servers' backups."""

from __future__ import annotations

from ansible_collections.novalite.cloud.plugins.module_utils._rules import backup_policies, retention

from .schemas import COUNT, LARGEST_PAGE, PAGE, TEXT, TIME, UUID, Schema, answered, array, nullable, reference, taken

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
NEW_REPLICA = taken(
    {
        "every": {**TEXT, "maxLength": 16, "default": "hourly", "description": "5m, hourly, daily"},
        "host": {**TEXT, "minLength": 1, "maxLength": 255, "description": "compute host that gets the copies"},
    }
)
REPLICA = answered(
    {
        **{"instance_uuid": UUID, "server": TEXT, "every": _SECONDS, "host": nullable(TEXT)},
        "next_host": {**nullable(TEXT), "description": "that gets the next copy; `host` gives up its own then"},
        "taken_at": {**nullable(TIME), "description": "the moment of the newest complete copy"},
        "tried_at": nullable(TIME),
        "kind": {"enum": ["full", "incremental", None]},
        "reason": {**nullable(TEXT), "description": "why it is a full one"},
        "moved": {**nullable(COUNT), "description": "bytes that came over the wire for it"},
        "consistency": {"enum": ["filesystem", "crash", None]},
        "fault": {**nullable(TEXT), "description": "why the last one failed"},
    },
    "The copy of an instance's disks on a second host.",
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

SCHEMAS: dict[str, Schema] = {
    "BackupRecord": BACKUP,
    "VolumeOfBackupRecord": VOLUME_OF_BACKUP,
    "BackupPolicyRecord": BACKUP_POLICY,
    "ReplicaRecord": REPLICA,
    "Replicas": answered({"replicas": array(reference("ReplicaRecord"))}),
    "BackupPolicies": answered({"backup_policies": array(reference("BackupPolicyRecord"))}),
    "BackupAgesRecord": AGES,
    "BackupAges": answered({"ages": array(reference("BackupAgesRecord")), "next": nullable(TEXT)}),
    "VolumeOfBackup": answered({"volume": reference("VolumeOfBackupRecord")}),
    "Backups": answered({"backups": array(reference("BackupRecord"))}),
}
