# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Configuration of a guest's interfaces, out of an Instance dict: `network_data.json`, and plain data. Pure."""

from __future__ import annotations

import typing as t

import netaddr

from .._addressing.ipv6 import host_ipv6
from .._addressing.texts import of_version
from .._json import JsonObject
from .._model.instance import Instance, Nic, host_address
from .guest_network import AddressData, InterfaceData


def openstack_network_data(instance: Instance) -> JsonObject:
    """`network_data.json` of `instance`: links, networks and services (the DNS servers). With DHCP an interface is told
    to ask there, and to autoconfigure IPv6; without, it is given its fixed addresses and routes."""
    links, networks = [], []  # type: list[JsonObject], list[JsonObject]
    servers: list[str] = []
    for nic in instance["nics"]:
        # Nova names a link after its tap device, whose name has room for 11 characters of the id
        link = f"tap{nic['id'][:11]}"
        links.append(
            {
                "id": link,
                "vif_id": nic["id"],
                "type": "bridge",
                "mtu": nic["network"]["mtu"],
                "ethernet_mac_address": nic["mac"],
            }
        )
        for address in (_ipv4(nic), *_further(nic), _ipv6(nic)):
            if address is not None:
                networks.append(
                    {"id": f"network{len(networks)}", "link": link, "network_id": nic["network"]["uuid"], **address}
                )
        servers += [server for server in nic["network"]["dns"] if server not in servers]
    return {"links": links, "networks": networks, "services": [{"type": "dns", "address": dns} for dns in servers]}


def _ipv4(nic: Nic) -> JsonObject | None:
    network = nic["network"]
    if network["dhcp"]:
        return {"type": "ipv4_dhcp"}
    if not nic["ip"]:
        return None
    # where a network has no gateway of its own, each host routes for its guests
    gateway = network["gateway"] or nic["dhcp_server"]
    return {
        "type": "ipv4",
        "ip_address": nic["ip"],
        "netmask": str(netaddr.IPNetwork(str(network["cidr"])).netmask),
        "routes": [{"network": "0.0.0.0", "netmask": "0.0.0.0", "gateway": gateway}] if gateway else [],
        "services": _services(network["dns"], 4),
    }


def _further(nic: Nic) -> list[JsonObject]:
    """Addresses besides the first, which no DHCP server tells a guest."""
    if not nic["ip"]:
        return []
    return [
        {
            "type": "ipv4",
            "ip_address": address,
            "netmask": str(netaddr.IPNetwork(range_of(nic, address)).netmask),
            "routes": [],
            "services": [],
        }
        for address in nic.get("more_ips", ())
    ]


def range_of(nic: Nic, address: str) -> str:
    """The range of the network in which an address of the interface lies: that of its first one, where no other is
    known."""
    number = netaddr.IPAddress(address)
    ranges = (each["cidr"] for each in nic["network"].get("ranges", ()))
    return next((cidr for cidr in ranges if number in netaddr.IPNetwork(cidr)), str(nic["network"]["cidr"]))


def _ipv6(nic: Nic) -> JsonObject | None:
    network = nic["network"]
    if not nic["ipv6"] or not network["cidr_v6"]:
        return None
    if network["dhcp"] and network.get("ipv6_mode", "eui64") == "eui64":
        return {"type": "ipv6_slaac"}
    if network["dhcp"]:
        # an address that does not follow from the MAC is the DHCP server's to give
        return {"type": "ipv6_dhcpv6-stateful"}
    subnet = netaddr.IPNetwork(network["cidr_v6"])
    gateway = network["gateway_v6"]
    address = host_address(nic)
    if gateway is None and address and not network.get("isolated"):
        gateway = host_ipv6(network["cidr_v6"], address)
    return {
        "type": "ipv6",
        "ip_address": nic["ipv6"],
        "netmask": str(subnet.netmask),
        "routes": [{"network": "::", "netmask": "::", "gateway": gateway}] if gateway else [],
        "services": _services(network["dns"], 6),
    }


def _services(addresses: t.Iterable[str], version: int) -> list[dict[str, str]]:
    """The DNS servers that are reached over this version of IP."""
    return [{"type": "dns", "address": address} for address in of_version(addresses, version)]


def interfaces_of(instance: Instance) -> list[InterfaceData]:
    """The interfaces of `instance`, named eth0, eth1 ... as Nova's. The first one that has a router gets the default
    route of its family: a second one is an error to ifupdown."""
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
        further = [address(4, text, range_of(nic, text), None) for text in nic.get("more_ips", ())]
        if further:
            interfaces[-1]["more_ipv4"] = [data for data in further if data is not None]
    return interfaces
