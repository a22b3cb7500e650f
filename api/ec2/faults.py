# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""EC2's errors: a code for programs, a message for people."""

from __future__ import annotations

import contextlib
import typing as t

from werkzeug.exceptions import HTTPException

from ansible_collections.novalite.cloud.plugins.module_utils._errors import (
    BusyError,
    ConflictError,
    NotFoundError,
    NovaliteError,
    QuotaError,
    StateError,
)

from ..web.errors import (
    STATUS,
    BadRequestError,
    ForbiddenError,
    TooManyRequestsError,
    UnauthorizedError,
    message_of,
    status_of,
)


class Ec2Error(Exception):
    """An error in EC2's form, with the code by which a client's program knows it."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.code, self.status = code, status


# Where nothing more is known of an error than its class
CODES: tuple[tuple[type[Exception], str], ...] = (
    (UnauthorizedError, "AuthFailure"),
    (ForbiddenError, "UnauthorizedOperation"),
    (TooManyRequestsError, "RequestLimitExceeded"),
    (QuotaError, "ResourceLimitExceeded"),
    (NotFoundError, "InvalidParameterValue"),
    (StateError, "IncorrectInstanceState"),
    (ConflictError, "IncorrectState"),
    (BadRequestError, "InvalidParameterValue"),
)
HTTP_CODES = {404: "InvalidAction", 405: "InvalidAction", 413: "RequestEntityTooLarge"}


def translated(error: Exception) -> Ec2Error:
    """Translate any exception into one of EC2's. What is our fault, not the caller's, is logged and not shown."""
    if isinstance(error, Ec2Error):
        return error
    status = status_of(error)
    message = message_of(error, status)
    if status >= 500:
        return Ec2Error("Unavailable" if status == 503 else "InternalError", message, status)
    if isinstance(error, HTTPException):
        return Ec2Error(HTTP_CODES.get(status, "InvalidRequest"), message, status)
    for kind, code in CODES:
        if isinstance(error, kind):
            # what other dialects say by the status, EC2 says by the code
            return Ec2Error(code, message, status if status in (401, 403, 429) and kind is not QuotaError else 400)
    return Ec2Error("InvalidParameterValue", message)


@contextlib.contextmanager
def as_codes(codes: t.Mapping[type[Exception], str], default: str = "InvalidParameterValue") -> t.Iterator[None]:
    """Around what looks at a client's values: errors of these classes get these codes, other refusals `default`."""
    try:
        yield
    except BusyError:
        raise  # nothing was refused
    except NovaliteError as error:
        for kind, code in codes.items():
            if isinstance(error, kind):
                raise Ec2Error(code, str(error)) from error
        if isinstance(error, tuple(STATUS)):
            raise
        raise Ec2Error(default, str(error)) from error


def missing(name: str) -> Ec2Error:
    return Ec2Error("MissingParameter", f"The request must contain the parameter {name}")


def invalid(name: str, value: object, why: str = "") -> Ec2Error:
    shown = str(value)
    shown = shown if len(shown) <= 100 else shown[:100] + "..."
    return Ec2Error("InvalidParameterValue", f"Invalid value '{shown}' for {name}{': ' if why else '.'}{why}")


def unsupported(what: str) -> Ec2Error:
    return Ec2Error("UnsupportedOperation", f"{what} is not supported here.")
