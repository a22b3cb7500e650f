# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Instances that are terminated as soon as their guests shut themselves down: shutdown behaviour `terminate`."""

from __future__ import annotations

import contextlib
import dataclasses
import uuid as uuids

import sqlalchemy as sa

from ..._errors import QuotaError
from ..._model.instance import Instance
from ..compute import api_created
from ..db import clock
from ..db.tables import instance, instance_action
from ..db.tables_ec2 import ec2_instance
from ..jobs import job_rows
from ..queries.compute.state_rules import RULES
from ..queries.jobs import job_records

TERMINATE = "terminate"
TIMEOUT = 1800  # seconds for the job
# What says that it was not the guest's own decision: its owner's request, which was cut off
_REQUESTS = ("stop", "delete")
_BY_ITSELF = dataclasses.replace(RULES["delete"], protection=None)  # as at Amazon: it protects from requests only
_FOLLOWED = "power_state"  # the action that power_states.follow() records


def terminate(connection: sa.Connection, server: Instance) -> bool:
    """Begin to delete an instance whose guest was found to have shut itself down, if its owner wants that. Returns
    whether that is so. A job carries it out; where the project may have no more jobs, the next reconcile.yml does."""
    if not _is_terminated_at_shutdown(connection, server["uuid"]) or _was_switched_off(connection, server["uuid"]):
        return False
    project_id = server["project"]["id"]
    request_id = api_created.mark(
        connection, [{"uuid": server["uuid"], "task_state": None}], project_id=project_id, rule=_BY_ITSELF
    )
    row: job_records.Job = {
        "id": str(uuids.uuid4()),
        "kind": "terminate",
        "project_id": project_id,
        "user_id": None,
        "request_id": request_id,
        "variables": {},
        "check_mode": False,
        "state": job_records.QUEUED,
        "idempotency_key": None,
        "request_hash": None,
        "retry_of": None,
        "timeout_seconds": TIMEOUT,
        "created_at": clock.now(connection),
    }
    with contextlib.suppress(QuotaError):
        job_rows.add(connection, row, [server["uuid"]])
    return True


def _is_terminated_at_shutdown(connection: sa.Connection, uuid: str) -> bool:
    own = sa.select(ec2_instance.c.shutdown_behavior).join(instance, instance.c.uuid == ec2_instance.c.instance_uuid)
    return connection.execute(own.where(instance.c.uuid == uuid, ~instance.c.locked)).scalar() == TERMINATE


def _was_switched_off(connection: sa.Connection, uuid: str) -> bool:
    """Tell whether the last thing that was done to it was to switch it off."""
    log = instance_action.c
    query = sa.select(log.action).where(log.instance_uuid == uuid, log.action != _FOLLOWED)
    return connection.execute(query.order_by(log.id.desc()).limit(1)).scalar() in _REQUESTS
