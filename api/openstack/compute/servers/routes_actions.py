# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""POST /servers/{id}/action: what is done to a server that there is.

What its host has to do is begun here, in one transaction with the job that carries it out. The rest is a record.
"""

from __future__ import annotations

import dataclasses
import typing as t

from flask import Response

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute import server_actions, server_changes
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import actions, server_listing
from ansible_collections.novalite.cloud.plugins.module_utils._model.rows import InstanceRow

from ....web import policy, validation
from ....web.bodies import Answer, Body, Record
from ....web.context import Caller, current
from ....web.errors import BadRequestError
from ....web.ledger import writing_ledger
from ....web.schemas import NAME, Schema, an_object, of, or_null
from ..blueprint import compute
from ..microversions import Version, microversion
from ..tasks import asker, enqueue, who
from . import console
from .routes_servers import delete

NOTHING: Schema = {}  # Nova does not look at it
REBOOT = an_object({"type": {"enum": ["HARD", "Hard", "hard", "SOFT", "Soft", "soft"]}}, ["type"])
GROUP = an_object({"name": NAME}, ["name"])
STATE = an_object({"state": {"enum": ["active", "error"]}}, ["state"])
LOCK = or_null(an_object({"locked_reason": NAME}))
LENGTH = or_null(
    an_object({"length": {"type": ["integer", "string", "null"], "pattern": "^-?[0-9]{1,9}$", "minimum": -1}})
)
ACCEPTED = 202

Reply = t.Union[Answer, tuple[Body, int, dict[str, str]], Response]
# The value is {} where an action's is not an object: none that reads it allows that
Do = t.Callable[[Connection, InstanceRow, Record, Caller], t.Union[Body, Reply, None]]


@dataclasses.dataclass(frozen=True)
class Action:
    """What the body's only key asks for: the schema of its value, or of each microversion's, and what is done about it.

    `operation` is whose rule it has.
    `prepare` makes of the value what `do` takes, before the ledger is locked.
    """

    operation: str
    schema: Schema | t.Callable[[Version], Schema]
    do: Do
    prepare: t.Callable[[Record], Record] | None = None
    status: int = ACCEPTED


def power(name: str) -> Do:
    """Begin the action `name` of server_actions, and have it carried out."""

    def do(connection: Connection, row: InstanceRow, value: Record, caller: Caller) -> None:
        begin(connection, name, row)

    return do


def begin(
    connection: Connection, name: str, row: InstanceRow, details: Record | None = None, variables: Record | None = None
) -> None:
    """Begin the action `name` of server_actions on the instance, and have it carried out."""
    server_actions.begin(connection, name, [row.uuid], details=details, **asker())
    enqueue(connection, name, row, variables)


def _reboot(connection: Connection, row: InstanceRow, value: Record, caller: Caller) -> None:
    kind = {"type": value["type"].upper()}
    begin(connection, "reboot", row, kind, kind)


def _lock(connection: Connection, row: InstanceRow, value: Record, caller: Caller) -> None:
    reason = value.get("locked_reason")
    if reason is not None and microversion() < (2, 73):
        raise BadRequestError("Invalid input for field/attribute lock. locked_reason came with microversion 2.73.")
    server_actions.set_lock(connection, row.uuid, True, reason, **who())


def _unlock(connection: Connection, row: InstanceRow, value: Record, caller: Caller) -> None:
    server_actions.set_lock(connection, row.uuid, False, **who())


def _add_group(connection: Connection, row: InstanceRow, value: Record, caller: Caller) -> None:
    server_changes.refuse_locked(row, caller.is_admin)
    group = server_changes.security_group_of(connection, row.project_id, value["name"])
    server_changes.join_group(connection, row, group.id)
    _tell_hosts(connection, row, {"join": [{"name": row.name, "security_groups": [group.name]}]})


def _remove_group(connection: Connection, row: InstanceRow, value: Record, caller: Caller) -> None:
    server_changes.refuse_locked(row, caller.is_admin)
    group = server_changes.security_group_of(connection, row.project_id, value["name"])
    if not server_changes.leave_group(connection, row, group.id):
        raise NotFoundError(f"Security group {value['name']} not associated with the instance {row.uuid}")
    _tell_hosts(connection, row, {"leave": [{"name": row.name, "security_groups": [group.name]}]})


def _tell_hosts(connection: Connection, row: InstanceRow, variables: Record) -> None:
    """The playbook finds the ledger as it wants it, and tells every host that has to know."""
    if row.host is not None or row.vm_state == "building":
        enqueue(connection, "security_groups", row, variables)


def _reset_state(connection: Connection, row: InstanceRow, value: Record, caller: Caller) -> None:
    server_changes.change(connection, row, {"vm_state": value["state"], "task_state": None, "rescue_image": None})
    # whatever was under way: what comes of it is not recorded any more
    actions.abandon(connection, [row.uuid], "the state was reset")


def _reset_network(connection: Connection, row: InstanceRow, value: Record, caller: Caller) -> None:
    """Of Nova's drivers only Xen's had anything to do: a libvirt guest asks by DHCP, or reads its disk."""


def _restore(connection: Connection, row: InstanceRow, value: Record, caller: Caller) -> None:
    """What is deleted is gone: no server is ever in the state that this is for."""
    raise ConflictError(f"Cannot 'restore' instance {row.uuid} while it is in vm_state {row.vm_state}")


ACTIONS: dict[str, Action] = {
    "os-start": Action("compute:servers:start", NOTHING, power("start")),
    "os-stop": Action("compute:servers:stop", NOTHING, power("stop")),
    "reboot": Action("compute:servers:reboot", REBOOT, _reboot),
    "pause": Action("compute:servers:pause", NOTHING, power("pause")),
    "unpause": Action("compute:servers:unpause", NOTHING, power("unpause")),
    "suspend": Action("compute:servers:suspend", NOTHING, power("suspend")),
    "resume": Action("compute:servers:resume", NOTHING, power("resume")),
    "lock": Action("compute:servers:lock", LOCK, _lock),
    "unlock": Action("compute:servers:unlock", NOTHING, _unlock),
    "addSecurityGroup": Action("compute:servers:security_groups", GROUP, _add_group),
    "removeSecurityGroup": Action("compute:servers:security_groups", GROUP, _remove_group),
    "injectNetworkInfo": Action("compute:servers:reset_network", NOTHING, _reset_network),
    "resetNetwork": Action("compute:servers:reset_network", NOTHING, _reset_network),
    "os-resetState": Action("compute:servers:reset_state", STATE, _reset_state),
    "restore": Action("compute:servers:delete", NOTHING, _restore),
    "forceDelete": Action(
        "compute:servers:delete", NOTHING, lambda connection, row, _value, caller: delete(connection, row, caller)
    ),
}
# What Nova can and novalite cannot
UNSUPPORTED = frozenset(
    [*("createBackup", "shelve", "shelveOffload", "unshelve"), *("addFixedIp", "removeFixedIp", "trigger_crash_dump")]
)


@compute.post("/servers/<server_id>/action", "compute:servers:action")
def act(server_id: str) -> Reply:
    caller = current()
    body = validation.body({"type": "object"})
    if len(body) != 1:
        raise BadRequestError("Malformed request body: name one action")
    ((name, said),) = body.items()
    value: Record = said if isinstance(said, dict) else {}
    if name == console.ACTION:
        policy.check("compute:servers:console_output")
        validation.check(body, of(name, LENGTH))
        return {"output": console.output(server_id, value, caller)}, 200
    if name in UNSUPPORTED:
        with writing_ledger() as connection:
            server_listing.one(connection, server_id, caller.reach)
        raise BadRequestError(f"The action {name} is not supported here.")
    if name not in ACTIONS:
        raise BadRequestError(f"There is no such action: {name[:40]}. Available actions: {', '.join(ACTIONS)}")
    action = ACTIONS[name]
    schema = action.schema(microversion()) if callable(action.schema) else action.schema
    validation.check(body, of(name, schema))
    if action.prepare is not None:
        value = action.prepare(value)
    with writing_ledger() as connection:
        row = server_listing.one(connection, server_id, caller.reach)
        policy.check(action.operation)  # what is another's is not there, whoever may do what
        answer = action.do(connection, row, value, caller)
    if answer is None:
        return Response(status=action.status)
    return (answer, action.status) if isinstance(answer, dict) else answer
