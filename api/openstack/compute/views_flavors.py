# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Flavors as the Compute API shows them."""

from __future__ import annotations

from ...web.bodies import Body, Record
from .microversions import from_version, microversion
from .servers.views import RenderContext


def brief(row: Record, context: RenderContext) -> Body:
    """An item of GET /flavors."""
    return {
        "id": row["flavorid"],
        "name": row["name"],
        "links": context.links("flavors", row["flavorid"]),
        **from_version((2, 55), {"description": row["description"]}),
    }


def detail(row: Record, context: RenderContext) -> Body:
    """An item of GET /flavors/detail; also GET /flavors/{id}."""
    swap = row["swap_mb"]
    return {
        **brief(row, context),
        "vcpus": row["vcpus"],
        "ram": row["memory_mb"],
        "disk": row["root_gb"],
        "swap": swap if swap or microversion() >= (2, 75) else "",
        "OS-FLV-EXT-DATA:ephemeral": row["ephemeral_gb"],
        "OS-FLV-DISABLED:disabled": False,
        "os-flavor-access:is_public": bool(row["is_public"]),
        "rxtx_factor": 1.0,
        **from_version((2, 61), {"extra_specs": row["extra_specs"]}),
    }
