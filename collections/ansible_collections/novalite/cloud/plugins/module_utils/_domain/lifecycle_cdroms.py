# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Put CDs into the drives of this host's domains, and take them out: of what runs, and of what starts next time.

A drive is known by its device name, and a CD by its file. A drive that runs can be opened; a new one comes with the
next start.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import typing as t
from xml.etree import ElementTree

from .._disk import layout
from .._disk.overlay import LOCK, LOCK_TIMEOUT
from .._disk.records import read_records, write_records
from .._errors import ConflictError, NovaliteError
from .._host.files import instance_dir, remove_file
from .._host.locks import locked
from .._host.waiting import in_threads
from . import lifecycle
from .compare import attribute
from .outcome import DomainSpec

with contextlib.suppress(ImportError):  # connect() reports it
    import libvirt

Files = dict[str, t.Optional[str]]


@dataclasses.dataclass
class Changed:
    """The files in a domain's drives, by device, before and after; `error` says why it is as it was."""

    uuid: str
    name: str
    before: Files = dataclasses.field(default_factory=dict)
    after: Files = dataclasses.field(default_factory=dict)
    error: t.Optional[str] = None


def ensure(
    connection: libvirt.virConnect,
    domains: t.Sequence[DomainSpec],
    state_dir: str,
    force: bool = False,
    check_mode: bool = False,
) -> list[Changed]:
    """Put into the drives of every domain what its `xml` says, and remove the files of the CDs that were there. With
    `force`, a guest that holds on to a CD loses it. Where that fails, the outcome has an `error`."""

    def carry_out(spec: DomainSpec) -> Changed:
        outcome = Changed(spec["uuid"], spec["name"])
        try:
            with lifecycle.clear(f"the CDs of domain {spec['name']} cannot be changed"):
                _change(connection, spec, outcome, force, check_mode)
            if not check_mode:
                _remove_others(instance_dir(state_dir, spec["uuid"]), str(spec["xml"]))
        except NovaliteError as error:
            outcome.error = str(error)
        return outcome

    return in_threads(carry_out, list(domains), lifecycle.WORKERS)


def _change(connection: libvirt.virConnect, spec: DomainSpec, outcome: Changed, force: bool, check_mode: bool) -> None:
    desired = _drives(str(spec["xml"]))
    outcome.after = {dev: _file_in(xml) for dev, xml in desired.items()}
    domain = lifecycle.lookup(connection, spec["uuid"])
    if domain is None:
        return  # it has them when it is defined
    scopes = [libvirt.VIR_DOMAIN_AFFECT_LIVE] if domain.isActive() else []
    scopes += [libvirt.VIR_DOMAIN_AFFECT_CONFIG] if domain.isPersistent() else []
    for scope in scopes:
        inactive = scope == libvirt.VIR_DOMAIN_AFFECT_CONFIG
        there = _drives(domain.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE if inactive else 0))
        outcome.before |= {dev: _file_in(xml) for dev, xml in there.items() if dev in desired}
        for dev, xml in desired.items():
            if dev in there and _file_in(there[dev]) == _file_in(xml):
                continue
            if dev not in there and not inactive:
                raise ConflictError(f"the guest runs without the drive {dev}: stop it, insert the CD, and start it")
            if check_mode:
                continue
            if dev not in there:
                domain.attachDeviceFlags(xml, scope)
            else:
                domain.updateDeviceFlags(xml, scope | (libvirt.VIR_DOMAIN_DEVICE_MODIFY_FORCE if force else 0))


def _drives(xml: str) -> dict[str, str]:
    """Device -> the XML of each CD drive of a domain, without that of the config drive."""
    drives = {}
    for disk in ElementTree.fromstring(xml).iterfind("devices/disk[@device='cdrom']"):
        if os.path.basename(attribute(disk, "source", "file") or "").startswith(layout.CONFIG_DRIVE):
            continue
        drives[str(attribute(disk, "target", "dev"))] = ElementTree.tostring(disk, encoding="unicode")
    return drives


def _file_in(drive: str) -> str | None:
    return attribute(ElementTree.fromstring(drive), "source", "file")


def _remove_others(directory: str, xml: str) -> None:
    """Remove the files of CDs that are in none of the domain's drives."""
    with locked(LOCK, timeout=LOCK_TIMEOUT):
        if not layout.is_directory(directory):
            return
        kept = {os.path.basename(path) for path in map(_file_in, _drives(xml).values()) if path}
        gone = {name for name in os.listdir(directory) if layout.CDROM.match(name)} - kept
        if gone:
            records = read_records(directory)
            write_records(directory, {name: record for name, record in records.items() if name not in gone})
        for name in sorted(gone):
            remove_file(os.path.join(directory, name))
