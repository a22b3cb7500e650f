# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Arguments of the module `firewall` for the instances of one host."""

from __future__ import annotations

import typing as t

import netaddr

from .._addressing.macs import LINK_LOCAL, eui64
from .._domain.guest import ra_server, tap_device
from .._errors import NovaliteError
from .._firewall.rules import expanded
from .._json import JsonMapping, JsonObject
from .._model.instance import Instance, Nic, addresses_of, is_secured, serves_dhcp
from . import networks

Plan = JsonObject


def firewall_plan(instances: t.Sequence[Instance], facts: JsonMapping) -> Plan:
    """The part of servers_plan() that the module `firewall` takes: its options by name."""
    own_chains = facts.get("antispoof") == "chains"
    return {
        "instances": [_firewall_instance(instance, own_chains) for instance in instances],
        "security_groups": _security_groups(instances),
        "zones": _firewall_zones(instances),
        "bridges": sorted({nic["network"]["bridge"] for _instance, nic in networks.nics(instances)}),
        "serving": _firewall_serving(instances),
    }


def allowed_pairs(nic: Nic) -> list[Plan]:
    """Pairs that a guest may send from beside its own addresses, judged by its groups: never what everybody on the
    network talks to, which would be judged by this instance's groups then."""
    return [
        {"mac": pair.get("mac_address") or nic["mac"], "cidr": cidr}
        for pair in nic.get("allowed_address_pairs") or ()
        for cidr in _without_common(nic, pair["ip_address"])
    ]


def _port(nic: Nic) -> Plan:
    """Addresses a guest may use on an interface; IPv6 only where it has an address of that kind, as for filters. With
    port security off it may use any."""
    if not is_secured(nic):
        return {"device": tap_device(nic["id"]), "mac": nic["mac"], "port_security": False}
    own = addresses_of(nic)
    if nic["ipv6"]:
        own.append(eui64(LINK_LOCAL, nic["mac"]))
    return {"device": tap_device(nic["id"]), "mac": nic["mac"], "addresses": own, "allowed_pairs": allowed_pairs(nic)}


def _firewall_instance(instance: Instance, own_chains: bool) -> Plan:
    nics = [nic for nic in instance["nics"] if is_secured(nic)]
    opened = [tap_device(nic["id"]) for nic in instance["nics"] if not is_secured(nic)]
    addresses: list[str] = []
    scoped: dict[str, list[str]] = {}
    pairs = []
    for nic in nics:
        isolated = nic["network"].get("isolated")
        # A guest answers at its link-local address even on a network without IPv6, and without a chain of its own that
        # address would be open to everybody on the bridge.
        own = [*addresses_of(nic), eui64(LINK_LOCAL, nic["mac"])]
        (scoped.setdefault(nic["network"]["bridge"], []) if isolated else addresses).extend(own)
        bridge = nic["network"]["bridge"] if isolated else None
        pairs += [{"bridge": bridge, "cidr": pair["cidr"]} for pair in allowed_pairs(nic)]
    return {
        "id": instance["id"],
        "uuid": instance["uuid"],
        "addresses": addresses,
        "scoped": [{"bridge": bridge, "addresses": scoped[bridge]} for bridge in sorted(scoped)],
        "allowed_pairs": pairs,
        "devices": [tap_device(nic["id"]) for nic in nics],
        **({"open_devices": opened} if opened else {}),
        **({"open_networks": own_networks} if (own_networks := _open_networks(nics)) else {}),
        "ports": [_port(nic) for nic in instance["nics"]] if own_chains else [],
        "dhcp_servers": sorted({server for nic in nics for server in networks.dhcp_servers(nic)}),
        "ra_servers": _ra_servers(nics),
        "security_groups": [group["id"] for group in instance["security_groups"]],
    }


def _open_networks(nics: t.Iterable[Nic]) -> list[Plan]:
    """The networks of these interfaces whose guests are open to each other; of IPv6 link-local addresses, too."""
    ranges = {
        (nic["network"]["bridge"], cidr): None
        for nic in nics
        if nic["network"].get("allow_project_net_traffic")
        for cidr in (
            *(each["cidr"] for each in networks.ranges_of(nic["network"], None)),
            nic["network"]["cidr_v6"],
            LINK_LOCAL if nic["network"]["cidr_v6"] else None,
        )
        if cidr
    }
    return [{"bridge": bridge, "cidr": cidr} for bridge, cidr in ranges]


def _ra_servers(nics: t.Iterable[Nic]) -> list[str]:
    """The routers of an instance; none, which means any, where one of its networks has one that we do not know."""
    routers = [ra_server(nic) for nic in nics if nic["network"]["cidr_v6"]]
    return sorted({router for router in routers if router}) if all(routers) else []


def _without_common(nic: Nic, cidr: str) -> list[str]:
    """The addresses of an allowed address pair but for the network's gateways, DHCP server, first and last address.

    A pair that no host can judge (too many addresses) allows nothing, rather than making every plan of its host fail.
    """
    network = nic["network"]
    common: set[str | None] = {network["gateway_v6"]}
    for each in networks.ranges_of(network, nic["dhcp_server"]):
        around = netaddr.IPNetwork(each["cidr"])
        common |= {each["gateway"], each["address"], str(around[0]), str(around[-1])}
    try:
        addresses = expanded(cidr)
    except NovaliteError:
        return []
    return [cidr] if common.isdisjoint(addresses) else [address for address in addresses if address not in common]


def _firewall_zones(instances: t.Iterable[Instance]) -> list[Plan]:
    """A conntrack zone for each isolated network: two of them may carry flows between the same addresses."""
    zones = {
        nic["network"]["bridge"]: (nic["network"]["id"] - 1) % 65535 + 1
        for _instance, nic in networks.nics(instances)
        if nic["network"].get("isolated")
    }
    return [{"bridge": bridge, "zone": zones[bridge]} for bridge in sorted(zones)]


def _firewall_serving(instances: t.Iterable[Instance]) -> list[str]:
    """The bridges on which the host itself is the guests' DHCP and name server."""
    return sorted(
        {nic["network"]["bridge"] for _instance, nic in networks.nics(instances) if serves_dhcp(nic["network"])}
    )


def _security_groups(instances: t.Iterable[Instance]) -> list[Plan]:
    groups = {group["id"]: group for instance in instances for group in instance["security_groups"]}
    return [{"id": number, "rules": groups[number]["rules"]} for number in sorted(groups)]
