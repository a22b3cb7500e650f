# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The Flask application: one blueprint for each service, over the same ledger as the playbooks.

`create_app()` makes it, `python -m api` serves it under gunicorn. Nothing here decides what a playbook could not.
"""

from __future__ import annotations

import typing as t

from flask import Flask

from . import compute, errors, health, image, metadata, network
from .ledger import Ledger
from .settings import Settings

Register = t.Callable[[Flask, Settings], None]

# A service is a function that puts its blueprint into the application. Which ones a process serves is its caller's
# choice: guests' questions and users' requests come in at different doors.
SERVICES: dict[str, Register] = {
    "metadata": metadata.register,
    "compute": compute.register,
    "image": image.register,
    "network": network.register,
}


def create_app(settings: Settings | None = None, services: t.Collection[str] = tuple(SERVICES)) -> Flask:
    """The application that serves `services`, configured by `settings` (default: the environment's NOVALITE_*).

    Raises NovaliteError for settings that cannot be used.
    """
    settings = settings or Settings.from_environment()
    app = Flask(__name__, static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = settings.max_request_bytes
    app.json.sort_keys = False  # type: ignore[attr-defined]
    app.extensions["ledger"] = Ledger(settings)
    errors.register(app)
    health.register(app, settings)
    for name in services:
        SERVICES[name](app, settings)
    return app
