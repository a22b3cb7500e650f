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

from ansible_collections.novalite.cloud.plugins.module_utils._errors import (
    ConflictError,
    NotFoundError,
    NovaliteError,
    QuotaError,
)

Answer = tuple[t.Any, int]




class BadRequestError(NovaliteError):
    """What was sent cannot be."""


class UnauthorizedError(NovaliteError):
    """Who asks is unknown."""


class ForbiddenError(NovaliteError):
    """Who asks is known, and may not."""


class NotAcceptableError(NovaliteError):
    """A version that is not spoken here."""


class TooManyRequestsError(NovaliteError):
    """Too many guesses, or requests, from one place."""


# What the asker is told of an error that is the asker's; any other NovaliteError is ours (the ledger is out of order).
STATUS: dict[type[NovaliteError], int] = {
    BadRequestError: 400,
    UnauthorizedError: 401,
    ForbiddenError: 403,
    QuotaError: 403,
    NotFoundError: 404,
    NotAcceptableError: 406,
    ConflictError: 409,
    TooManyRequestsError: 429,
}


def register(app: Flask) -> None:
    app.register_error_handler(HTTPException, _http)
    app.register_error_handler(Exception, _unexpected)


def status_of(error: Exception) -> int:
    """The status of an error; what is no fault of the asker is logged here, once."""
    if isinstance(error, HTTPException):
        return error.code or 500
    for kind, status in STATUS.items():
        if isinstance(error, kind):
            return status
    if isinstance(error, NovaliteError):
        current_app.logger.error("%s", error)
        return 503
    current_app.logger.error("unexpected error", exc_info=error)
    return 500


def message_of(error: Exception, status: int) -> str:
    """What may be told of an error that is answered with `status`."""
    if status < 500:
        return error.name if isinstance(error, HTTPException) else str(error)
    return "Service Unavailable" if status == 503 else "Internal Server Error"


def _http(error: HTTPException) -> Answer:
    return {"error": {"code": error.code, "message": error.name}}, error.code or 500


def _unexpected(error: Exception) -> Answer:
    status = status_of(error)
    return {"error": {"code": status, "message": message_of(error, status)}}, status
