# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Healing: how hosts are watched, and what people decide of it."""

from __future__ import annotations

import typing as t

from flask.typing import ResponseReturnValue

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import healing

from ..web.context import current
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
