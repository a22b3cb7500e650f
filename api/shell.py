# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What every request goes through, whatever service it is for."""

from __future__ import annotations

import re
import typing as t

from flask import Flask, Response, request
from werkzeug.exceptions import BadRequest

from .context import request_id
from .settings import Settings

MAX_QUERY = 8192  # characters

_UNFIT = re.compile("[\0\ud800-\udfff]")


def register(app: Flask, settings: Settings) -> None:
    app.before_request(_refuse_unfit)
    app.after_request(_identify)


def _refuse_unfit() -> None:
    """Refuse what no name or id can be and PostgreSQL does not store: a NUL, half of a surrogate pair."""
    if len(request.query_string) > MAX_QUERY:
        raise BadRequest
    texts: list[str] = [request.path]
    for name, values in request.args.lists():
        texts += [name, *values]
    if any(unfit(text) for text in texts):
        raise BadRequest


def unfit(value: t.Any) -> bool:
    """Whether a text in `value`, which came as JSON, cannot be stored."""
    if isinstance(value, str):
        return _UNFIT.search(value) is not None
    if isinstance(value, dict):
        return any(unfit(key) or unfit(item) for key, item in value.items())
    if isinstance(value, list):
        return any(unfit(item) for item in value)
    return False


def _identify(response: Response) -> Response:
    """Name the request in its answer, as every OpenStack service does."""
    name = request_id()
    response.headers.setdefault("X-OpenStack-Request-Id", name)
    if request.path.startswith("/compute"):
        response.headers.setdefault("X-Compute-Request-Id", name)
    return response
