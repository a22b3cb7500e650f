# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operation `server_group`: server groups that a project is to have, or not."""

from __future__ import annotations

import sqlalchemy as sa

from ..._json import JsonMapping, JsonObject
from ..placement.server_groups import remove_server_groups, write_server_groups


def server_group(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Make, change or remove `params["server_groups"]` of the project named `params["project"]`."""
    act = remove_server_groups if params["state"] == "absent" else write_server_groups
    return act(connection, params["project"], params["server_groups"])
