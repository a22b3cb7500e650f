# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operations on policies of backups, for every door, and the beginning of what is due by them."""

from __future__ import annotations

from ..._errors import NovaliteError
from ..._json import JsonMapping, JsonObject
from ..compute import server_backups
from ..volumes import backup_policies
from ..volumes.backup_policies import Due
from . import servers
from .call import Call

POLICIES = "cloud:backup_policies"


def listed(call: Call) -> list[JsonObject]:
    """List the policies, as they are shown."""
    call.check(POLICIES)
    return backup_policies.shown(call.connection)


def ensure(call: Call, params: JsonMapping) -> bool:
    """Have a policy; returns whether that changed anything. Raises as backup_policies.ensure()."""
    call.check(POLICIES)
    return backup_policies.ensure(call.connection, params)


def remove(call: Call, name: str) -> bool:
    """Delete a policy; returns whether there was one."""
    call.check(POLICIES)
    return backup_policies.remove(call.connection, name)


def begin_due(call: Call) -> JsonObject:
    """Begin the backups and the proofs that are due. Returns the servers (UUIDs) that are `taken` and `proven`, and
    those that are `left`, with the reason; they are due the next time again."""
    call.check(POLICIES)
    to_take, to_boot, to_compare = backup_policies.due(call.connection)
    begun: JsonObject = {"taken": [], "proven": [], "left": []}
    for state, action, more, those in (
        ("taken", server_backups.CREATE, {}, to_take),
        ("proven", server_backups.VERIFY, {"boot": True}, to_boot),
        ("proven", server_backups.VERIFY, {}, to_compare),
    ):
        for each in those:
            try:
                with call.connection.begin_nested():
                    servers.begin(call, action, [each.uuid], _details(action, each, more))
                begun[state].append(each.uuid)
            except NovaliteError as error:
                begun["left"].append({"uuid": each.uuid, "reason": str(error)})
    return begun


def _details(action: str, each: Due, more: JsonMapping) -> JsonObject:
    keep = {f"keep_{period}": number for period, number in each.policy.keep.items()}
    return server_backups.details_of(action, keep if action == server_backups.CREATE else more)
