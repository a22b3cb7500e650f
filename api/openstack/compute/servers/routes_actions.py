# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""POST /servers/{id}/action: what is done to a server that there is.

What its host has to do is begun here, in one transaction with the job that carries it out. The rest is a record.
"""

from __future__ import annotations

import dataclasses
import typing as t

from flask import Response

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import servers
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.call import Call
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute import server_listing
from ansible_collections.novalite.cloud.plugins.module_utils._model.rows import InstanceRow

from ....web import policy, validation
from ....web.bodies import Answer, Body, Record
from ....web.context import current
from ....web.errors import BadRequestError
from ....web.ledger import writing_ledger
from ....web.schemas import NAME, Schema, an_object, of, or_null
from ....work import waiting
from ....work.calls import calling
from ..blueprint import Version, compute, microversion

NOTHING: Schema = {}  # Nova does not look at it
REBOOT = an_object({"type": {"enum": ["HARD", "Hard", "hard", "SOFT", "Soft", "soft"]}}, ["type"])
GROUP = an_object({"name": NAME}, ["name"])
STATE = an_object({"state": {"enum": ["active", "error"]}}, ["state"])
LOCK = or_null(an_object({"locked_reason": NAME}))
LENGTH = or_null(
    an_object({"length": {"type": ["integer", "string", "null"], "pattern": "^-?[0-9]{1,9}$", "minimum": -1}})
)
ACCEPTED = 202
CONSOLE = "os-getConsoleOutput"
MAX_LINES = 10**6

Reply = t.Union[Answer, tuple[Body, int, dict[str, str]], Response]
# The value is {} where an action's is not an object: none that reads it allows that
Do = t.Callable[[Call, InstanceRow, Record], t.Union[Body, Reply, None]]


@dataclasses.dataclass(frozen=True)
class Action:
    """An action, named by the body's only key: the schema of its value, or of each microversion's, and the function
    `do`. `operation` names its rule in the policy. `prepare` converts the value before the ledger is locked."""

    operation: str
    schema: Schema | t.Callable[[Version], Schema]
    do: Do
    prepare: t.Callable[[Record], Record] | None = None
    status: int = ACCEPTED


def power(name: str) -> Do:
    """Begin the action `name` of server_actions, and have it carried out."""

    def do(call: Call, row: InstanceRow, value: Record) -> None:
        servers.begin(call, name, [row.uuid])

    return do


def _reboot(call: Call, row: InstanceRow, value: Record) -> None:
    kind = {"type": value["type"].upper()}
    servers.begin(call, "reboot", [row.uuid], kind, kind)


def _lock(call: Call, row: InstanceRow, value: Record) -> None:
    reason = value.get("locked_reason")
    if reason is not None and microversion() < (2, 73):
        raise BadRequestError("Invalid input for field/attribute lock. locked_reason came with microversion 2.73.")
    servers.set_lock(call, row.uuid, True, reason)


def _unlock(call: Call, row: InstanceRow, value: Record) -> None:
    servers.set_lock(call, row.uuid, False)


def _change_group(joins: bool) -> Do:
    def do(call: Call, row: InstanceRow, value: Record) -> None:
        servers.change_group(call, row, value["name"], joins=joins)

    return do


def _reset_state(call: Call, row: InstanceRow, value: Record) -> None:
    servers.reset_state(call, row, value["state"])


def _reset_network(call: Call, row: InstanceRow, value: Record) -> None:
    """Do nothing. Of Nova's drivers only Xen's had work here: a libvirt guest asks by DHCP, or reads its disk."""


def _restore(call: Call, row: InstanceRow, value: Record) -> None:
    """Raise ConflictError: a deleted server is gone, so none is ever in a state to be restored."""
    raise ConflictError(f"Cannot 'restore' instance {row.uuid} while it is in vm_state {row.vm_state}")


def _delete(call: Call, row: InstanceRow, value: Record) -> None:
    servers.delete(call, row)


ACTIONS: dict[str, Action] = {
    **{
        name: Action(f"compute:servers:{name.removeprefix('os-')}", NOTHING, power(name.removeprefix("os-")))
        for name in ("os-start", "os-stop", "pause", "unpause", "suspend", "resume")
    },
    "reboot": Action("compute:servers:reboot", REBOOT, _reboot),
    "lock": Action("compute:servers:lock", LOCK, _lock),
    "unlock": Action("compute:servers:unlock", NOTHING, _unlock),
    **{
        name: Action("compute:servers:security_groups", GROUP, _change_group(joins))
        for name, joins in (("addSecurityGroup", True), ("removeSecurityGroup", False))
    },
    "injectNetworkInfo": Action("compute:servers:reset_network", NOTHING, _reset_network),
    "resetNetwork": Action("compute:servers:reset_network", NOTHING, _reset_network),
    "os-resetState": Action("compute:servers:reset_state", STATE, _reset_state),
    "restore": Action("compute:servers:delete", NOTHING, _restore),
    "forceDelete": Action("compute:servers:delete", NOTHING, _delete),
}
# What Nova can and novalite cannot
UNSUPPORTED = frozenset(["trigger_crash_dump"])


@compute.post("/servers/<server_id>/action", "compute:servers:action")
def act(server_id: str) -> Reply:
    caller = current()
    body = validation.body({"type": "object"})
    if len(body) != 1:
        raise BadRequestError("Malformed request body: name one action")
    ((name, action_body),) = body.items()
    value: Record = action_body if isinstance(action_body, dict) else {}
    if name == CONSOLE:
        policy.check("compute:servers:console_output")
        validation.check(body, of(name, LENGTH))
        return {"output": waiting.console_output(server_id, _lines(value))}, 200
    if name in UNSUPPORTED:
        with writing_ledger() as connection:
            server_listing.instance_row(connection, server_id, caller.reach)
        raise BadRequestError(f"The action {name} is not supported here.")
    if name not in ACTIONS:
        raise BadRequestError(f"There is no such action: {name[:40]}. Available actions: {', '.join(ACTIONS)}")
    action = ACTIONS[name]
    schema = action.schema(microversion()) if callable(action.schema) else action.schema
    validation.check(body, of(name, schema))
    if action.prepare is not None:
        value = action.prepare(value)
    with writing_ledger() as connection:
        row = server_listing.instance_row(connection, server_id, caller.reach)
        policy.check(action.operation)  # what is another's is not there, whoever may do what
        answer = action.do(calling(connection), row, value)
    if answer is None:
        return Response(status=action.status)
    return (answer, action.status) if isinstance(answer, dict) else answer


def _lines(value: Record) -> int | None:
    """Read how many lines of a console are asked for: -1, as nothing at all, means everything."""
    length = value.get("length")
    return None if length in (None, "", -1, "-1") else min(max(int(length), 0), MAX_LINES)
