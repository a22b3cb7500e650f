# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Neutron's provider attributes, and the manager that an administrator asks for by them.

A physical network is an interface of the hosts. Refusals are in the words of Neutron's type drivers.
"""

from __future__ import annotations

import typing as t

from ..._errors import NovaliteError
from ..._json import JsonMapping
from ..._rules.pools import NUMBERED
from ..queries.network.carriers import ATTRIBUTES, PHYSICAL, PREFIX, SEGMENT, TYPE, Carrier
from .tenant_networks import TenantError

_MANAGERS = {"flat": "flat_dhcp", "local": "flat_dhcp", "vlan": "vlan", "vxlan": "vxlan"}
_TAKES = {"flat": (PHYSICAL,), "local": (), "vlan": (PHYSICAL, SEGMENT), "vxlan": (SEGMENT,)}


def carrier_of(attributes: JsonMapping, interfaces: t.Collection[str]) -> Carrier | None:
    """The carrier that a request for a network asks for; None: it leaves that to the cloud.

    `interfaces` are the physical networks that there are. Raises NovaliteError.
    """
    provider_attributes = {
        name.removeprefix(PREFIX): attributes[name] for name in ATTRIBUTES if attributes.get(name) not in (None, "")
    }
    if not provider_attributes:
        return None
    if TYPE not in provider_attributes:
        raise NovaliteError("Invalid input for operation: network_type required.")
    kind = provider_attributes.pop(TYPE)
    if kind not in _MANAGERS:
        raise NovaliteError(f"Invalid input for operation: network_type value '{kind}' not supported.")
    shown = "VLAN" if kind == "vlan" else kind
    for name in provider_attributes:
        if name not in _TAKES[kind]:
            raise NovaliteError(f"Invalid input for operation: {name} prohibited for {shown} provider network.")
    interface, number = provider_attributes.get(PHYSICAL), provider_attributes.get(SEGMENT)
    if interface is None and (kind == "flat" or (kind == "vlan" and number is not None)):
        what = "" if kind == "flat" else f"{SEGMENT} requires "
        needs = f"{what}{PHYSICAL} for {shown}" if what else f"{PHYSICAL} required for {shown}"
        raise NovaliteError(f"Invalid input for operation: {needs} provider network.")
    if interface is not None and interface not in interfaces:
        known = ", ".join(sorted(interfaces)) or "none"
        raise NovaliteError(
            f"Invalid input for operation: physical_network '{interface}' unknown for {shown} provider network. "
            f"NOVALITE_PHYSICAL_NETWORKS names these: {known}."
        )
    if kind == "vlan" and interface is None:
        if not interfaces:
            raise TenantError(
                "NoNetworkAvailable",
                "Unable to create the network. No tenant network is available for allocation: "
                "NOVALITE_PHYSICAL_NETWORKS names no interface.",
            )
        interface = min(interfaces)
    return Carrier(_MANAGERS[kind], interface, None if number is None else _number(kind, number))


def _number(kind: str, text: str | int) -> int:
    number, last = int(text), NUMBERED[kind][2]
    if not 1 <= number <= last:
        raise NovaliteError(f"Invalid input for operation: segmentation_id out of range (1 through {last}).")
    return number
