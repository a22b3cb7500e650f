# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Move running domains to other hosts that share no disk with this one.

This host's libvirt talks to the other one's (peer to peer), so that a move whose task was killed ends by itself: the
tunnel ends with the task, and without it both sides fall back to what was. What QEMU sends, memory and disks, goes over
unix sockets that ssh leads to the other host: QEMU listens on no port, where anybody could connect.
"""

from __future__ import annotations

import contextlib
import functools
import os
import time
import typing as t
from xml.etree import ElementTree

from .._errors import NovaliteError
from .._host import events
from .._host.libvirt_connection import DAEMONS, Daemon, with_filters
from .._transfer import channel
from . import lifecycle
from .compare import Disk, attribute, disk_of

with contextlib.suppress(ImportError):  # connect() reports it
    import libvirt

LIBVIRT, MEMORY, DISKS = "libvirt.sock", "ram", "nbd"
_Parameters = dict[str, t.Union[str, int, list[str]]]
# The first version of QEMU that sees every write of an emulated guest while it migrates: those before clear bits of the
# dirty bitmap without telling the emulation ("physmem: Fix migration dirty bitmap coherency with TCG memory access")
WHOLE_MEMORY = 9_000_000
UNCACHED = ("none", "directsync")  # https://libvirt.org/formatdomain.html, `cache`: the host's page cache is bypassed


class Move(channel.Move):
    """A move, and what the domain is called on both hosts."""

    domain_name: str


class Moved(t.TypedDict):
    """Result of a domain's move; `error` is None when it runs on its destination. `here`: whether it still runs on this
    host, None when nobody can say."""

    uuid: str
    error: t.Optional[str]
    here: t.Optional[bool]
    seconds: float


def migrate(
    connection: libvirt.virConnect,
    moves: t.Sequence[Move],
    xml_by_uuid: t.Mapping[str, str],
    doors: t.Mapping[str, channel.Door],
    *,
    daemons: t.Mapping[str, str],
    bandwidth: int = 0,
    auto_converge: bool = True,
    state_dir: str,
    warn: t.Callable[[str], None],
) -> list[Moved]:
    """Move each domain; one after the other, as Nova does, since they share the wire.

    `xml_by_uuid` is how the domains are to be defined there: UUID -> XML. `daemons` are the names of the destinations'
    daemons, by the names of the hosts, each of DAEMONS. `bandwidth` is in MiB/s (0: no limit). `warn` is told which
    guests' memory QEMU may damage.
    """

    def carry_over(move: Move) -> None:
        domain = lifecycle.lookup(connection, move["uuid"])
        if domain is None or not domain.isActive():
            raise NovaliteError(f"domain {move['domain_name']} does not run on this host")
        what = f"domain {move['domain_name']} cannot be moved to {move['to_host']}"
        door, there = doors[move["to_host"]], _daemon(daemons, move["to_host"])
        names = sockets(move["domain_name"])
        with lifecycle.clear(what), channel.tunnel(move, door, {LIBVIRT: there.socket}, names) as directory:
            uri = f"qemu+unix:///system?socket={os.path.join(directory, LIBVIRT)}"
            xml = domain.XMLDesc(libvirt.VIR_DOMAIN_XML_MIGRATABLE | libvirt.VIR_DOMAIN_XML_SECURE)
            if risk := memory_at_risk(xml, connection.getVersion()):
                warn(f"domain {move['domain_name']} {risk}")
            copied = own_disks(xml, move["uuid"], state_dir)
            memory, disks = (os.path.join(directory, name) for name in names)
            params = _parameters(xml, xml_by_uuid[move["uuid"]], memory, disks, bandwidth, copied)
            flags = _flags(auto_converge, bool(copied), stay_whole(xml, move["uuid"], state_dir))
            with events.moving(functools.partial(_sent, domain)):
                with_filters(functools.partial(domain.migrateToURI3, uri, params, flags))

    def moved(move: Move) -> Moved:
        began = time.monotonic()
        error, here = None, None
        try:
            carry_over(move)
        except NovaliteError as failure:
            error = str(failure)
        try:
            here = lifecycle.is_active(connection, move["uuid"])
            if here and error is None:
                error = f"domain {move['domain_name']} still runs on this host"
        except NovaliteError:
            error = error or f"domain {move['domain_name']}: nobody knows where it is"
        return {"uuid": move["uuid"], "error": error, "here": here, "seconds": round(time.monotonic() - began, 3)}

    return [moved(move) for move in moves]


def _sent(domain: libvirt.virDomain) -> tuple[int, int]:
    """Bytes of memory and disks that were sent, and of how many. Raises libvirt's errors."""
    job = domain.jobStats(0)
    return t.cast(int, job.get("data_processed", 0)), t.cast(int, job.get("data_total", 0))


def _daemon(daemons: t.Mapping[str, str], host: str) -> Daemon:
    """The destination's daemon, which it names itself."""
    name = daemons.get(host)
    if name not in DAEMONS:
        raise NovaliteError(f"host {host} has no libvirt daemon '{name}'; it is one of {', '.join(DAEMONS)}")
    return DAEMONS[name]


def memory_at_risk(xml: str, version: int) -> str | None:
    """Return why the memory of the domain with this XML may not arrive as it was: it is emulated, by a QEMU of this
    `version` (7002022 is 7.2.22), which is too old for that. None where it will. KVM was never concerned."""
    if ElementTree.fromstring(xml).get("type") == "kvm" or version >= WHOLE_MEMORY:
        return None
    number = f"{version // 1_000_000}.{version // 1000 % 1000}.{version % 1000}"
    return (
        f"is emulated, and QEMU before 9.0 (here {number}) may lose what such a guest writes to its memory while it "
        "moves: restart it if it behaves oddly, or move it with migrate.yml, which switches it off"
    )


def _flags(auto_converge: bool, copies: bool, safe: bool) -> int:
    flags = (
        libvirt.VIR_MIGRATE_LIVE
        | libvirt.VIR_MIGRATE_PEER2PEER
        | libvirt.VIR_MIGRATE_PERSIST_DEST
        | libvirt.VIR_MIGRATE_UNDEFINE_SOURCE
    )
    if copies:
        # what the guest wrote over its base; the base is in the other host's cache. With nothing to copy libvirt would
        # take an empty list for all disks, and copy a volume over itself.
        flags |= libvirt.VIR_MIGRATE_NON_SHARED_INC
    if auto_converge:
        flags |= libvirt.VIR_MIGRATE_AUTO_CONVERGE
    if safe:
        # libvirt knows a shared file system by its magic number, and takes those that it never heard of for local ones
        # (virFileIsSharedFS); what is a share, the inventory says
        flags |= libvirt.VIR_MIGRATE_UNSAFE
    return int(flags)


def _parameters(xml: str, desired_xml: str, memory: str, disks: str, bandwidth: int, copied: list[str]) -> _Parameters:
    params: _Parameters = {
        libvirt.VIR_MIGRATE_PARAM_URI: f"unix://{memory}",
        libvirt.VIR_MIGRATE_PARAM_DEST_XML: merged(xml, desired_xml),
        libvirt.VIR_MIGRATE_PARAM_PERSIST_XML: desired_xml,
    }
    if copied:
        params[libvirt.VIR_MIGRATE_PARAM_DISKS_URI] = f"unix://{disks}"
        params[libvirt.VIR_MIGRATE_PARAM_MIGRATE_DISKS] = copied
    if bandwidth:
        params[libvirt.VIR_MIGRATE_PARAM_BANDWIDTH] = bandwidth
    return params


def sockets(domain_name: str) -> tuple[str, str]:
    """The names of the sockets for a domain's memory and its disks: AppArmor lets a guest have
    /run/libvirt/**/*.tunnelmigrate.dest.<its name>, for libvirt's own tunnels (virt-aa-helper), and no other that is
    not its own."""
    return f"{MEMORY}.tunnelmigrate.dest.{domain_name}", f"{DISKS}.tunnelmigrate.dest.{domain_name}"


def own_disks(xml: str, uuid: str, state_dir: str) -> list[str]:
    """The devices of the domain of instance `uuid` whose files lie in its own directory and can be written to: no other
    host has them."""
    directory = os.path.join(state_dir, "instances", uuid)
    return [disk.dev for disk in _writable(xml) if os.path.dirname(disk.source or "") == directory]


def stay_whole(xml: str, uuid: str, state_dir: str) -> bool:
    """Tell whether all writable disks are copied with the domain, or lie on a share and in no host's cache."""
    shares = os.path.join(state_dir, "shares") + os.sep
    copied = own_disks(xml, uuid, state_dir)
    return all(
        disk.dev in copied or ((disk.source or "").startswith(shares) and disk.cache in UNCACHED)
        for disk in _writable(xml)
    )


def _writable(xml: str) -> t.Iterator[Disk]:
    """The disks that have a source and are no other's; of one on the network, that is None."""
    for element in ElementTree.fromstring(xml).iterfind("devices/disk"):
        if element.find("source") is not None and all(element.find(tag) is None for tag in ("readonly", "shareable")):
            yield disk_of(element)


def merged(running: str, desired: str) -> str:
    """The XML of a `running` domain with that which differs from host to host as in `desired`: what its interfaces are
    connected to, what their filters hold them to, and the CPUs and NUMA nodes that it is on."""
    root, other = ElementTree.fromstring(running), ElementTree.fromstring(desired)
    for tag in ("cputune", "numatune"):
        for old in root.findall(tag):
            root.remove(old)
        root.extend(other.findall(tag))
    for vcpu in root.findall("vcpu"):
        vcpu.attrib.pop("cpuset", None)
        vcpu.attrib.update({"cpuset": there} if (there := attribute(other, "vcpu", "cpuset")) else {})
    by_mac = {attribute(nic, "mac", "address"): nic for nic in other.findall("./devices/interface")}
    for nic in root.findall("./devices/interface"):
        model = by_mac.get(attribute(nic, "mac", "address"))
        if model is None:
            continue
        for tag in ("source", "filterref", "target"):
            for old in nic.findall(tag):
                nic.remove(old)
            nic.extend(model.findall(tag))
    return ElementTree.tostring(root, encoding="unicode")
