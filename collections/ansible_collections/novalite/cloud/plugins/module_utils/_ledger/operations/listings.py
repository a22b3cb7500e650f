# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The queries of _rules/listed_nouns.py, as SQLAlchemy runs them. The command `novalite` has them as texts, too:
looks.py."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._json import JsonMapping
from ..._rules.listed_nouns import Read
from ..queries.catalog import flavor_records, image_views, keypair_records
from ..queries.compute import usage
from ..queries.identity import projects
from ..queries.network import network_records
from ..queries.volumes import server_backup_rows, server_snapshot_rows, volume_views
from ..security import group_rules

LOAD: dict[str, sa.Select[t.Any]] = {
    **network_records.LOAD,
    **volume_views.LOAD,
    **image_views.LOAD,
    **group_rules.LOAD,
    **keypair_records.LOAD,
    **flavor_records.LOAD,
    **projects.LOAD,
    **usage.LOAD,
    **server_snapshot_rows.LOAD,
    **server_backup_rows.LOAD,
}


def reader(connection: sa.Connection) -> Read:
    """Return what runs a query by its name."""

    def read(name: str, values: JsonMapping) -> t.Iterable[JsonMapping]:
        return [dict(row) for row in connection.execute(LOAD[name], dict(values)).mappings()]

    return read
