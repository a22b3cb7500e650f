# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Kinds of jobs that there are, by name."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._json import Json, JsonObject
from ansible_collections.novalite.cloud.plugins.module_utils._rules import (
    boots,
    noun_options,
    retention,
    server_options,
)
from ansible_collections.novalite.cloud.plugins.module_utils._rules.options import closed

from ..web.schemas import NAME, TEXT, Schema, a_list, an_object
from .kind import Instances, Kind

BOOLEAN: Schema = {"type": "boolean"}
UUID: Schema = {"type": "string", "pattern": "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"}
HOST: Schema = {"type": "string", "pattern": r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$", "maxLength": 255}
SECONDS: Schema = {"type": "integer", "minimum": 0, "maximum": 10**9}
_BACKUP_SECONDS = 24 * 3600
_BOOT: Schema = {"type": "integer", "minimum": boots.LEAST, "maximum": boots.MOST}
_KEPT: Schema = {"type": "integer", "minimum": 1, "maximum": retention.MOST}


def _list(items: Schema, most: int = 1000) -> Schema:
    return a_list(items, most, 1)


SERVER = server_options.v1_schema()
GROUP = closed(noun_options.SECURITY_GROUP, site=False)
MEMBERSHIP = an_object({"name": NAME, "security_groups": _list(NAME, 64)}, ["name", "security_groups"])
FLOATING = an_object({"address": NAME, "pool": NAME, "server": TEXT, "fixed_ip": NAME})


def _action(name: str, description: str, operation: str = "", timeout: int = 900, **more: Json) -> Kind:
    """Return the kind of an action on instances marked by the caller. `operation` on servers (default: the name)."""
    operation = operation if ":" in operation else f"compute:servers:{operation or name}"
    shared: JsonObject = {"merge": True, "instances": "required", "runs": 3, "action": name}
    return Kind(name, operation, description, timeout=timeout, **{**shared, **more})


def _volume(name: str, of: str, description: str, *, book: str = "", instances: Instances = "allowed") -> Kind:
    """A kind that acts on volumes, snapshots or attachments (`of`) which the caller has marked before, by their ids.

    `instances` are those that have the volumes: two runs never work at one instance.
    """
    # members ask by those routes that mark the volumes first
    operation, variables = "cloud:carry_out_volumes", {of: _list(UUID, 100)}
    return Kind(name, operation, description, book, variables, instances=instances, timeout=3600)


_SERVERS: JsonObject = {"merge": True, "instances": "allowed", "runs": 3, "project": True}
_HOST: JsonObject = {"operation": "compute:hosts:evacuate", "runs": 1, "timeout": 4 * 3600}

_KINDS = (
    Kind(
        "launch",
        "compute:servers:create",
        "build instances and start them",
        timeout=3600,
        action="create",
        variables={"servers": _list(SERVER, 100), "all_or_nothing": BOOLEAN},
        **_SERVERS,
    ),
    Kind(
        "terminate",
        "compute:servers:delete",
        "take instances away",
        action="delete",
        always_retry=True,
        variables={"servers": _list(an_object({"name": NAME, "count": SERVER["properties"]["count"]}, ["name"]), 100)},
        **_SERVERS,
    ),
    _action("stop", "shut instances down", variables={"shutdown_timeout": SECONDS}),
    _action("start", "start stopped instances"),
    # two tables: one job may ask for a soft reboot, another one for a hard one
    _action(
        "reboot",
        "start instances anew",
        variables={"shutdown_timeout": SECONDS, "type": {"enum": ["SOFT", "HARD", "soft", "hard"]}},
    ),
    _action("pause", "halt instances where they are"),
    _action("unpause", "let paused instances go on"),
    _action("suspend", "keep instances' memory on the disk and stop them"),
    _action("resume", "let suspended instances go on"),
    _action("rescue", "start instances from another disk, beside their own", timeout=1800, variables={"image": NAME}),
    _action("unrescue", "start rescued instances from their own disks again"),
    _action("rebuild", "give instances their disks anew", timeout=3600, variables={"image": NAME}),
    _action(
        "createImage",
        "make images of instances",
        "create_image",
        book="snapshot.yml",
        timeout=7200,
        variables={"image_name": NAME},
    ),
    _action(
        "createSnapshot",
        "keep all disks of instances as they are at one moment",
        "compute:server-snapshots:write",
        book="server_snapshot.yml",
        timeout=7200,
        variables={"snapshot": NAME, "snapshot_description": TEXT},
    ),
    _action(
        "revertSnapshot",
        "roll instances back to snapshots of theirs",
        "compute:server-snapshots:write",
        book="rollback.yml",
        timeout=7200,
        variables={"snapshot": NAME, "shutdown_timeout": SECONDS},
    ),
    _action(
        "deleteSnapshot",
        "delete snapshots of instances",
        "compute:server-snapshots:write",
        book="server_snapshot_delete.yml",
        variables={"snapshot": NAME},
    ),
    _action(
        "createBackup",
        "take backups of instances into the store",
        "compute:server-backups:write",
        book="backup.yml",
        timeout=_BACKUP_SECONDS,
        variables={"backup": NAME, "full_backup": BOOLEAN, **dict.fromkeys(retention.OPTIONS, _KEPT)},
    ),
    _action(
        "replicate",
        "copy what changed in the disks of instances to their second hosts",
        "compute:server-replicas:write",
        book="replicate.yml",
        timeout=_BACKUP_SECONDS,
    ),
    _action(
        "restoreBackup",
        "give instances the disks of backups",
        "compute:server-backups:restore",
        book="backup_restore.yml",
        timeout=_BACKUP_SECONDS,
        variables={"backup": NAME, "shutdown_timeout": SECONDS},
    ),
    _action(
        "verifyBackup",
        "compare all blocks of backups of instances with what was saved, and boot them",
        "compute:server-backups:write",
        book="backup_verify.yml",
        timeout=_BACKUP_SECONDS,
        variables={"backup": NAME, "boot": BOOLEAN, "boot_timeout": _BOOT},
    ),
    _action(
        "deleteBackup",
        "delete backups of instances",
        "compute:server-backups:write",
        book="backup_delete.yml",
        timeout=_BACKUP_SECONDS,
        variables={"backup": NAME},
    ),
    _action("shelve", "make images of instances, and give back their hosts' room", timeout=7200),
    _action("shelveOffload", "take shelved instances from their hosts", "shelve_offload", book="shelve_offload.yml"),
    _action("unshelve", "launch shelved instances anew", timeout=3600),
    _action(
        "resize",
        "give instances another size, on another host or their own",
        timeout=3600,
        variables={"confirm": BOOLEAN, "flavor": NAME},
    ),
    _action(
        "live-resize",
        "give instances another size while they run",
        "resize",
        book="live_resize.yml",
        variables={"flavor": NAME},
    ),
    _action(
        "changePassword",
        "set the administrator's password in instances that run",
        "change_password",
        book="change_password.yml",
    ),
    _action("migrate", "bring instances to other hosts, switched off", timeout=3600),
    _action("confirmResize", "confirm resizes and migrations", "confirm_resize", book="confirm_resize.yml"),
    _action("revertResize", "revert resizes and migrations", "revert_resize", 3600, book="revert_resize.yml"),
    _action(
        "live-migration",
        "bring instances to other hosts while they run",
        "live_migrate",
        book="live_migrate.yml",
        timeout=7200,
    ),
    _action("evacuate", "build instances of a dead host anew on others", timeout=3600),
    Kind(
        "host_evacuate",
        description="disable a compute host and bring its instances to others",
        variables={"host": HOST, "reason": TEXT},
        **_HOST,
    ),
    Kind(
        "host_restore",
        description="enable a compute host and bring back what was there",
        variables={"host": HOST},
        **_HOST,
    ),
    _action(
        "interface_attach", "give instances a network interface", "compute:interfaces:write", action="attach_interface"
    ),
    _action(
        "interface_detach",
        "take a network interface from instances",
        "compute:interfaces:write",
        action="detach_interface",
    ),
    Kind(
        "cdrom",
        "compute:servers:cdrom",
        "put CDs into instances, or take them out",
        instances="required",
        runs=3,
        variables={"insert": NAME, "eject": BOOLEAN, "drive": {"type": "integer", "minimum": 0, "maximum": 2}},
    ),
    Kind(
        "console",
        "compute:servers:console_output",
        "read what instances wrote to their consoles",
        merge=True,
        instances="required",
        timeout=120,
        action="console",
        read_only=True,
        awaited=True,
        variables={
            "lines": {"type": "integer", "minimum": -1, "maximum": 10**6},
            "max_bytes": {"type": "integer", "minimum": 0, "maximum": 2**20},
        },
    ),
    Kind(
        "security_groups",
        "network:security_groups:write",
        "change security groups and who is in them",
        # one after the other: what an older run read of the ledger must not overwrite what a newer one told a host
        instances="allowed",
        project=True,
        limit=True,
        runs=1,
        variables={
            "security_groups": {"type": "array", "items": GROUP, "maxItems": 100},
            "join": _list(MEMBERSHIP),
            "leave": _list(MEMBERSHIP),
            "changed_groups": _list(UUID),
            "changed_members": _list(UUID),
            "ports": _list(UUID),
        },
    ),
    Kind("firewall", "cloud:firewall", "make every host's firewall what the ledger says", limit=True, runs=1),
    Kind(
        "floating_ips",
        "network:floating_ips:write",
        "lead floating IPs to instances",
        instances="allowed",
        project=True,
        runs=1,  # likewise
        variables={
            "floating_ips": _list(FLOATING),
            "address": NAME,
            "pool": NAME,
            "fixed_ip": NAME,
            "server": TEXT,
            "state": {"enum": ["present", "absent"]},
            "everywhere": BOOLEAN,
            "network_hosts": _list(HOST),
            "holders": {"type": "array", "items": HOST},
        },
        hosts=frozenset(["everywhere", "network_hosts", "holders"]),
    ),
    Kind("compute_nodes", "cloud:compute_nodes", "prepare hypervisors and record what they offer", limit=True, runs=1),
    Kind(
        "plan",
        "compute:servers:plan",
        "what a launch would do, without doing it",
        project=True,
        read_only=True,
        timeout=300,
        variables={"servers": _list(SERVER, 100), "all_or_nothing": BOOLEAN},
    ),
    Kind(
        "reconcile",
        "cloud:reconcile",
        "bring the ledger and the hypervisors together again",
        limit=True,
        runs=1,
        always_retry=True,
        variables={"build_timeout": SECONDS, "output": {"const": "json"}},
    ),
    Kind(
        "precache",
        "cloud:image_cache",
        "bring images to the hypervisors",
        project=True,
        limit=True,
        variables={"image": NAME, "images": _list(NAME, 100), "download_by": {"enum": ["host", "controller"]}},
    ),
    Kind(
        "evict",
        "cloud:image_cache",
        "remove unused images from the hypervisors",
        limit=True,
        runs=1,
        variables={"max_age": SECONDS, "max_cache_gb": {"type": "integer", "minimum": 0}},
    ),
    _volume("volume_create", "volumes", "make volumes", book="volumes.yml"),
    _volume("volume_delete", "volumes", "delete volumes", book="volumes.yml"),
    _volume("volume_extend", "volumes", "make volumes larger"),
    _volume("volume_revert", "volumes", "give volumes back the data of a snapshot"),
    _volume("volume_upload", "volumes", "make images of volumes"),
    dataclasses.replace(
        _volume("volume_restore", "volumes", "make volumes of backups", book="volumes.yml"), timeout=_BACKUP_SECONDS
    ),
    dataclasses.replace(
        _volume("volume_backup", "backups", "take, restore and delete backups of volumes"), timeout=_BACKUP_SECONDS
    ),
    _volume("volume_attach", "attachments", "give volumes to instances", instances="required"),
    _volume("volume_detach", "attachments", "take volumes from instances", instances="required"),
    _volume("volume_snapshot_create", "snapshots", "take snapshots of volumes", book="volume_snapshot.yml"),
    _volume("volume_snapshot_delete", "snapshots", "delete snapshots of volumes", book="volume_snapshot.yml"),
)

KINDS: t.Mapping[str, Kind] = {kind.name: kind for kind in _KINDS}


def kind_of(name: str) -> Kind:
    """Raises NotFoundError for a kind that there is none of."""
    if name not in KINDS:
        raise NotFoundError(f"there is no kind of job '{name[:70]}': one of {', '.join(sorted(KINDS))}")
    return KINDS[name]
