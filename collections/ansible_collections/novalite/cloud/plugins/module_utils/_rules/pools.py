# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Settings of a network's record: its address ranges, reserved addresses, bridge and DHCP. No SQL here.

IPv4 addresses are integers, as in the table fixed_ip.
"""

from __future__ import annotations

import re
import typing as t

import netaddr

from .._addressing.ipv6 import host_ipv6, lowest_mtu
from .._addressing.pools import to_text
from .._addressing.texts import parse_address, parse_network
from .._errors import NovaliteError
from .._json import JsonMapping, JsonObject
from .records import check_range, check_text

LARGEST_POOL = 16  # prefix length; a row is made for each address, 65,536 of them take 0.3 s
SMALLEST_POOL = 30
BRIDGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,14}")  # IFNAMSIZ is 16, with the final null
DOMAIN = re.compile(r"(?!.{254})[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*")
SERVERS = 8  # of each kind, DNS and NTP
VXLAN_MTU = 1450  # what is left of 1500 bytes in a tunnel over IPv4
USUAL_MTU = 1500  # of interfaces of hosts, where their operator says nothing else
MANAGERS = ("flat", "flat_dhcp", "vlan", "vxlan")
# The number that keeps a manager's networks apart: where it is stored, the first that is given out, the last there is
NUMBERED = {"vlan": ("vlan", 100, 4094), "vxlan": ("vni", 10000, 2**24 - 1)}  # 100 is Nova's vlan_start
# What a host may have of it: neither "this network", loopback, link-local, multicast nor reserved (RFC 6890); of IPv6
# global, unique local and the former site-local addresses
USABLE = netaddr.IPSet(["0.0.0.0/0", "2000::/3", "fc00::/7", "fec0::/10"]) - netaddr.IPSet(
    ["0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/3"]
)
LEAST_LEASE = 120  # seconds; dnsmasq raises anything below to this


def parse_cidr(what: str, text: str) -> netaddr.IPNetwork:
    """An IPv4 range fit for a pool. Raises NovaliteError."""
    network = _network(f"{what}: cidr", text, 4)
    if not LARGEST_POOL <= network.prefixlen <= SMALLEST_POOL:
        bounds_of = f"a pool must lie between /{LARGEST_POOL} and /{SMALLEST_POOL}"
        raise NovaliteError(f"{what}: cidr {text} has {network.size} addresses: {bounds_of}")
    return network


def parse_cidr_v6(what: str, text: str) -> netaddr.IPNetwork:
    """An IPv6 range in which guests make their address out of their MAC (SLAAC, RFC 4862). Raises NovaliteError."""
    network = _network(f"{what}: cidr_v6", text, 6)
    if network.prefixlen != 64:
        raise NovaliteError(f"{what}: cidr_v6 {text} must have a prefix of /64, for guests address themselves (SLAAC)")
    return network


def parse_gateway(what: str, text: str, network: netaddr.IPNetwork) -> netaddr.IPAddress:
    """A gateway that is an ordinary address of `network`. Raises NovaliteError."""
    address = _address(f"{what}: gateway", text, 4)
    if address not in network or int(address) in (network.first, network.last):
        raise NovaliteError(f"{what}: gateway {text} is not a host's address in {network}")
    return address


def parse_gateway_v6(what: str, text: str, network: netaddr.IPNetwork | None) -> netaddr.IPAddress:
    """A gateway in `network`, or a link-local one. Raises NovaliteError."""
    address = _address(f"{what}: gateway_v6", text, 6)
    if network is None:
        raise NovaliteError(f"{what}: gateway_v6 {text} needs a cidr_v6")
    if not address.is_link_local() and (address not in network or address == network.network):
        raise NovaliteError(f"{what}: gateway_v6 {text} is neither an address in {network} nor link-local")
    return address


def parse_floating_cidr(what: str, text: str) -> netaddr.IPNetwork:
    """The IPv4 range of a pool of floating IPs; a single address will do. Raises NovaliteError."""
    network = _network(f"{what}: cidr", text, 4)
    if network.prefixlen < LARGEST_POOL:
        raise NovaliteError(f"{what}: cidr {text} has {network.size} addresses: a pool has at most a /{LARGEST_POOL}")
    return network


def parse_ranges(what: str, items: t.Iterable[str], network: netaddr.IPNetwork) -> set[int]:
    """The addresses in a list of "a", "a-b" and "a/prefix". Raises NovaliteError for one outside `network`."""
    addresses: set[int] = set()
    for item in items:
        first, dash, last = (part.strip() for part in item.partition("-"))
        if "/" in first and not dash:
            inner = _network(what, first, 4)
            low, high = inner.first, inner.last
        else:
            low = int(_address(what, first, 4))
            high = int(_address(what, last, 4)) if dash else low
        if low > high:
            raise NovaliteError(f"{what} {item!r} ends before it begins")
        if low < network.first or high > network.last:
            raise NovaliteError(f"{what} {item!r} is not within {network}")
        addresses.update(range(low, high + 1))
    return addresses


def overlap(cidr: str, other: str) -> bool:
    """Tell whether two ranges of the same family have an address in common."""
    ours, theirs = netaddr.IPNetwork(cidr), netaddr.IPNetwork(other)
    return ours in theirs or theirs in ours


def bounds(addresses: t.Iterable[int]) -> list[tuple[int, int]]:
    """`addresses` as the shortest list of (first, last), in order."""
    runs: list[tuple[int, int]] = []
    for address in sorted(addresses):
        first = runs.pop()[0] if runs and runs[-1][1] == address - 1 else address
        runs.append((first, address))
    return runs


def ranges(addresses: t.Iterable[int]) -> list[str]:
    """`addresses` as the shortest list of "a" and "a-b", in order."""
    return [to_text(low) if low == high else f"{to_text(low)}-{to_text(high)}" for low, high in bounds(addresses)]


def roles(network: netaddr.IPNetwork, gateway: str | None, user: t.Iterable[int]) -> dict[int, str]:
    """The addresses of `network` that are kept out of the pool, and as what: the value of fixed_ip.reserved."""
    gateways = {} if gateway is None else {int(netaddr.IPAddress(gateway, 4)): "gateway"}
    return {**dict.fromkeys(user, "user"), **gateways, network.first: "network", network.last: "broadcast"}


def check_bridge(what: str, name: str) -> str:
    """`name` itself, if Linux takes it for an interface. Raises NovaliteError."""
    if not BRIDGE.fullmatch(name):
        raise NovaliteError(
            f"{what} {name[:40]!r} is not an interface name: use up to 15 letters, digits, '_', '.' or '-'"
        )
    return name


def manager_of(item: JsonMapping, before: JsonMapping | None) -> str:
    """The manager that a user named, or that what they said about the network needs, or that it has."""
    if item["manager"] is not None:
        return str(item["manager"])
    for manager, (number, _first, _last) in NUMBERED.items():
        if item[number] is not None:
            return manager
    if before is not None and (item["dhcp"] is None or before["manager"] in NUMBERED):
        return str(before["manager"])
    return "flat" if item["dhcp"] is False else "flat_dhcp"


def manager_defaults(manager: str, item: JsonMapping, before: JsonMapping | None) -> JsonObject:
    """Settings that follow from the manager, and from a gateway of the network's own, where the user gave none."""
    defaults: JsonObject = {"manager": manager}
    if before is None or before["manager"] != manager:
        defaults |= {"dhcp": manager != "flat", "isolated": manager == "vxlan"}
        defaults |= {number: None for other, (number, _first, _last) in NUMBERED.items() if other != manager}
        if manager == "vxlan":
            defaults |= {"mtu": VXLAN_MTU, "bridge_interface": None}
    if before is None:
        defaults["snat"] = manager != "flat"
    if item["gateway"]:  # then no hypervisor routes
        defaults["snat"] = False
    return {key: value for key, value in defaults.items() if item.get(key) is None}


def free_number(what: str, manager: str, taken: t.Collection[int]) -> int:
    """The first VLAN or VNI that is not in `taken`. Raises NovaliteError when there is none."""
    kind, first, last = NUMBERED[manager]
    number = next((number for number in range(first, last + 1) if number not in taken), None)
    if number is None:
        raise NovaliteError(f"{what}: every {kind} from {first} to {last} is taken: remove networks")
    return number


def check_settings(what: str, record: JsonMapping) -> None:
    """Raise NovaliteError for a setting of the record that no host could carry out."""
    _check_manager(what, record)
    check_bridge(f"{what}: bridge", record["bridge"])
    if record["bridge_interface"] is not None:
        check_bridge(f"{what}: bridge_interface", record["bridge_interface"])
        if record["bridge_interface"] == record["bridge"]:
            raise NovaliteError(f"{what}: bridge and bridge_interface are both {record['bridge']!r}")
    if record["snat"] and record["gateway"] is not None:
        raise NovaliteError(
            f"{what}: snat is done by the hypervisors when they route, but the guests' gateway is {record['gateway']}: "
            "leave one of the two out"
        )
    check_mtu(what, record["mtu"], record["cidr_v6"])
    check_range(f"{what}: lease_seconds", record["lease_seconds"], LEAST_LEASE)
    check_range(f"{what}: quarantine_seconds", record["quarantine_seconds"], 0)
    if not DOMAIN.fullmatch(record["domain"]):
        raise NovaliteError(f"{what}: domain {record['domain'][:60]!r} is not a domain name in lower case")
    for kind in ("dns", "ntp"):
        if len(record[kind]) > SERVERS:
            raise NovaliteError(f"{what}: {len(record[kind])} {kind.upper()} servers: {SERVERS} is the limit")
    _check_gateway_v6(what, record)


def check_mtu(what: str, mtu: int | None, cidr_v6: object) -> None:
    """Raise NovaliteError for an MTU (None: what the devices have) that no host takes."""
    if mtu is not None:
        check_range(f"{what}: mtu", mtu, lowest_mtu(cidr_v6), 65535)


def check_carried(mtu: int | None, manager: str) -> None:
    """Raise NovaliteError for more than the manager's networks usually carry: hosts raise their own interfaces to what
    a network has, which is for their operator to say."""
    most = VXLAN_MTU if manager == "vxlan" else USUAL_MTU
    if mtu is not None and mtu > most:
        raise NovaliteError(
            f"Invalid input for operation: Requested MTU {mtu} is too big, maximum is {most}: name less, or have an "
            "administrator make the network."
        )


def _check_manager(what: str, record: JsonMapping) -> None:
    manager = record["manager"]
    for numbered, (kind, _first, last) in NUMBERED.items():
        if record[kind] is None:
            continue
        check_range(f"{what}: {kind}", record[kind], 1, last)
        if manager != numbered:
            raise NovaliteError(f"{what}: {kind} {record[kind]} goes with the manager {numbered}, and it has {manager}")
    if (manager, record["dhcp"]) == ("flat_dhcp", False):
        raise NovaliteError(f"{what}: the manager flat_dhcp has DHCP: leave dhcp out, or take flat")
    if (manager, record["dhcp"]) == ("flat", True):
        raise NovaliteError(f"{what}: the manager flat has no DHCP: leave dhcp out, or take flat_dhcp")
    if manager == "vlan" and record["bridge_interface"] is None:
        raise NovaliteError(f"{what}: vlan {record['vlan']} needs the bridge_interface that carries it")
    if manager == "vxlan" and record["bridge_interface"] is not None:
        raise NovaliteError(
            f"{what}: a vxlan connects the hypervisors by a tunnel: leave bridge_interface "
            f"{record['bridge_interface']!r} out"
        )


def _check_gateway_v6(what: str, record: JsonMapping) -> None:
    """A hypervisor's IPv6 address follows from its IPv4 address: the gateway must be none of those."""
    if record["gateway_v6"] is None:
        return
    pool = netaddr.IPNetwork(record["cidr"])
    first, last = (host_ipv6(record["cidr_v6"], str(pool[end])) for end in (0, -1))
    if netaddr.IPAddress(record["gateway_v6"]) in netaddr.IPRange(first, last):
        raise NovaliteError(
            f"{what}: gateway_v6 {record['gateway_v6']} is among the hypervisors' own addresses, {first} to {last}: "
            "take another"
        )


def parse_servers(what: str, items: t.Iterable[str]) -> list[str]:
    """Addresses of either family, in RFC 5952 form. Raises NovaliteError."""
    return [str(_address(what, item, None)) for item in items]


def _network(what: str, text: str, version: int) -> netaddr.IPNetwork:
    check_text(what, text, 43)
    try:
        network = parse_network(text if "/" in text else "", strict=False)
    except ValueError:
        example = "10.20.0.0/24" if version == 4 else "fd00:20::/64"
        raise NovaliteError(f"{what} {text!r} is not an address range: write for example {example}") from None
    if network.version != version:
        raise NovaliteError(f"{what} {text} is not IPv{version}")
    if network.ip != network.network:
        raise NovaliteError(f"{what} {text} has bits set beyond its prefix: write {network.cidr}")
    if network.network not in USABLE:
        raise NovaliteError(f"{what} {text} is a range that no host may use: take a private one, such as 10.20.0.0/24")
    return network


def _address(what: str, text: str, version: int | None) -> netaddr.IPAddress:
    check_text(what, text, 43)
    try:
        address = parse_address(text)
    except ValueError:
        raise NovaliteError(f"{what} {text!r} is not an IP address") from None
    if version is not None and address.version != version:
        raise NovaliteError(f"{what} {text} is not an IPv{version} address")
    return address
