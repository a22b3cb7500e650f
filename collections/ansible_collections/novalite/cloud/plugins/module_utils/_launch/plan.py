# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""What each compute host has to be given for a set of instances: the arguments of every host module, as data.

Computed once, on the controller, so that a playbook only hands a key of the plan to the module of the same name and
no decision is left to Jinja. The same plan serves building and taking away.
"""

from __future__ import annotations

import typing as t

from .._addressing.macs import eui64
from . import networks

Instance = t.Mapping[str, t.Any]
Plan = dict[str, t.Any]
Renderer = t.Callable[[Instance, t.Mapping[str, t.Any]], str]

LINK_LOCAL = "fe80::/64"


def plan_by_host(
    instances: t.Iterable[Instance],
    facts: t.Mapping[str, t.Mapping[str, t.Any]],
    render: Renderer,
    wires: networks.Wires | None = None,
) -> dict[str, Plan]:
    """`{host: plan}` for `instances`, all of which have a host.

    `facts` maps a host to its compute_host facts, `render(instance, facts of its host)` makes the domain XML,
    `wires` says for each VXLAN network (by its id) which hosts it spans, and the tunnel end of each.
    """
    by_host: dict[str, list[Instance]] = {}
    for instance in instances:
        by_host.setdefault(instance["host"], []).append(instance)
    return {
        host: host_plan(members, facts.get(host, {}), render, wires or {}) for host, members in sorted(by_host.items())
    }


def host_plan(
    instances: t.Sequence[Instance], facts: t.Mapping[str, t.Any], render: Renderer, wires: networks.Wires
) -> Plan:
    """The plan of one host: each key holds the list that the host module of that name takes."""
    return {
        "names": [instance["name"] for instance in instances],
        "uuids": [instance["uuid"] for instance in instances],
        "bridges": networks.bridges(instances, wires),
        "dhcp_networks": networks.dhcp_networks(instances),
        "routers": networks.routers(instances),
        "metadata_networks": networks.metadata_networks(instances),
        "images": _images(instances),
        "disks": [_disk(instance) for instance in instances],
        "injections": [_injection(instance) for instance in instances],
        "filters": [
            {"name": f"nova-instance-{instance['domain_name']}", "references": ["nova-base"]} for instance in instances
        ],
        "firewall_instances": [_firewall_instance(instance) for instance in instances],
        "security_groups": _security_groups(instances),
        "domains": [
            {"uuid": instance["uuid"], "name": instance["domain_name"], "xml": render(instance, facts)}
            for instance in instances
        ],
        "guests": networks.guests(instances),
    }


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


def _firewall_instance(instance: Instance) -> Plan:
    nics = instance["nics"]
    return {
        "id": instance["id"],
        # A guest answers at its link-local address even on a network without IPv6, and without a chain of its own that
        # address would be open to everybody on the bridge.
        "addresses": [
            address for nic in nics for address in (nic["ip"], nic["ipv6"], eui64(LINK_LOCAL, nic["mac"])) if address
        ],
        "dhcp_servers": sorted({nic["dhcp_server"] for nic in nics if nic["network"]["dhcp"]}),
        "ra_servers": [],
        "security_groups": [group["id"] for group in instance["security_groups"]],
    }


def _security_groups(instances: t.Iterable[Instance]) -> list[Plan]:
    groups = {group["id"]: group for instance in instances for group in instance["security_groups"]}
    return [{"id": number, "rules": groups[number]["rules"]} for number in sorted(groups)]
