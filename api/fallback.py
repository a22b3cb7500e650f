# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Paths that are no route of a service, answered in its own dialect: a blueprint's routes end with one for the rest."""

from __future__ import annotations

import typing as t

from flask import current_app, request
from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound

METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH"]


def check_path() -> None:
    """Raises NotFound for a path with a null in it: PostgreSQL refuses to look for such a text at all."""
    if "\0" in request.path:
        raise NotFound()


def no_route() -> t.NoReturn:
    """Raises MethodNotAllowed for a path that knows other methods, else NotFound."""
    adapter = current_app.create_url_adapter(request)
    for method in METHODS if adapter is not None else ():
        try:
            endpoint, _values = t.cast(t.Any, adapter).match(request.path, method)
        except HTTPException:
            continue
        if endpoint != request.endpoint:
            raise MethodNotAllowed()
    raise NotFound()
