# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Key pairs of a user, for those who list them. Reads only; catalog/keypairs.py makes and removes them."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ...db.tables import keypair
from ..lookups import keypairs_seen, of_project


class KeyPair(t.TypedDict):
    """A key pair of a user, or, with "" for one, shared by all of the project."""

    user_id: str
    project_id: str  # "" of a user's own
    name: str
    type: str
    public_key: str
    fingerprint: str
    created_at: int


LOAD = {
    "shared_keypairs": sa.select(keypair)
    .where(keypair.c.user_id == "", of_project(keypair.c.project_id))
    .order_by(keypair.c.project_id, keypair.c.name)
}


def keypairs_of(connection: sa.Connection, project_id: str, user_id: str | None) -> list[KeyPair]:
    """The key pairs that a user means in the project, by name, each name once. Of "" as a project: the user's own
    alone."""
    rows = connection.execute(keypairs_seen(project_id, user_id)).mappings()
    by_name = {row["name"]: t.cast("KeyPair", dict(row)) for row in rows}
    return [by_name[name] for name in sorted(by_name)]
