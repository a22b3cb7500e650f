# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A compute host's facts, in one pass: what the scheduler counts with and what a guest's XML needs to know."""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import shutil
import tempfile
import typing as t

from .._addressing.places import MOST
from .._disk import removed
from .._disk.config_drive import PROGRAMS as ISO_PROGRAMS
from .._domain import lifecycle
from .._domain.capabilities import (
    Capabilities,
    booted_at_of,
    cpu_model_of,
    devices_of,
    firmware_of,
    memory_mb_of,
    numa_of,
    parse_capabilities,
    tpm_of,
    traits_of,
)
from .._errors import NovaliteError
from .._host import places as host_places
from .._host.command import CommandError, run
from .._host.files import write_atomically
from .._host.kvm import kvm_fault
from .._host.libvirt_connection import DEFAULT_URI, IMPORT_ERROR, connect, local_daemon
from .._host.mark import identity_of
from .._host.own_directory import make_own
from .._json import JsonObject
from .._model import hardware
from .._network import additions, ownership

# What the modules of this collection run on a hypervisor, beside one injection back end. Any one of a group will do.
_EACH = "conntrack dnsmasq ebtables haproxy ip ip6tables-restore ipset iptables-restore mke2fs qemu-img sfdisk virsh"
COMMANDS: tuple[tuple[str, ...], ...] = (*((command,) for command in _EACH.split()), ISO_PROGRAMS)
_DIRECT_BLOCK = 4096  # bytes; aligned for every disk's O_DIRECT
_SBIN = "/usr/local/sbin:/usr/sbin:/sbin"  # missing from the PATH of a non-login ssh session on some systems


def gather(
    name: str, state_dir: str, uri: str = DEFAULT_URI, domain_type: str = "auto", check_mode: bool = False
) -> JsonObject:
    """The ComputeHost facts of this host, `name`d as in the inventory.

    A libvirt that does not answer is no error: `up` is false then and `down_reason` says why. `domain_type` is
    auto, kvm or qemu. In check mode nothing is written, not even the memory of KVM's probe.
    """
    arch = os.uname().machine
    cpuinfo = _read("/proc/cpuinfo")
    facts: JsonObject = {
        "name": name,
        "identity": identity_of(),
        "up": True,
        "down_reason": None,
        "vcpus": os.sysconf("SC_NPROCESSORS_ONLN"),
        "memory_mb": memory_mb_of(_read("/proc/meminfo")),
        "booted_at": booted_at_of(_read("/proc/stat")),
        "disk_gb": disk_gb(state_dir),
        "removed_gb": -(-sum(day.bytes for day in removed.days(state_dir)) // 1024**3),
        "state_dir": os.path.abspath(state_dir),
        "hypervisor_type": "QEMU",
        "hypervisor_version": 0,
        "libvirt_version": 0,
        "arch": arch,
        "cpu_model": cpu_model_of(cpuinfo),
        "traits": traits_of(cpuinfo),
        "domain_type": "qemu",
        "domain_type_reason": None,
        "emulator": None,
        "machine": None,
        "machine_types": {},
        "tpm": [],
        "disk_buses": [],
        "video_models": [],
        "numa": [],
        "security_driver": "none",
        "disk_cache": disk_cache(state_dir),
        "domains": [],
        "inject_backend": inject_backend(),
        "libvirt_daemon": local_daemon().name,
        "libvirt_binding": IMPORT_ERROR is None,
        "systemd": os.path.isdir("/run/systemd/system"),  # as sd_booted(3) asks
        "missing_commands": missing_commands(),
        "places": places(),
    }
    try:
        connection = connect(uri)
        with lifecycle.clear(f"{local_daemon().name} on this host does not answer"):
            facts["hypervisor_version"] = connection.getVersion()
            facts["libvirt_version"] = connection.getLibVersion()
            facts["domains"] = lifecycle.list_domains(connection, existing(state_dir))
            capabilities_xml = connection.getCapabilities()
            capabilities = parse_capabilities(capabilities_xml)
            offers = {
                machine: connection.getDomainCapabilities(capabilities.emulator, capabilities.arch, machine, None)
                for machine in capabilities.machine_types
            }
    except NovaliteError as error:
        return {**facts, "up": False, "down_reason": str(error)[:255]}
    key = f"{_read('/proc/sys/kernel/random/boot_id').strip()} {facts['hypervisor_version']} {_owner('/dev/kvm')}"
    known = os.path.join(state_dir, "facts")
    chosen, reason = choose_domain_type(domain_type, capabilities, key, known, remember=not check_mode)
    guests: JsonObject = {
        "machine_types": {machine: firmware_of(offer) for machine, offer in offers.items()},
        "numa": numa_of(capabilities_xml),
    }
    for offer in list(offers.values())[:1]:
        guests |= {"tpm": tpm_of(offer), **devices_of(offer)}
    return {
        **facts,
        **guests,
        "traits": sorted({*facts["traits"], *hardware.traits_of(guests)}),
        "arch": capabilities.arch,
        "cpu_model": facts["cpu_model"] or capabilities.cpu_model,
        "emulator": capabilities.emulator,
        "machine": capabilities.machine,
        "security_driver": capabilities.security_driver,
        "domain_type": chosen,
        "domain_type_reason": reason,
        "hypervisor_type": "KVM" if chosen == "kvm" else "QEMU",
    }


def choose_domain_type(
    requested_type: str, capabilities: Capabilities, key: str, known: str, remember: bool
) -> tuple[str, str | None]:
    """kvm where it works and qemu otherwise, and why it is qemu.

    KVM's probe can take seconds where KVM does not work, so its answer is taken from the file `known`, and kept there
    if `remember`, as long as `key` (this boot of the kernel, this QEMU, these rights) is the same.
    """
    if requested_type != "auto":
        return requested_type, f"the inventory says domain_type: {requested_type}"
    if "kvm" not in capabilities.domain_types:
        return "qemu", "libvirt offers no kvm on this host"
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        before = json.loads(_read(known))["kvm"]
        if before["key"] == key:
            return ("qemu" if before["fault"] else "kvm"), before["fault"]
    fault = kvm_fault(capabilities.arch, capabilities.qemu_user)
    if remember:
        make_own(os.path.dirname(known), 0o711, links=True)
        write_atomically(known, json.dumps({"kvm": {"key": key, "fault": fault}}) + "\n")
    return ("qemu" if fault else "kvm"), fault


def disk_gb(state_dir: str) -> int:
    """Whole GiB of the file system that holds, or will hold, `state_dir`."""
    filesystem = os.statvfs(existing(state_dir))
    return filesystem.f_blocks * filesystem.f_frsize // 1024**3


def disk_cache(state_dir: str) -> str:
    """`none` where the file system can do O_DIRECT and `writethrough` otherwise, as Nova decides it: with `none`, QEMU
    does not start on one that cannot. An open() alone proves nothing: some file systems fail at the first write."""
    directory = existing(state_dir)
    # O_DIRECT wants its buffer aligned, and pages are
    with mmap.mmap(-1, _DIRECT_BLOCK) as block, contextlib.suppress(OSError), _nameless_file(directory) as fd:
        if os.write(fd, block) == _DIRECT_BLOCK:
            return "none"
    return "writethrough"


def inject_backend() -> str:
    """Way to open an image for injection here: nbd, else a FUSE export of qemu-storage-daemon, else none."""
    if _which("qemu-nbd") and (os.path.exists("/sys/block/nbd0") or _module_exists("nbd")):
        return "nbd"
    return "fuse" if os.path.exists("/dev/fuse") and _which("qemu-storage-daemon") else "none"


def places() -> list[JsonObject]:
    """Places where the host lives, for networks' ranges to be held against, but for what novalite itself made there, of
    whatever ledger: that goes again. None where `ip` cannot be had."""
    with contextlib.suppress(CommandError):
        links = json.loads(run(["ip", "-d", "-j", "addr", "show"]).stdout or "[]")
        ours = {row["ifname"] for row in links if ownership.read(row.get("ifalias")) is not None}
        session = host_places.ssh_session(os.environ)
        here = host_places.of_rows(links, host_places.routes(), session, additions.addresses(), ours)
        return [place.row for place in here[:MOST]]
    return []


def missing_commands() -> list[str]:
    """List those of COMMANDS that this host does not have, a group as "this or that"."""
    return [" or ".join(group) for group in COMMANDS if not any(map(_which, group))]


@contextlib.contextmanager
def _nameless_file(directory: str) -> t.Iterator[int]:
    try:
        fd = os.open(directory, os.O_TMPFILE | os.O_RDWR | os.O_DIRECT | os.O_CLOEXEC, 0o600)
    except OSError:  # no O_TMPFILE here (overlayfs before Linux 6.1, NFS), or no O_DIRECT: a named file tells
        plain, path = tempfile.mkstemp(prefix=".direct-", dir=directory)
        os.close(plain)
        try:
            fd = os.open(path, os.O_RDWR | os.O_DIRECT | os.O_CLOEXEC)
        finally:
            os.unlink(path)
    try:
        yield fd
    finally:
        os.close(fd)


def _owner(path: str) -> str:
    with contextlib.suppress(OSError):
        status = os.stat(path)
        return f"{status.st_mode:o} {status.st_uid}:{status.st_gid}"
    return "none"


def existing(path: str) -> str:
    """`path`, or the nearest of its parents that exists."""
    path = os.path.abspath(path)
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    return path


def _which(command: str) -> str | None:
    return shutil.which(command, path=f"{_SBIN}:{os.environ.get('PATH', '/usr/bin:/bin')}")


def _module_exists(name: str) -> bool:
    try:
        run(["modprobe", "-n", "-q", name])
    except CommandError:
        return False
    return True


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as handle:
        return handle.read()
