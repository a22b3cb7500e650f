# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""An instance's interfaces as plain data for what writes a guest's network configuration. Pure."""

from __future__ import annotations

import netaddr

from .._model.instance import Instance
from .guest_network import AddressData, InterfaceData


def interfaces_of(instance: Instance) -> list[InterfaceData]:
    """The interfaces of `instance`. They are named eth0, eth1 and so on, as Nova names them. The first one that has
    a router gets the default route of its family: a second default route is an error to ifupdown.
    """
    routed: set[int] = set()

    def address(family: int, text: str | None, cidr: str | None, gateway: str | None) -> AddressData | None:
        if text is None or cidr is None:
            return None
        first = gateway is not None and family not in routed
        if first:
            routed.add(family)
        return {"address": text, "prefix": netaddr.IPNetwork(cidr).prefixlen, "gateway": gateway if first else None}

    interfaces: list[InterfaceData] = []
    for position, nic in enumerate(instance["nics"]):
        network = nic["network"]
        # where a network has no gateway of its own, each host routes for its guests
        gateway = network["gateway"] or nic["dhcp_server"]
        interfaces.append(
            {
                "mac": nic["mac"],
                "name": f"eth{position}",
                "dhcp": network["dhcp"],
                "ipv4": address(4, nic["ip"], network["cidr"], gateway),
                "ipv6": address(6, nic["ipv6"], network["cidr_v6"], network["gateway_v6"]),
                "dns": network["dns"],
                "mtu": network["mtu"],
            }
        )
    return interfaces
