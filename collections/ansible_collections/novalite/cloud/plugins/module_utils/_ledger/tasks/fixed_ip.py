# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operation `fixed_ip`: an address for each interface of instances."""

from __future__ import annotations

import sqlalchemy as sa

from ..._json import JsonMapping, JsonObject
from ..._rules.records import with_diff
from ..network.addresses import give_addresses


def fixed_ip(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """`params["instances"]` with the addresses of their interfaces: see give_addresses(), and the module's text."""
    addressed = give_addresses(connection, params["instances"])
    result: JsonObject = {
        "changed": addressed.taken > 0,
        "instances": addressed.instances,
        "msg": f"{addressed.taken} addresses taken" if addressed.taken else "every interface has its address",
    }
    if addressed.warnings:
        result["warnings"] = addressed.warnings
    return with_diff(result, addressed.changes.before, addressed.changes.after)
