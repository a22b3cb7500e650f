# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The Compute API, version 2.1 with microversions, as clients of OpenStack Nova speak it.

A module `routes_*.py` of this package puts its routes into `blueprint.compute` when it is imported. Such a module
grants its actions their roles (`policy.grant`), holds each route to one (`policy.allows`), and says with
`microversions.since` where a route begins and ends.
"""

from __future__ import annotations

import importlib
import pkgutil

from flask import Flask

from ..settings import Settings
from .blueprint import compute, compute_versions


def register(app: Flask, settings: Settings) -> None:
    for module in pkgutil.iter_modules(__path__):
        if module.name.startswith("routes_"):
            importlib.import_module(f"{__name__}.{module.name}")
    app.register_blueprint(compute_versions)
    app.register_blueprint(compute)
