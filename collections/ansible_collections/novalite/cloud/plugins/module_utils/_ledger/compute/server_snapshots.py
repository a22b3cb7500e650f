# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Snapshots of servers: all disks of one at one moment, kept on its host beside them, to be rolled back to.

The records are written by three actions on the server (server_actions), so that nothing else is done with it meanwhile.
What is rolled back is the server as it is: with the image that it had, on the same host, with all volumes of then.
"""

from __future__ import annotations

import typing as t
import uuid

import sqlalchemy as sa

from ..._errors import ConflictError, NovaliteError
from ..._guest import image_properties
from ..._json import JsonMapping, JsonObject
from ..._model.instance import Instance
from ..._model.rows import InstanceRow
from ..._plan.host_plan import Plan
from ..._rules.records import check_text, checked_names
from ..db import clock
from ..db.tables_images import server_snapshot as table
from ..identity.quotas import check_quota
from ..instances import actions
from ..queries.volumes.server_snapshot_rows import ServerSnapshot, snapshot_of, snapshots_of
from ..queries.volumes.volume_views import volumes_by
from ..volumes import volume_plans

CREATE, REVERT, DELETE = "createSnapshot", "revertSnapshot", "deleteSnapshot"
ACTIONS = (CREATE, REVERT, DELETE)
CREATING, AVAILABLE, REVERTING, DELETING, ERROR = "creating", "available", "reverting", "deleting", "error"
QUOTA = "server_snapshots"
# These go to another host, or give all disks up: the snapshots would stay behind
_LEAVES = frozenset({"migrate", "resize", "live-migration", "shelve"})
_RUNNING, _SHUTDOWN = 1, 4  # Nova's power states


def details_of(action: str, request: JsonMapping) -> JsonObject:
    """Return what begin() takes for the snapshot that `request` names. Raises NovaliteError."""
    name = request.get("snapshot")
    if not name:
        raise NovaliteError("a snapshot needs a name: give snapshot")
    if action != CREATE:
        return {"snapshot": str(name)}
    checked_names("snapshot", [{"name": name}])
    return {"snapshot": name, "description": check_text("description", request.get("snapshot_description") or "", 255)}


def settled(
    connection: sa.Connection, action: str, request: JsonMapping, servers: t.Iterable[Instance]
) -> list[Instance]:
    """List those of the servers of which the snapshot was taken, or deleted, before."""
    name = details_of(action, request)["snapshot"]
    of_each = {server["uuid"]: snapshots_of(connection, [server["uuid"]], name) for server in servers}
    if action == DELETE:
        return [server for server in servers if not of_each[server["uuid"]]]
    taken = {snapshot.instance_uuid for rows in of_each.values() for snapshot in rows if snapshot.status == AVAILABLE}
    return [server for server in servers if action == CREATE and server["uuid"] in taken]


def refuse_leaving(connection: sa.Connection, action: str, rows: t.Iterable[InstanceRow]) -> None:
    """Raise ConflictError for the first of these instances that `action` would part from its snapshots."""
    if action not in _LEAVES:
        return
    for snapshot in snapshots_of(connection, [row.uuid for row in rows]):
        raise ConflictError(
            f"Cannot '{action}' instance {snapshot.instance_uuid}: its snapshot '{snapshot.name}' lies on "
            f"{snapshot.host} and would stay there: delete its snapshots first"
        )


# --- effects on the records: see server_actions ---------------------------------------------------------------------


def begun_create(connection: sa.Connection, row: InstanceRow, details: JsonObject) -> JsonObject:
    """Record the snapshot, without data yet. One of this name that failed is taken anew."""
    now = clock.seconds(connection)
    volumes = volumes_by(connection, instances=[row.uuid])
    for volume in volumes:
        if len(volume.attachments) > 1:
            raise ConflictError(f"volume {volume.id} has several servers: what they write can be no server's snapshot")
    values: JsonObject = {
        **{"description": details.get("description") or "", "status": CREATING, "host": row.host, "fault": None},
        **{"consistency": None, "size": None, "image_id": row.image.get("id"), "updated_at": now},
        "volumes": [volume.id for volume in volumes if volume.is_attached and not volume.readonly],
    }
    former = snapshots_of(connection, [row.uuid], details["snapshot"])
    if former and former[0].status == AVAILABLE:
        raise ConflictError(f"Instance {row.uuid} has a snapshot '{former[0].name}': delete it, or choose another name")
    if former:
        details["snapshot_id"] = former[0].id
        connection.execute(sa.update(table).where(table.c.id == former[0].id).values(**values))
        return {}
    details["snapshot_id"] = str(uuid.uuid4())
    own = {"id": details["snapshot_id"], "instance_uuid": row.uuid, "name": details["snapshot"], "created_at": now}
    connection.execute(sa.insert(table).values(**own, **values, user_id=row.user_id))
    check_quota(connection, row.project_id, QUOTA, len(snapshots_of(connection, [row.uuid])), f"instance {row.uuid}")
    return {}


def begun_revert(connection: sa.Connection, row: InstanceRow, details: JsonObject) -> JsonObject:
    snapshot = snapshot_of(connection, row.uuid, details["snapshot"])
    cannot = f"Cannot roll instance {row.uuid} back to snapshot '{snapshot.name}'"
    if snapshot.status not in (AVAILABLE, REVERTING):
        raise ConflictError(f"{cannot}: it is {snapshot.status}")
    if snapshot.host != row.host:
        raise ConflictError(f"{cannot}: it lies on {snapshot.host}, and the instance is on {row.host}")
    if snapshot.image_id != row.image.get("id"):
        raise ConflictError(f"{cannot}: the instance has another image now; rebuild it with {snapshot.image_id} first")
    attached = {volume.id for volume in volumes_by(connection, instances=[row.uuid]) if volume.is_attached}
    if missing := sorted(set(snapshot.volumes) - attached):
        raise ConflictError(f"{cannot}: it had volume {missing[0]}; attach that first")
    return _begin(connection, snapshot, REVERTING, details)


def begun_delete(connection: sa.Connection, row: InstanceRow, details: JsonObject) -> JsonObject:
    return _begin(connection, snapshot_of(connection, row.uuid, details["snapshot"]), DELETING, details)


def _begin(connection: sa.Connection, snapshot: ServerSnapshot, status: str, details: JsonObject) -> JsonObject:
    details["snapshot_id"] = snapshot.id
    _write(connection, snapshot.id, {"status": status, "fault": None})
    return {}


def ended_create(
    connection: sa.Connection, row: InstanceRow, details: JsonObject, error: str | None, host_result: JsonMapping
) -> JsonObject:
    """`host_result` has `consistency` and `size`."""
    if error is None:
        said = {"consistency": host_result["consistency"], "size": host_result["size"]}
        _write(connection, details["snapshot_id"], {"status": AVAILABLE, **said})
    else:
        _write_failed(connection, details, ERROR, error)
    return {}


def ended_revert(
    connection: sa.Connection, row: InstanceRow, details: JsonObject, error: str | None, host_result: JsonMapping
) -> JsonObject:
    """`host_result` has `untouched` where the host failed before it came to the guest. Otherwise some of the disks may
    be those of before: the instance is an error until it is rolled back once more, or rebuilt."""
    if error is None:
        _write(connection, details["snapshot_id"], {"status": AVAILABLE})
        stopped = row.vm_state == "stopped"
        return {"vm_state": "stopped" if stopped else "active", "power_state": _SHUTDOWN if stopped else _RUNNING}
    fault = _write_failed(connection, details, AVAILABLE, error)
    return {"vm_state": row.vm_state} if host_result.get("untouched") else {"vm_state": "error", "fault": fault}


def ended_delete(
    connection: sa.Connection, row: InstanceRow, details: JsonObject, error: str | None, host_result: JsonMapping
) -> JsonObject:
    if error is None:
        connection.execute(sa.delete(table).where(table.c.id == details["snapshot_id"]))
    else:
        _write_failed(connection, details, ERROR, error)
    return {}


def _write(connection: sa.Connection, snapshot_id: str, values: JsonObject) -> None:
    values = {**values, "updated_at": clock.seconds(connection)}
    connection.execute(sa.update(table).where(table.c.id == snapshot_id).values(**values))


def _write_failed(connection: sa.Connection, details: JsonMapping, status: str, error: str) -> JsonObject:
    fault: JsonObject = {"code": 500, "message": error, "created": clock.seconds(connection)}
    if "snapshot_id" in details:
        _write(connection, details["snapshot_id"], {"status": status, "fault": fault})
    return fault


def forget(connection: sa.Connection, uuids: t.Iterable[str]) -> None:
    """The instances are deleted, and what is in their directories with them."""
    connection.execute(sa.delete(table).where(table.c.instance_uuid.in_(sorted(set(uuids)))))


# --- what hosts are given -------------------------------------------------------------------------------------------


def add_plans(
    connection: sa.Connection, action: str, hosts: t.Mapping[str, Plan], servers: t.Iterable[Instance]
) -> None:
    """Give each host's plan what step server_snapshot takes: `server_snapshots`; and `results`, of what goes well."""
    uuids = [uuid for plan in hosts.values() for uuid in plan["uuids"]]
    details = actions.open_details(connection, action, uuids)
    ids = {snapshot.id: snapshot.volumes for snapshot in snapshots_of(connection, uuids)}
    quiesce = {server["uuid"]: image_properties.require_quiesce(server["image"]) for server in servers}
    for plan in hosts.values():
        plan["results"] = [{"uuid": uuid} for uuid in plan["uuids"]]
        plan["server_snapshots"] = [
            {
                "uuid": uuid,
                "snapshot_id": details[uuid]["snapshot_id"],
                "quiesce": quiesce[uuid],
                "volumes": [
                    volume_plans.data_of(volume)
                    for volume in volumes_by(connection, ids=ids.get(details[uuid]["snapshot_id"], []))
                ],
            }
            for uuid in plan["uuids"]
        ]
