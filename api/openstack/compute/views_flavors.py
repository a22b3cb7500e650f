# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Flavors as the Compute API shows them."""

from __future__ import annotations

from ...web.bodies import Body, Record, same
from .servers.views import RenderContext


def brief(row: Record, context: RenderContext) -> Body:
    """An item of GET /flavors."""
    body: Body = {"id": row["flavorid"], "name": row["name"], "links": context.links("flavors", row["flavorid"])}
    if context.version >= (2, 55):
        body["description"] = row["description"]
    return body


def detail(row: Record, context: RenderContext) -> Body:
    """An item of GET /flavors/detail; also GET /flavors/{id}."""
    swap = row["swap_mb"]
    body: Body = {
        "id": row["flavorid"],
        **same(row, "name", "vcpus"),
        "ram": row["memory_mb"],
        "disk": row["root_gb"],
        "swap": swap if swap or context.version >= (2, 75) else "",
        "OS-FLV-EXT-DATA:ephemeral": row["ephemeral_gb"],
        "OS-FLV-DISABLED:disabled": False,
        "os-flavor-access:is_public": bool(row["is_public"]),
        "rxtx_factor": 1.0,
        "links": context.links("flavors", row["flavorid"]),
    }
    if context.version >= (2, 55):
        body["description"] = row["description"]
    if context.version >= (2, 61):
        body["extra_specs"] = row["extra_specs"]
    return body
