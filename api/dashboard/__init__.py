# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The status page: the cloud for people, rendered here, useful without a script and on a phone.

What it shows and does, /v1 shows and does; who may is the same table.
"""

from __future__ import annotations

from flask import Flask

from ..settings import Settings
from ..work import consoles
from . import (
    rendering,
    routes_cloud,
    routes_consoles,
    routes_forms,
    routes_instances,
    routes_jobs,
    routes_launch,
    routes_lists,
    routes_session,
)
from .session import pages

__all__ = [  # for their routes
    "routes_cloud",
    "routes_consoles",
    "routes_forms",
    "routes_instances",
    "routes_jobs",
    "routes_launch",
    "routes_lists",
    "routes_session",
]


def register(app: Flask, settings: Settings) -> None:
    rendering.register(app)
    consoles.register(app, settings)
    app.register_blueprint(pages.blueprint)
