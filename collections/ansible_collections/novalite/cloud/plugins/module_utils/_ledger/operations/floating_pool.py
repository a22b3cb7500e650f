# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operation `floating_pool`: where floating IPs come from, and over which interface the world reaches them."""

from __future__ import annotations

import sqlalchemy as sa

from ..._json import JsonMapping, JsonObject
from ..network.floating_pools import remove_floating_pools, write_floating_pools


def floating_pool(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Make, change or remove `params["floating_pools"]`, a list of {"name", "cidr", "addresses", "interface"}."""
    act = remove_floating_pools if params["state"] == "absent" else write_floating_pools
    return act(connection, params["floating_pools"])
