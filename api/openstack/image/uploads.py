# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Data of images coming in: what a request for that is, and what its sender is told of a failure."""

from __future__ import annotations

from flask import current_app, request

from ansible_collections.novalite.cloud.plugins.module_utils._errors import (
    BrokenOffError,
    ImageRefusedError,
    NovaliteError,
    QuotaError,
    TooLargeError,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.catalog import image_data
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.catalog.image_views import SeenImage

from ...settings import Settings
from ...web.errors import BadRequestError, UnsupportedMediaTypeError, in_words
from ...web.ledger import home
from ...work.calls import writing_call
from . import transfers

GIB = 1 << 30


def receive(row: SeenImage, staged: bool) -> None:
    """Take the request's body as the data of the image, or (`staged`) keep it for an import. Raises the error that the
    client is to see."""
    if request.mimetype != "application/octet-stream":
        raise UnsupportedMediaTypeError("send an image's data as application/octet-stream")
    words = {
        QuotaError: TooLargeError,
        **dict.fromkeys((ImageRefusedError, BrokenOffError, NovaliteError), BadRequestError),
    }
    with in_words(words):
        image_data.check_described(row)
        with transfers.incoming() as stream:
            image_data.receive(writing_call, row, stream, request.content_length, store(), staged=staged)


def store() -> image_data.Store:
    """Return where data go, and how many an image may have."""
    settings: Settings = current_app.extensions["settings"]
    return image_data.Store(home(), settings.image_max_gigabytes * GIB)
