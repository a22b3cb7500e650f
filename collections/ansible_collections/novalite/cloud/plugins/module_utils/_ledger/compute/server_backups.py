# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Backups of servers: all disks of one at one moment, in a store beside the hosts, which outlives the server.

The records are written by four actions on the server (server_actions), so that nothing else is done with it meanwhile,
and no two backups of it are taken at once. A backup is restored in the place of the disks that a server has: those of
the server that it was taken of, or of another one in the project, such as one launched for that.
"""

from __future__ import annotations

import datetime
import typing as t
import uuid

import sqlalchemy as sa

from ..._errors import ConflictError, NotFoundError, NovaliteError
from ..._json import JsonMapping, JsonObject
from ..._model.instance import Instance
from ..._model.rows import InstanceRow
from ..._plan.host_plan import Plan
from ..._rules import boots, retention
from ..._rules.records import checked_names
from ..db import clock
from ..db.tables import instance, instance_action
from ..db.tables_images import server_backup as table
from ..identity.quotas import check_quota
from ..instances import actions
from ..queries import counts
from ..queries.volumes.server_backup_rows import AVAILABLE, FULL, ServerBackup, backup_of, backups_by
from ..queries.volumes.volume_views import Volume, volumes_by
from ..volumes import volume_plans

CREATE, RESTORE, VERIFY, DELETE = "createBackup", "restoreBackup", "verifyBackup", "deleteBackup"
ACTIONS = (CREATE, RESTORE, VERIFY, DELETE)
CREATING, RESTORING, VERIFYING, DELETING, ERROR = "creating", "restoring", "verifying", "deleting", "error"
_READING = (RESTORING, VERIFYING)  # which leave a backup what it is
_RUNNING, _SHUTDOWN = 1, 4  # Nova's power states


def details_of(action: str, request: JsonMapping) -> JsonObject:
    """Return what begin() takes for the backup that `request` names. Raises NovaliteError."""
    name = request.get("backup")
    if action == CREATE:
        if name:
            checked_names("backup", [{"name": name}])
        return {"backup": name, "full": bool(request.get("full_backup")), "keep": retention.keep_of(request)}
    if not name and action != VERIFY:
        raise NovaliteError("say which backup by its name or id: give backup")
    details: JsonObject = {"backup": name and str(name)}
    if action == VERIFY and request.get("boot"):
        details["boot_timeout"] = boots.seconds_of(request.get("boot_timeout"))
    return details


def settled(
    connection: sa.Connection, action: str, request: JsonMapping, servers: t.Iterable[Instance]
) -> list[Instance]:
    """List those of the servers of which the backup that is named was taken, or deleted, before."""
    name = details_of(action, request)["backup"]
    if name is None or action not in (CREATE, DELETE):
        return []
    of_each = {server["uuid"]: backups_by(connection, servers=[server["uuid"]], name=name) for server in servers}
    if action == DELETE:
        return [server for server in servers if not of_each[server["uuid"]]]
    return [server for server in servers if any(each.status == AVAILABLE for each in of_each[server["uuid"]])]


# --- effects on the records: see server_actions ---------------------------------------------------------------------


def begun_create(connection: sa.Connection, row: InstanceRow, details: JsonObject) -> JsonObject:
    """Record the backup, without data yet. Those of the server that failed, and those that are not to be kept, go when
    this one is there."""
    now = clock.seconds(connection)
    name = details.get("backup") or _moment(now)
    there = backups_by(connection, servers=[row.uuid])
    if any(each.name == name and each.status != ERROR for each in there):
        raise ConflictError(f"Instance {row.uuid} has a backup '{name}': delete it, or choose another name")
    failed = [each.id for each in there if each.status == ERROR and each.kind is None]
    connection.execute(sa.delete(table).where(table.c.id.in_(failed), table.c.name == name))
    details |= {"backup_id": str(uuid.uuid4()), "backup": name}
    read = _read(connection)
    taken = {each.id: each.created_at for each in there if each.status == AVAILABLE and each.id not in read}
    newest = max([now, *taken.values()]) + 1  # also where two are of one second
    superfluous = retention.superfluous({**taken, details["backup_id"]: newest}, details.get("keep") or {})
    details["replaced"] = [*failed, *sorted(superfluous, key=lambda number: (taken[number], number))]
    volumes = _volumes(connection, row.uuid)
    values: JsonObject = {
        **{"id": details["backup_id"], "instance_uuid": row.uuid, "project_id": row.project_id, "server": row.name},
        **{"name": name, "status": CREATING, "host": row.host, "disks": [], "user_id": row.user_id},
        **{"flavor": row.flavor, "image_id": row.image.get("id"), "created_at": now, "updated_at": now},
        "gigabytes": row.flavor["root_gb"] + row.flavor["ephemeral_gb"] + sum(volume.size_gb for volume in volumes),
    }
    connection.execute(sa.insert(table).values(**values))
    leaving = {each.id: each.gigabytes for each in there if each.id in superfluous}
    count = counts.backups(connection, row.project_id) - len(leaving)
    gigabytes = counts.backup_gigabytes(connection, row.project_id) - sum(leaving.values())
    check_quota(connection, row.project_id, "backups", count)
    check_quota(connection, row.project_id, "backup_gigabytes", gigabytes)
    return {}


def begun_restore(connection: sa.Connection, row: InstanceRow, details: JsonObject) -> JsonObject:
    """Begin to give the server the disks of one of its backups, or of one of the project's by its id. Of its own, it
    has to have the volumes: another one in that place would be written over."""
    backup = backup_of(connection, row.uuid, details["backup"], row.project_id)
    if backup.instance_uuid == row.uuid:
        attached = {volume.id for volume in _volumes(connection, row.uuid)}
        there = {volume for disk in backup.disks if (volume := disk.get("volume")) is not None}
        if missing := sorted(there - attached):
            raise ConflictError(
                f"Cannot restore backup '{backup.name}' of instance {row.uuid}: it has volume {missing[0]}; "
                "attach that first, or make a new volume of the disk (restore-volume)"
            )
    details["run"] = str(uuid.uuid4())
    return _begin(connection, row, backup, RESTORING, details)


def begun_verify(connection: sa.Connection, row: InstanceRow, details: JsonObject) -> JsonObject:
    """Begin to verify the backup that is named, or the newest one; to boot, the newest full one."""
    if details.get("backup"):
        backup = backup_of(connection, row.uuid, details["backup"])
    else:
        there = [each for each in backups_by(connection, servers=[row.uuid]) if each.status == AVAILABLE]
        if "boot_timeout" in details:
            there = [each for each in there if each.kind == FULL] or there
        if not there:
            raise NotFoundError(f"Instance {row.uuid} has no backup that could be verified: take one first")
        backup = there[-1]
    return _begin(connection, row, backup, VERIFYING, details)


def begun_delete(connection: sa.Connection, row: InstanceRow, details: JsonObject) -> JsonObject:
    """Begin to delete a backup, also one that failed, or with which nobody goes on."""
    backup = backup_of(connection, row.uuid, details["backup"])
    return _begin(connection, row, backup, DELETING, details, (AVAILABLE, DELETING, ERROR), (CREATING, *_READING))


def _begin(
    connection: sa.Connection,
    row: InstanceRow,
    backup: ServerBackup,
    status: str,
    details: JsonObject,
    allowed: t.Collection[str] = (AVAILABLE,),
    allowed_at_rest: t.Collection[str] = _READING,
) -> JsonObject:
    if backup.status not in allowed and (backup.status not in allowed_at_rest or _is_at_work(connection, backup)):
        raise ConflictError(f"Backup '{backup.name}' of instance {backup.instance_uuid} is {backup.status}: try later")
    if status == DELETING:
        _check_unread(connection, backup)
    details["backup_id"] = backup.id
    if backup.instance_uuid != row.uuid:
        details["source"] = backup.instance_uuid
    _write(connection, backup.id, {"status": status, "fault": None})
    return {}


def ended_create(
    connection: sa.Connection, row: InstanceRow, details: JsonObject, error: str | None, host_result: JsonMapping
) -> JsonObject:
    """`host_result` has the `record` of the backup, and of what it replaced those that are `removed`, and the `records`
    of others that changed with them."""
    if error is None:
        _write_records(
            connection, [*(host_result.get("records") or ()), {**host_result["record"], "status": AVAILABLE}]
        )
        connection.execute(sa.delete(table).where(table.c.id.in_(host_result.get("removed") or ())))
    else:
        _write_failed(connection, details, ERROR, error)
    return {}


def ended_restore(
    connection: sa.Connection, row: InstanceRow, details: JsonObject, error: str | None, host_result: JsonMapping
) -> JsonObject:
    """`host_result` has `untouched` where the host failed before it came to the guest, and `undone` where the server
    has its former disks again, and is off. Otherwise nobody knows: it is an error until it is restored once more."""
    if error is None:
        _write(connection, details["backup_id"], {"status": AVAILABLE})
        stopped = row.vm_state == "stopped"
        return {"vm_state": "stopped" if stopped else "active", "power_state": _SHUTDOWN if stopped else _RUNNING}
    fault = _write_failed(connection, details, AVAILABLE, error)
    if host_result.get("untouched"):
        return {"vm_state": row.vm_state}
    if host_result.get("undone"):
        return {"vm_state": "stopped", "power_state": _SHUTDOWN, "fault": fault}
    return {"vm_state": "error", "fault": fault}


def ended_verify(
    connection: sa.Connection, row: InstanceRow, details: JsonObject, error: str | None, host_result: JsonMapping
) -> JsonObject:
    """`host_result` has `complaints`, why the backup cannot be restored, if it was looked at; and `boot`, what became
    of it, if it was booted, after all of it was compared."""
    booted = host_result.get("boot")
    complaints = "; ".join(host_result.get("complaints") or ())
    if error is not None:
        _write_failed(connection, details, AVAILABLE, error)
    else:
        _write(connection, details["backup_id"], {"status": AVAILABLE})
    now = clock.seconds(connection)
    if error is None or complaints or booted:
        _write(connection, details["backup_id"], {"verified_at": now, "complaint": complaints or None})
    if "boot_timeout" in details:  # also where its host had no room for that
        kept = boots.columns_of(booted, now) if booted else {}
        _write(connection, details["backup_id"], {**kept, "booted_at": now})
    return {}


def ended_delete(
    connection: sa.Connection, row: InstanceRow, details: JsonObject, error: str | None, host_result: JsonMapping
) -> JsonObject:
    """`host_result` has the `records` of the backups that changed what is gone, and stand for themselves now."""
    if error is None:
        connection.execute(sa.delete(table).where(table.c.id == details["backup_id"]))
        _write_records(connection, host_result.get("records") or ())
    else:
        _write_failed(connection, details, ERROR, error)
    return {}


# --- of servers that are gone ---------------------------------------------------------------------------------------


def begin_forget(connection: sa.Connection, backup_id: str, project_id: str | None) -> ServerBackup:
    """Begin to delete the backup with this id, of a server that is gone; any host does it. Raises NotFoundError, and
    ConflictError for one of a server that is there, or that is otherwise at work."""
    rows = [each for each in backups_by(connection, project_id=project_id, name=backup_id) if each.id == backup_id]
    if not rows:
        raise NotFoundError(f"there is no backup with the id {backup_id[:64]!r}: see `novalite backup list -o wide`")
    (backup,) = rows
    if counts.is_any(connection, instance.c.uuid == backup.instance_uuid, instance.c.deleted == 0):
        raise ConflictError(
            f"backup {backup.id} is of the server '{backup.server}': delete it as a backup of that server"
        )
    if backup.status not in (AVAILABLE, DELETING, ERROR) and _is_at_work(connection, backup):
        raise ConflictError(f"Backup '{backup.name}' of instance {backup.instance_uuid} is {backup.status}: try later")
    _check_unread(connection, backup)
    _write(connection, backup.id, {"status": DELETING, "fault": None})
    return backup


def _is_at_work(connection: sa.Connection, backup: ServerBackup) -> bool:
    """Tell whether an action on some server is about this backup, and has not ended. In a ledger of before
    server_actions.abandon(), the status of a backup may be all that is left of one."""
    log = instance_action.c
    mine = log.details["backup_id"].as_string() == backup.id
    return counts.is_any(connection, log.action.in_(ACTIONS), log.finished_at.is_(None), mine)


def _check_unread(connection: sa.Connection, backup: ServerBackup) -> None:
    """Raise ConflictError for a backup of which a volume is being made."""
    volume = _read(connection).get(backup.id)
    if volume is not None:
        raise ConflictError(f"Backup '{backup.name}' of instance {backup.instance_uuid} becomes {volume}: try later")


def _read(connection: sa.Connection) -> dict[str, str]:
    """The backups (ids) of which volumes are being made, and which."""
    making = volumes_by(connection, statuses=["creating"])
    return {each.backup_disk["backup"]: f"volume {each.id}" for each in making if each.backup_disk is not None}


def being_forgotten(connection: sa.Connection, ids: t.Collection[str]) -> list[ServerBackup]:
    """Return those of these backups of servers that begin_forget() was called for."""
    gone = sa.exists().where(instance.c.uuid == table.c.instance_uuid, instance.c.deleted == 0)
    query = sa.select(table.c.id).where(table.c.id.in_(sorted(ids)), table.c.status == DELETING, sa.not_(gone))
    return [backup for number in connection.execute(query).scalars() for backup in backups_by(connection, name=number)]


def finish_forget(
    connection: sa.Connection, backup_id: str, *, error: str | None = None, outcome: JsonMapping | None = None
) -> bool:
    """Record how its deletion ended. `outcome` has the `records` of the backups that changed what is gone."""
    if not counts.is_any(connection, table.c.id == backup_id, table.c.status == DELETING):
        return False
    if error is not None:
        _write_failed(connection, {"backup_id": backup_id}, ERROR, error)
    else:
        connection.execute(sa.delete(table).where(table.c.id == backup_id))
        _write_records(connection, (outcome or {}).get("records") or ())
    return True


_RECORDED = ("kind", "reason", "parent_id", "consistency", "disks", "moved", "size", "status")


def _write_records(connection: sa.Connection, records: t.Iterable[JsonMapping]) -> None:
    for record in records:
        _write(connection, record["id"], {name: record[name] for name in _RECORDED if name in record})


def _write(connection: sa.Connection, backup_id: str, values: JsonObject) -> None:
    values = {**values, "updated_at": clock.seconds(connection)}
    connection.execute(sa.update(table).where(table.c.id == backup_id).values(**values))


def _write_failed(connection: sa.Connection, details: JsonMapping, status: str, error: str) -> JsonObject:
    fault: JsonObject = {"code": 500, "message": error, "created": clock.seconds(connection)}
    if "backup_id" in details:
        _write(connection, details["backup_id"], {"status": status, "fault": fault})
    return fault


def _moment(now: int) -> str:
    return datetime.datetime.fromtimestamp(now, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def _volumes(connection: sa.Connection, instance_uuid: str) -> list[Volume]:
    """The volumes of a server that its backups have: it can write to them."""
    volumes = volumes_by(connection, instances=[instance_uuid])
    for volume in volumes:
        if len(volume.attachments) > 1:
            raise ConflictError(f"volume {volume.id} has several servers: what they write can be no server's backup")
    return [volume for volume in volumes if volume.is_attached and not volume.readonly]


_PLANNED = ("source", "full", "replaced", "boot_timeout", "run")


# --- what hosts are given -------------------------------------------------------------------------------------------


def add_plans(connection: sa.Connection, action: str, hosts: t.Mapping[str, Plan]) -> None:
    """Give each host's plan what step server_backup takes: `server_backups`; and `results`, of what goes well."""
    uuids = [uuid for plan in hosts.values() for uuid in plan["uuids"]]
    details = actions.open_details(connection, action, uuids)
    for plan in hosts.values():
        plan["results"] = [{"uuid": uuid} for uuid in plan["uuids"]]
        plan["server_backups"] = [
            {
                "uuid": uuid,
                "backup_id": details[uuid]["backup_id"],
                "volumes": [volume_plans.data_of(volume) for volume in _volumes(connection, uuid)],
                **{name: details[uuid][name] for name in _PLANNED if details[uuid].get(name)},
            }
            for uuid in plan["uuids"]
        ]
