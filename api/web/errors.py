# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Errors as answers. The path says in which dialect (dialects.py); a blueprint may render its own instead.

What went wrong inside is logged, never answered: a message may name what the asker has no right to know.
"""

from __future__ import annotations

import contextlib
import typing as t

from flask import Flask, Response, current_app, jsonify, request
from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound

from ansible_collections.novalite.cloud.plugins.module_utils._errors import (
    BehindError,
    BusyError,
    ConflictError,
    ForbiddenError,
    NotFoundError,
    NovaliteError,
    QuotaError,
    TooLargeError,
    TooManyRequestsError,
    UnauthorizedError,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import DataError

from .addresses import base_url
from .dialects import NeutronError, dialect


class BadRequestError(NovaliteError):
    """An invalid request."""


class NotAcceptableError(NovaliteError):
    """A version that is not spoken here."""


class UnsupportedMediaTypeError(NovaliteError):
    """A body of another kind than the route reads."""


# What the asker is told of an error that is the asker's; any other NovaliteError is ours (the ledger is out of order).
STATUS: dict[type[NovaliteError], int] = {
    BadRequestError: 400,
    UnauthorizedError: 401,
    ForbiddenError: 403,
    QuotaError: 403,
    NotFoundError: 404,
    NotAcceptableError: 406,
    BusyError: 503,  # a 409 would be the asker's to solve; after a 503 clients ask again by themselves
    ConflictError: 409,
    TooLargeError: 413,
    UnsupportedMediaTypeError: 415,
    TooManyRequestsError: 429,
    BehindError: 503,
}
LATER = (TooManyRequestsError, BehindError, BusyError)  # which say when to come back

# A value that no schema held back and no database takes: too large a number, half of a surrogate pair, a NUL.
UNFIT = (OverflowError, UnicodeError, DataError)


Words = t.Mapping[type[NovaliteError], t.Callable[[str], Exception]]


@contextlib.contextmanager
def in_words(words: Words) -> t.Iterator[None]:
    """Around what the ledger may refuse: its errors as `words` says for the first of their classes.

    NovaliteError itself stands for a plain one only, and not for those with a meaning of their own.
    """
    try:
        yield
    except BusyError:
        raise  # nothing was refused
    except NovaliteError as error:
        for kind, word in words.items():
            if type(error) is kind or (isinstance(error, kind) and kind is not NovaliteError):
                raise word(str(error)) from error
        raise


def as_bad_request() -> t.ContextManager[None]:
    """Around what holds a client's values against the ledger's rules: a plain NovaliteError there is the client's."""
    return in_words({NovaliteError: BadRequestError})


def register(app: Flask) -> None:
    app.register_error_handler(Exception, answer)


def answer(error: Exception) -> Response:
    """The answer to a request that ended in `error`, in the dialect of its path."""
    if isinstance(error, MethodNotAllowed) and request.path.endswith("/"):
        error = NotFound()  # as OpenStack answers when the id is missing
    status = status_of(error)
    if isinstance(error, HTTPException) and (error.response is not None or status < 400):
        return t.cast(Response, error.get_response())  # a redirection, or somebody's own answer
    body = dialect(request.path)(status, message_of(error, status), error)
    response = Response(body, mimetype="text/html") if isinstance(body, str) else jsonify(body)
    response.status_code = status
    return with_headers(response, error)


def with_headers(response: Response, error: Exception) -> Response:
    """Add what HTTP wants beside the body of an error."""
    if response.status_code == 401:
        response.headers["WWW-Authenticate"] = f'Keystone uri="{base_url()}/identity"'
    if isinstance(error, MethodNotAllowed) and error.valid_methods:
        response.headers["Allow"] = ", ".join(sorted(error.valid_methods))
    if isinstance(error, LATER) and error.retry_after:
        response.headers["Retry-After"] = str(error.retry_after)
    return response


def status_of(error: Exception) -> int:
    """The status of an error; what is no fault of the asker is logged here, once."""
    if isinstance(error, HTTPException):
        return error.code or 500
    if isinstance(error, NeutronError):
        return error.status
    for kind, status in STATUS.items():
        if isinstance(error, kind):
            return status
    if isinstance(error, NovaliteError):
        current_app.logger.error("%s", error)
        return 503
    if isinstance(error, UNFIT):
        current_app.logger.warning("a value that cannot be stored: %s", type(error).__name__)
        return 400
    current_app.logger.error("unexpected error", exc_info=error)
    return 500


def message_of(error: Exception, status: int) -> str:
    """Return the message that a client may see of an error that is answered with `status`."""
    if isinstance(error, BehindError):
        return error.for_tenants
    if isinstance(error, BusyError):
        return str(error)
    if status < 500:
        if isinstance(error, HTTPException):
            return error.name
        return "The request holds a value that cannot be stored." if isinstance(error, UNFIT) else str(error)
    return "Service Unavailable" if status == 503 else "Internal Server Error"
