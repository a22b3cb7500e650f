# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""What each compute host has to be given for a set of instances: the arguments of every host module, as data.

Computed once, on the controller, so that a playbook only hands a key of the plan to the module of the same name and
no decision is left to Jinja. The same plan serves building and taking away.
"""

from __future__ import annotations

import ipaddress
import typing as t

from .._addressing.macs import LINK_LOCAL, eui64
from .._domain.guest import tap_device

Instance = t.Mapping[str, t.Any]
Plan = dict[str, t.Any]
Renderer = t.Callable[[Instance, t.Mapping[str, t.Any]], str]


def plan_by_host(
    instances: t.Iterable[Instance], facts: t.Mapping[str, t.Mapping[str, t.Any]], render: Renderer
) -> dict[str, Plan]:
    """`{host: plan}` for `instances`, all of which have a host.

    `facts` maps a host to its compute_host facts, `render(instance, facts of its host)` makes the domain XML.
    """
    by_host: dict[str, list[Instance]] = {}
    for instance in instances:
        by_host.setdefault(instance["host"], []).append(instance)
    return {host: host_plan(members, facts.get(host, {}), render) for host, members in sorted(by_host.items())}


def host_plan(instances: t.Sequence[Instance], facts: t.Mapping[str, t.Any], render: Renderer) -> Plan:
    """The plan of one host: each key holds the list that the host module of that name takes."""
    own_chains = facts.get("antispoof") == "chains"  # instead of libvirt's network filters
    return {
        "names": [instance["name"] for instance in instances],
        "uuids": [instance["uuid"] for instance in instances],
        "bridges": _bridges(instances),
        "dhcp_networks": _dhcp_networks(instances),
        "images": _images(instances),
        "disks": [_disk(instance) for instance in instances],
        "injections": [_injection(instance) for instance in instances],
        "filters": [] if own_chains else [_filter(instance) for instance in instances],
        "firewall_instances": [_firewall_instance(instance, own_chains) for instance in instances],
        "firewall_zones": _firewall_zones(instances),
        "security_groups": _security_groups(instances),
        "domains": [
            {"uuid": instance["uuid"], "name": instance["domain_name"], "xml": render(instance, facts)}
            for instance in instances
        ],
        "guests": [
            {"name": instance["name"], "address": nic["ip"]}
            for instance in instances
            for nic in instance["nics"][:1]
            if nic["ip"]
        ],
    }


def firewall_plan(instances: t.Sequence[Instance], facts: t.Mapping[str, t.Any]) -> Plan:
    """The part of host_plan() that the module `firewall` takes: its `instances`, `security_groups` and `zones`."""
    own_chains = facts.get("antispoof") == "chains"
    return {
        "instances": [_firewall_instance(instance, own_chains) for instance in instances],
        "security_groups": _security_groups(instances),
        "zones": _firewall_zones(instances),
    }


def _nics(instances: t.Iterable[Instance]) -> t.Iterator[tuple[Instance, t.Mapping[str, t.Any]]]:
    for instance in instances:
        for nic in instance["nics"]:
            yield instance, nic


def _bridges(instances: t.Iterable[Instance]) -> list[Plan]:
    bridges: dict[str, Plan] = {}
    for _instance, nic in _nics(instances):
        network = nic["network"]
        address = None
        if nic["dhcp_server"]:
            address = f"{nic['dhcp_server']}/{ipaddress.ip_network(network['cidr']).prefixlen}"
        bridges[network["bridge"]] = {
            "name": network["bridge"],
            "interface": network["bridge_interface"],
            "address": address,
            "vlan": network["vlan"],
            "mtu": network["mtu"],
        }
    return [bridges[name] for name in sorted(bridges)]


def _dhcp_networks(instances: t.Iterable[Instance]) -> list[Plan]:
    networks: dict[str, Plan] = {}
    for instance, nic in _nics(instances):
        network = nic["network"]
        if not network["dhcp"]:
            continue
        entry = networks.setdefault(
            network["bridge"],
            {
                "name": network["name"],
                "bridge": network["bridge"],
                "listen": nic["dhcp_server"],
                "cidr": network["cidr"],
                "gateway": network["gateway"] or nic["dhcp_server"],
                "dns": network["dns"],
                "domain": network["domain"],
                "mtu": network["mtu"],
                "lease_seconds": network["lease_seconds"],
                "hosts": [],
            },
        )
        entry["hosts"].append({"mac": nic["mac"], "ip": nic["ip"], "hostname": instance["hostname"]})
    return [networks[bridge] for bridge in sorted(networks)]


def _images(instances: t.Iterable[Instance]) -> list[Plan]:
    images: dict[str, Plan] = {}
    for instance in instances:
        image = instance["image"]
        images[image["checksum"]] = {
            "checksum": image["checksum"],
            "source": image["source"],
            "size": image["size"],
            "kind": "disk",
            "disk_format": image["disk_format"],
            "virtual_size": image["virtual_size"],
        }
        for kind in ("kernel", "ramdisk"):
            if image[kind]:
                images[image[kind]["checksum"]] = {
                    "checksum": image[kind]["checksum"],
                    "source": image[kind]["source"],
                    "size": image[kind]["size"],
                    "kind": kind,
                }
    return list(images.values())


def _disk(instance: Instance) -> Plan:
    image = instance["image"]
    return {
        "uuid": instance["uuid"],
        "base": image["checksum"],
        "virtual_size_gb": instance["flavor"]["root_gb"],
        "kernel": image["kernel"]["checksum"] if image["kernel"] else None,
        "ramdisk": image["ramdisk"]["checksum"] if image["ramdisk"] else None,
    }


def _injection(instance: Instance) -> Plan:
    partition = instance["image"]["properties"].get("os_partition")
    return {
        "uuid": instance["uuid"],
        "keys": [instance["key"]["public_key"]] if instance["key"] else [],
        "user": instance["image"]["properties"].get("os_admin_user", "root"),
        "hostname": instance["hostname"],
        "partition": None if partition is None else int(partition),
        "files": [],
    }


def _filter(instance: Instance) -> Plan:
    references = ["nova-base"]
    if any(nic["ipv6"] for nic in instance["nics"]):
        references.append("nova-ipv6")
    pairs = [pair for nic in instance["nics"] for pair in _pairs(nic)]
    return {"name": f"nova-instance-{instance['domain_name']}", "references": references, "allowed_pairs": pairs}


def _pairs(nic: t.Mapping[str, t.Any]) -> list[Plan]:
    return [
        {"mac": pair.get("mac_address") or nic["mac"], "cidr": pair["ip_address"]}
        for pair in nic.get("allowed_address_pairs") or ()
    ]


def _port(nic: t.Mapping[str, t.Any]) -> Plan:
    """What a guest may send through one interface; IPv6 only where it has an address of that kind, as for filters."""
    own = [nic["ip"]] if nic["ip"] else []
    if nic["ipv6"]:
        own += [nic["ipv6"], eui64(LINK_LOCAL, nic["mac"])]
    return {"device": tap_device(nic["id"]), "mac": nic["mac"], "addresses": own, "allowed_pairs": _pairs(nic)}


def _firewall_instance(instance: Instance, own_chains: bool) -> Plan:
    nics = instance["nics"]
    addresses: list[str] = []
    scoped: dict[str, list[str]] = {}
    pairs = []
    for nic in nics:
        isolated = nic["network"].get("isolated")
        # A guest answers at its link-local address even on a network without IPv6, and without a chain of its own that
        # address would be open to everybody on the bridge.
        own = [address for address in (nic["ip"], nic["ipv6"], eui64(LINK_LOCAL, nic["mac"])) if address]
        (scoped.setdefault(nic["network"]["bridge"], []) if isolated else addresses).extend(own)
        pairs += [
            {"bridge": nic["network"]["bridge"] if isolated else None, "cidr": pair["ip_address"]}
            for pair in nic.get("allowed_address_pairs") or ()
        ]
    return {
        "id": instance["id"],
        "addresses": addresses,
        "scoped": [{"bridge": bridge, "addresses": scoped[bridge]} for bridge in sorted(scoped)],
        "allowed_pairs": pairs,
        "ports": [_port(nic) for nic in nics] if own_chains else [],
        "dhcp_servers": sorted({nic["dhcp_server"] for nic in nics if nic["network"]["dhcp"]}),
        "ra_servers": [],
        "security_groups": [group["id"] for group in instance["security_groups"]],
    }


def _firewall_zones(instances: t.Iterable[Instance]) -> list[Plan]:
    """A conntrack zone for each isolated network: two of them may carry flows between the same addresses."""
    zones = {
        nic["network"]["bridge"]: (nic["network"]["id"] - 1) % 65535 + 1
        for _instance, nic in _nics(instances)
        if nic["network"].get("isolated")
    }
    return [{"bridge": bridge, "zone": zones[bridge]} for bridge in sorted(zones)]


def _security_groups(instances: t.Iterable[Instance]) -> list[Plan]:
    groups = {group["id"]: group for instance in instances for group in instance["security_groups"]}
    return [{"id": number, "rules": groups[number]["rules"]} for number in sorted(groups)]
