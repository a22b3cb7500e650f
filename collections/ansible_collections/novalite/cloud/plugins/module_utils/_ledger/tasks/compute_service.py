# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operation `compute_service`: enable compute hosts for new instances, or disable them."""

from __future__ import annotations

import sqlalchemy as sa

from ..._json import JsonMapping, JsonObject
from ..operations.call import by_playbook
from ..operations.catalog import compute_hosts


def compute_service(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Enable or disable the compute hosts named in `params["hosts"]`, with `params["disabled_reason"]`."""
    call = by_playbook(connection)
    return compute_hosts.switch(call, params["hosts"], params["enabled"], params["disabled_reason"])
