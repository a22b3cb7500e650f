# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operation `keypair`: key pairs that a project is to have, or not."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..catalog.keypairs import remove_keypairs, write_keypairs


def keypair(connection: sa.Connection, params: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Make, replace or remove `params["keypairs"]` of the project named `params["project"]`, for nobody in it alone."""
    act = remove_keypairs if params["state"] == "absent" else write_keypairs
    return act(connection, params["project"], params["keypairs"])
