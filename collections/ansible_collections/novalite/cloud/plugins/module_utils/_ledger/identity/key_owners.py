# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Key pairs of users and projects that go."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..db.tables import keypair
from ..db.tables_ec2 import ec2_keypair


def remove_keys(connection: sa.Connection, column: str, owners: t.Collection[str]) -> None:
    """Remove the key pairs of users (`column` is user_id), or those that all of a project share (project_id)."""
    for table in (keypair, ec2_keypair):
        connection.execute(sa.delete(table).where(table.c[column].in_(owners)))
