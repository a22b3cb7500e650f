# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Give this host's running domains other CPUs and memory, within what they were started with, and define them so."""

from __future__ import annotations

import contextlib
import dataclasses
import typing as t
from xml.etree import ElementTree

from .._errors import NovaliteError
from .._host.waiting import in_threads, wait_until
from . import compare, lifecycle
from .outcome import DomainSpec

with contextlib.suppress(ImportError):  # connect() reports it
    import libvirt

TIMEOUT = 60.0  # seconds for a guest to let go of CPUs, or to fill its balloon
POLL = 0.2  # seconds
_KEY = "novalite"  # the prefix of the namespace, as in templates/domain.xml.j2


@dataclasses.dataclass(frozen=True)
class Size:
    vcpus: int
    memory_kib: int

    def __str__(self) -> str:
        return f"{self.vcpus} vCPUs, {self.memory_kib // 1024} MiB"


@dataclasses.dataclass
class Resized:
    """Sizes of a domain before and after; `error` says why it is as before."""

    uuid: str
    name: str
    before: Size | None = None
    after: Size | None = None
    changed: bool = False
    error: str | None = None


def ensure(
    connection: libvirt.virConnect, domains: t.Sequence[DomainSpec], check_mode: bool = False, timeout: float = TIMEOUT
) -> list[Resized]:
    """Give every domain the vCPUs and the memory of its `xml` while it runs; a guest has `timeout` seconds to let go of
    what it loses. Where that fails, the outcome has an `error`, and the domain has what it had before."""

    def carry_out(spec: DomainSpec) -> Resized:
        done = Resized(spec["uuid"], spec["name"])
        try:
            with lifecycle.clear(f"domain {spec['name']} cannot be resized while it runs"):
                _carry_out(connection, spec, done, check_mode, timeout)
        except NovaliteError as error:
            done.error = str(error)
        return done

    return in_threads(carry_out, list(domains), lifecycle.WORKERS)


def _carry_out(
    connection: libvirt.virConnect, spec: DomainSpec, done: Resized, check_mode: bool, timeout: float
) -> None:
    desired = compare.parse(str(spec["xml"]))
    domain = lifecycle.lookup(connection, spec["uuid"])
    if domain is None or not domain.isActive():
        raise NovaliteError(f"domain {spec['name']} does not run on this host: start it, and try again")
    live = compare.parse(domain.XMLDesc(0))
    persistent = compare.parse(domain.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE)) if domain.isPersistent() else None
    most, target = Size(live.vcpus, live.memory_kib), Size(desired.vcpus, desired.memory_kib)
    if most != target:
        raise NovaliteError(
            f"domain {spec['name']} was started with {most} at most, not with {target}: reboot it with its power cut "
            "off (reboot.yml -e reboot_type=hard), and try again"
        )
    done.before, done.after = (Size(m.current_vcpus, m.current_memory_kib) for m in (live, desired))
    done.changed = done.before != done.after or bool(compare.differences(desired, persistent, live))
    if check_mode or not done.changed:
        return
    try:
        _resize(domain, spec["name"], done.after, timeout)
    except (libvirt.libvirtError, NovaliteError):
        _give_back(domain, done.before)
        raise
    metadata = ElementTree.fromstring(str(spec["xml"])).find(f"metadata/{{{compare.METADATA_NAMESPACE}}}instance")
    if metadata is not None:
        text = ElementTree.tostring(metadata, encoding="unicode")
        kind, scope = libvirt.VIR_DOMAIN_METADATA_ELEMENT, libvirt.VIR_DOMAIN_AFFECT_LIVE
        domain.setMetadata(kind, text, _KEY, compare.METADATA_NAMESPACE, scope)
    lifecycle.define(connection, spec)


def _resize(domain: libvirt.virDomain, name: str, size: Size, timeout: float) -> None:
    """Memory first: a guest that keeps it has lost nothing yet."""
    live = libvirt.VIR_DOMAIN_AFFECT_LIVE
    if _memory(domain) != size.memory_kib:
        domain.setMemoryFlags(size.memory_kib, live)
        complaint = f"the guest of domain {name} did not take to {size} in {timeout:g} s: its balloon does not answer"
        wait_until(lambda: _memory(domain) == size.memory_kib, timeout, complaint, POLL)
    if domain.vcpusFlags(live) != size.vcpus:
        with lifecycle.ignoring(libvirt.VIR_ERR_OPERATION_TIMEOUT):  # libvirt gives up after 5 s, the guest need not
            domain.setVcpusFlags(size.vcpus, live)
        complaint = f"the guest of domain {name} did not let go of CPUs in {timeout:g} s: try again, or restart it"
        wait_until(lambda: domain.vcpusFlags(live) == size.vcpus, timeout, complaint, POLL)


def _memory(domain: libvirt.virDomain) -> int:
    return domain.info()[2]


def _give_back(domain: libvirt.virDomain, before: Size) -> None:
    """Give the domain back what it had, as far as it is there; a failure to do so is told by what comes before it."""
    live = libvirt.VIR_DOMAIN_AFFECT_LIVE
    with contextlib.suppress(libvirt.libvirtError):
        domain.setMemoryFlags(before.memory_kib, live)
    with contextlib.suppress(libvirt.libvirtError):
        if domain.vcpusFlags(live) != before.vcpus:
            domain.setVcpusFlags(before.vcpus, live)
