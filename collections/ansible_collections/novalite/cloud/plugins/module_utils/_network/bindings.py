# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rules that libvirt made of the network filters of running guests: whether they are in force, and again in force.

libvirt writes them when a guest starts, and when a filter changes. Whoever flushes ebtables afterwards lets the guests
spoof, and nothing tells: a filter that is defined once more, the same, is no change to libvirt.
"""

from __future__ import annotations

import contextlib
import re
import typing as t
from xml.etree import ElementTree

from .._command import CommandError, run
from .._errors import NotFoundError

with contextlib.suppress(ImportError):  # connect() reports it
    import libvirt

_ACTIVE = 1  # VIR_CONNECT_LIST_DOMAINS_ACTIVE
_JUMP = re.compile(r"-A PREROUTING -i (\S+) -j (libvirt-[A-Z]-\S+)")
_RULE = re.compile(r"-A (libvirt-[A-Z]-\S+) ")


def in_force(text: str | None = None) -> set[str] | None:
    """The devices whose frames go through rules of libvirt's, by `text` of ebtables-save; None where nobody can say."""
    if text is None:
        try:
            text = run(["ebtables-save"]).stdout
        except CommandError:
            return None
    lines = text.splitlines()
    filled = {match[1] for match in map(_RULE.match, lines) if match}
    jumps = {match[1]: match[2] for match in map(_JUMP.match, lines) if match}
    return {device for device, chain in jumps.items() if chain in filled}


def renew(connection: libvirt.virConnect, devices: t.Iterable[str]) -> None:
    """Have libvirt write the rules of these devices anew. A guest is without them for a moment, as it was before.

    Raises NotFoundError for a device that is no running guest's, and libvirt's errors.
    """
    nics = {}
    for domain in connection.listAllDomains(_ACTIVE):
        root = ElementTree.fromstring(domain.XMLDesc())
        for nic in root.findall("./devices/interface"):
            target, reference, mac = nic.find("target"), nic.find("filterref"), nic.find("mac")
            if target is not None and reference is not None and mac is not None:
                nics[target.get("dev")] = _binding(domain, str(target.get("dev")), str(mac.get("address")), reference)
    for device in devices:
        if device not in nics:
            raise NotFoundError(f"{device} is the device of no running guest that has a network filter")
        try:
            connection.nwfilterBindingLookupByPortDev(device).delete()
        except libvirt.libvirtError as error:
            if error.get_error_code() != libvirt.VIR_ERR_NO_NWFILTER_BINDING:
                raise
        connection.nwfilterBindingCreateXML(nics[device])


def _binding(domain: libvirt.virDomain, device: str, mac: str, reference: ElementTree.Element) -> str:
    binding = ElementTree.Element("filterbinding")
    owner = ElementTree.SubElement(binding, "owner")
    ElementTree.SubElement(owner, "name").text = domain.name()
    ElementTree.SubElement(owner, "uuid").text = domain.UUIDString()
    ElementTree.SubElement(binding, "portdev", {"name": device})
    ElementTree.SubElement(binding, "mac", {"address": mac})
    binding.append(reference)
    return ElementTree.tostring(binding, encoding="unicode")
