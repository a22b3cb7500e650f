# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The Compute API, version 2.1 with microversions, as clients of OpenStack Nova speak it.

Modules `routes_*.py` of this package, of `servers` and of `legacy` put their routes into a blueprint when they are
imported; they hold each to an operation, and say with `blueprint.since` in which microversions it is there.
"""

from __future__ import annotations

from flask import Flask

from ...settings import Settings
from ...web import services
from .blueprint import compute, compute_legacy, compute_versions


def register(app: Flask, settings: Settings) -> None:
    old = settings.api_legacy == "on"
    for package in ("servers", *(["legacy"] if old else [])):
        services.import_routes(f"{__name__}.{package}")
    services.register(app, __name__, compute_versions, compute, *([compute_legacy] if old else []))
