# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""`/healthz`: this process answers. It asks nothing of the ledger, so that a slow one gets no process killed."""

from __future__ import annotations

from flask import Blueprint, Flask

from .settings import Settings

blueprint = Blueprint("health", __name__)


def register(app: Flask, settings: Settings) -> None:
    app.register_blueprint(blueprint)


@blueprint.get("/healthz")
def healthz() -> dict[str, str]:
    return {"status": "ok"}
