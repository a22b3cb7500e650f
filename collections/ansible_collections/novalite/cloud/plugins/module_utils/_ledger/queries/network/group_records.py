# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Security groups with their rules. Reads only."""

from __future__ import annotations

import sqlalchemy as sa

from ...._json import JsonObject
from ...._rules.listed_nouns import shown_groups
from ...db.tables import security_group, security_group_rule
from ..counts import equal

Record = JsonObject

DEFAULT_GROUP = "default"
_REMOTE = security_group.alias("remote")
GROUPS = sa.select(security_group).order_by(security_group.c.id)
RULES = (
    sa.select(security_group_rule, _REMOTE.c.uuid.label("remote_group_uuid"))
    .join(security_group, security_group.c.id == security_group_rule.c.group_id)
    .outerjoin(_REMOTE, _REMOTE.c.id == security_group_rule.c.remote_group_id)
    .order_by(security_group_rule.c.id)
)


def groups_of(connection: sa.Connection, project_id: str | None, group_uuid: str | None = None) -> list[Record]:
    """The groups of a project, or of all, (or the one with this UUID), each with its `rules` as they are shown."""
    mine = equal({security_group.c.project_id: project_id, security_group.c.uuid: group_uuid})
    rows, rules = (connection.execute(query.where(*mine)).mappings() for query in (GROUPS, RULES))
    return shown_groups(map(dict, rows), map(dict, rules))
