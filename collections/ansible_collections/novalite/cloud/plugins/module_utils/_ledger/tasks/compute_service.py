# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operation `compute_service`: enable compute hosts for new instances, or disable them."""

from __future__ import annotations

import sqlalchemy as sa

from ..._json import JsonMapping, JsonObject
from ..placement.compute_hosts import switch_hosts


def compute_service(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Enable or disable the compute hosts named in `params["hosts"]`, with `params["disabled_reason"]`."""
    return switch_hosts(connection, params["hosts"], params["enabled"], params["disabled_reason"])
