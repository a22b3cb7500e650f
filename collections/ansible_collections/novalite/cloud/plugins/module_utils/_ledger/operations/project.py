# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operation `project`: projects that there are to be, with their quotas, or not."""

from __future__ import annotations

import sqlalchemy as sa

from ..._json import JsonMapping, JsonObject
from ..identity.projects import remove_projects, write_projects


def project(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Make, change or remove `params["projects"]`; `params["state"]` holds for all of them."""
    act = remove_projects if params["state"] == "absent" else write_projects
    return act(connection, params["projects"])
