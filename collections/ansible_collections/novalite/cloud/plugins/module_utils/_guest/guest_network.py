# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A guest's static network configuration, in the words of what it has: Debian's ifupdown, netplan, systemd-networkd.

Nova knows ifupdown only (nova/virt/interfaces.template), and calls the interfaces eth0, eth1 and so on.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import json
import re
import typing as t

from .._errors import NovaliteError
from .._json import JsonMapping, JsonObject

NOTE = "# Written by novalite: the addresses of this instance."
INTERFACES = "/etc/network/interfaces"
NETPLAN = "/etc/netplan"
NETWORKD = "/etc/systemd/network"
RESOLV_CONF = "/etc/resolv.conf"
# networkd takes the first file in alphabetical order that matches an interface, so ours comes before the image's own.
FIRST = "00-nova-"
NETWORKD_WANTED = "/etc/systemd/system/multi-user.target.wants/systemd-networkd.service"

_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}\Z")
_NAME = re.compile(r"[a-z0-9._-]{1,15}\Z")


class AddressData(t.TypedDict):
    """Address with its prefix length; `gateway` is the default route's where this interface has it."""

    address: str
    prefix: int
    gateway: t.Optional[str]


class _InterfaceData(t.TypedDict):
    mac: str
    name: str
    dhcp: bool
    ipv4: t.Optional[AddressData]
    ipv6: t.Optional[AddressData]
    dns: list[str]
    mtu: t.Optional[int]


class InterfaceData(_InterfaceData, total=False):
    """An interface on its way to a host, as interfaces_of() makes it."""

    more_ipv4: list[AddressData]  # besides `ipv4`


@dataclasses.dataclass(frozen=True)
class Address:
    """Address with its prefix length, and the default route through `gateway` where this interface has it."""

    address: str
    prefix: int
    gateway: str | None = None

    @property
    def is_v6(self) -> bool:
        return ":" in self.address


@dataclasses.dataclass(frozen=True)
class Nic:
    """A network interface. `dhcp`: IPv4 by DHCP and IPv6 as the routers say, whatever addresses are given. MTU in
    bytes; None leaves it to the guest."""

    mac: str
    name: str
    ipv4: Address | None = None
    ipv6: Address | None = None
    more_ipv4: tuple[Address, ...] = ()
    dns: tuple[str, ...] = ()
    mtu: int | None = None
    dhcp: bool = False

    def __post_init__(self) -> None:
        # All of these end up in configuration files: a line break in one of them would be a line of the caller's.
        if not _MAC.match(self.mac):
            raise NovaliteError(f"network interface {self.name!r}: '{self.mac}' is not a MAC address")
        if not _NAME.match(self.name):
            raise NovaliteError(f"{self.name!r} is not the name of a network interface")
        if self.mtu is not None and not 68 <= self.mtu <= 65535:
            raise NovaliteError(f"network interface {self.name}: an MTU of {self.mtu} bytes is not possible")
        for family, address in ((4, self.ipv4), *((4, further) for further in self.more_ipv4), (6, self.ipv6)):
            if address is not None:
                _check(self.name, address.address, family)
                if not 0 <= address.prefix <= (32 if family == 4 else 128):
                    raise NovaliteError(
                        f"network interface {self.name}: /{address.prefix} is not a prefix of IPv{family}"
                    )
                if address.gateway is not None:
                    _check(self.name, address.gateway, family)
        for server in self.dns:
            _check(self.name, server)

    @property
    def addresses(self) -> tuple[Address, ...]:
        own = () if self.dhcp else (self.ipv4, *self.more_ipv4, self.ipv6)
        return tuple(address for address in own if address is not None)


def nics_of(network: JsonMapping) -> tuple[Nic, ...]:
    """The interfaces in the plain data `{"nics": [...]}`, each as in interfaces_of(). Raises NovaliteError for what is
    no address, name or MAC."""
    return tuple(
        Nic(
            mac=str(nic["mac"]).lower(),
            name=nic["name"],
            ipv4=_address(nic.get("ipv4")),
            ipv6=_address(nic.get("ipv6")),
            more_ipv4=tuple(Address(each["address"], int(each["prefix"])) for each in nic.get("more_ipv4") or ()),
            dns=tuple(nic.get("dns") or ()),
            mtu=nic.get("mtu"),
            dhcp=bool(nic.get("dhcp")),
        )
        for nic in network["nics"]
    )


def interfaces(nics: t.Sequence[Nic]) -> str:
    """/etc/network/interfaces, in what Debian's ifupdown and busybox both understand (hence netmask, not a prefix)."""
    lines = [NOTE, "auto lo", "iface lo inet loopback"]
    for nic in nics:
        lines += ["", f"auto {nic.name}"]
        if nic.dhcp:
            lines.append(f"iface {nic.name} inet dhcp")
        elif not nic.addresses:
            lines.append(f"iface {nic.name} inet manual")
        dns: t.Sequence[str] = nic.dns
        for address in nic.addresses:
            family = "inet6" if address.is_v6 else "inet"
            netmask = str(ipaddress.IPv4Network((0, address.prefix)).netmask) if family == "inet" else address.prefix
            lines += [f"iface {nic.name} {family} static", f"    address {address.address}", f"    netmask {netmask}"]
            lines += [f"    gateway {address.gateway}"] if address.gateway else []
            lines += [f"    mtu {nic.mtu}"] if nic.mtu else []
            lines += [f"    dns-nameservers {' '.join(dns)}"] if dns else []
            dns = ()  # said once
    return "\n".join(lines) + "\n"


def netplan(nics: t.Sequence[Nic]) -> str:
    """A netplan file. JSON is YAML, and needs no quoting rules of ours."""
    document = {"network": {"version": 2, "ethernets": ethernets(nics, name=lambda nic: FIRST + nic.name)}}
    return f"{NOTE}\n{json.dumps(document, indent=2)}\n"


def ethernets(nics: t.Sequence[Nic], name: t.Callable[[Nic], str], rename: bool = False) -> dict[str, JsonObject]:
    """netplan's, and cloud-init's, `ethernets`; `name` makes their keys, `rename` gives the interfaces our names."""
    entries: dict[str, JsonObject] = {}
    for nic in nics:
        entry: JsonObject = {"match": {"macaddress": nic.mac}, "dhcp4": nic.dhcp}
        if rename:
            entry["set-name"] = nic.name
        if nic.addresses:
            entry["addresses"] = [f"{address.address}/{address.prefix}" for address in nic.addresses]
        # "to: default" is younger than some of the guests.
        routes = [
            {"to": "::/0" if ":" in address.gateway else "0.0.0.0/0", "via": address.gateway}
            for address in nic.addresses
            if address.gateway
        ]
        if routes:
            entry["routes"] = routes
        if nic.dns and not nic.dhcp:
            entry["nameservers"] = {"addresses": list(nic.dns)}
        if nic.mtu:
            entry["mtu"] = nic.mtu
        entries[name(nic)] = entry
    return entries


def networkd(nic: Nic) -> str:
    """A .network file of systemd-networkd."""
    lines = [NOTE, "[Match]", f"MACAddress={nic.mac}"]
    if nic.mtu:
        lines += ["", "[Link]", f"MTUBytes={nic.mtu}"]
    lines += ["", "[Network]", f"DHCP={'ipv4' if nic.dhcp else 'no'}"]
    for address in nic.addresses:
        lines.append(f"Address={address.address}/{address.prefix}")
        if address.gateway:
            lines.append(f"Gateway={address.gateway}")
    if not nic.dhcp:
        lines += [f"DNS={server}" for server in nic.dns]
    return "\n".join(lines) + "\n"


def resolv_conf(nics: t.Sequence[Nic]) -> str | None:
    """/etc/resolv.conf for a guest whose ifupdown has nobody to give `dns-nameservers` to; None leaves it alone."""
    servers = dict.fromkeys(server for nic in nics for server in nic.dns)
    if not servers or any(nic.dhcp for nic in nics):
        return None
    return "".join(f"nameserver {server}\n" for server in servers)


def _address(value: AddressData | None) -> Address | None:
    return None if value is None else Address(value["address"], int(value["prefix"]), value.get("gateway"))


def _check(name: str, text: str, family: int | None = None) -> None:
    try:
        version: int | None = ipaddress.ip_address(text).version
    except ValueError:
        version = None
    if version is None or family not in (None, version) or "%" in text:
        kind = f"IPv{family}" if family else "IP"
        raise NovaliteError(f"network interface {name}: {text!r} is not an {kind} address")
