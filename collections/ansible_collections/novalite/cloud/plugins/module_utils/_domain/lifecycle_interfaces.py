# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plug network interfaces into this host's domains, and pull them out: what runs, and what starts next time.

An interface is known by its MAC. What an interface of a domain is, its XML says. Of one that is in it already, the
network filter follows the XML, and all else is left alone.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import time
import typing as t
from xml.etree import ElementTree

from .._errors import NovaliteError
from .._host.libvirt_connection import with_filters
from .._host.waiting import in_threads
from . import lifecycle
from .compare import attribute
from .outcome import DomainSpec

with contextlib.suppress(ImportError):  # connect() reports it
    import libvirt

DETACH_TIMEOUT = 60.0  # seconds for a guest to let go of an interface
ASK_AGAIN = 10.0  # seconds: a guest that is still booting does not hear the first time
POLL = 0.2  # seconds


@dataclasses.dataclass
class Plugged:
    """Interfaces attached to and detached from a domain, and those that got another network filter, by MAC; `error`
    says why not all were."""

    uuid: str
    name: str
    attached: list[str] = dataclasses.field(default_factory=list)
    detached: list[str] = dataclasses.field(default_factory=list)
    filtered: list[str] = dataclasses.field(default_factory=list)
    before: list[str] = dataclasses.field(default_factory=list)
    error: t.Optional[str] = None

    @property
    def changed(self) -> bool:
        return bool(self.attached or self.detached or self.filtered)


def interfaces_in(xml: str) -> dict[str, str]:
    """MAC -> the XML of each interface in a domain's. Raises NovaliteError for XML that cannot be read."""
    try:
        root = ElementTree.fromstring(xml)
    except ElementTree.ParseError as error:
        raise NovaliteError(f"a domain's xml cannot be read: {error}") from None
    xml_by_mac = {}
    for interface in root.findall("./devices/interface"):
        mac = interface.find("mac")
        if mac is not None:
            xml_by_mac[str(mac.get("address")).lower()] = ElementTree.tostring(interface, encoding="unicode")
    return xml_by_mac


def ensure(
    connection: libvirt.virConnect,
    domains: t.Sequence[DomainSpec],
    check_mode: bool = False,
    timeout: float = DETACH_TIMEOUT,
) -> list[Plugged]:
    """Give every domain the interfaces of its `xml` and no others; a guest has `timeout` seconds to let go of one.
    Where that fails, the outcome has an `error`, and what this call plugged into the domain is out again."""

    def carry_out(spec: DomainSpec) -> Plugged:
        done = Plugged(spec["uuid"], spec["name"])
        try:
            with lifecycle.clear(f"the interfaces of domain {spec['name']} cannot be changed"):
                _carry_out(connection, spec, done, check_mode, timeout)
        except NovaliteError as error:
            done.error = str(error)
        return done

    return in_threads(carry_out, list(domains), lifecycle.WORKERS)


def diff_of(done: t.Sequence[Plugged]) -> dict[str, dict[str, list[str]]]:
    """Ansible's diff: the MACs of each domain that changes."""
    changed = [domain for domain in done if domain.changed]
    return {
        "before": {domain.name: domain.before for domain in changed},
        "after": {
            domain.name: sorted((set(domain.before) | set(domain.attached)) - set(domain.detached))
            for domain in changed
        },
    }


def _carry_out(
    connection: libvirt.virConnect, spec: DomainSpec, done: Plugged, check_mode: bool, timeout: float
) -> None:
    xml_by_mac = interfaces_in(str(spec["xml"]))
    domain = lifecycle.lookup(connection, spec["uuid"])
    if domain is None:
        raise NovaliteError(f"domain {spec['name']} is not on this host")
    scopes = [libvirt.VIR_DOMAIN_AFFECT_CONFIG] if domain.isPersistent() else []
    if domain.isActive():
        scopes.insert(0, libvirt.VIR_DOMAIN_AFFECT_LIVE)
    there = {scope: _there(domain, scope) for scope in scopes}
    done.before = sorted({mac for macs in there.values() for mac in macs})
    new = {scope: [mac for mac in xml_by_mac if mac not in there[scope]] for scope in scopes}
    gone = {scope: [mac for mac in there[scope] if mac not in xml_by_mac] for scope in scopes}
    attached = sorted({mac for macs in new.values() for mac in macs})
    detached = sorted({mac for macs in gone.values() for mac in macs})
    filtered = {
        scope: {
            mac: xml
            for mac, present in there[scope].items()
            if mac in xml_by_mac and (xml := _with_filter_of(present, xml_by_mac[mac])) is not None
        }
        for scope in scopes
    }
    changing = sorted({mac for macs in filtered.values() for mac in macs})
    if check_mode:
        done.attached, done.detached, done.filtered = attached, detached, changing
        return
    plugged: list[tuple[int, str]] = []
    try:
        for scope in scopes:
            for mac in new[scope]:
                with_filters(functools.partial(domain.attachDeviceFlags, xml_by_mac[mac], scope))
                plugged.append((scope, mac))
    except libvirt.libvirtError:
        for scope, mac in reversed(plugged):
            with contextlib.suppress(libvirt.libvirtError, NovaliteError):
                _pull_out(domain, scope, mac, spec["name"], timeout)
        raise
    done.attached = attached
    for scope in scopes:
        for xml in filtered[scope].values():
            with_filters(functools.partial(domain.updateDeviceFlags, xml, scope))
    done.filtered = changing
    for scope in reversed(scopes):  # first what would come back at the next start
        for mac in gone[scope]:
            _pull_out(domain, scope, mac, spec["name"], timeout)
    done.detached = detached


def _with_filter_of(present: str, desired: str) -> str | None:
    """The XML of an interface that is `present` with the network filter of `desired`; None where it has that."""
    interface, model = (ElementTree.fromstring(xml) for xml in (present, desired))
    if _filter_of(interface) == _filter_of(model):
        return None
    for reference in interface.findall("filterref"):
        interface.remove(reference)
    interface.extend(model.findall("filterref"))
    return ElementTree.tostring(interface, encoding="unicode")


def _filter_of(interface: ElementTree.Element) -> tuple[str | None, list[tuple[str, str]]]:
    """The name of an interface's network filter, None for none, and the filter's parameters."""
    parameters = interface.findall("./filterref/parameter")
    return attribute(interface, "filterref", "filter"), sorted(
        (str(parameter.get("name")), str(parameter.get("value"))) for parameter in parameters
    )


def _there(domain: libvirt.virDomain, scope: int) -> dict[str, str]:
    flags = libvirt.VIR_DOMAIN_XML_INACTIVE if scope == libvirt.VIR_DOMAIN_AFFECT_CONFIG else 0
    return interfaces_in(domain.XMLDesc(flags))


def _pull_out(domain: libvirt.virDomain, scope: int, mac: str, name: str, timeout: float) -> None:
    """Return when the interface is gone. A guest is asked, again and again, for it may not listen yet."""
    begun = requested_at = time.monotonic()
    xml = _there(domain, scope).get(mac)
    if xml is None:
        return
    _ask(domain, xml, scope)
    while mac in _there(domain, scope):
        now = time.monotonic()
        if now - begun >= timeout:
            raise NovaliteError(f"the guest of domain {name} did not let go of the interface {mac} in {timeout:g} s")
        if now - requested_at >= ASK_AGAIN:
            requested_at = now
            _ask(domain, xml, scope)
        time.sleep(POLL)


def _ask(domain: libvirt.virDomain, xml: str, scope: int) -> None:
    try:
        domain.detachDeviceFlags(xml, scope)
    except libvirt.libvirtError as error:
        if error.get_error_code() == libvirt.VIR_ERR_DEVICE_MISSING or "process of unplug" in str(error):
            return  # it just went; or the guest was asked before, and is at it
        raise
