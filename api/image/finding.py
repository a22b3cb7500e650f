# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The image that a request is about, and whether the caller may change it."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa
from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.catalog import image_records

from ..context import current
from ..errors import ForbiddenError

Record = dict[str, t.Any]


def seen(connection: sa.Connection, number: str) -> Record:
    """An image that the caller's project may use. Raises NotFoundError."""
    found = image_records.images_seen(connection, current().project, number, everything=current().is_admin)
    if not found:
        raise NotFoundError(f"No image found with ID {number[:255]}")
    return found[0]


def own(connection: sa.Connection, number: str) -> Record:
    """One that the caller may change. Raises NotFoundError, ForbiddenError."""
    row = seen(connection, number)
    if row["owner"] != current().project and not current().is_admin:
        raise ForbiddenError("You are not permitted to modify this image: it is another's.")
    return row


def root() -> str:
    """Where the application lies, as the client asked it; ends with a slash."""
    return request.url_root
