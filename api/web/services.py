# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Services: the routes of modules, each with its operation, and what a route's function is called with."""

from __future__ import annotations

import contextlib
import functools
import importlib
import pkgutil
import typing as t

from flask import Blueprint, Flask
from flask.typing import ResponseReturnValue

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection

from . import policy, validation
from .bodies import Record
from .errors import as_bad_request
from .ledger import reading_ledger, writing_ledger
from .policy import Decorator, Given, Returned

Handler = t.Callable[..., ResponseReturnValue]
Layer = t.Callable[[Handler], Handler]


def within(
    ledger: t.Callable[[], t.ContextManager[Connection]],
    words: t.Callable[[], t.ContextManager[None]] = contextlib.nullcontext,
) -> Layer:
    """Call a route's function with a connection first; what the ledger refuses is told in `words`."""

    def layer(view: Handler) -> Handler:
        @functools.wraps(view)
        def handle(*args: object, **ids: object) -> ResponseReturnValue:
            with ledger() as connection, words():
                return view(connection, *args, **ids)

        return handle

    return layer


reads = within(reading_ledger)
writes = within(writing_ledger)
writes_while_behind = within(functools.partial(writing_ledger, while_behind=True))  # logging in and out
writes_checked = within(writing_ledger, as_bad_request)  # where the ledger holds a client's values against its rules


def takes(
    schema: validation.Schema | t.Callable[[], validation.Schema], into: t.Callable[[Record], object] | None = None
) -> Layer:
    """Call a route's function with the request's body, as `schema` allows it, or with the one thing that is in it.

    `schema` is a function where it depends on the request's microversion; `into` converts what is given. To stand
    before `writes`, so that nobody waits for a transaction that begins with a wrong body.
    """

    def layer(view: Handler) -> Handler:
        @functools.wraps(view)
        def handle(*args: object, **ids: object) -> ResponseReturnValue:
            allowed = schema() if callable(schema) else schema
            value = validation.body(allowed)
            required = allowed.get("required", ())
            if len(required) == len(allowed.get("properties", ())) == 1:
                value = value[required[0]]
            return view(*args, into(value) if into else value, **ids)

        return handle

    return layer


class Options(t.TypedDict, total=False):
    """Flask's options of a route."""

    endpoint: str
    strict_slashes: bool
    defaults: dict[str, object]
    websocket: bool


class Service:
    """The routes under `path`. Each names the operation that it is, and the layers below that check.

    `guard` finds out first who asks for one, unless its operation is for anybody. `templates`: their folder.
    """

    def __init__(
        self, name: str, path: str, guard: t.Callable[[], None] = policy.guard, templates: str | None = None
    ) -> None:
        self.blueprint = Blueprint(name, __name__, url_prefix=path, template_folder=templates)
        self.blueprint.before_request(guard)

    def route(self, method: str, path: str, operation: str, *below: Layer, **options: t.Unpack[Options]) -> Decorator:
        """The decorator of a function that answers `method` on `path`; several may stand above one function."""

        def declare(view: t.Callable[Given, Returned]) -> t.Callable[Given, Returned]:
            if policy.operation_of(view) not in (None, operation):
                raise ValueError(f"{view.__name__} has two operations, and one check")
            handler: Handler = view
            if policy.operation_of(view) is None:
                for layer in reversed(below):
                    handler = layer(handler)
                handler = policy.allows(operation)(handler)
            options.setdefault("endpoint", view.__name__)
            self.blueprint.add_url_rule(path, view_func=handler, methods=[method], **options)
            return t.cast("t.Callable[Given, Returned]", handler)  # several routes may have it

        return declare

    get = functools.partialmethod(route, "GET")
    post = functools.partialmethod(route, "POST")
    put = functools.partialmethod(route, "PUT")
    patch = functools.partialmethod(route, "PATCH")
    delete = functools.partialmethod(route, "DELETE")


def import_routes(package: str) -> None:
    """Import the modules routes*.py of `package`, which put their routes into services."""
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
        if module.name.startswith("routes"):
            importlib.import_module(f"{package}.{module.name}")


def register(app: Flask, package: str, *services: Service) -> None:
    import_routes(package)
    for service in services:
        app.register_blueprint(service.blueprint)
