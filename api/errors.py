# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Errors as answers. A dialect has its own shape and registers it on its blueprint; this is what is left.

What went wrong inside is logged, never answered: a message may name what the asker has no right to know.
"""

from __future__ import annotations

import typing as t

from flask import Flask, current_app
from werkzeug.exceptions import HTTPException

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError

Answer = tuple[t.Any, int]


def register(app: Flask) -> None:
    app.register_error_handler(HTTPException, _http)
    app.register_error_handler(Exception, _unexpected)


def status_of(error: Exception) -> int:
    """The status of an error; what is no fault of the asker is logged here, once."""
    if isinstance(error, HTTPException):
        return error.code or 500
    if isinstance(error, NovaliteError):
        current_app.logger.error("%s", error)
        return 503
    current_app.logger.error("unexpected error", exc_info=error)
    return 500


def _http(error: HTTPException) -> Answer:
    return {"error": {"code": error.code, "message": error.name}}, error.code or 500


def _unexpected(error: Exception) -> Answer:
    status = status_of(error)
    message = "Service Unavailable" if status == 503 else "Internal Server Error"
    return {"error": {"code": status, "message": message}}, status
