# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hooks that every request goes through, whatever service it is for."""

from __future__ import annotations

import re
import typing as t

from flask import Flask, Response, request
from werkzeug.exceptions import BadRequest

from ..settings import Settings
from .context import request_id

MAX_QUERY = 8192  # characters
MAX_DEPTH = 32  # levels of lists and objects in JSON; no request of any of these services has ten

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
    """Tell whether `value`, which came as JSON, is nested deeper than MAX_DEPTH, or a text in it cannot be stored.

    It goes down one level after the other and never into itself: how deep a client nests is the client's to choose,
    and whatever looks at `value` afterwards (a schema, a playbook's variables, repr) calls itself for each level.
    """
    level = [value]
    for _depth in range(MAX_DEPTH + 1):
        below: list[t.Any] = []
        for item in level:
            if isinstance(item, str):
                if _UNFIT.search(item) is not None:
                    return True
            elif isinstance(item, dict):
                below += item.keys()
                below += item.values()
            elif isinstance(item, list):
                below += item
        if not below:
            return False
        level = below
    return True


def _identify(response: Response) -> Response:
    """Name the request in its answer, as every OpenStack service does."""
    name = request_id()
    response.headers.setdefault("X-OpenStack-Request-Id", name)
    if request.path.startswith("/compute"):
        response.headers.setdefault("X-Compute-Request-Id", name)
    return response
