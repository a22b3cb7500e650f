# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Booting a backup: its disks, every block compared, in a guest of their own that reaches nothing, until it is up.

One sandbox a host at a time. libvirt ends it with the connection of the process that made it, so that none outlives a
process that was killed; its files go with the next one.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import os
import re
import shutil
import time
import zlib

from .._domain import lifecycle_console
from .._errors import NovaliteError
from .._host.files import instance_dir, is_uuid, write_atomically
from .._host.locks import locked
from .._host.own_directory import make_own
from .._snapshots.server_snapshots import check_room
from . import domain_xml, manifest, picture, replay, sandbox_xml, tpm
from .catalog import Catalog
from .live import Scratch
from .manifest import Manifest
from .sandbox_xml import Sandbox

with contextlib.suppress(ImportError):  # connect() reports it
    import libvirt

LARGEST_PICTURE = 1 << 20  # characters of base64 that are kept, as _rules/boots.py has it
AGENT, LOGIN = "agent", "login"  # by which it is known that a guest is up
_LOCK_TIMEOUT = 60.0  # seconds that another sandbox of this host may last
_LOOK = 0.5  # seconds between two looks at a guest
_LONGEST_CONSOLE = 16 << 20  # bytes that a guest may say
_KEPT_FREE = 10  # of how many parts of the host's memory one stays free
# What waits for somebody on a console: getty's prompt (agetty, FreeBSD's, busybox's), or busybox's shell
_PROMPT = re.compile(r"(?:^|[\s:])login: *$|Please press Enter to activate this console")
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]|[\x00-\x09\x0b-\x1f\x7f]")  # no part of a line


@dataclasses.dataclass
class Booted:
    """Outcome of a sandbox: by what its guest is known to be up, and after how many seconds, or the `error`; the
    end of what it said on its console, and its screen as PNG in base64, when it was up, or given up."""

    by: str | None = None
    seconds: float | None = None
    error: str | None = None
    console: str = ""
    picture: str | None = None


class DamagedError(NovaliteError):
    """A backup cannot be restored."""


@dataclasses.dataclass(frozen=True)
class Booting:
    """The place of a sandbox, and the seconds that its guest gets to be up. What the guest boots from beside its disks
    is that of the `server` of this host."""

    connection: libvirt.virConnect
    server: str
    scratch: Scratch
    state_dir: str
    timeout: float


def boot(booting: Booting, catalog: Catalog, backup: str) -> Booted:
    """Boot a backup. Raises DamagedError, and NovaliteError for want of room, before anything boots."""
    directory = booting.scratch.directory
    with locked("backup-sandbox", timeout=_LOCK_TIMEOUT):
        remove_left_over(booting.connection, directory)
        try:
            needed = catalog.chain(backup)
        except NovaliteError as error:
            raise DamagedError(f"backup {backup}, all disks cannot be restored: {error}") from None
        saved = needed[-1]
        _check_memory(saved.definition)
        layers = (manifest.disk_chain(needed, disk.name) for disk in saved.disks)
        check_room(sum(disk.written.data for layer in layers for _at, disk in layer), directory, f"backup {backup}")
        sandbox = made(directory)
        try:
            try:
                replay.restore(catalog, backup, {disk.name: sandbox.path(disk.name) for disk in saved.disks})
            except NovaliteError as error:
                raise DamagedError(str(error)) from None
            _add_files(saved, sandbox, instance_dir(booting.state_dir, booting.server))
            return _booted(booting, saved, sandbox)
        finally:
            _remove(sandbox)


def made(directory: str) -> Sandbox:
    """Make a new sandbox's directory, in this one. Raises NotOwnError, OSError."""
    sandbox = Sandbox.new(directory)
    make_own(sandbox.directory, 0o711, links=True)
    return sandbox


def remove_left_over(connection: libvirt.virConnect, directory: str) -> None:
    """Remove the sandboxes of runs that were killed. To be called under the lock of sandboxes."""
    for domain in connection.listAllDomains():
        with contextlib.suppress(libvirt.libvirtError):  # it ended just now
            if sandbox_xml.is_marked(domain.XMLDesc(0)):
                domain.destroy()
    for name in os.listdir(directory):
        if name.startswith(sandbox_xml.PREFIX) and is_uuid(name[len(sandbox_xml.PREFIX) :]):
            _remove(Sandbox(name[len(sandbox_xml.PREFIX) :], os.path.join(directory, name)))


def _remove(sandbox: Sandbox) -> None:
    shutil.rmtree(sandbox.directory, ignore_errors=True)
    tpm.remove(sandbox.uuid)


def _check_memory(definition: str) -> None:
    """Raise NovaliteError unless the host has the memory for the sandbox, which nobody has claimed."""
    needed = sandbox_xml.memory_of(definition)
    with open("/proc/meminfo", encoding="ascii") as handle:
        amounts = {name: int(amount) for name, amount in re.findall(r"(?m)^(\w+): +(\d+) kB", handle.read())}
    room = amounts["MemAvailable"] - amounts["MemTotal"] // _KEPT_FREE
    if needed > room:
        raise NovaliteError(
            f"a sandbox of {needed // 1024} MiB does not fit into the {max(0, room) // 1024} MiB of memory that its "
            f"host can spare (a {_KEPT_FREE}th stays free): boot it when fewer guests run there"
        )


def _add_files(saved: Manifest, sandbox: Sandbox, own: str) -> None:
    """Give the sandbox what its guest boots from beside the disks: copies, which libvirt gives to QEMU's user."""
    for name, path in sandbox_xml.boot_files_of(saved.definition).items():
        source = os.path.join(own, os.path.basename(path))
        if not os.path.isfile(source):
            raise NovaliteError(
                f"{source} is not there, from which its guest boots: restore it to a server of its image"
            )
        shutil.copyfile(source, sandbox.path(name))
    if saved.firmware is not None:
        variables = zlib.decompress(base64.b64decode(saved.firmware))
        write_atomically(sandbox.path(sandbox_xml.NVRAM), variables, 0o600)
    version = tpm.version_of(saved.definition)
    if saved.tpm is not None and version is not None:
        tpm.write(sandbox.uuid, version, saved.tpm)


def _booted(booting: Booting, saved: Manifest, sandbox: Sandbox) -> Booted:
    began, booted = time.monotonic(), Booted()
    domain: libvirt.virDomain | None = None
    try:
        xml = sandbox_xml.xml_of(saved.definition, sandbox, {disk.name for disk in saved.disks})
        domain = booting.connection.createXML(xml, libvirt.VIR_DOMAIN_START_AUTODESTROY)
        while booted.by is None and booted.error is None:
            time.sleep(_LOOK)
            booted.by = _up_by(domain, sandbox)
            booted.error = None if booted.by else _complaint(domain, sandbox, booting, began)
        booted.seconds = round(time.monotonic() - began, 1)
        booted.picture = _picture_of(booting.connection, domain)
    except libvirt.libvirtError as error:
        booted.error = f"its sandbox does not run: {' '.join(error.get_error_message().split())}"
    finally:
        booted.console = lifecycle_console.tail(sandbox.path(sandbox_xml.CONSOLE))
        if domain is not None:
            with contextlib.suppress(libvirt.libvirtError):  # it ended by itself
                domain.destroy()
    return booted


def _up_by(domain: libvirt.virDomain, sandbox: Sandbox) -> str | None:
    """Return by what the guest is known to be up, if it is."""
    if domain.isActive() and domain_xml.has_agent(domain.XMLDesc(0)):
        return AGENT
    return LOGIN if asks_for_login(lifecycle_console.tail(sandbox.path(sandbox_xml.CONSOLE), 3)) else None


def asks_for_login(console: str) -> bool:
    """Tell whether the end of what a guest said on its console is a line that waits for somebody."""
    lines = [_CONTROL.sub("", line) for line in console.split("\n")]
    last = next((line for line in reversed(lines) if line.strip()), "")
    return bool(_PROMPT.search(last))


def _complaint(domain: libvirt.virDomain, sandbox: Sandbox, booting: Booting, began: float) -> str | None:
    """Say why the sandbox has to end now, if it has."""
    if not domain.isActive():
        return "the guest in its sandbox ended before it was up: see its console"
    with contextlib.suppress(FileNotFoundError):
        if os.stat(sandbox.path(sandbox_xml.CONSOLE)).st_size > _LONGEST_CONSOLE:
            return f"the guest in its sandbox said more than {_LONGEST_CONSOLE} bytes before it was up: see its console"
    if time.monotonic() > began + booting.timeout:
        return (
            f"the guest in its sandbox was not up within {booting.timeout:g} s: see its console, or give it more time"
        )
    return booting.scratch.complaint(sandbox.uuid, ())


def _picture_of(connection: libvirt.virConnect, domain: libvirt.virDomain) -> str | None:
    """The guest's screen as PNG in base64; None where there is none, or one that is too large."""
    data = bytearray()

    def receive(_stream: libvirt.virStream, piece: bytes, _opaque: object) -> int:
        data.extend(piece)
        return len(piece) if len(data) <= picture.LARGEST else -1

    stream = connection.newStream()
    try:
        form = domain.screenshot(stream, 0)
        stream.recvAll(receive, None)
        stream.finish()
        image = bytes(data) if form == "image/png" else picture.png_of(bytes(data))  # PPM of QEMU before 7.1
    except (libvirt.libvirtError, NovaliteError):  # a guest is up without one
        return None
    coded = base64.b64encode(image).decode()
    return coded if len(coded) <= LARGEST_PICTURE else None
