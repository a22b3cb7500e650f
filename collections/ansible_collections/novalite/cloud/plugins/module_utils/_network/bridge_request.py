# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The bridges that are asked for, checked: what the module `bridge` takes, as data. Pure."""

from __future__ import annotations

import contextlib
import dataclasses
import ipaddress
import re
import typing as t

from .._errors import NovaliteError
from .._json import JsonMapping
from . import namespaces
from .ownership import NO_LEDGER, Mark

VXLAN_PORT = 4789
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,14}")  # the kernel's limit is 15 characters


@dataclasses.dataclass(frozen=True)
class Vxlan:
    """`local` is this host's tunnel end point, `remotes` those of the other hosts that have guests on the network."""

    vni: int
    local: str = ""
    remotes: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Bridge:
    """`interface` is the physical port; with `vlan` the port is `vlan<ID>` on top of it, named as Nova names it, and
    with `vxlan` it is `vxlan<VNI>`. `addresses` are the host's own in this network (CIDR), in `namespace` if there is
    one; `ranges` all IPv4 ranges of a network that has several. `mtu` in bytes. `shared_routes` are destinations of the
    host's routes, parts of which are networks'."""

    name: str
    interface: str | None = None
    addresses: tuple[str, ...] = ()
    vlan: int | None = None
    vxlan: Vxlan | None = None
    namespace: str | None = None
    mtu: int | None = None
    taps: tuple[str, ...] = ()  # guests' devices, plugged in again where they are on no bridge or on another one
    ranges: tuple[str, ...] = ()
    shared_routes: tuple[str, ...] = ()
    up: bool = True  # else it carries nothing
    mark: Mark = NO_LEDGER

    @property
    def port(self) -> str | None:
        if self.vxlan is not None:
            return f"vxlan{self.vxlan.vni}"
        return self.interface if self.vlan is None else f"vlan{self.vlan}"


def parse(values: t.Iterable[JsonMapping], state: str = "present", mark: Mark = NO_LEDGER) -> list[Bridge]:
    """The module's `bridges`, for the ledger of `mark`. Raises NovaliteError for a value that cannot be."""
    bridges = [dataclasses.replace(_parse_one(value), mark=mark) for value in values]
    for bridge in bridges:
        if state == "present" and bridge.vxlan is not None and not bridge.vxlan.local:
            raise NovaliteError(f"bridge {bridge.name}: vxlan needs local, this host's address for its tunnels")
    for what, names in (
        ("bridge", [bridge.name for bridge in bridges]),
        ("namespace", [bridge.namespace for bridge in bridges if bridge.namespace]),
    ):
        if len(set(names)) != len(names):
            raise NovaliteError(f"a {what} is given twice; give each {what} once")
    return bridges


def _parse_one(value: JsonMapping) -> Bridge:
    name = value["name"]
    for device in (name, value.get("interface")):
        if device is not None and not NAME.fullmatch(device):
            raise NovaliteError(f"{device!r} is not a name of a network device; use up to 15 letters, digits, - _ .")
    vlan, mtu, tunnel = value.get("vlan"), value.get("mtu"), value.get("vxlan")
    if vlan is not None and (value.get("interface") is None or not 1 <= vlan <= 4094):
        raise NovaliteError(f"bridge {name}: VLAN {vlan} needs an interface and an id from 1 to 4094")
    if mtu is not None and not 576 <= mtu <= 65535:
        raise NovaliteError(f"bridge {name}: MTU {mtu} is not between 576 and 65535 bytes")
    if value.get("up") is False and (value.get("interface") is not None or not value.get("namespace")):
        # the host itself, or others, may live by what goes over it
        raise NovaliteError(f"bridge {name}: only a bridge in a namespace and without an interface may be down")
    if tunnel is not None and value.get("interface") is not None:
        raise NovaliteError(f"bridge {name}: give either an interface ({value['interface']}) or vxlan")
    return Bridge(
        name=name,
        interface=value.get("interface"),
        addresses=tuple(_interface(name, text) for text in value.get("addresses") or ()),
        vlan=vlan,
        vxlan=None if tunnel is None else _vxlan(name, tunnel),
        namespace=namespaces.check_name(value["namespace"]) if value.get("namespace") else None,
        mtu=mtu,
        taps=tuple(value.get("taps") or ()),
        ranges=tuple(_range(name, text) for text in value.get("ranges") or ()),
        shared_routes=tuple(value.get("shared_routes") or ()),
        up=value.get("up") is not False,
    )


def _vxlan(name: str, value: JsonMapping) -> Vxlan:
    if not 1 <= value["vni"] < 2**24:
        raise NovaliteError(f"bridge {name}: VXLAN identifier {value['vni']} is not between 1 and 16777215")
    if value.get("local") is None:
        return Vxlan(value["vni"])
    endpoints = []
    for text in (value["local"], *(value.get("remotes") or ())):
        try:
            endpoints.append(ipaddress.ip_address(str(text)))
        except ValueError:
            raise NovaliteError(f"bridge {name}: {text!r} is not an address of a VXLAN tunnel's end") from None
    local, remotes = endpoints[0], sorted(set(endpoints[1:]), key=int)
    if any(remote.version != local.version or remote == local for remote in remotes):
        raise NovaliteError(
            f"bridge {name}: the remote tunnel ends {', '.join(map(str, remotes))} must be other hosts' "
            f"IPv{local.version} addresses, as the local end is {local}"
        )
    return Vxlan(value["vni"], str(local), tuple(map(str, remotes)))


def _range(name: str, text: str) -> str:
    try:
        return str(ipaddress.IPv4Network(text))
    except ValueError:
        raise NovaliteError(f"bridge {name}: {text!r} is not an IPv4 network; write it as 10.20.0.0/24") from None


def _interface(name: str, text: str) -> str:
    with contextlib.suppress(ValueError):
        if "/" in text:
            return str(ipaddress.ip_interface(text))
    raise NovaliteError(f"bridge {name}: {text!r} is not an address with a prefix; write it as 10.20.0.2/24")
