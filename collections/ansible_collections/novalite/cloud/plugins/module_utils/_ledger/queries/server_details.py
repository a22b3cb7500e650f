# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What few views show of an instance beside what all do. Reads only."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..db.tables import instance


def user_data_of(connection: sa.Connection, number: int) -> str | None:
    """Return the user data (base64) of the instance with this number."""
    return connection.execute(sa.select(instance.c.user_data).where(instance.c.id == number)).scalar_one()


def is_locked(connection: sa.Connection, uuid: str) -> bool:
    """Return whether the instance is there, and locked."""
    return bool(connection.execute(sa.select(instance.c.locked).where(instance.c.uuid == uuid)).scalar())


def labels_of(connection: sa.Connection, uuid: str) -> t.Any:
    """Return a row of display_name, description, locked and locked_reason of the instance."""
    columns = (instance.c.display_name, instance.c.description, instance.c.locked, instance.c.locked_reason)
    return connection.execute(sa.select(*columns).where(instance.c.uuid == uuid)).one()
