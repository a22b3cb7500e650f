# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Projects that a caller may ask about."""

from __future__ import annotations

import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.counts import is_project

from ..web.context import current


def check_project(connection: Connection, project_id: str, word: t.Callable[[str], Exception] = NotFoundError) -> str:
    """Return the id itself: the caller's project's, or any project's for an administrator. Raises what `word` makes."""
    caller = current()
    if project_id == caller.project or (caller.is_admin and is_project(connection, project_id)):
        return project_id
    raise word(f"Project {project_id[:64]} could not be found.")
