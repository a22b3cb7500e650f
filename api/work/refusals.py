# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Refusals of what a request for a server names, as bad requests."""

from __future__ import annotations

import contextlib
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._errors import (
    AddressInUseError,
    InvalidVolumeError,
    NotFoundError,
    NovaliteError,
)

from ..web.errors import STATUS, BadRequestError


@contextlib.contextmanager
def refusals_as_bad_requests() -> t.Iterator[None]:
    """Turn errors about what a body names, or about what the ledger finds wrong with it, into bad requests."""
    try:
        yield
    except (NotFoundError, AddressInUseError) as error:
        raise BadRequestError(str(error)) from error
    except NovaliteError as error:
        if isinstance(error, tuple(STATUS)) and not isinstance(error, InvalidVolumeError):  # as Nova answers it
            raise
        raise BadRequestError(str(error)) from error
