# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Key pairs of a project, for those who list them. Reads only; keypairs.py makes and removes them."""

from __future__ import annotations

import sqlalchemy as sa

from ..._json import JsonObject
from ..db.tables import keypair

Record = JsonObject


def keypairs_of(connection: sa.Connection, project_id: str) -> list[Record]:
    """The project's key pairs by name: name, user_id, type, public_key, fingerprint, created_at."""
    query = sa.select(keypair).where(keypair.c.project_id == project_id).order_by(keypair.c.name)
    return [dict(row) for row in connection.execute(query).mappings()]
