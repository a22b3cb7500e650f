# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operation `flavor`: flavors that there are to be, or not."""

from __future__ import annotations

import sqlalchemy as sa

from ..._json import JsonMapping, JsonObject
from ..catalog.flavors import remove_flavors, write_flavors


def flavor(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Make, change or remove `params["flavors"]`; `params["state"]` holds for all of them."""
    act = remove_flavors if params["state"] == "absent" else write_flavors
    return act(connection, params["flavors"])
