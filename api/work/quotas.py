# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Quotas of a project, as several doors set them."""

from __future__ import annotations

import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity.quotas import write_quotas
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import counts

from ..web.errors import BadRequestError


def set_limits(connection: Connection, project_id: str, limits: t.Mapping[str, int], force: bool = False) -> None:
    """Give a project limits of its own. Raises BadRequestError for one below what it has, unless that is `force`d."""
    used = {} if force else counts.used(connection, project_id)
    for name, limit in limits.items():
        if -1 < limit < used.get(name, 0):
            raise BadRequestError(
                f"Quota limit {limit} for {name} must be greater than or equal to already used and reserved "
                f"{used[name]}."
            )
    write_quotas(connection, project_id, limits)
