# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""How a service is made of its modules."""

from __future__ import annotations

import importlib
import pkgutil
import types

from flask import Blueprint, Flask

from . import policy


def blueprint(name: str, path: str) -> Blueprint:
    """The routes under `path`: who asks for one is found out first, unless it is for anybody (policy.allows)."""
    made = Blueprint(name, __name__, url_prefix=path)
    made.before_request(policy.guard)
    return made


def import_routes(package: types.ModuleType) -> None:
    """Import the modules routes*.py of `package`, which put their routes into blueprints."""
    for module in pkgutil.iter_modules(package.__path__):
        if module.name.startswith("routes"):
            importlib.import_module(f"{package.__name__}.{module.name}")


def register(app: Flask, *blueprints: Blueprint) -> None:
    for each in blueprints:
        app.register_blueprint(each)
