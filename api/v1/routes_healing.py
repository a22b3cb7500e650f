# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Healing: how hosts are watched, what is to become of instances, and what people decide of both."""

from __future__ import annotations

import typing as t

from flask.typing import ResponseReturnValue

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import healing, servers
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute.server_listing import instance_row
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute.state_rules import RULES
from ansible_collections.novalite.cloud.plugins.module_utils._rules.ha_wishes import HaWishes

from ..web.context import current
from ..web.errors import as_bad_request
from ..web.services import reads, writes
from ..work.calls import calling
from . import schemas
from .operations import Operation


@Operation(
    "GET",
    "/ha",
    "cloud:ha:read",
    "The watch of the hosts, and the instances that do not run although they are to",
    {200: "Healing"},
    ledger=reads,
)
def show_healing(connection: Connection) -> ResponseReturnValue:
    return {"ha": healing.status(connection)}


@Operation(
    "POST",
    "/ha",
    healing.WRITE,
    "Arm or disarm healing, of all hosts or one",
    {200: "Healing"},
    body=schemas.ARMING,
    ledger=writes,
)
def arm_healing(connection: Connection, body: dict[str, t.Any]) -> ResponseReturnValue:
    healing.arm(calling(connection), body["armed"], body.get("host"), current().user_name)
    return {"ha": healing.status(connection)}


@Operation(
    "GET",
    "/instances/{uuid}/ha",
    "compute:servers:show",
    "Wishes for an instance when its host dies",
    {200: "InstanceHa"},
    ledger=reads,
)
def show_instance_ha(connection: Connection, uuid: str) -> ResponseReturnValue:
    return {"ha": servers.ha_of(connection, instance_row(connection, uuid, current().reach).uuid)}


@Operation(
    "PATCH",
    "/instances/{uuid}/ha",
    RULES["change_ha"].policy,
    "Say what is to become of an instance when its host dies",
    {200: "InstanceHa"},
    description="What is left out stays as it is. Refused where the disks of the instance die with its host, unless a "
    "new disk of the image will do (`ha_rebuild`).",
    body=schemas.HA_WISHES,
    conflicts=True,
    ledger=writes,
)
def change_instance_ha(connection: Connection, uuid: str, body: dict[str, t.Any]) -> ResponseReturnValue:
    row = instance_row(connection, uuid, current().reach)
    with as_bad_request():
        _before, after = servers.change_ha(calling(connection), row.uuid, HaWishes(**body))
    return {"ha": after}


@Operation(
    "POST",
    "/hosts/{name}/confirm-dead",
    healing.WRITE,
    "Say that a compute host is dead, which nothing else can prove",
    {200: "Healing"},
    description=(
        "The caller is recorded by name. What the host bore is started elsewhere, so be sure that it has no power."
    ),
    conflicts=True,
    ledger=writes,
)
def confirm_host_dead(connection: Connection, name: str) -> ResponseReturnValue:
    healing.confirm_dead(calling(connection), name, current().user_name)
    return {"ha": healing.status(connection)}
