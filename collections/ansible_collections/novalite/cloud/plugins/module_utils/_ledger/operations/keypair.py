# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operation `keypair`: key pairs that a project is to have, or not."""

from __future__ import annotations

import sqlalchemy as sa

from ..._json import JsonMapping, JsonObject
from ..catalog.keypairs import remove_keypairs, write_keypairs


def keypair(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Make, replace or remove `params["keypairs"]` of the project named `params["project"]`, shared by all of it."""
    act = remove_keypairs if params["state"] == "absent" else write_keypairs
    return act(connection, params["project"], params["keypairs"])
