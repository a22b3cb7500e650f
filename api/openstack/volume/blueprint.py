# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The blueprint of the Block Storage API: who asks, in which microversion, and errors in Cinder's words."""

from __future__ import annotations

import functools
import typing as t

from flask import Response, g, request
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import NotFound

from ansible_collections.novalite.cloud.plugins.module_utils._errors import (
    ConflictError,
    NovaliteError,
    QuotaError,
    TooLargeError,
)

from ...web import services
from ...web.addresses import UNNAMED
from ...web.context import current
from ...web.errors import BadRequestError, in_words
from ...web.ledger import writing_ledger
from ...web.microversions import HEADER, negotiated, requested_version, text

volume_versions = services.Service("volume_versions", "/volume")
volume = services.Service("volume", "/volume/v3")

MIN_VERSION, MAX_VERSION = (3, 0), (3, 71)
UPDATED = "2026-01-01T00:00:00Z"


@volume.blueprint.before_request
def _begin() -> None:
    g.volume_version = negotiated(requested_version("volume", "volumev3", "block-storage"), MIN_VERSION, MAX_VERSION)
    project = (request.view_args or {}).pop("project", None)
    if project not in (None, UNNAMED) and project != current().project:
        raise NotFound()


@volume.blueprint.after_request
def _end(response: Response) -> Response:
    response.headers[HEADER] = f"volume {text(g.get('volume_version', MIN_VERSION))}"
    response.vary.add(HEADER)
    return response


def speaks(minor: int) -> bool:
    """Tell whether this request speaks microversion 3.`minor`, or a later one."""
    return bool(g.get("volume_version", MIN_VERSION) >= (3, minor))


def since(minor: int) -> services.Layer:
    """Take a route for none in an earlier microversion than 3.`minor`."""

    def layer(view: services.Handler) -> services.Handler:
        @functools.wraps(view)
        def handle(*args: object, **ids: object) -> ResponseReturnValue:
            if not speaks(minor):
                raise NotFound()
            return view(*args, **ids)

        return handle

    return layer


def whose() -> str | None:
    """The project whose objects the caller may ask for by id; None: any, for administrators, as in Cinder."""
    return current().reach


def in_cinders_words() -> t.ContextManager[None]:
    """Turn the ledger's conflicts into bad requests, and its quota errors into 413, as Cinder does."""
    return in_words({QuotaError: TooLargeError, ConflictError: BadRequestError, NovaliteError: BadRequestError})


cinder_writes = services.within(writing_ledger, in_cinders_words)
