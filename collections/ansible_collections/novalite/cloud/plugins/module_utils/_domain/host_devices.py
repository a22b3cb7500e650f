# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""PCI devices of this host: which there are, and which guest has them. Standard library and libvirt only."""

from __future__ import annotations

import contextlib
import typing as t
from xml.etree import ElementTree

from .._errors import ConflictError
from .._model.pci import PCI, PF, VF, Device

with contextlib.suppress(ImportError):  # connect() reports it
    import libvirt

_HOSTDEV = "devices/hostdev[@type='pci'][@mode='subsystem']"
_PARTS = ("domain", "bus", "slot", "function")
_FORMAT = "{:04x}:{:02x}:{:02x}.{:x}"


def parse(root: ElementTree.Element) -> tuple[tuple[str, str], ...]:
    """Read those that a `<domain>` has: (address, whether libvirt takes it from the host's driver), sorted."""
    devices = ((hostdev.find("source/address"), hostdev.get("managed", "no")) for hostdev in root.iterfind(_HOSTDEV))
    return tuple(sorted((_address(source), managed) for source, managed in devices if source is not None))


def device_of(xml: str) -> Device:
    """The PCI device that libvirt describes so (a nodedev)."""
    root = ElementTree.fromstring(xml)
    of_pci = "capability[@type='pci']/"
    physical = root.find(of_pci + "capability[@type='phys_function']/address")
    virtual = root.find(of_pci + "capability[@type='virt_functions']")
    vendor, product = (int(_attribute(root, of_pci + name, "id") or "0", 16) for name in ("vendor", "product"))
    node = _attribute(root, of_pci + "numa", "node")
    return Device(
        address=_FORMAT.format(*(int(root.findtext(of_pci + name) or 0) for name in _PARTS)),
        vendor_id=f"{vendor:04x}",
        product_id=f"{product:04x}",
        type=VF if physical is not None else PCI if virtual is None else PF,
        numa_node=int(node) if node else None,
        parent=None if physical is None else _address(physical),
    )


def on_host(connection: libvirt.virConnect) -> list[Device]:
    """List all PCI devices of this host. Raises libvirt's errors."""
    listed = connection.listAllDevices(libvirt.VIR_CONNECT_LIST_NODE_DEVICES_CAP_PCI_DEV)
    return [device_of(node.XMLDesc(0)) for node in listed]


def users(connection: libvirt.virConnect, devices: t.Iterable[Device]) -> dict[str, str]:
    """Find which guest, defined or running, has which address: UUIDs by address. Who has a virtual function has its
    physical one. Raises libvirt's errors."""
    parents = {device.address: device.parent for device in devices}
    return {
        each: uuid
        for uuid, address in _held(connection)
        for each in (address, parents.get(address))
        if each is not None
    }


def refuse_taken(connection: libvirt.virConnect, uuid: str, name: str, xml: str) -> None:
    """Raise ConflictError where another guest of this host has a device that the domain of this XML is to have."""
    expected = dict(parse(ElementTree.fromstring(xml)))
    for holder, address in _held(connection) if expected else ():
        if address in expected and holder != uuid:
            raise ConflictError(
                f"PCI device {address}, which domain {name} is to have, is domain {holder}'s on this host, which "
                "keeps it: run compute_nodes.yml, so that it counts as taken, and launch again"
            )


def _held(connection: libvirt.virConnect) -> t.Iterator[tuple[str, str]]:
    """Yield the UUID of each domain, defined or running, with each address that it has."""
    for domain in connection.listAllDomains(0):
        with contextlib.suppress(libvirt.libvirtError):  # it was undefined just now
            for address, _managed in parse(ElementTree.fromstring(domain.XMLDesc(0))):
                yield domain.UUIDString(), address


def _address(element: ElementTree.Element) -> str:
    return _FORMAT.format(*(int(element.get(name) or "0", 16) for name in _PARTS))


def _attribute(element: ElementTree.Element, path: str, name: str) -> str:
    child = element.find(path)
    return "" if child is None else child.get(name) or ""
