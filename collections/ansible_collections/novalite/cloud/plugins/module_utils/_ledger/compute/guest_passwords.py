# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The administrator's password of a server that runs, set by the agent in its guest.

Like a rebuild's, its hash is in the server's record from the beginning, whatever the guest does with it: nothing else
keeps it, and no job, log or fault has it.
"""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._errors import ConflictError, NovaliteError
from ..._guest import image_properties
from ..._json import JsonObject
from ..._model.hardware import hardware_of
from ..._model.instance import Instance
from ..._model.rows import InstanceRow
from ..._plan.host_plan import Plan
from ..db.tables import instance

NAME = "changePassword"
_HASH = "password_hash"


def details_of(password_hash: str | None) -> JsonObject:
    """Return what begin() takes for a password with this hash."""
    if password_hash is None:
        raise NovaliteError(
            "there is no password to set: give change_password.yml admin_password, or the server's action "
            "changePassword adminPass"
        )
    return {_HASH: password_hash}


def begun(_connection: sa.Connection, row: InstanceRow, details: JsonObject) -> JsonObject:
    """Return what a change of the password changes at its begin, and take the hash from `details`, which are shown.
    Raises ConflictError, in Nova's words, for a guest in which nobody can set it."""
    if _HASH not in details:  # those of an action that is tried again are what is shown of it
        raise ConflictError("the hash of a password is not kept with its action: ask for the change anew")
    password_hash = details.pop(_HASH)
    if not image_properties.guest_agent(row.image):
        raise ConflictError("QEMU guest agent is not enabled")
    if hardware_of(row.flavor, row.image).windows:
        raise ConflictError("Set admin password is not supported: the agent in Windows takes no hash of a password")
    return {_HASH: password_hash, "password_optional": False}


def add_plans(connection: sa.Connection, hosts: t.Mapping[str, Plan], servers: t.Iterable[Instance]) -> None:
    """Give each host's plan what step domain_password takes."""
    users = {server["uuid"]: image_properties.admin_user(server["image"]) for server in servers}
    query = sa.select(instance.c.uuid, instance.c[_HASH]).where(instance.c.uuid.in_(users))
    hashes = {row.uuid: row.password_hash for row in connection.execute(query)}
    for plan in hosts.values():
        plan["secret"] = True
        plan["passwords"] = [
            {"uuid": uuid, "name": domain["name"], "user": users[uuid], _HASH: hashes[uuid]}
            for domain in plan["domains"]
            for uuid in [domain["uuid"]]
        ]
