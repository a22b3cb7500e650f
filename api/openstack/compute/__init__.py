# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The Compute API, version 2.1 with microversions, as clients of OpenStack Nova speak it.

Modules `routes_*.py` of this package, of `servers` and of `legacy` put their routes into a blueprint when they are
imported. Such a module holds each route to an operation (`policy.allows`), and says with `microversions.since` where a
route begins and ends.
"""

from __future__ import annotations

import importlib
import pkgutil
import typing as t

from flask import Flask

from ...settings import Settings
from . import legacy, servers
from .blueprint import compute, compute_legacy, compute_versions


def register(app: Flask, settings: Settings) -> None:
    legacy_packages = [legacy] if settings.api_legacy == "on" else []
    for package in (servers, *legacy_packages):
        _import_routes(package.__path__, package.__name__)
    _import_routes(__path__, __name__)
    app.register_blueprint(compute_versions)
    app.register_blueprint(compute)
    if legacy_packages:
        app.register_blueprint(compute_legacy)


def _import_routes(path: t.Iterable[str], package: str) -> None:
    for module in pkgutil.iter_modules(path):
        if module.name.startswith("routes_"):
            importlib.import_module(f"{package}.{module.name}")
