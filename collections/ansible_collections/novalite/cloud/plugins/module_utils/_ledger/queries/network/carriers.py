# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Carriers of networks: how hosts connect them, in a setting's words and in the Network API's."""

from __future__ import annotations

import typing as t

from ...._errors import NovaliteError
from ...._json import JsonObject
from ...._rules import pools
from ...._rules.pools import NUMBERED
from .network_records import Network

MANAGERS = ("vxlan", "vlan", "flat_dhcp")


class Carrier(t.NamedTuple):
    """The manager that carries projects' networks, and the hosts' interface where it takes one; the VLAN or VNI of a
    network (None: a free one)."""

    manager: str = "vxlan"
    interface: str | None = None
    number: int | None = None


def carrier(text: str) -> Carrier:
    """Read "vxlan", "vlan:eth1" or "flat_dhcp". Raises NovaliteError."""
    manager, _colon, interface = text.partition(":")
    if manager not in MANAGERS or (manager == "vlan") != bool(interface):
        raise NovaliteError(f"networks of projects by {text[:40]!r}: write vxlan, vlan:<interface> or flat_dhcp")
    if interface:
        pools.check_bridge("interface", interface)
    return Carrier(manager, interface or None)


TYPE, PHYSICAL, SEGMENT = "network_type", "physical_network", "segmentation_id"
PREFIX = "provider:"
ATTRIBUTES = tuple(f"{PREFIX}{name}" for name in (TYPE, PHYSICAL, SEGMENT))


def attributes_of(row: Network) -> JsonObject:
    """The provider attributes of a network. A bridge that nothing connects to other hosts' is a local network."""
    if row.manager in NUMBERED:
        kind = row.manager
    else:
        kind = "local" if row.isolated and row.bridge_interface is None else "flat"
    values = (kind, row.bridge_interface, row.vlan if kind == "vlan" else row.vni)
    return dict(zip(ATTRIBUTES, values))
