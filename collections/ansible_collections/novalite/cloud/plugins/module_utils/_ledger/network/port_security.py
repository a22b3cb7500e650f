# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Port security, which is on, or off by the choice of the network's owner. A port without it has no security groups and
no allowed address pairs, for nobody compares what it sends."""

from __future__ import annotations

import typing as t

from ..._errors import NovaliteError
from ..._json import JsonMapping
from ..._model.instance import AddressPair
from .tenant_networks import TenantError


def check(
    attributes: JsonMapping, secured: bool, groups: t.Sequence[str] = (), pairs: t.Sequence[AddressPair] | None = None
) -> None:
    """Raise TenantError or NovaliteError for what a port cannot have that is `secured` or not: of the `attributes` it
    is to get, or of what it has already, its security `groups` in force and its allowed address `pairs`."""
    if secured:
        return
    if attributes.get("allowed_address_pairs", pairs):
        raise TenantError(
            "AddressPairAndPortSecurityRequired",
            "Port Security must be enabled in order to have allowed address pairs on a port.",
        )
    if attributes.get("security_groups"):
        raise NovaliteError(
            "Port security must be enabled and port must have an IP address in order to use security groups."
        )
    if "security_groups" not in attributes and groups:
        raise TenantError(
            "PortSecurityPortHasSecurityGroup",
            "Port has security group associated. Cannot disable port security or IP address until security group is "
            "removed.",
        )
