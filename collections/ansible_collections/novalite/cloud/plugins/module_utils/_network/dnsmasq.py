# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""What a network's dnsmasq reads, as text from plain data. Pure; nothing from outside reaches a line unchecked."""

from __future__ import annotations

import dataclasses
import ipaddress
import re
import typing as t

from .._errors import NovaliteError

_BRIDGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,14}")
_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOSTNAME = re.compile(_LABEL)
_DOMAIN = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")


@dataclasses.dataclass(frozen=True)
class Host:
    mac: str
    ip: str
    hostname: str


@dataclasses.dataclass(frozen=True)
class Network:
    """`listen` is this host's own address on the bridge, `lease_seconds` in seconds, `mtu` in bytes."""

    name: str
    bridge: str
    listen: str
    cidr: str
    gateway: str | None = None
    dns: tuple[str, ...] = ()
    domain: str = "novalocal"
    mtu: int | None = None
    lease_seconds: int = 86400
    hosts: tuple[Host, ...] = ()


def parse(values: t.Iterable[t.Mapping[str, t.Any]]) -> list[Network]:
    """The module's `networks`, checked: a name with a comma or a line end would be an option of its own to dnsmasq.

    Raises NovaliteError that names the offending value.
    """
    networks = [_network(value) for value in values]
    if len({network.bridge for network in networks}) != len(networks):
        raise NovaliteError("a bridge is given twice; there is one DHCP server for each")
    return networks


def config(network: Network, directory: str) -> str:
    """dnsmasq's configuration file; `directory` holds the files that it names."""
    subnet = ipaddress.IPv4Network(network.cidr)
    lines = [
        "# Written by novalite; it is replaced whenever the network changes.",
        "strict-order",
        "bind-interfaces",
        "except-interface=lo",
        # Named, and the only one: dnsmasq then binds its DHCP socket to the device, and does not get in the way of
        # the other networks' on this host.
        f"interface={network.bridge}",
        f"listen-address={network.listen}",
        f"pid-file={directory}/pid",
        f"dhcp-leasefile={directory}/leases",
        f"dhcp-hostsfile={directory}/hosts",
        # Only known hosts get an address. It is not authoritative: every compute host of a network runs one, and they
        # must not refuse each other's guests.
        f"dhcp-range={subnet.network_address},static,{subnet.netmask},{network.lease_seconds}s",
        f"dhcp-lease-max={min(subnet.num_addresses, 65536)}",
        f"dhcp-option=option:router{f',{network.gateway}' if network.gateway else ''}",  # without: dnsmasq itself
        f"domain={network.domain}",
        f"local=/{network.domain}/",
        "domain-needed",
        "no-hosts",
        f"addn-hosts={directory}/names",
    ]
    if network.mtu:
        lines.append(f"dhcp-option=option:mtu,{network.mtu}")
    if network.dns:
        # Guests ask dnsmasq, which knows their names, and it asks these.
        lines += ["no-resolv", *(f"server={server}" for server in network.dns)]
    return "\n".join(lines) + "\n"


def hosts_text(hosts: t.Iterable[Host], domain: str) -> str:
    """`dhcp-hostsfile`: Nova's `MAC,hostname.domain,IP` lines."""
    return "".join(f"{host.mac},{host.hostname}.{domain},{host.ip}\n" for host in hosts)


def names_text(hosts: t.Iterable[Host], domain: str) -> str:
    """`addn-hosts`: names resolve before their guests have asked for an address."""
    return "".join(f"{host.ip} {host.hostname}.{domain} {host.hostname}\n" for host in hosts)


def read_hosts(text: str) -> list[Host]:
    """What `hosts_text` wrote; a line that it cannot have written is left out, and so is gone with the next write."""
    hosts = []
    for line in text.splitlines():
        fields = line.split(",")
        if len(fields) == 3 and _MAC.fullmatch(fields[0]):
            hosts.append(Host(fields[0], fields[2], fields[1].partition(".")[0]))
    return hosts


def merged(old: t.Sequence[Host], new: t.Sequence[Host]) -> list[Host]:
    """`old` with `new` added; a line for the same MAC or the same address is replaced. Sorted by address."""
    macs, addresses = {host.mac for host in new}, {host.ip for host in new}
    kept = [host for host in old if host.mac not in macs and host.ip not in addresses]
    return sorted([*kept, *new], key=_by_address)


def without(old: t.Sequence[Host], leaving: t.Sequence[Host]) -> list[Host]:
    """`old` without the MACs of `leaving`. An address that another MAC has got meanwhile stays."""
    macs = {host.mac for host in leaving}
    return [host for host in old if host.mac not in macs]


def _by_address(host: Host) -> tuple[int, str]:
    return int(ipaddress.IPv4Address(host.ip)), host.mac


def _network(value: t.Mapping[str, t.Any]) -> Network:
    name = str(value["name"])
    if not _BRIDGE.fullmatch(value["bridge"]):
        raise NovaliteError(f"network {name!r}: {value['bridge']!r} is no name of a bridge")
    try:
        subnet = ipaddress.IPv4Network(value["cidr"])
    except ValueError:
        raise NovaliteError(
            f"network {name!r}: {value['cidr']!r} is no IPv4 network; write it as 10.20.0.0/24"
        ) from None
    domain = value.get("domain") or "novalocal"
    if len(domain) > 190 or not _DOMAIN.fullmatch(domain):
        raise NovaliteError(f"network {name!r}: {domain!r} is no domain name")
    lease = 86400 if value.get("lease_seconds") is None else int(value["lease_seconds"])
    if lease < 120:
        raise NovaliteError(f"network {name!r}: a lease of {lease} s is too short; dnsmasq's minimum is 120 s")
    mtu = value.get("mtu")
    if mtu is not None and not 576 <= mtu <= 65535:
        raise NovaliteError(f"network {name!r}: MTU {mtu} is not between 576 and 65535 bytes")
    hosts = tuple(_host(name, subnet, host) for host in value.get("hosts") or ())
    for field in ("mac", "ip"):
        known = [getattr(host, field) for host in hosts]
        if len(set(known)) != len(known):
            twice = next(item for item in known if known.count(item) > 1)
            raise NovaliteError(f"network {name!r}: {twice} is given for two hosts")
    listen = _address(name, "listen", value["listen"])
    if ipaddress.IPv4Address(listen) not in subnet:
        raise NovaliteError(f"network {name!r}: the listen address {listen} is not in {subnet}")
    return Network(
        name=name,
        bridge=value["bridge"],
        listen=listen,
        cidr=str(subnet),
        gateway=_address(name, "gateway", value["gateway"]) if value.get("gateway") else None,
        dns=tuple(_address(name, "dns", server, any_version=True) for server in value.get("dns") or ()),
        domain=domain,
        mtu=mtu,
        lease_seconds=lease,
        hosts=hosts,
    )


def _host(network: str, subnet: ipaddress.IPv4Network, value: t.Mapping[str, t.Any]) -> Host:
    mac = str(value["mac"]).lower()
    if not _MAC.fullmatch(mac):
        raise NovaliteError(f"network {network!r}: {value['mac']!r} is no MAC address; write it as fa:16:3e:00:00:01")
    address = _address(network, "ip", value["ip"])
    if ipaddress.IPv4Address(address) not in subnet:
        raise NovaliteError(f"network {network!r}: the address {address} of {mac} is not in {subnet}")
    if not _HOSTNAME.fullmatch(str(value["hostname"])):
        raise NovaliteError(
            f"network {network!r}: {value['hostname']!r} is no host name; use up to 63 letters, digits and hyphens"
        )
    return Host(mac, address, value["hostname"])


def _address(network: str, what: str, value: t.Any, any_version: bool = False) -> str:
    try:
        address = ipaddress.ip_address(str(value))
    except ValueError:
        address = None
    if address is None or (address.version == 6 and not any_version):
        raise NovaliteError(f"network {network!r}: {what} {value!r} is no IPv4 address")
    return str(address)
