# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A domain that somebody else made: what it is, and novalite's mark on it. Runs on the hypervisor.

The mark is metadata (virDomainSetMetadata), in the running guest's XML and in the one that it starts with the next
time. Nothing else of a domain is ever changed here, and no guest notices.
"""

from __future__ import annotations

import contextlib
import dataclasses
import shlex
import typing as t
from xml.etree import ElementTree

from .._errors import ConflictError, NotFoundError, NovaliteError
from .._host.files import is_uuid
from .compare import METADATA_NAMESPACE, attribute
from .declared_disks import declared_disks, promised_gb, virtual_size
from .lifecycle import clear, ignoring, looked_up
from .lifecycle_power import state_now

with contextlib.suppress(ImportError):  # connect() reports it
    import libvirt

PREFIX = "novalite"
_ELEMENT = 2  # VIR_DOMAIN_METADATA_ELEMENT
_LIVE, _CONFIG = 1, 2  # VIR_DOMAIN_AFFECT_*
_INACTIVE = 2  # VIR_DOMAIN_XML_INACTIVE
_LEASE, _AGENT, _ARP = 0, 1, 2  # VIR_DOMAIN_INTERFACE_ADDRESSES_SRC_*
_IPV4 = 0  # VIR_IP_ADDR_TYPE_IPV4
_EMPTY = "  <metadata/>\n"  # what libvirt leaves where the last metadata were taken away
_Node = tuple[str, list[tuple[str, str]], str, list["_Node"]]  # tag, attributes, text, children
BARE = "bare"  # our attribute: the domain had no metadata at all before


@dataclasses.dataclass(frozen=True)
class Disk:
    """A disk as the XML declares it; `size` is what the guest sees, in bytes, 0 where that cannot be told here."""

    dev: str
    bus: str | None
    source: str | None
    format: str
    size: int


@dataclasses.dataclass(frozen=True)
class Nic:
    """An interface. `network` is libvirt's own, if it is on one; `addresses` are what is known of its IPv4 ones."""

    mac: str
    bridge: str | None
    network: str | None
    device: str | None  # the host's end of it, while the guest runs
    addresses: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Description:
    """A domain in the words of the ledger. Memory in MiB, rounded up; `disk_gb` is of the state directory's disk."""

    uuid: str
    name: str
    state: str  # running, paused, shutoff, saved, crashed, ...
    vcpus: int
    memory_mb: int
    disk_gb: int
    disks: tuple[Disk, ...]
    nics: tuple[Nic, ...]
    marked: bool  # it carries the mark of some ledger
    adopted_by: str | None  # the identity of the ledger whose mark says that it was adopted


def find(connection: libvirt.virConnect, named: str) -> libvirt.virDomain:
    """The domain of this name or UUID. Raises NotFoundError with the names that there are, and ConflictError for one
    that libvirt forgets when it ends."""
    find = connection.lookupByUUIDString if is_uuid(named.lower()) else connection.lookupByName
    domain = looked_up(lambda: find(named), named)
    with clear(f"domain {named} cannot be looked up"):
        if domain is None:
            names = ", ".join(sorted(listed.name() for listed in connection.listAllDomains())[:10]) or "none"
            raise NotFoundError(f"there is no domain {named!r} on this host; there are: {names}")
        if not domain.isPersistent():
            raise ConflictError(
                f"domain {named!r} is transient: it is gone when it ends; define it first "
                f"(virsh dumpxml -- {shlex.quote(named)} > guest.xml; virsh define guest.xml)"
            )
    return domain


def describe(connection: libvirt.virConnect, domain: libvirt.virDomain, directory: str) -> Description:
    """Describe the domain. Reads only; a guest's agent is asked where libvirt says that it is connected."""
    with clear(f"domain {domain.name()} cannot be read"):
        xml = domain.XMLDesc(_INACTIVE)
        live = ElementTree.fromstring(domain.XMLDesc(0)) if domain.isActive() else None
        root = ElementTree.fromstring(xml)
        shown = root if live is None else live
        addresses = {} if live is None else _addresses(domain, live)
        _state, most_kib, _now, vcpus, _time = domain.info()
        present = _mark_of(domain, _CONFIG)
        return Description(
            uuid=domain.UUIDString(),
            name=domain.name(),
            state=state_now(connection, domain.UUIDString()),
            vcpus=domain.maxVcpus() if live is not None else int(root.findtext("vcpu") or vcpus),
            memory_mb=-(-most_kib // 1024),
            disk_gb=promised_gb(xml, directory),
            disks=tuple(Disk(*disk, size=virtual_size(disk)) for disk in declared_disks(root)),
            nics=tuple(_nic(connection, nic, addresses) for nic in shown.iterfind("devices/interface")),
            marked=present is not None,
            adopted_by=_adopter(present),
        )


def mark(domain: libvirt.virDomain, element: str, check_mode: bool = False) -> tuple[bool, str | None, str]:
    """Put novalite's `element` (XML in no namespace) into the metadata of both XMLs of the domain, once; returns
    whether that changed it, and the mark before and after."""
    with clear(f"domain {domain.name()} cannot be marked"):
        before = _mark_of(domain, _CONFIG)
        root = ElementTree.fromstring(element)
        bare = ElementTree.fromstring(domain.XMLDesc(_INACTIVE)).find("metadata") is None
        if bare or (before is not None and ElementTree.fromstring(before).get(BARE)):
            root.set(BARE, "true")
        desired_mark = ElementTree.tostring(root, encoding="unicode")
        flags = [_CONFIG, *([_LIVE] if domain.isActive() else [])]
        todo = [flag for flag in flags if _meaning(_mark_of(domain, flag)) != _meaning(desired_mark)]
        for flag in [] if check_mode else todo:
            domain.setMetadata(_ELEMENT, desired_mark, PREFIX, METADATA_NAMESPACE, flag)
        return bool(todo), before, desired_mark


def unmark(connection: libvirt.virConnect, domain: libvirt.virDomain, check_mode: bool = False) -> str | None:
    """Take novalite's mark away; returns what it was, None where there was none. The empty <metadata/> that libvirt
    leaves goes, too, from what the domain starts with the next time; the running guest's stays until it ends."""
    with clear(f"novalite's mark cannot be taken from domain {domain.name()}"):
        before = _mark_of(domain, _CONFIG)
        if check_mode:
            return before
        for flag in [_CONFIG, *([_LIVE] if domain.isActive() else [])]:
            if _mark_of(domain, flag) is not None:
                domain.setMetadata(_ELEMENT, None, PREFIX, METADATA_NAMESPACE, flag)
        if before is not None and ElementTree.fromstring(before).get(BARE):
            xml = domain.XMLDesc(_INACTIVE | libvirt.VIR_DOMAIN_XML_SECURE)
            if xml.count(_EMPTY) == 1:
                connection.defineXML(xml.replace(_EMPTY, ""))
        return before


def _mark_of(domain: libvirt.virDomain, flag: int) -> str | None:
    with ignoring(libvirt.VIR_ERR_NO_DOMAIN_METADATA):
        return str(domain.metadata(_ELEMENT, METADATA_NAMESPACE, flag))
    return None


def _adopter(mark: str | None) -> str | None:
    """The ledger that this mark is of, if it says that the domain was adopted."""
    texts = {} if mark is None else {node.tag.rpartition("}")[2]: node.text for node in ElementTree.fromstring(mark)}
    return texts.get("ledger") if texts.get("adopted") == "true" else None


def _meaning(xml: str | None) -> _Node | None:
    """A mark as data, without namespaces and indents: libvirt writes its own."""

    def node(element: ElementTree.Element) -> _Node:
        tag = element.tag.rpartition("}")[2]
        return tag, sorted(element.attrib.items()), (element.text or "").strip(), [node(child) for child in element]

    return None if xml is None else node(ElementTree.fromstring(xml))


def _nic(
    connection: libvirt.virConnect, element: ElementTree.Element, addresses: t.Mapping[str, tuple[str, ...]]
) -> Nic:
    address = (attribute(element, "mac", "address") or "").lower()
    network, bridge = attribute(element, "source", "network"), attribute(element, "source", "bridge")
    if bridge is None and network is not None:
        with contextlib.suppress(libvirt.libvirtError):  # one of libvirt's networks without a bridge of its own
            bridge = connection.networkLookupByName(network).bridgeName()
    return Nic(address, bridge, network, attribute(element, "target", "dev"), addresses.get(address, ()))


def _addresses(domain: libvirt.virDomain, live: ElementTree.Element) -> dict[str, tuple[str, ...]]:
    """MAC -> IPv4 addresses: what the guest's agent says, else libvirt's DHCP leases, else this host's ARP table."""
    agent = live.find("devices/channel/target[@name='org.qemu.guest_agent.0'][@state='connected']") is not None
    by_mac: dict[str, tuple[str, ...]] = {}
    for source in ([_AGENT] if agent else []) + [_LEASE, _ARP]:
        with contextlib.suppress(libvirt.libvirtError):  # not every source exists for every guest
            for interface in (domain.interfaceAddresses(source, 0) or {}).values():
                mac = str(interface.get("hwaddr") or "").lower()
                own = {str(address["addr"]) for address in interface.get("addrs") or () if address["type"] == _IPV4}
                if mac and own:
                    by_mac.setdefault(mac, tuple(sorted(own)))
    return by_mac


def check_element(element: str) -> None:
    """Raise NovaliteError for what is no `<instance>` element."""
    try:
        root = ElementTree.fromstring(element)
    except ElementTree.ParseError as error:
        raise NovaliteError(f"the mark is not XML ({error}): {element[:60]!r}") from None
    if root.tag != "instance":
        raise NovaliteError(f"the mark is <{root.tag}>: give <instance>")
