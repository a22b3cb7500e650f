# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Jobs about servers, in the transaction of what they carry out; and who asks for them."""

from __future__ import annotations

import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute import (
    api_created,
    server_actions,
    server_changes,
    volume_images,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import server_listing
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.volumes import volume_attachments
from ansible_collections.novalite.cloud.plugins.module_utils._model.rows import InstanceRow

from ..jobs import queue
from ..web import policy
from ..web.bodies import Record
from ..web.context import Signature, current, request_id, signature
from ..web.ledger import writing_ledger
from . import waiting


class Asker(Signature):
    by_admin: bool


def asker() -> Asker:
    """Return signature() and more, for what a locked server refuses to all but administrators."""
    return {**signature(), "by_admin": policy.overrides_lock()}


def tell(
    connection: Connection, kind: str, instances: t.Sequence[str], project_id: str, variables: Record | None = None
) -> str:
    """Have a job of `kind` do what was begun with these instances, or with what `variables` name. Returns its id."""
    job = queue.enqueue(
        connection, kind, instances=instances, variables=variables, project_id=project_id, **signature()
    )
    return job["id"]


def enqueue(connection: Connection, kind: str, row: InstanceRow, variables: Record | None = None) -> str:
    """Queue a job about one server, as tell() does about several. Returns its id."""
    return tell(connection, kind, [row.uuid], row.project_id, variables)


def begin(
    connection: Connection, name: str, row: InstanceRow, details: Record | None = None, variables: Record | None = None
) -> None:
    """Begin the action `name` of server_actions on the instance, and have it carried out."""
    server_actions.begin(connection, name, [row.uuid], details=details, **asker())
    enqueue(connection, name, row, variables)


def delete(connection: Connection, row: InstanceRow) -> None:
    """Mark the instance as going, and have it taken away, unless that is under way."""
    if row.task_state == "deleting" and server_changes.open_job(connection, row.uuid, "terminate") is not None:
        return
    caller = current()
    api_created.mark(
        connection,
        [{"uuid": row.uuid, "task_state": row.task_state}],
        request_id(),
        user_id=caller.user_id,
        project_id=caller.project_id,
        by_admin=policy.overrides_lock(),
    )
    enqueue(connection, "terminate", row)


def change_group(connection: Connection, row: InstanceRow, name: str, *, joins: bool) -> None:
    """Let a server join a security group, or leave it, and have hosts told."""
    group = server_changes.change_group(connection, row, name, joins=joins, by_admin=policy.overrides_lock())
    # the playbook finds the ledger as it wants it, and tells every host that has to know
    if row.host is not None or row.vm_state == "building":
        change = {"join" if joins else "leave": [{"name": row.name, "security_groups": [group]}]}
        enqueue(connection, "security_groups", row, change)


def create_image(connection: Connection, row: InstanceRow, details: Record) -> None:
    """Begin to make the image that `details` (image_snapshots.details_of) say: of the server's disk, or of snapshots of
    its volumes if it starts from one."""
    if not volume_attachments.from_volumes(connection, [row.uuid]):
        begin(connection, "createImage", row, details)
        return
    snapshots = volume_images.create(connection, row.uuid, details, **asker())
    tell(connection, "volume_snapshot_create", [row.uuid], row.project_id, {"snapshots": snapshots})


# --- what a guest said: its host knows, so a job asks there, and the answer waits for it ----------------------------


def console_output(server_id: str, lines: int | None = None) -> str:
    """The last `lines` of the console, or all of it. Raises ConflictError where there is none, or it takes too long."""
    with writing_ledger() as connection:
        row = server_listing.instance_row(connection, server_id, current().reach)
        if row.host is None:
            raise ConflictError(f"Instance {row.uuid} is not ready")
        if lines == 0:
            return ""
        variables = {} if lines is None else {"lines": lines}
        # who asks again because it took too long waits for the same answer
        job_id = server_changes.open_job(connection, row.uuid, "console", variables)
        if job_id is None:
            job_id = enqueue(connection, "console", row, variables)
    job = waiting.ended(job_id)
    if job is None:
        raise ConflictError(f"The console log of {row.uuid} is still being read: ask again")
    if job.state != "succeeded":
        raise ConflictError(f"Unable to get the console log of {row.uuid}: {job.message or 'its host did not say'}")
    console_texts = (job.result or {}).get("console", {})
    text = str(console_texts.get(row.uuid, "")) if isinstance(console_texts, dict) else ""
    # as Nova counts: what follows the last newline is a line, also when nothing does
    return text if lines is None else "\n".join(text.split("\n")[-lines:])
