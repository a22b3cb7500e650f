# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Services: the routes of modules, each with its operation."""

from __future__ import annotations

import importlib
import pkgutil
import types
import typing as t

from flask import Blueprint, Flask

from . import policy
from .policy import Decorator, Given, Returned


class Options(t.TypedDict, total=False):
    """Flask's options of a route."""

    endpoint: str
    strict_slashes: bool
    defaults: dict[str, object]


class Service:
    """The routes under `path`. Each names the operation that it is, and what else is checked below that.

    Who asks for one is found out first, unless its operation is for anybody.
    """

    def __init__(self, name: str, path: str) -> None:
        self.blueprint = Blueprint(name, __name__, url_prefix=path)
        self.blueprint.before_request(policy.guard)

    def get(self, path: str, operation: str, *below: Decorator, **options: t.Unpack[Options]) -> Decorator:
        return self.route("GET", path, operation, *below, **options)

    def post(self, path: str, operation: str, *below: Decorator, **options: t.Unpack[Options]) -> Decorator:
        return self.route("POST", path, operation, *below, **options)

    def put(self, path: str, operation: str, *below: Decorator, **options: t.Unpack[Options]) -> Decorator:
        return self.route("PUT", path, operation, *below, **options)

    def patch(self, path: str, operation: str, *below: Decorator, **options: t.Unpack[Options]) -> Decorator:
        return self.route("PATCH", path, operation, *below, **options)

    def delete(self, path: str, operation: str, *below: Decorator, **options: t.Unpack[Options]) -> Decorator:
        return self.route("DELETE", path, operation, *below, **options)

    def route(
        self, method: str, path: str, operation: str, *below: Decorator, **options: t.Unpack[Options]
    ) -> Decorator:
        """The decorator of a function that answers `method` on `path`; several may stand above one function."""

        def declare(view: t.Callable[Given, Returned]) -> t.Callable[Given, Returned]:
            if policy.operation_of(view) not in (None, operation):
                raise ValueError(f"{view.__name__} has two operations, and one check")
            if policy.operation_of(view) is None:
                for decorate in reversed(below):
                    view = decorate(view)
                view = policy.allows(operation)(view)
            options.setdefault("endpoint", view.__name__)
            self.blueprint.add_url_rule(path, view_func=view, methods=[method], **options)
            return view

        return declare


def import_routes(package: types.ModuleType) -> None:
    """Import the modules routes*.py of `package`, which put their routes into services."""
    for module in pkgutil.iter_modules(package.__path__):
        if module.name.startswith("routes"):
            importlib.import_module(f"{package.__name__}.{module.name}")


def register(app: Flask, *services: Service) -> None:
    for service in services:
        app.register_blueprint(service.blueprint)
