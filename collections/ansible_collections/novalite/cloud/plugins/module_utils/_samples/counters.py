# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Counters of a host and of our guests on it, in one look that changes nothing: from /proc, /sys and libvirt.

A counter rises for as long as its `run` lasts: a boot of the host, a start of the guest. Two readings of one run make
the rate between them. What cannot be read is None.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
import typing as t

from .._domain.compare import METADATA_NAMESPACE
from .._errors import NovaliteError
from .._host.files import read_text
from .._host.libvirt_connection import connect
from .._json import JsonObject

with contextlib.suppress(ImportError):  # connect() reports it
    import libvirt

PATIENCE = 30.0  # seconds for all guests of a host: one whose QEMU hangs holds up the rest
READER = "guests"  # the thread that asks libvirt
SECTOR = 512  # bytes; the kernel counts in these whatever the disk has
FIRST_SAFE = 10_008_000  # libvirt before 10.8 may crash when it is asked for figures while a backup job runs
_PRESSURE = re.compile(r"some .*\btotal=(\d+)")
_SCOPE = re.compile(r"0::(/(?:.*/)?[^/]+\.scope)(?:/|$)", re.MULTILINE)


def of_host(root: str = "/") -> JsonObject:
    """Read what the machine whose file system is at `root` has counted: seconds, bytes."""
    received, sent = _network(root)
    read, written = _disks(root)
    pressure = {name: _pressure(os.path.join(root, "proc/pressure", name)) for name in ("cpu", "memory", "io")}
    return {
        "run": (read_text(os.path.join(root, "proc/sys/kernel/random/boot_id")) or "").strip(),
        "clock": time.monotonic(),
        "values": {
            "cpu": _busy(read_text(os.path.join(root, "proc/stat")) or ""),
            "memory": _memory(read_text(os.path.join(root, "proc/meminfo")) or ""),
            "disk_read": read,
            "disk_written": written,
            "net_received": received,
            "net_sent": sent,
            **{f"{name}_pressure": seconds for name, seconds in pressure.items()},
        },
    }


def of_guests(uri: str, patience: float = PATIENCE) -> tuple[list[JsonObject], list[str]]:
    """Read what libvirt has counted of each running domain that carries novalite's mark; and say in words which were
    left out, as those are that are not read within `patience` seconds. Raises NovaliteError where libvirt is not there.
    """
    connection = connect(uri)
    readings: list[JsonObject] = []
    complaints: list[str] = []
    # libvirt may wait for ever for a QEMU that hangs, and no signal of Python's ends that wait. A thread that is left
    # behind in it ends with the module's process.
    reader = threading.Thread(target=_read_all, args=(connection, readings, complaints), name=READER, daemon=True)
    reader.start()
    reader.join(patience)
    if reader.is_alive():
        complaints.append(f"the guests were not all read within {patience:g} s: a QEMU of this host hangs")
    return list(readings), list(complaints)


def _read_all(connection: libvirt.virConnect, readings: list[JsonObject], complaints: list[str]) -> None:
    try:
        guarded = connection.getLibVersion() < FIRST_SAFE
        domains = connection.listAllDomains(libvirt.VIR_CONNECT_LIST_DOMAINS_ACTIVE)
    except libvirt.libvirtError as error:
        complaints.append(f"libvirt does not list its domains: {error}")
        return
    for domain in domains:
        try:
            if not is_ours(domain):
                continue
            if guarded and _is_backed_up(domain):
                complaints.append(f"{domain.name()} is left out while a backup job runs, for libvirt before 10.8")
                continue
            readings.append(_of_guest(connection, domain))
        except libvirt.libvirtError as error:  # it ended just now, or QEMU does not answer
            complaints.append(f"{domain.name()} cannot be read: {error}")


def is_ours(domain: libvirt.virDomain) -> bool:
    """Tell whether a domain carries novalite's mark. Raises libvirtError."""
    try:
        domain.metadata(libvirt.VIR_DOMAIN_METADATA_ELEMENT, METADATA_NAMESPACE, 0)
    except libvirt.libvirtError as error:
        if error.get_error_code() != libvirt.VIR_ERR_NO_DOMAIN_METADATA:
            raise
        return False
    return True


def _is_backed_up(domain: libvirt.virDomain) -> bool:
    job = domain.jobStats(0)
    return bool(job.get("type")) and job.get("operation") == libvirt.VIR_DOMAIN_JOB_OPERATION_BACKUP


def _of_guest(connection: libvirt.virConnect, domain: libvirt.virDomain) -> JsonObject:
    kinds = (
        libvirt.VIR_DOMAIN_STATS_CPU_TOTAL
        | libvirt.VIR_DOMAIN_STATS_BALLOON
        | libvirt.VIR_DOMAIN_STATS_BLOCK
        | libvirt.VIR_DOMAIN_STATS_INTERFACE
    )
    # a guest that something is being done to says what it can at once
    flags = libvirt.VIR_CONNECT_GET_ALL_DOMAINS_STATS_NOWAIT
    ((_domain, figures),) = connection.domainListGetStats([domain], kinds, flags)
    group = control_group(domain.name())
    pressure = {name: group and _pressure(f"{group}/{name}.pressure") for name in ("cpu", "memory", "io")}
    processor, memory = figures.get("cpu.time"), figures.get("balloon.rss")
    return {
        "uuid": domain.UUIDString(),
        "run": str(domain.ID()),
        "clock": time.monotonic(),
        "values": {
            "cpu": None if processor is None else processor / 1e9,
            "memory": None if memory is None else memory * 1024,
            "disk_read": _sum(figures, "block", "rd.bytes"),
            "disk_written": _sum(figures, "block", "wr.bytes"),
            "net_received": _sum(figures, "net", "rx.bytes"),
            "net_sent": _sum(figures, "net", "tx.bytes"),
            **{f"{name}_pressure": seconds for name, seconds in pressure.items()},
        },
    }


def control_group(name: str, root: str = "/") -> str | None:
    """Return the directory of the control group that systemd made for the running domain `name`; None without one."""
    pid = (read_text(os.path.join(root, "run/libvirt/qemu", f"{name}.pid")) or "").strip()
    match = _SCOPE.search(read_text(os.path.join(root, "proc", pid, "cgroup")) or "") if pid.isdigit() else None
    return os.path.join(root, "sys/fs/cgroup", match[1].lstrip("/")) if match else None


def _sum(figures: t.Mapping[str, t.Any], kind: str, name: str) -> int | None:
    """Sum up what all devices of a kind have counted; None where libvirt does not say it of each."""
    devices = [figures.get(f"{kind}.{number}.{name}") for number in range(figures.get(f"{kind}.count", 0))]
    if f"{kind}.count" not in figures or (devices and not any(count is not None for count in devices)):
        return None
    return sum(count or 0 for count in devices)


def _busy(stat: str) -> float | None:
    """Return the seconds in which processors were at work, of all of them; what guests used among them."""
    line = re.match(r"cpu +([\d ]+)", stat)
    if line is None:
        return None
    user, nice, system, _idle, _waiting, *interrupts_and_stolen = (int(count) for count in line[1].split()[:8])
    return float(user + nice + system + sum(interrupts_and_stolen)) / os.sysconf("SC_CLK_TCK")


def _memory(meminfo: str) -> int | None:
    """Return the bytes that programs could not have: all but the available ones."""
    amounts = {name: int(amount) for name, amount in re.findall(r"(?m)^(MemTotal|MemAvailable): +(\d+) kB", meminfo)}
    return (amounts["MemTotal"] - amounts["MemAvailable"]) * 1024 if len(amounts) == 2 else None


def _pressure(path: str) -> float | None:
    """Return the seconds in which something waited, by a file of the kernel's pressure stall information."""
    match = _PRESSURE.search(read_text(path) or "")
    return int(match[1]) / 1e6 if match else None


def _disks(root: str) -> tuple[int | None, int | None]:
    """Return the bytes read and written on whole disks of the machine: what is made of them would count twice."""
    read = written = None
    for line in (read_text(os.path.join(root, "proc/diskstats")) or "").splitlines():
        fields = line.split()
        # an exclamation mark stands for the slash in cciss/c0d0
        if os.path.exists(os.path.join(root, "sys/block", fields[2].replace("/", "!"), "device")):
            read, written = (read or 0) + int(fields[5]) * SECTOR, (written or 0) + int(fields[9]) * SECTOR
    return read, written


def _network(root: str) -> tuple[int | None, int | None]:
    """Return the bytes received and sent by network cards; of a machine without, by the way out of it."""
    counted: dict[str, tuple[int, int]] = {}
    for line in (read_text(os.path.join(root, "proc/net/dev")) or "").splitlines()[2:]:
        name, _colon, rest = line.partition(":")
        fields = rest.split()
        counted[name.strip()] = int(fields[0]), int(fields[8])
    cards = [name for name in counted if os.path.exists(os.path.join(root, "sys/class/net", name, "device"))]
    if not cards:
        routes = [line.split() for line in (read_text(os.path.join(root, "proc/net/route")) or "").splitlines()[1:]]
        cards = [name for name in counted if any(route[0] == name and route[1] == "00000000" for route in routes)][:1]
    if not cards:
        return None, None
    return sum(counted[name][0] for name in cards), sum(counted[name][1] for name in cards)


def look(uri: str) -> JsonObject:
    """Return `host`, `guests`, and in words, as `complaints`, what could not be read."""
    try:
        guests, complaints = of_guests(uri)
    except NovaliteError as error:
        guests, complaints = [], [str(error)]
    return {"host": of_host(), "guests": guests, "complaints": complaints}
