# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Results of a job's actions on its instances, and an end for those that a run left in the middle."""

from __future__ import annotations

import dataclasses
import typing as t

import sqlalchemy as sa

from ..._json import JsonMapping
from ..._rules.build_states import CREATE, UNSHELVE, build_of
from ..compute import interfaces, server_actions, server_backups, shelving
from ..compute.create import begin_again as build_again
from ..compute.server_states import record_outcomes
from ..db import clock
from ..db.tables import instance, instance_action
from ..queries.volumes.volume_views import attachments_by
from ..volumes import volume_attachments, volume_backups, volume_snapshots, volume_uploads, volumes

LAUNCH, TERMINATE = "launch", "terminate"
_BUILDS = {LAUNCH: CREATE, UNSHELVE.action: UNSHELVE}
INTERFACES = {"interface_attach": interfaces.ATTACHING, "interface_detach": interfaces.DETACHING}


@dataclasses.dataclass(frozen=True)
class Verdict:
    """Result of a job's actions: those that have not ended (`open`), and the first error."""

    open: frozenset[str]  # UUIDs
    error: str | None


def judge(connection: sa.Connection, request_id: str | None, action: str, uuids: t.Collection[str]) -> Verdict:
    """Read from the action log how `action` of this request ended on each instance. What left no trace is open."""
    last: dict[str, tuple[float | None, str | None]] = {}  # when it ended, and with which message
    log = instance_action.c
    query = sa.select(log.instance_uuid, log.request_id, log.finished_at, log.message)
    query = query.where(log.instance_uuid.in_(list(uuids)), log.action == action)
    for row in connection.execute(query.order_by(log.id)):
        if request_id is None or row.request_id == request_id or row.instance_uuid not in last:
            last[row.instance_uuid] = row.finished_at, row.message
    return Verdict(
        open=frozenset(uuid for uuid in uuids if uuid not in last or last[uuid][0] is None),
        error=next((last[uuid][1] for uuid in uuids if uuid in last and last[uuid][1]), None),
    )


def settle(connection: sa.Connection, kind: str, uuids: t.Collection[str], reason: str) -> None:
    """Give an end to what is still under way on these instances: a build to ERROR, an action to its failure.

    An instance whose deletion failed stays one that is being deleted: its guest may be there, and its owner wants it
    gone. What came to its end before is left alone.
    """
    rows = _rows(connection, uuids)
    if kind in _BUILDS:
        unfinished = [row.uuid for row in rows if build_of(row.vm_state, row.task_state) is _BUILDS[kind]]
    elif kind == TERMINATE:
        unfinished = [row.uuid for row in rows if row.task_state == "deleting"]
    elif kind in server_actions.NAMES:
        for action in shelving.FOLLOWED_BY.get(kind, (kind,)):
            server_actions.interrupt(connection, action, [row.uuid for row in rows], reason)
        return
    elif kind in INTERFACES:
        interfaces.finish(connection, INTERFACES[kind], {row.uuid: reason for row in rows})
        return
    else:
        return
    if unfinished:
        record_outcomes(connection, {uuid: {"state": "error", "reason": reason} for uuid in unfinished})


def settle_volumes(connection: sa.Connection, kind: str, variables: JsonMapping, reason: str) -> None:
    """Give an end to what a job on volumes left under way. What came to its end before is left alone."""
    if kind in ("volume_create", "volume_delete", "volume_extend", "volume_restore", "volume_revert"):
        volumes.settle(connection, variables.get("volumes") or [], reason)
    elif kind == "volume_upload":
        volume_uploads.settle(connection, variables.get("volumes") or [], reason)
    elif kind in ("volume_attach", "volume_detach"):
        held = attachments_by(connection, ids=variables.get("attachments") or [])
        volume_attachments.settle(connection, [attachment.volume_id for attachment in held], reason)
    elif kind == "volume_backup":
        ids = variables.get("backups") or []
        volume_backups.settle(connection, ids, reason)
        for backup in server_backups.being_forgotten(connection, ids):
            server_backups.finish_forget(connection, backup.id, error=reason)
    elif kind in ("volume_snapshot_create", "volume_snapshot_delete"):
        volume_snapshots.settle(connection, variables.get("snapshots") or [], reason)


def begin_again(connection: sa.Connection, kind: str, uuids: t.Collection[str], request_id: str) -> list[str]:
    """Bring builds that failed back to where their playbook expects them; return the UUIDs that a job of `kind` has
    left to do. Those of actions are begun by operations.actions.begin_again()."""
    rows = _rows(connection, uuids)
    if kind == LAUNCH:
        failed = [row for row in rows if row.vm_state == "error" and row.task_state is None and row.host is None]
        build_again(connection, failed, {}, request_id, clock.seconds(connection))
        return [row.uuid for row in failed]
    return [row.uuid for row in rows]


def forgive(connection: sa.Connection, uuids: t.Collection[str]) -> None:
    """Forget which hosts failed to build these: it may have been another instance of the same run that they refused."""
    waiting = (instance.c.vm_state == "building", instance.c.task_state == "scheduling", instance.c.host.is_(None))
    these = sa.update(instance).where(instance.c.uuid.in_(list(uuids)), *waiting)
    connection.execute(these.values(attempts=[], updated_at=clock.seconds(connection)))


def hosts_tried(connection: sa.Connection, uuids: t.Collection[str]) -> list[str]:
    """The hosts on which something may be left of builds that ended as ERROR."""
    query = sa.select(instance.c.attempts).where(instance.c.uuid.in_(list(uuids)), instance.c.vm_state == "error")
    return sorted({host for attempts in connection.execute(query).scalars() for host in attempts})


def _rows(connection: sa.Connection, uuids: t.Collection[str]) -> t.Sequence[t.Any]:
    query = sa.select(instance).where(instance.c.uuid.in_(list(uuids)), instance.c.deleted == 0)
    return connection.execute(query.order_by(instance.c.id)).all()
