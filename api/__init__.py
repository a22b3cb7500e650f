# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The Flask application: one blueprint for each service, over the same ledger as the playbooks.

`create_app()` makes it, `python -m novalite_api` serves it under gunicorn. It decides nothing that no playbook could.
"""

from __future__ import annotations

import importlib
import typing as t

if t.TYPE_CHECKING:
    from flask import Flask

    from .settings import Settings

# What makes the application is imported when it is made: the command `novalite` lies in this package (cli/), and has
# answered before Flask is there.
Register = t.Callable[["Flask", "Settings"], None]

# A service is a package with a function register(app, settings) that puts its blueprints into the application, under
# its own path. What guests ask has no path of its own, and comes in at another door.
OPENSTACK = ("identity", "compute", "image", "network", "volume")
API = (*(f"openstack.{name}" for name in OPENSTACK), "ec2", "v1", "dashboard")


def create_app(settings: Settings | None = None, services: t.Collection[str] = API) -> Flask:
    """The application that serves `services`, configured by `settings` (default: the environment's NOVALITE_*).

    Raises NovaliteError for settings that cannot be used.
    """
    from .settings import Settings
    from .web import errors, health, logs, metrics, policy, rates, request_hooks
    from .web.addresses import Application
    from .web.ledger import Ledger

    settings = settings or Settings.from_environment()
    app = Application(__name__, static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = settings.max_request_bytes
    app.json.sort_keys = False  # type: ignore[attr-defined]  # its type is that of any provider's
    app.url_map.strict_slashes = False  # clients ask with and without one, and follow no redirection
    app.extensions["ledger"] = Ledger(settings)
    app.extensions["settings"] = settings
    logs.register(app)
    request_hooks.register(app, settings)
    errors.register(app)
    health.register(app, settings)
    if "metadata" not in services:  # a guest has no business with them
        metrics.register(app, settings)
        rates.register(app, settings)
        request_hooks.share(app, settings)
    for name in services:
        register: Register = importlib.import_module(f"{__name__}.{name}").register
        register(app, settings)
    if "metadata" not in services:  # nor rules
        policy.override(settings.api_policy)
    return app
