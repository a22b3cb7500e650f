# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The network parts of a host's plan: what the modules bridge, dhcp, router and metadata_proxy take."""

from __future__ import annotations

import typing as t

import netaddr

from .._addressing.ipv6 import host_ipv6, lowest_mtu
from .._addressing.macs import router_link_local
from .._guest import image_properties
from .._json import JsonObject
from .._model.instance import Instance, Network, Nic, Range, host_address, name_on_network, serves_dhcp
from .._network.namespaces import namespace_of
from . import reach

Plan = JsonObject
# what a DHCP server is told of its network as it stands in the ledger
_TOLD = ("name", "bridge", "ntp", "domain", "lease_seconds", "cidr_v6", "ipv6_mode")
TunnelMap = t.Mapping[int, t.Mapping[str, t.Optional[str]]]  # id of a VXLAN network -> host -> its tunnel end


def dhcp_servers(nic: Nic) -> list[str]:
    """Addresses that the DHCP server of an interface answers from, IPv6 ones from its link-local address."""
    address, first = nic["dhcp_server"], host_address(nic)
    if not nic["network"]["dhcp"] or not address or not first:
        return []
    # answers to a guest that asks for a broadcast come from the host's first address
    servers = list(dict.fromkeys((address, first)))
    return [*servers, router_link_local(first)] if nic["network"]["cidr_v6"] else servers


def ranges_of(network: Network, address: str | None) -> list[Range]:
    """The IPv4 ranges of a network, for a host that has `address` there: its ranges where it has several, which know
    the host's addresses; else its own one."""
    if "ranges" in network:
        return network["ranges"]
    return [
        {
            "cidr": t.cast(str, network["cidr"]),  # none in a network of IPv6 alone
            "gateway": network["gateway"],
            "dhcp": network["dhcp"],
            "dns": network["dns"],
            "routes": network.get("routes", []),
            "address": address,
        }
    ]


def mtu_of(network: Network) -> int | None:
    """Return the MTU that hosts are told: they refuse all of their networks for one with less than is possible, which a
    network that was made long ago may have."""
    return None if network["mtu"] is None else max(network["mtu"], lowest_mtu(network["cidr_v6"]))


def _first_address(ranges: t.Iterable[Range]) -> str | None:
    return next((each["address"] for each in ranges if each["address"]), None)


def bridges(instances: t.Iterable[Instance], tunnels: TunnelMap, shared_routes: t.Sequence[str] = ()) -> list[Plan]:
    """List the bridges of these instances of one host, with its `shared_routes`, parts of which networks may have."""
    shared = {"shared_routes": list(shared_routes)} if shared_routes else {}
    plans = {
        nic["network"]["bridge"]: bridge(nic["network"], str(instance["host"]), nic["dhcp_server"], tunnels)
        for instance, nic in nics(instances)
    }
    return [{**plans[name], **shared} for name in sorted(plans)]


def bridge(network: Network, host: str, address: str | None, tunnels: TunnelMap) -> Plan:
    """The bridge of a network on a host that has `address` in it."""
    ranges = ranges_of(network, address)
    addresses = [f"{each['address']}/{netaddr.IPNetwork(each['cidr']).prefixlen}" for each in ranges if each["address"]]
    first = _first_address(ranges)
    if first and network["cidr_v6"]:
        addresses += [f"{host_ipv6(network['cidr_v6'], first)}/64", f"{router_link_local(first)}/64"]
    vxlan = None
    if network["vni"] is not None:
        endpoints = tunnels.get(network["id"], {})
        vxlan = {
            "vni": network["vni"],
            "local": endpoints.get(host),  # unknown where it is only to be taken away
            "remotes": sorted(end for name, end in endpoints.items() if end and name != host),
        }
    return {
        "name": network["bridge"],
        "interface": None if vxlan else network["bridge_interface"],
        "addresses": addresses,
        "vlan": network["vlan"],
        "vxlan": vxlan,
        "namespace": namespace_of(network),
        "mtu": mtu_of(network),
        **({"ranges": [each["cidr"] for each in ranges]} if "ranges" in network else {}),
        **({} if network.get("admin_state_up", True) else {"up": False}),
    }


def dhcp_networks(instances: t.Iterable[Instance]) -> list[Plan]:
    """The DHCP servers of one host, with these instances as their hosts."""
    servers: dict[str, Plan] = {}
    for instance, nic in nics(instances):
        network = nic["network"]
        if not serves_dhcp(network):
            continue
        server = servers.setdefault(network["bridge"], dhcp(network, nic["dhcp_server"]))
        if network["dhcp"]:
            guest: Plan = {key: nic[key] for key in ("mac", "ip", "ipv6")}
            guest |= {"hostname": name_on_network(nic, instance["hostname"]), "uuid": instance["uuid"]}
            if options := nic.get("extra_dhcp_opts"):
                guest["options"] = [
                    {"name": option["opt_name"], "value": option["opt_value"], "version": option["ip_version"]}
                    for option in options
                ]
            server["hosts"].append(guest)
    return [servers[name] for name in sorted(servers)]


def dhcp(network: Network, address: str | None) -> Plan:
    """The DHCP server of a network on a host that has `address` in it, without hosts."""
    ranges = ranges_of(network, address)
    served = [each for each in ranges if each["dhcp"] and each["address"]] or ranges
    of_ranges = [
        {
            "cidr": each["cidr"],
            "listen": each["address"],
            "gateway": each["gateway"] or each["address"],
            "dns": each["dns"],
            **({"routes": each["routes"]} if each["routes"] else {}),
        }
        for each in served
    ]
    first = _first_address(ranges)
    return {
        **{key: value for key, value in network.items() if key in _TOLD},
        "mtu": mtu_of(network),
        **of_ranges[0],
        "namespace": namespace_of(network),
        "listen_v6": host_ipv6(network["cidr_v6"], first) if network["cidr_v6"] and first else None,
        # An isolated network has no way out over IPv6, and with a gateway of its own others advertise it.
        "router_v6": not network["isolated"] and network["gateway_v6"] is None,
        "hosts": [],
        **({"further_ranges": of_ranges[1:]} if of_ranges[1:] else {}),
    }


def router(network: Network, address: str | None, floating: t.Sequence[Plan]) -> Plan:
    """The arguments of the module `router` for a network on a host with `address` in it."""
    ranges = ranges_of(network, address)
    first, *further = ranges  # also those without an address of the host: one may come before this is carried out
    return {
        "network": network["name"],
        "bridge": network["bridge"],
        "namespace": namespace_of(network),
        "cidr": first["cidr"],
        "address": first["address"],
        "snat": network["snat"],
        "floating": sorted(floating, key=lambda floating_plan: netaddr.IPAddress(floating_plan["floating"])),
        **(
            {"further_ranges": [{"cidr": each["cidr"], "address": each["address"]} for each in further]}
            if further
            else {}
        ),
    }


def routers(instances: t.Iterable[Instance]) -> list[Plan]:
    """The routers that these instances of one host need, with their own floating IPs."""
    networks: dict[str, tuple[Network, str | None]] = {}
    floating: dict[str, list[Plan]] = {}
    for _instance, nic in nics(instances):
        network = nic["network"]
        networks[network["bridge"]] = (network, nic["dhcp_server"])
        floating.setdefault(network["bridge"], []).extend(
            {
                "fixed": floating_ip.get("fixed") or nic["ip"],
                "floating": floating_ip["address"],
                "interface": floating_ip["interface"],
            }
            for floating_ip in nic.get("floating_ips") or ()
        )
    return [
        router(network, address, floating[name])
        for name, (network, address) in sorted(networks.items())
        if routed(network, floating[name])
    ]


def routed(network: Network, floating: t.Collection[Plan]) -> bool:
    """Tell whether a host has anything to route for the network: otherwise it costs its launches nothing."""
    return bool(network["isolated"] or network["snat"] or floating)


def metadata_networks(instances: t.Iterable[Instance]) -> list[Plan]:
    """Networks whose guests ask for metadata. The network's UUID tells apart those that may use the same addresses."""
    network_by_bridge = {nic["network"]["bridge"]: nic["network"] for _instance, nic in nics(instances)}
    return [
        {"bridge": name, "namespace": namespace_of(network_by_bridge[name]), "network": network_by_bridge[name]["uuid"]}
        for name in sorted(network_by_bridge)
    ]


def guests(instances: t.Iterable[Instance]) -> list[Plan]:
    """Guests to wait for: each at its first address, from inside its network's namespace, or through its domain.
    `hindrance` says that none of its security groups lets its compute host reach its ssh server."""
    return [
        {
            "name": instance["name"],
            "address": nic and nic["ip"],
            "namespace": nic and namespace_of(nic["network"]),
            "domain": instance["domain_name"],
            "agent": image_properties.guest_agent(instance["image"]),
            "hindrance": nic and _no_way_to_ssh(instance, nic),
        }
        for instance in instances
        for nic in [next(iter(instance["nics"]), None)]
    ]


def _no_way_to_ssh(instance: Instance, nic: Nic) -> str | None:
    """Return what keeps the compute host, at its address in the network, from TCP port 22 of the instance; None when a
    rule lets it in, and where the host has no address of its own there, so that its source address is unknown."""
    if not (nic["ip"] and nic["dhcp_server"]):
        return None
    host = reach.Address(nic["dhcp_server"], nic["network"]["id"])
    refusal = reach.ingress_refusal(instance["name"], instance["security_groups"], host, reach.Talk("tcp", 22))
    return refusal and (
        f"{refusal}, for its compute host at {host.text}: add a rule with security_groups.yml; reachability.yml "
        "tells what rules let in"
    )


def nics(instances: t.Iterable[Instance]) -> t.Iterator[tuple[Instance, Nic]]:
    for instance in instances:
        for nic in instance["nics"]:
            yield instance, nic
