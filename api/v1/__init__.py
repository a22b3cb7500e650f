# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The native part, /v1: jobs, hosts and their capacity, plans, and the reasons for a placement.

Each route is declared with its schemas (operations.py), which validate what comes in and make the OpenAPI document.
"""

from __future__ import annotations

from flask import Flask

from ..settings import Settings
from ..web.dialects import DIALECTS
from . import (
    openapi,
    problems,
    routes_backups,
    routes_consoles,
    routes_healing,
    routes_jobs,
    routes_plan,
    routes_replicas,
    routes_samples,
    routes_snapshots,
    streams,
)
from .operations import native

# imported for their routes
__all__ = [
    "openapi",
    "routes_backups",
    "routes_consoles",
    "routes_healing",
    "routes_jobs",
    "routes_plan",
    "routes_replicas",
    "routes_samples",
    "routes_snapshots",
]

DIALECTS["/v1"] = problems.problem


def register(app: Flask, settings: Settings) -> None:
    streams.register(app, settings)
    app.after_request(problems.mark)
    app.register_blueprint(native.blueprint)
