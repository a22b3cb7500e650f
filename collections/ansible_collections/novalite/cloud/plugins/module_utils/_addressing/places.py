# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Places where a host lives: its addresses, gateways and routes, and who asks it; and the ranges that would cut it off.

A host that gets an address in a network's range reaches all of that range by the network's bridge from then on, and
what it reached there by another way no more: its gateway, the controller, a VPN, the containers of others. What is on
the bridge itself stays where it is: there a host is cut off where the network hands out the address of another machine
that it needs.
Pure, and on hosts, too.
"""

from __future__ import annotations

import dataclasses
import functools
import ipaddress
import typing as t

from .._json import Json, JsonMapping, JsonObject

MOST = 200  # that are reported, those with single machines first
ADDRESS, GATEWAY, CLIENT, SERVER = MACHINES = ("address", "gateway", "client", "name server")
OTHERS = (GATEWAY, CLIENT, SERVER)  # machines that are not the host itself
LIBVIRT, ROUTE = "libvirt network", "route"
_TEXTS = {
    ADDRESS: "its address {}",
    GATEWAY: "its gateway {}",
    CLIENT: "the address {} that it is logged in to from",
    SERVER: "its name server {}",
    LIBVIRT: "libvirt's network {}",
    ROUTE: "its route to {}",
}
# Routes that are no more specific than this are a default route in two halves (OpenVPN's 0.0.0.0/1), or all that there
# is of IPv6 (2000::/3)
_DEFAULT = {4: 1, 6: 3}

Bounds = tuple[int, int]  # the first and the last of some addresses, as integers


@dataclasses.dataclass(frozen=True)
class Place:
    """Something that a host reaches by its `device`; None where nobody knows by which. `cidr` is the range, of an
    address of the host's own the address with its prefix."""

    kind: str
    cidr: str
    device: str | None = None
    version: int = dataclasses.field(init=False, compare=False)
    address: int = dataclasses.field(init=False, compare=False)
    bounds: Bounds = dataclasses.field(init=False, compare=False)

    def __post_init__(self) -> None:
        interface = ipaddress.ip_interface(self.cidr)
        keep = object.__setattr__  # the way of a frozen dataclass
        keep(self, "version", interface.version)
        keep(self, "address", int(interface.ip))
        keep(self, "bounds", _bounds(interface))

    @property
    def text(self) -> str:
        shown = self.cidr.partition("/")[0] if self.kind in MACHINES else self.cidr
        return _TEXTS[self.kind].format(shown) + (f" ({self.device})" if self.device else "")

    @property
    def row(self) -> JsonObject:
        """The place among the facts of a host."""
        return {"kind": self.kind, "cidr": self.cidr, "device": self.device}

    @property
    def everywhere(self) -> bool:
        return self.kind == ROUTE and int(self.cidr.partition("/")[2] or 128) <= _DEFAULT[self.version]


@dataclasses.dataclass(frozen=True)
class Use:
    """Use of a range by a network on a host: by which `links` its guests are reached, whether the host gets an address
    in it (`taken`), and which of its addresses are handed out, as far as that is known."""

    cidr: str
    links: tuple[str, ...]
    taken: bool = True
    handed_out: tuple[Bounds, ...] = ()


def host_takes(dhcp: bool, gateway: str | None, cidr_v6: str | None, gateway_v6: str | None) -> bool:
    """Tell whether each compute host needs an address of its own in a network: it answers DHCP there, or routes."""
    return bool(dhcp or gateway is None or (cidr_v6 is not None and gateway_v6 is None))


def uses(network: JsonMapping, handed_out: tuple[Bounds, ...] = ()) -> list[Use]:
    """The uses of its ranges that a network is, by its record: none where hosts have its addresses in a namespace. Its
    IPv4 addresses `handed_out` are given where they are known."""
    if network["isolated"]:
        return []
    interface, vlan = network["bridge_interface"], network["vlan"]
    port = interface if vlan is None else f"vlan{vlan}"
    links = (network["bridge"],) if interface is None else (network["bridge"], port)
    taken = host_takes(*(network[key] for key in ("dhcp", "gateway", "cidr_v6", "gateway_v6")))
    ranges = [each["cidr"] for each in network.get("ranges") or ()] or [network["cidr"]]
    return [Use(cidr, links, taken, handed_out) for cidr in (*ranges, network["cidr_v6"]) if cidr is not None]


def parse(value: Json) -> tuple[Place, ...]:
    """Places among the facts of a host. What a host says is a claim: what is no place is left out."""
    places = []
    for row in value[:MOST] if isinstance(value, list) else ():
        if isinstance(row, dict) and all(isinstance(row.get(key), str) for key in ("kind", "cidr")):
            device = row.get("device")
            place = _place(row["kind"], row["cidr"], device if isinstance(device, str) else None)
            places += [] if place is None else [place]
    return tuple(places)


@functools.lru_cache(maxsize=1 << 16)  # hosts have much in common, and the scheduler asks all of them
def _place(kind: str, cidr: str, device: str | None) -> Place | None:
    try:
        return Place(kind, cidr, device) if kind in _TEXTS else None
    except ValueError:
        return None


def conflict(use: Use, places: t.Iterable[Place], shared: t.Collection[str] = ()) -> Place | None:
    """The first place that a host would be cut off from by this use of a range. Of `shared` routes, parts are there for
    networks to have."""
    version, (first, last) = range_of(use.cidr)
    for place in places:
        low, high = place.bounds
        if place.version != version or high < first or last < low:
            continue
        if place.device in use.links:
            if place.kind in OTHERS and _among(place.address, use.handed_out):
                return place
        elif use.taken and not place.everywhere:
            part_of_it = low <= first and last <= high and (low, high) != (first, last)
            if not (place.kind == ROUTE and place.cidr in shared and part_of_it):
                return place
    return None


def conflict_of_addresses(
    addresses: t.Sequence[Bounds], interface: str, places: t.Sequence[Place], shared: t.Collection[str] = ()
) -> Place | None:
    """The first place that a host would be cut off from that answers for these IPv4 `addresses` on its `interface`:
    machines that have one, and ranges that it reaches in another way than by the interface."""
    ours = [place.bounds for place in places if place.device == interface and not place.everywhere]
    for place in places:
        if place.version != 4:
            continue
        if place.kind in MACHINES and _among(place.address, addresses):
            return place
        if not ours or place.device == interface or place.everywhere or place.cidr in shared:
            continue
        for low, high in addresses:
            on_wire = any(first <= low and high <= last for first, last in ours)
            if not on_wire and place.bounds[0] <= high and low <= place.bounds[1]:
                return place
    return None


def _among(address: int, bounds: t.Iterable[Bounds]) -> bool:
    return any(first <= address <= last for first, last in bounds)


@functools.lru_cache(maxsize=1 << 12)
def range_of(cidr: str) -> tuple[int, Bounds]:
    """The version of IP, and the bounds, of the range that `cidr` is, or is in. Raises ValueError."""
    interface = ipaddress.ip_interface(cidr)
    return interface.version, _bounds(interface)


def _bounds(interface: ipaddress.IPv4Interface | ipaddress.IPv6Interface) -> Bounds:
    network = interface.network
    return int(network.network_address), int(network.broadcast_address)
