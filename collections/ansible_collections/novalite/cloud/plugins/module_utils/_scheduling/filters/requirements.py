# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""OpenNebula's REQUIREMENTS: an expression over a host's attributes that must be true of it."""

from __future__ import annotations

from ..expressions import evaluate
from ..options import Options
from ..rows import HostState, Request

NAME = "requirements"


def concerns(request: Request, options: Options) -> bool:
    """Tell whether the request gives an expression."""
    return bool(request.requirements)


def passes(host: HostState, request: Request, options: Options) -> str | None:
    """Refuse a host of which the expression is not true. NovaliteError for one that cannot be read."""
    if not request.requirements or evaluate(request.requirements, host):
        return None
    return f"does not satisfy {request.requirements}"
