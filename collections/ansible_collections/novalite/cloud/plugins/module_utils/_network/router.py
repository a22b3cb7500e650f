# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Translation of addresses for a network's guests, on the way out and for floating IPs: its rules, as data. Pure.

Nova's way for a network in the host's own namespace: the floating IP is an address of the host, translated to the
fixed one on the way in and back on the way out; everything else leaves under the host's address.

An isolated network is translated inside its namespace, where nobody else has its addresses. A pair of veth devices
leads out of it (the transit, a 169.254.x.y/31 for each namespace). What leaves is under the transit's address, which
the host translates again, or under a floating IP, which the host answers ARP for and routes to the namespace.
"""

from __future__ import annotations

import dataclasses
import hashlib
import ipaddress
import typing as t

from .._errors import ConflictError, NovaliteError
from .._json import JsonMapping
from .bridge_request import NAME, VXLAN_PORT
from .dnsmasq import parse_network, refuse_overlapping
from .namespaces import TRANSIT, check_name, transit_name
from .rules import CHAINS, FLOAT_SNAT, FORWARD, INPUT, OUTPUT, POSTROUTING, PREROUTING, SNAT, comment, option, owner

# Of the link-local block (RFC 3927), a part where no cloud has a service: 4096 pairs.
_TRANSITS = ipaddress.IPv4Network("169.254.192.0/19")
_ANSWERS = "-m conntrack --ctstate RELATED,ESTABLISHED"
_TRANSLATED = "-m conntrack --ctstate DNAT"
_UNTRANSLATED = "-m conntrack ! --ctstate DNAT"
# Hosts take what comes there for frames of the network that it names, whoever sent it
_TUNNELS = f"-m udp --dport {VXLAN_PORT}"

Chains = dict[str, list[str]]
TablesOf = dict[str, Chains]


@dataclasses.dataclass(frozen=True)
class Floating:
    fixed: str
    floating: str
    interface: str


class Range(t.NamedTuple):
    """An IPv4 range of a network, and the host's own address in it."""

    cidr: str
    address: str | None


@dataclasses.dataclass(frozen=True)
class Router:
    """`address` is the host's own in the network, `snat` whether its guests leave under the host's address."""

    network: str
    bridge: str
    cidr: str
    namespace: str | None = None
    address: str | None = None
    snat: bool = False
    floating: tuple[Floating, ...] = ()
    further_ranges: tuple[Range, ...] = ()

    @property
    def ranges(self) -> tuple[Range, ...]:
        return (Range(self.cidr, self.address), *self.further_ranges)


def parse(values: t.Iterable[JsonMapping]) -> list[Router]:
    """The module's `routers`. Raises NovaliteError that names the offending value."""
    routers = [_parse_one(value) for value in values]
    for what, names in (
        ("bridge", [router.bridge for router in routers]),
        ("floating IP", [pair.floating for router in routers for pair in router.floating]),
    ):
        twice = next((value for value in names if names.count(value) > 1), None)
        if twice is not None:
            raise ConflictError(f"the {what} {twice} is given twice")
    return routers


def _parse_one(value: JsonMapping) -> Router:
    name = value["network"]
    what = f"network {name!r}"
    own = _range(what, value)
    further = tuple(_range(what, each) for each in value.get("further_ranges") or ())
    subnets = refuse_overlapping(what, [each.cidr for each in (own, *further)])
    interfaces = [pair["interface"] for pair in value.get("floating") or ()]
    for device in (value["bridge"], *interfaces):
        if not NAME.fullmatch(device):
            raise NovaliteError(f"{what}: {device!r} is not a name of a network device")
    floating = tuple(
        Floating(_address(what, pair["fixed"], subnets), _address(what, pair["floating"]), pair["interface"])
        for pair in value.get("floating") or ()
    )
    return Router(
        network=name,
        bridge=value["bridge"],
        cidr=own.cidr,
        namespace=check_name(value["namespace"]) if value.get("namespace") else None,
        address=own.address,
        snat=bool(value.get("snat")),
        floating=tuple(sorted(floating, key=lambda pair: ipaddress.IPv4Address(pair.floating))),
        further_ranges=further,
    )


def _range(what: str, value: JsonMapping) -> Range:
    cidr = parse_network(what, value["cidr"])
    return Range(str(cidr), _address(what, value["address"], [cidr]) if value.get("address") else None)


def _address(what: str, text: str, cidrs: t.Sequence[ipaddress.IPv4Network] = ()) -> str:
    try:
        address = ipaddress.IPv4Address(text)
    except ValueError:
        raise NovaliteError(f"{what}: {text!r} is not an IPv4 address") from None
    if cidrs and not any(address in cidr for cidr in cidrs):
        raise NovaliteError(f"{what}: the address {address} is not in {' or '.join(map(str, cidrs))}")
    return str(address)


def transit_pair(bridge: str, have: str | None, taken: t.Container[str]) -> tuple[str, str]:
    """The host's address and the namespace's of a transit: those it has, unless another has them, too, or the first
    free pair from a place that follows from the bridge's name. `have` and `taken` are addresses of the host's ends.
    Raises ConflictError."""
    if have is not None and have not in taken and ipaddress.IPv4Address(have) in _TRANSITS:
        return have, str(ipaddress.IPv4Address(have) + 1)
    count = _TRANSITS.num_addresses // 2
    start = int.from_bytes(hashlib.sha256(bridge.encode()).digest()[:4], "big")
    for offset in range(count):
        outer = _TRANSITS.network_address + 2 * ((start + offset) % count)
        if str(outer) not in taken:
            return str(outer), str(outer + 1)
    raise ConflictError(f"all {count} transit addresses of this host are taken")


def works(router: Router) -> bool:
    """Tell whether there is anything to route or translate."""
    return bool(router.namespace or router.snat or router.floating)


def root_rules(router: Router, inner: str | None) -> TablesOf:
    """The router's rules in the host's own namespace; `inner` is the namespace's end of its transit."""
    tag = comment(router.bridge)
    if not works(router):
        return {"nat": {}, "filter": {}}
    if router.namespace is not None:
        return _root_of_isolated(router, t.cast(str, inner), tag)
    nat = {
        **_floating(router, tag),
        # From one range to another the way is by the bridge again, so neither is translated.
        SNAT: [
            f"-s {each.cidr} ! -d {each.cidr} ! -o {router.bridge} {tag} -j MASQUERADE"
            for each in router.ranges
            if router.snat
        ],
    }
    accept = [
        f"-i {router.bridge} -p udp -m physdev ! --physdev-is-bridged {_TUNNELS} {tag} -j DROP",
        f"-i {router.bridge} {tag} -j ACCEPT",
        f"-o {router.bridge} {_ANSWERS} {tag} -j ACCEPT",
    ]
    # What was not translated belongs to a connection from before the rules: the host's own sshd would answer it.
    refuse = [f"-d {pair.floating}/32 {_UNTRANSLATED} {tag} -j DROP" for pair in router.floating]
    return {"nat": nat, "filter": {INPUT: refuse, FORWARD: accept}}


def _floating(router: Router, tag: str, way_out: str | None = None, outer: str | None = None) -> Chains:
    """The chains that translate between floating and fixed IPs. Inside of a namespace, `way_out` is the device that
    leads out of it and `outer` the host's address there."""
    translate = [f"-d {pair.floating}/32 {tag} -j DNAT --to-destination {pair.fixed}" for pair in router.floating]
    back = []  # type: list[tuple[str, str | None]]
    for each in router.ranges:
        # A guest that asks for a neighbour's floating IP: the answer has to come back by here.
        back += [
            (f"-s {source.cidr} -d {each.cidr} -o {router.bridge} {_TRANSLATED}", each.address)
            for source in router.ranges
        ]
        if outer is not None:  # The host itself: a guest would look for this address on its own wire.
            to = f"-d {each.cidr} " if router.further_ranges else ""
            back.append((f"-s {outer}/32 {to}-o {router.bridge}", each.address))
    return {
        PREROUTING: translate,
        OUTPUT: list(translate),
        POSTROUTING: [f"{rule} {tag} -j SNAT --to-source {address}" for rule, address in back if address and translate],
        FLOAT_SNAT: [
            f"-s {pair.fixed}/32 -o {way_out or pair.interface} {tag} -j SNAT --to-source {pair.floating}"
            for pair in router.floating
        ],
    }


def _root_of_isolated(router: Router, inner: str, tag: str) -> TablesOf:
    bridge, transit = router.bridge, transit_name(router.bridge)
    return {
        "nat": {
            # Bridged packets come by here, too. To the host their addresses mean nothing, or somebody else.
            PREROUTING: [f"-i {bridge} {tag} -j ACCEPT"],
            POSTROUTING: [f"-o {bridge} {tag} -j ACCEPT"],
            SNAT: [f"-s {inner}/32 ! -o {transit} {tag} -j MASQUERADE"],
        },
        "filter": {
            INPUT: [f"-i {bridge} {tag} -j DROP"],
            FORWARD: [
                f"-i {bridge} -m physdev --physdev-is-bridged {tag} -j ACCEPT",
                f"-i {bridge} {tag} -j DROP",
                f"-i {transit} -p udp {_TUNNELS} {tag} -j DROP",
                *(f"-d {pair.floating}/32 -o {transit} {tag} -j ACCEPT" for pair in router.floating),
                f"-o {transit} {_ANSWERS} {tag} -j ACCEPT",
                f"-o {transit} {tag} -j DROP",
                # Not from one isolated network to another; each of those says what may come in to it.
                f"-i {transit} ! -o {transit_name('')}+ {tag} -j ACCEPT",
            ],
        },
    }


def inner_rules(router: Router, outer: str, inner: str) -> TablesOf:
    """The rules inside an isolated network's namespace, complete."""
    tag = comment(router.bridge)
    cidrs = [each.cidr for each in router.ranges]
    may_leave = cidrs if router.snat else [f"{pair.fixed}/32" for pair in router.floating]
    nat = {
        **_floating(router, tag, TRANSIT, outer),
        SNAT: [f"-s {cidr} -o {TRANSIT} {tag} -j SNAT --to-source {inner}" for cidr in cidrs if router.snat],
    }
    return {
        "nat": nat,
        "filter": {
            INPUT: [f"-i {TRANSIT} {_ANSWERS} {tag} -j ACCEPT", f"-i {TRANSIT} {tag} -j DROP"],
            FORWARD: [
                f"-i {TRANSIT} {_ANSWERS} {tag} -j ACCEPT",
                f"-i {TRANSIT} {_TRANSLATED} {tag} -j ACCEPT",
                f"-i {TRANSIT} {tag} -j DROP",
                *(f"-s {source} -o {TRANSIT} {tag} -j ACCEPT" for source in may_leave),
                f"-o {TRANSIT} {tag} -j DROP",
            ],
        },
    }


def merged(
    current: t.Mapping[str, t.Mapping[str, t.Sequence[str]]],
    parts: t.Sequence[TablesOf],
    leaving: t.Callable[[str], bool] = lambda bridge: True,
    bridges: bool = True,
) -> TablesOf:
    """The chains with the rules in `parts` (a router's each) and those there for other bridges, but the `leaving` ones.

    `bridges`: whether there are any where these chains are, so that bridged packets come by, too.
    """
    tables: TablesOf = {"nat": {}, "filter": {}}
    for table, chains in tables.items():
        for name in CHAINS[table]:
            kept = [rule for rule in current.get(table, {}).get(name, ()) if not leaving(owner(rule) or "")]
            rules = [rule for rule in kept if owner(rule)]
            rules += [rule for part in parts for rule in part.get(table, {}).get(name, ())]
            # Always in the same order, whichever of them are given: those of different bridges do not depend on each
            # other, except that what is to stay as it is leaves before anything is translated.
            rules.sort(key=lambda rule: (table == "nat" and not rule.endswith("-j ACCEPT"), owner(rule) or ""))
            if rules:
                chains[name] = rules
    nat = tables["nat"]
    if any(name in nat for name in (POSTROUTING, FLOAT_SNAT, SNAT)):
        nat.setdefault(POSTROUTING, [])
        if bridges:
            # A frame on its way from one port of a bridge to another is none of a router's.
            nat[POSTROUTING].append("-m physdev --physdev-is-bridged -j RETURN")
        nat[POSTROUTING] += [f"-j {name}" for name in (FLOAT_SNAT, SNAT) if name in nat]
    return tables


def interfaces_of(chains: t.Mapping[str, t.Sequence[str]], bridge: str) -> dict[str, str]:
    """Floating IP -> the interface that it is at, from the rules of a network in the host's own namespace."""
    rules = [rule for rule in chains.get(FLOAT_SNAT, ()) if owner(rule) == bridge]
    return {str(option(rule, "--to-source")): str(option(rule, "-o")) for rule in rules}


def floating_of(chains: t.Mapping[str, t.Sequence[str]], bridge: str) -> dict[str, str]:
    """Floating IP -> fixed IP of a bridge, from the rules that translate in chains of the nat table."""
    addresses = {}
    for rule in chains.get(PREROUTING, ()):
        if owner(rule) == bridge and option(rule, "-d") and option(rule, "--to-destination"):
            addresses[t.cast(str, option(rule, "-d")).partition("/")[0]] = t.cast(str, option(rule, "--to-destination"))
    return addresses


def owners(chains: t.Iterable[t.Mapping[str, t.Sequence[str]]]) -> set[str]:
    """The bridges that rules of ours are for."""
    return {name for table in chains for rules in table.values() for name in map(owner, rules) if name}
