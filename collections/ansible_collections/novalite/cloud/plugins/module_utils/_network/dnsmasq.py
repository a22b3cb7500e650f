# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Configuration of a network's dnsmasq, from plain data. Pure; nothing from outside reaches a line unchecked."""

from __future__ import annotations

import contextlib
import dataclasses
import ipaddress
import itertools
import re
import typing as t

from .._errors import NovaliteError
from .._json import JsonMapping, JsonObject
from . import dhcp_options, dhcp_ranges
from .bridge_request import NAME
from .dhcp_hosts import MAC, UUID, Host
from .dhcp_ranges import Range
from .namespaces import check_name
from .ownership import NO_LEDGER, Mark

RA_INTERVAL = 60  # seconds between unsolicited router advertisements
RA_LIFETIME = 1800  # seconds that guests believe in their router without another one
_NAMESPACE = "# namespace: "
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOSTNAME = re.compile(_LABEL)
_DOMAIN = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")


@dataclasses.dataclass(frozen=True)
class Name:
    hostname: str
    addresses: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Network:
    """`listen` and `listen_v6` are this host's own addresses on the bridge, in `namespace` if there is one; `listen` is
    empty where it is not known, and then the server can only be taken away;
    `lease_seconds` in seconds, `mtu` in bytes. `router_v6`: whether guests may take this host for their IPv6 router."""

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
    namespace: str | None = None
    ntp: tuple[str, ...] = ()
    cidr_v6: str | None = None
    listen_v6: str | None = None
    ipv6_mode: str = "eui64"
    router_v6: bool = True
    routes: tuple[tuple[str, str], ...] = ()  # (destination, next hop) beside the gateway
    names: tuple[Name, ...] | None = None  # of guests on other hosts, all of them; None: as they are
    further_ranges: tuple[Range, ...] = ()

    @property
    def ranges(self) -> tuple[Range, ...]:
        own = Range(self.cidr, self.listen, self.gateway, self.dns, self.routes)
        return (own, *self.further_ranges)

    @property
    def servers(self) -> tuple[str, ...]:
        """The name servers of all ranges: there is one list of them for all that dnsmasq is asked."""
        return tuple(dict.fromkeys(server for each in self.ranges for server in each.dns))

    def listens_for(self, address: str) -> str:
        """Return this host's address in the range of the `address`."""
        return next((each.listen for each in self.ranges if address in each), self.listen)


def parse(values: t.Iterable[JsonMapping]) -> list[Network]:
    """The module's `networks`, checked: a name with a comma or a line end would be an option of its own to dnsmasq.
    Raises NovaliteError that names the offending value."""
    networks = [_network(value) for value in values]
    if len({network.bridge for network in networks}) != len(networks):
        raise NovaliteError("a bridge is given twice; there is one DHCP server for each")
    return networks


def config(network: Network, directory: str, mark: Mark = NO_LEDGER, options: bool = False) -> str:
    """dnsmasq's configuration file; `directory` holds the files that it names, one with `options` of single hosts among
    them. Raises NovaliteError for a network whose `listen` is not known."""
    if not network.listen:
        raise NovaliteError(f"network {network.name!r}: this host has no address of its own there (listen is empty)")
    lines = [
        "# Written by novalite; it is replaced whenever the network changes.",
        mark.line,
        *([_NAMESPACE + network.namespace] if network.namespace else ()),
        "strict-order",
        "bind-interfaces",
        "except-interface=lo",
        # Named, and the only one: dnsmasq then binds its DHCP socket to the device, and does not get in the way of
        # the other networks' on this host.
        f"interface={network.bridge}",
        *(f"listen-address={each.listen}" for each in network.ranges),
        f"pid-file={directory}/pid",
        f"dhcp-leasefile={directory}/leases",
        f"dhcp-hostsfile={directory}/hosts",
        *([f"dhcp-optsfile={directory}/opts"] if options else ()),
        # Only known hosts get an address. It is not authoritative: every compute host of a network runs one, and they
        # must not refuse each other's guests.
        *dhcp_ranges.lines(network.ranges, network.lease_seconds),
        f"domain={network.domain}",
        f"local=/{network.domain}/",
        "domain-needed",
        "no-hosts",
        f"addn-hosts={directory}/names",
        f"addn-hosts={directory}/others",
    ]
    lines += dhcp_ranges.classless_routes(network.ranges)
    if network.mtu:
        lines.append(f"dhcp-option=option:mtu,{network.mtu}")
    clocks, clocks_v6 = ([server for server in network.ntp if (":" in server) == colons] for colons in (False, True))
    if clocks:
        lines.append(f"dhcp-option=option:ntp-server,{','.join(clocks)}")
    if network.cidr_v6 and network.listen_v6:
        lines += _ipv6(network)
        if clocks_v6:
            lines.append(f"dhcp-option=option6:ntp-server,{','.join(f'[{server}]' for server in clocks_v6)}")
    if network.servers:
        # Guests ask dnsmasq, which knows their names, and it asks these.
        lines += ["no-resolv", *(f"server={server}" for server in network.servers)]
    return "\n".join(lines) + "\n"


def _ipv6(network: Network) -> list[str]:
    """Router advertisements, from which guests make their EUI-64 address; a stable-privacy one only its owner's DHCPv6
    can tell them, since the ledger made it."""
    mode = "ra-only" if network.ipv6_mode == "eui64" else "static"
    prefix = ipaddress.IPv6Network(t.cast(str, network.cidr_v6))
    mtu = f"mtu:{network.mtu}" if network.mtu else "mtu:off"
    return [
        f"listen-address={network.listen_v6}",
        "enable-ra",
        # Often enough for a guest that missed one; and a lifetime of 0 is what says that there is no way out here.
        f"ra-param={network.bridge},{mtu},{RA_INTERVAL},{RA_LIFETIME if network.router_v6 else 0}",
        f"dhcp-range={prefix.network_address},{mode},{prefix.prefixlen},{network.lease_seconds}s",
    ]


def read_config(text: str) -> JsonObject:
    """Contents of a file of `config`: `listen`, `cidr`, `domain`, `namespace`, and `further_ranges` where there are
    some. Raises ValueError, KeyError."""
    options = _options(text)
    lines = text.splitlines()
    namespace = next((line[len(_NAMESPACE) :] for line in lines if line.startswith(_NAMESPACE)), None)
    first, *further = ({"cidr": each.cidr, "listen": each.listen} for each in dhcp_ranges.read(options))
    return {
        **first,
        "domain": options["domain"][0],
        "namespace": namespace,
        **({"further_ranges": further} if further else {}),
    }


def ranges_in_use(text: str, network: Network, hosts: t.Iterable[Host]) -> list[Range]:
    """The ranges in a file of `config` that are none of the network's, and that hosts are in."""
    try:
        ranges = dhcp_ranges.read(_options(text))
    except (ValueError, KeyError):
        return []
    lost = [host.ip for host in hosts if not any(host.ip in each for each in network.ranges)]
    return [each for each in ranges if any(address in each for address in lost)]


def _options(text: str) -> dict[str, list[str]]:
    """Values of each option in a file of `config`, the IPv4 ones first."""
    options: dict[str, list[str]] = {}
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        if equals:
            options.setdefault(name, []).append(value)
    return options


def names_text(hosts: t.Iterable[Host], domain: str) -> str:
    """`addn-hosts`: names resolve before their guests have asked for an address."""
    names = (Name(host.hostname, (host.ip, host.ipv6) if host.ipv6 else (host.ip,)) for host in hosts)
    return others_text(names, domain)


def others_text(names: t.Iterable[Name], domain: str) -> str:
    """`addn-hosts` for the guests that other hosts' servers know: guests ask the server of their own host."""
    return "".join(
        f"{address} {name.hostname}.{domain} {name.hostname}\n" for name in names for address in name.addresses
    )


def _network(value: JsonMapping) -> Network:
    name = str(value["name"])
    if not NAME.fullmatch(value["bridge"]):
        raise NovaliteError(f"network {name!r}: {value['bridge']!r} is not a name of a bridge")
    domain = value.get("domain") or "novalocal"
    if len(domain) > 190 or not _DOMAIN.fullmatch(domain):
        raise NovaliteError(f"network {name!r}: {domain!r} is not a domain name")
    lease = 86400 if value.get("lease_seconds") is None else int(value["lease_seconds"])
    if lease < 120:
        raise NovaliteError(f"network {name!r}: a lease of {lease} s is too short; dnsmasq's minimum is 120 s")
    mtu = value.get("mtu")
    if mtu is not None and not 576 <= mtu <= 65535:
        raise NovaliteError(f"network {name!r}: MTU {mtu} is not between 576 and 65535 bytes")
    subnet_v6 = _subnet_v6(name, value["cidr_v6"]) if value.get("cidr_v6") else None
    # none where a ledger has lost it: what is to be taken away needs no address
    first = _range(name, value, without_address=not value["listen"])
    further = tuple(_range(name, each) for each in value.get("further_ranges") or ())
    refuse_overlapping(f"network {name!r}", [each.cidr for each in (first, *further)])
    hosts = tuple(_host(name, (first, *further), subnet_v6, host) for host in value.get("hosts") or ())
    for field in ("mac", "ip", "ipv6"):
        known = [getattr(host, field) for host in hosts if getattr(host, field)]
        if len(set(known)) != len(known):
            twice = next(item for item in known if known.count(item) > 1)
            raise NovaliteError(f"network {name!r}: {twice} is given for two hosts")
    return Network(
        name=name,
        bridge=value["bridge"],
        listen=first.listen,
        cidr=first.cidr,
        gateway=first.gateway,
        dns=first.dns,
        domain=domain,
        mtu=mtu,
        lease_seconds=lease,
        hosts=hosts,
        namespace=check_name(value["namespace"]) if value.get("namespace") else None,
        ntp=_addresses(name, "ntp", value.get("ntp")),
        cidr_v6=None if subnet_v6 is None else str(subnet_v6),
        listen_v6=_address_v6(name, "listen_v6", value["listen_v6"], subnet_v6) if value.get("listen_v6") else None,
        ipv6_mode=value.get("ipv6_mode") or "eui64",
        router_v6=value.get("router_v6") is not False,
        routes=first.routes,
        names=None if value.get("names") is None else tuple(_name(name, entry) for entry in value["names"]),
        further_ranges=further,
    )


def _range(network: str, value: JsonMapping, without_address: bool = False) -> Range:
    subnet = parse_network(f"network {network!r}", value["cidr"])
    listen = "" if without_address else _address(network, "listen", value["listen"])
    if listen and ipaddress.IPv4Address(listen) not in subnet:
        raise NovaliteError(f"network {network!r}: the listen address {listen} is not in {subnet}")
    return Range(
        cidr=str(subnet),
        listen=listen,
        gateway=_address(network, "gateway", value["gateway"]) if value.get("gateway") else None,
        dns=_addresses(network, "dns", value.get("dns")),
        routes=tuple(_route(network, route) for route in value.get("routes") or ()),
    )


def parse_network(what: str, text: str, hint: str = "; write it as 10.20.0.0/24") -> ipaddress.IPv4Network:
    """An IPv4 network. Raises NovaliteError that begins with `what` and ends with the `hint`."""
    try:
        return ipaddress.IPv4Network(text)
    except ValueError:
        raise NovaliteError(f"{what}: {text!r} is not an IPv4 network{hint}") from None


def refuse_overlapping(what: str, cidrs: t.Sequence[str]) -> list[ipaddress.IPv4Network]:
    """The ranges of a network as such. Raises NovaliteError that begins with `what` where two overlap."""
    ranges = [ipaddress.IPv4Network(cidr) for cidr in cidrs]
    for first, second in itertools.combinations(ranges, 2):
        if first.overlaps(second):
            raise NovaliteError(f"{what}: its ranges {first} and {second} overlap; give each address in one of them")
    return ranges


def _route(network: str, value: JsonMapping) -> tuple[str, str]:
    destination = parse_network(f"network {network!r}", value["destination"], " to route to")
    return str(destination), _address(network, "next hop", value["nexthop"])


def _name(network: str, value: JsonMapping) -> Name:
    if not _HOSTNAME.fullmatch(str(value["hostname"])):
        raise NovaliteError(f"network {network!r}: {value['hostname']!r} is not a host name")
    return Name(value["hostname"], _addresses(network, "name", value["addresses"]))


def _subnet_v6(network: str, value: str) -> ipaddress.IPv6Network:
    with contextlib.suppress(ValueError):
        subnet = ipaddress.IPv6Network(value)
        if subnet.prefixlen == 64:
            return subnet
    raise NovaliteError(f"network {network!r}: {value!r} is not an IPv6 /64; write it as fd00:20::/64")


def _address_v6(network: str, what: str, value: str, subnet: ipaddress.IPv6Network | None) -> str:
    try:
        address = ipaddress.IPv6Address(str(value))
    except ValueError:
        raise NovaliteError(f"network {network!r}: {what} {value!r} is not an IPv6 address") from None
    if subnet is None or address not in subnet:
        raise NovaliteError(f"network {network!r}: the {what} address {address} is not in {subnet or 'any cidr_v6'}")
    return str(address)


def _host(network: str, ranges: t.Sequence[Range], subnet_v6: ipaddress.IPv6Network | None, value: JsonMapping) -> Host:
    mac = str(value["mac"]).lower()
    if not MAC.fullmatch(mac):
        raise NovaliteError(
            f"network {network!r}: {value['mac']!r} is not a MAC address; write it as fa:16:3e:00:00:01"
        )
    address = _address(network, "ip", value["ip"])
    if not any(address in each for each in ranges):
        around = " or ".join(each.cidr for each in ranges)
        raise NovaliteError(f"network {network!r}: the address {address} of {mac} is not in {around}")
    if not _HOSTNAME.fullmatch(str(value["hostname"])):
        raise NovaliteError(
            f"network {network!r}: {value['hostname']!r} is not a host name; use up to 63 letters, digits and hyphens"
        )
    # What a network's prefix was before it changed is no use to a guest, and no reason to fail.
    ipv6 = _address_v6(network, "ipv6", value["ipv6"], subnet_v6) if value.get("ipv6") and subnet_v6 else None
    options = dhcp_options.parse_all(f"network {network!r}: {mac}", value.get("options"))
    uuid = value.get("uuid") or None
    if uuid and not UUID.fullmatch(uuid):
        raise NovaliteError(f"network {network!r}: {uuid!r} of {mac} is not the UUID of an instance")
    return Host(mac, address, value["hostname"], ipv6, options, uuid)


def _addresses(network: str, what: str, values: t.Iterable[str] | None) -> tuple[str, ...]:
    return tuple(_address(network, what, value, any_version=True) for value in values or ())


def _address(network: str, what: str, value: str, any_version: bool = False) -> str:
    try:
        return str(ipaddress.ip_address(str(value)) if any_version else ipaddress.IPv4Address(str(value)))
    except ValueError:
        raise NovaliteError(f"network {network!r}: {what} {value!r} is not an IPv4 address") from None
