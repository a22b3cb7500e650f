# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Key pairs of a user, for those who list them. Reads only; keypairs.py makes and removes them."""

from __future__ import annotations

import sqlalchemy as sa

from ..._json import JsonObject
from ..db.tables import keypair
from .lookups import keypairs_seen, of_project

Record = JsonObject

LOAD = {
    "shared_keypairs": sa.select(keypair)
    .where(keypair.c.user_id == "", of_project(keypair.c.project_id))
    .order_by(keypair.c.project_id, keypair.c.name)
}


def keypairs_of(connection: sa.Connection, project_id: str, user_id: str | None) -> list[Record]:
    """The key pairs that a user means in the project, by name, each name once: name, user_id, project_id, type,
    public_key, fingerprint, created_at. Of "" as a project: the user's own alone."""
    rows = connection.execute(keypairs_seen(project_id, user_id)).mappings()
    by_name = {row["name"]: dict(row) for row in rows}
    return [by_name[name] for name in sorted(by_name)]
