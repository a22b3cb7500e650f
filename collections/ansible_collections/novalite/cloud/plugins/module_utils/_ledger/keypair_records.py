# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""Key pairs of a project, for those who list them, and who may remove them. Reads only; keypairs.py writes."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from .._errors import ForbiddenError
from .tables import keypair

Record = dict[str, t.Any]


def keypairs_of(connection: sa.Connection, project_id: str) -> list[Record]:
    """The project's key pairs by name: name, user_id, type, public_key, fingerprint, created_at."""
    query = sa.select(keypair).where(keypair.c.project_id == project_id).order_by(keypair.c.name)
    return [dict(row) for row in connection.execute(query).mappings()]


def check_removal(row: Record, user_id: str, by_manager: bool) -> None:
    """Raise ForbiddenError for a key pair that another user made, or a playbook, unless a manager asks.

    Whoever could remove it could put one of its own under its name, which the others' next launch would take. (Nova's
    keys are their user's; here the members of a project see and use each other's.)
    """
    if row["user_id"] != user_id and not by_manager:
        raise ForbiddenError(
            f"key pair '{row['name']}' is another user's of the project, or its operator's: ask them, or a manager"
        )
