# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""What there is of novalite's on this host, whoever made it: domains, disks, filters, chains, DHCP entries, bridges."""

from __future__ import annotations

import contextlib
import os
import re
import typing as t
import uuid as uuids
from xml.etree import ElementTree

from ._command import CommandError
from ._disk.layout import INSTANCES
from ._domain import lifecycle
from ._domain.compare import METADATA_NAMESPACE
from ._firewall.apply import Tables
from ._firewall.policy import FAMILIES
from ._libvirt import connect
from ._network.dnsmasq import read_config, read_hosts

with contextlib.suppress(ImportError):  # connect() reports it
    import libvirt

_FILTER = re.compile(r"nova-instance-(instance-[0-9a-f]{8})")
_CHAIN = re.compile(r"nova-inst-([0-9]+)")
_NET = "/sys/class/net"
_METADATA = 2  # VIR_DOMAIN_METADATA_ELEMENT


def look(state_dir: str, uri: str) -> dict[str, t.Any]:
    """Everything of novalite's that is here, as plain data. Changes nothing.

    Raises NovaliteError when libvirtd does not answer: without it nobody can say which guests run, and what a running
    guest stands on must stay.
    """
    connection = connect(uri)
    with lifecycle.clear("this host's domains and filters cannot be listed"):
        domains = [found for found in map(_domain, connection.listAllDomains()) if found is not None]
        filters = sorted(name for name in connection.listNWFilters() if _FILTER.fullmatch(name))
    return {
        "domains": sorted(domains, key=lambda one: str(one["name"])),
        "disks": _disks(state_dir),
        "filters": filters,
        "chains": _chains(),
        "dhcp_networks": _dhcp_networks(state_dir),
        "bridges": sorted(name for name in os.listdir(_NET) if os.path.isdir(os.path.join(_NET, name, "bridge"))),
    }


def _domain(domain: t.Any) -> dict[str, t.Any] | None:
    """A domain that carries novalite's metadata, and the MACs of its interfaces; None for another's."""
    try:
        domain.metadata(_METADATA, METADATA_NAMESPACE)
    except libvirt.libvirtError:
        return None  # it has none, or it ended just now
    root = ElementTree.fromstring(domain.XMLDesc())
    macs = [mac.get("address") for mac in root.findall("./devices/interface/mac")]
    return {"uuid": domain.UUIDString(), "name": domain.name(), "macs": macs}


def _disks(state_dir: str) -> list[str]:
    found = []
    with contextlib.suppress(FileNotFoundError):
        for name in os.listdir(os.path.join(state_dir, INSTANCES)):
            with contextlib.suppress(ValueError):
                if str(uuids.UUID(name)) == name:
                    found.append(name)
    return sorted(found)


def _chains() -> list[dict[str, t.Any]]:
    """Instances that have chains, by their numbers, with the addresses that lead to them."""
    found: dict[int, set[str]] = {}
    for family in FAMILIES:
        try:
            ruleset, _backend = Tables().read(family)
        except CommandError:
            continue  # a host without ip6tables
        for chain in ruleset.owned():
            match = _CHAIN.fullmatch(chain)
            if match:
                found.setdefault(int(match[1]), set())
        for address, number in ruleset.instances().items():
            found.setdefault(number, set()).add(address.partition("/")[0])
    return [{"id": number, "addresses": sorted(found[number])} for number in sorted(found)]


def _dhcp_networks(state_dir: str) -> list[dict[str, t.Any]]:
    """The arguments of the module `dhcp` for the servers here, as their own files have them."""
    directory = os.path.join(state_dir, "networks")
    found = []
    with contextlib.suppress(FileNotFoundError):
        for bridge in sorted(os.listdir(directory)):
            with contextlib.suppress(OSError, KeyError, ValueError):
                with open(os.path.join(directory, bridge, "conf"), encoding="utf-8") as handle:
                    conf = read_config(handle.read())
                with open(os.path.join(directory, bridge, "hosts"), encoding="utf-8") as handle:
                    hosts = [one.__dict__ for one in read_hosts(handle.read())]
                found.append({"name": bridge, "bridge": bridge, **conf, "hosts": hosts})
    return found
