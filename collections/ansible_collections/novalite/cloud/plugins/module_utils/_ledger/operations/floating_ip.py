# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operation `floating_ip`: floating IPs that a project is to have, where they lead, and which it gives back."""

from __future__ import annotations

import sqlalchemy as sa

from ..._json import JsonMapping, JsonObject
from ..network.floating_ips import release_floating_ips, write_floating_ips


def floating_ip(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Allocate, associate, disassociate or release `params["floating_ips"]` of the project `params["project"]`."""
    act = release_floating_ips if params["state"] == "absent" else write_floating_ips
    return act(connection, params["project"], params["floating_ips"])
