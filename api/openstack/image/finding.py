# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The image that a request is about, and whether the caller may change it."""

from __future__ import annotations

import typing as t

from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.catalog import image_records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection

from ...web.context import current
from ...web.errors import ForbiddenError

Record = dict[str, t.Any]


def seen(connection: Connection, number: str) -> Record:
    """An image that the caller's project may use. Raises NotFoundError."""
    rows = image_records.images_seen(connection, current().project, number, everything=current().is_admin)
    if not rows:
        raise NotFoundError(f"No image found with ID {number[:255]}")
    return rows[0]


def own(connection: Connection, number: str) -> Record:
    """One that the caller may change. Raises NotFoundError, ForbiddenError."""
    row = seen(connection, number)
    if row["owner"] != current().project and not current().is_admin:
        raise ForbiddenError("You are not permitted to modify this image: it is another's.")
    return row


def root() -> str:
    """Where the application lies, as the client asked it; ends with a slash."""
    return request.url_root
