# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Scan for all of novalite's on this host, whoever made it: domains, disks, filters, chains, DHCP entries, bridges."""

from __future__ import annotations

import contextlib
import glob
import os
import re
import time
import typing as t
import uuid as uuids
from xml.etree import ElementTree

from .._disk import layout, removed
from .._disk.records import read_records
from .._domain import lifecycle
from .._domain.compare import METADATA_NAMESPACE, attribute
from .._domain.lifecycle_power import SAVED
from .._errors import NovaliteError
from .._firewall.apply import Tables
from .._firewall.dispatch import to_cidr
from .._firewall.policy import uuid_of
from .._firewall.present import of_ruleset
from .._firewall.rules import FAMILIES
from .._host.command import CommandError
from .._host.files import INSTANCES, STATE_DIR, instance_dir, read_text
from .._host.libvirt_connection import DEFAULT_URI, connect
from .._json import JsonObject
from .._model.look import Chain, FoundDomain, Look, Remnant, Tap
from .._network import additions, nwfilter, ownership
from .._network.dhcp_hosts import read_hosts
from .._network.dnsmasq import read_config
from .._replica.copies import REPLICAS
from . import move_ways, stale_devices

with contextlib.suppress(ImportError):  # connect() reports it
    import libvirt

# Of the steps that look; what the host is told of them
HOST_ARGUMENTS = {"state_dir": {"type": "path", "default": STATE_DIR}, "uri": {"type": "str", "default": DEFAULT_URI}}
ARGUMENT_SPEC = {
    **HOST_ARGUMENTS,
    # Name of the compute host. Defaults to its name in the inventory.
    "name": {"type": "str"},
    # Look at the host and return `found`, `seen` and `began`, without a comparison.
    "look_only": {"type": "bool", "default": False},
    # The result of an earlier task with `look_only`. The host is not asked again.
    "look": {"type": "dict"},
    # What other hosts were seen to have, one of the `hosts` of `whereabouts`. Without it no other host was asked, and
    # what the ledger has on one of them is left alone.
    "elsewhere": {"type": "dict"},
    # For check mode, what earlier tasks of the run did to the ledger and took back. It is done again first, and taken
    # back with the rest.
    "rehearsal": {
        "type": "dict",
        "options": {
            # As `ledger_heal` takes it.
            "build_timeout": {"type": "int"},
            # What hosts said of live migrations that were cut off.
            "outcomes": {"type": "list", "elements": "dict", "default": []},
            # As `whereabouts` returns it.
            "accepted": {"type": "list", "elements": "dict", "default": []},
        },
    },
    # As in the documentation fragment `ledger`, of which a hypervisor can make nothing.
    "home": {"type": "path"},
    "ledger_url": {"type": "str", "no_log": True},
}

_FILTER = re.compile(r"nova-instance-(instance-[0-9a-f]{8})")
_CHAIN = re.compile(r"nova-(?:inst|free)-([0-9]+)")
_NET = "/sys/class/net"
_METADATA = 2  # VIR_DOMAIN_METADATA_ELEMENT
_REASONS = {1: "shutdown", 2: "destroyed", 3: "crashed", 6: "failed"}  # VIR_DOMAIN_SHUTOFF_*; the others say nothing


def scan(state_dir: str, uri: str) -> Look:
    """Everything of novalite's that is here. Changes nothing.

    Raises NovaliteError when libvirt does not answer: without it nobody can say which guests run, and what a running
    guest stands on must stay.
    """
    looked_at = time.time()
    connection = connect(uri)
    filtered = nwfilter.in_force()
    with lifecycle.clear("this host's domains and filters cannot be listed"):
        domains = [record for domain in connection.listAllDomains() if (record := _domain(domain, filtered))]
        filter_uuids = _filter_uuids(connection)
    disks = _uuids_in(os.path.join(state_dir, INSTANCES))
    return {
        "looked_at": looked_at,  # seconds since the epoch, by this host's clock
        "domains": sorted(domains, key=lambda domain: domain["name"]),
        "disks": disks,
        "files": {uuid: _files(state_dir, uuid) for uuid in disks},
        "removed": [{"day": day, "disks": count, "bytes": size} for day, count, size in removed.days(state_dir)],
        "volumes": _uuids_in(os.path.join(state_dir, "volumes")),
        "copies": _uuids_in(os.path.join(state_dir, REPLICAS)),
        "missing_bases": _missing_bases(state_dir),
        "stale_devices": [
            Remnant(what=what, name=name, disk=disk) for what, name, disk in stale_devices.find(state_dir)
        ],
        "move_ways": move_ways.find(state_dir),
        "filters": sorted(filter_uuids),
        "filter_uuids": filter_uuids,
        "chains": _chains(),
        "dhcp_networks": _dhcp_networks(state_dir),
        "dhcp_owners": _dhcp_owners(state_dir),
        "bridges": _bridges(),
        "bridge_owners": _bridge_owners(),
    }


def _bridges() -> list[str]:
    return sorted(name for name in os.listdir(_NET) if os.path.isdir(os.path.join(_NET, name, "bridge")))


def _filter_uuids(connection: libvirt.virConnect) -> dict[str, str]:
    """The UUIDs of instances' network filters, by name; without those that go meanwhile."""
    made: dict[str, str] = {}
    for name in filter(_FILTER.fullmatch, connection.listNWFilters()):
        with lifecycle.ignoring(libvirt.VIR_ERR_NO_NWFILTER):
            made[name] = connection.nwfilterLookupByName(name).UUIDString()
    return made


def _domain(domain: libvirt.virDomain, filtered: t.Collection[str] | None) -> FoundDomain | None:
    """A domain that carries novalite's metadata, its state and its interfaces; None for another's.

    `reason` tells, of one that is off, whether its guest shut itself down ("shutdown") or it was ended; empty when
    libvirt does not know.
    """
    try:
        domain.metadata(_METADATA, METADATA_NAMESPACE)
        root = ElementTree.fromstring(domain.XMLDesc())
        state = lifecycle.state_of(domain)
        reason = _REASONS.get(domain.state()[1], "") if state == "shutoff" else ""
        if state == "shutoff" and domain.hasManagedSaveImage(0):
            state = SAVED
    except libvirt.libvirtError:
        return None  # it has none, or it ended just now
    nics = root.findall("./devices/interface")
    return {
        "uuid": domain.UUIDString(),
        "name": domain.name(),
        "state": state,
        "reason": reason,
        "macs": [str(attribute(nic, "mac", "address")) for nic in nics],
        "taps": [tap for nic in nics if (tap := _tap(nic, filtered))],
    }


def _tap(nic: ElementTree.Element, filtered: t.Collection[str] | None) -> Tap | None:
    """The device by which a running guest is on its bridge, and where it is plugged in really. `filtered` are the
    devices whose rules are in force, None where nobody can say."""
    device, bridge = attribute(nic, "target", "dev"), attribute(nic, "source", "bridge")
    if not device or not bridge or not os.path.isdir(os.path.join(_NET, device)):
        return None
    try:
        master = os.path.basename(os.readlink(os.path.join(_NET, device, "master")))
    except OSError:
        master = None
    name = attribute(nic, "filterref", "filter")
    unfiltered = name is not None and filtered is not None and device not in filtered
    return {"device": device, "bridge": bridge, "master": master, "filter": name, "unfiltered": unfiltered}


def _uuids_in(directory: str) -> list[str]:
    named = []
    with contextlib.suppress(FileNotFoundError):
        for name in os.listdir(directory):
            with contextlib.suppress(ValueError):
                if str(uuids.UUID(name)) == name:
                    named.append(name)
    return sorted(named)


def _files(state_dir: str, uuid: str) -> list[str]:
    with contextlib.suppress(OSError):
        return sorted(os.listdir(instance_dir(state_dir, uuid)))
    return []


def _missing_bases(state_dir: str) -> dict[str, list[str]]:
    """Instance -> checksums of the images that its disks are made on and that the cache has lost."""
    bases: dict[str, list[str]] = {}
    for uuid in _uuids_in(os.path.join(state_dir, INSTANCES)):
        with contextlib.suppress(NovaliteError, OSError):
            for record in read_records(instance_dir(state_dir, uuid)).values():
                name = os.path.basename(record.base or "")
                if name and not os.path.exists(layout.cached_path(state_dir, name)):
                    bases.setdefault(uuid, []).append(f"sha256:{name}")
    return bases


def _chains() -> list[Chain]:
    """Instances that have chains, by their numbers, with the addresses that lead to them."""
    numbers: dict[int, set[str]] = {}
    uuids: dict[int, str | None] = {}
    for family in FAMILIES:
        try:
            present = of_ruleset(Tables().read(family))
        except CommandError:
            continue  # a host without ip6tables
        for chain, rules in present.chains.items():
            match = _CHAIN.fullmatch(chain)
            if match:
                numbers.setdefault(int(match[1]), set())
                uuids[int(match[1])] = uuid_of(rules) or uuids.get(int(match[1]))
        for entries in present.inbound.values():
            for key, who in entries.items():
                for number in who.split("+"):
                    numbers.setdefault(int(number), set()).add(to_cidr(key, family).partition("/")[0])
    return [
        {"id": number, "uuid": uuids.get(number), "addresses": sorted(numbers[number])} for number in sorted(numbers)
    ]


def _bridge_owners() -> dict[str, list[str]]:
    """Bridge -> the marks of the ledgers that made it, or that have added something to it."""
    owners = {}
    for name in _bridges():
        alias = (read_text(os.path.join(_NET, name, "ifalias")) or "").strip()
        own = [alias] if ownership.read(alias) is not None else []
        owners[name] = sorted({*additions.owners(name), *own})
    return owners


def _dhcp_owners(state_dir: str) -> dict[str, str]:
    """Bridge -> the mark of the ledger whose DHCP server is there; without those from before there were marks."""
    marks = {bridge: ownership.of_file(conf.splitlines()) for bridge, conf, _hosts in _dhcp_files(state_dir)}
    return {bridge: mark for bridge, mark in marks.items() if mark is not None}


def _dhcp_networks(state_dir: str) -> list[JsonObject]:
    """The arguments of the module `dhcp` for the servers here, as their own files have them."""
    networks = []
    for bridge, conf, text in _dhcp_files(state_dir):
        with contextlib.suppress(KeyError, ValueError):
            options = read_config(conf)
            if text is not None:
                hosts = [{**host.__dict__, "options": []} for host in read_hosts(text)]
                networks.append({"name": bridge, "bridge": bridge, **options, "hosts": hosts})
    return networks


def _dhcp_files(state_dir: str) -> t.Iterator[tuple[str, str, str | None]]:
    """The bridge, `conf` and `hosts` of each DHCP server that is here."""
    for directory in sorted(glob.glob(os.path.join(glob.escape(state_dir), "networks", "*"))):
        conf, hosts = (read_text(os.path.join(directory, name)) for name in ("conf", "hosts"))
        if conf is not None:
            yield os.path.basename(directory), conf, hosts
