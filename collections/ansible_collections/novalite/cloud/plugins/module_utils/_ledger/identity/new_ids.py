# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ids for what is recorded; in a rehearsal, which is taken back, placeholders of those that will be chosen."""

from __future__ import annotations

import uuid

import sqlalchemy as sa

from ..._addressing import placeholders
from ..db.sqlite_engine import REHEARSAL


def is_rehearsal(connection: sa.Connection) -> bool:
    """Tell whether nothing of this transaction will be kept."""
    return bool(connection.get_execution_options().get(REHEARSAL))


def new_uuids(connection: sa.Connection, count: int) -> list[str]:
    """Return so many new UUIDs."""
    if is_rehearsal(connection):
        return [placeholders.new_uuid(number) for number in range(1, count + 1)]
    return [str(uuid.uuid4()) for _each in range(count)]
