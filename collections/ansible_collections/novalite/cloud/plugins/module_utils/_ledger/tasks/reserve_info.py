# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operation `reserve_info`: whether the other hosts have room for the instances of a host that dies."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._json import JsonMapping, JsonObject
from ..operations import reserve

NAMED = 3  # instances that the message names


def reserve_info(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Tell of each host with instances whether the others would take them if it died, and which find no room."""
    losses = reserve.losses(connection, params["host"], params["options"], params["limit_to"])
    return {"changed": False, "hosts": losses, "msg": _message(losses)}


def _message(losses: t.Sequence[JsonObject]) -> str:
    """Return the result in one line: the host whose death would leave most instances without a host, and how many."""
    short = [loss for loss in losses if loss["stranded"]]
    if not losses:
        return "no compute host has instances"
    if not short:
        return "one host may fail: the others have room for its instances, whichever it is"
    worst = max(short, key=lambda loss: len(loss["stranded"]))
    names = [instance["name"] for instance in worst["stranded"][:NAMED]] + ["..."] * (len(worst["stranded"]) > NAMED)
    others = f"; so it is with {len(short) - 1} other hosts" if len(short) > 1 else ""
    return (
        f"if {worst['host']} died, {len(worst['stranded'])} of its {worst['instances']} instances would find no host "
        f"({', '.join(names)}){others}"
    )
