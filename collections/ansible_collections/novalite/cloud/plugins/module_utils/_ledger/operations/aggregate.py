# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operation `aggregate`: aggregates of compute hosts that there are to be, or not."""

from __future__ import annotations

import sqlalchemy as sa

from ..._json import JsonMapping, JsonObject
from ..placement.aggregates import remove_aggregates, write_aggregates


def aggregate(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Make, change or remove `params["aggregates"]`; `params["state"]` holds for all of them."""
    act = remove_aggregates if params["state"] == "absent" else write_aggregates
    return act(connection, params["aggregates"])
