# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Attachments left of disks that nobody uses: mounts, loop and nbd devices, and the programs that serve them.

An injection's own mounts are in a namespace that ends with it, and its programs are told to die with it. What is found
here is of a run that was killed at the wrong moment, of an older way of injecting, or of a person's. Only what leads to
an instance's directory, or lies where only injections mount, is taken for ours.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import struct
import typing as t

from .._disk.daemon import end_leftovers, served
from .._disk.export import FUSE
from .._errors import ConflictError
from .._guest.session import WORK_DIR
from .._host.command import run
from .._host.files import INSTANCES
from .._host.locks import locked_directory

LOOP_GET_STATUS64 = 0x4C05
_LOOP_INFO = struct.Struct("=QQ216x")  # struct loop_info64: the backing file's device and inode come first
_OCTAL = re.compile(r"\\([0-7]{3})")
MOUNT, LOOP, SERVER = "mount", "loop device", "disk server"


class StaleDevice(t.NamedTuple):
    """`what` is one of MOUNT, LOOP, SERVER; `name` a mount point, a device, or the disk that is served."""

    what: str
    name: str
    disk: str  # what it leads to; of a mount its source


def find(state_dir: str, proc: str = "/proc", sys_block: str = "/sys/block") -> list[StaleDevice]:
    """List all stale devices in the order in which they can be taken away: mounts, their devices, then the servers."""
    instances = os.path.join(os.path.abspath(state_dir), INSTANCES)
    loops = [loop for loop in _loops(sys_block, instances) if _is_idle(loop.disk, instances)]
    servers, devices = _servers(proc, sys_block, instances)
    ours = {loop.name for loop in loops} | devices
    on_devices: list[StaleDevice] = []
    others: list[StaleDevice] = []
    for source, point in _mounts(proc):
        remnant = StaleDevice(MOUNT, point, source)
        if _device_of(source, ours):
            on_devices.append(remnant)
        elif point.startswith(f"{WORK_DIR}/") or point == WORK_DIR:
            (on_devices if _is_device(source) else others).append(remnant)
    # what was mounted last is in the way of what was mounted before
    return [*reversed(on_devices), *loops, *servers, *reversed(others)]


def remove(remnants: t.Iterable[StaleDevice]) -> None:
    """Take these away, in the order that find() gives. Raises NovaliteError."""
    for remnant in remnants:
        if remnant.what == MOUNT:
            # of what a dead server showed, nothing is left to be written
            run(["umount", *([] if _is_device(remnant.disk) else ["--lazy"]), remnant.name])
        elif remnant.what == LOOP:
            run(["losetup", "--detach", remnant.name])
        else:
            end_leftovers(remnant.disk)


def _is_device(source: str) -> bool:
    return source.startswith("/dev/") and source != FUSE


def _is_idle(disk: str, instances: str) -> bool:
    """Tell whether nobody works in the instance's directory just now: each injection holds its lock."""
    directory = os.path.join(instances, os.path.relpath(disk, instances).partition("/")[0])
    if not disk.startswith(f"{instances}/") or not os.path.isdir(directory):
        return True
    try:
        with locked_directory(directory, timeout=0):
            return True
    except ConflictError:
        return False


def _mounts(proc: str) -> t.Iterator[tuple[str, str]]:
    """(source, mount point) of this namespace's mounts, in the order in which they were made."""
    with open(os.path.join(proc, "self/mountinfo"), encoding="utf-8", errors="surrogateescape") as handle:
        for line in handle:
            fields, _dash, rest = line.partition(" - ")
            yield _plain(rest.split(" ")[1]), _plain(fields.split(" ")[4])


def _plain(text: str) -> str:
    return _OCTAL.sub(lambda match: chr(int(match[1], 8)), text)


def _device_of(source: str, devices: t.Collection[str]) -> bool:
    """Tell whether `source` is one of the devices, or a partition of one."""
    return any(source == device or re.fullmatch(re.escape(device) + r"p[0-9]+", source) for device in devices)


def _loops(sys_block: str, instances: str) -> t.Iterator[StaleDevice]:
    for name in sorted(os.listdir(sys_block)):
        with contextlib.suppress(OSError):
            with open(os.path.join(sys_block, name, "loop/backing_file"), encoding="utf-8") as handle:
                path = handle.read().strip().removesuffix(" (deleted)")
            if path.startswith((f"{instances}/", f"{WORK_DIR}/")) and _backs(f"/dev/{name}", path):
                yield StaleDevice(LOOP, f"/dev/{name}", path)


def _backs(device: str, path: str) -> bool:
    """Tell whether the loop device leads to the file that has this path here: the kernel's devices are everybody's, and
    another mount namespace may have the same path."""
    status = bytearray(_LOOP_INFO.size)
    with open(device, "rb", buffering=0) as loop:
        fcntl.ioctl(loop, LOOP_GET_STATUS64, status)
    return int(_LOOP_INFO.unpack(status)[1]) == os.stat(path).st_ino


def _servers(proc: str, sys_block: str, instances: str) -> tuple[list[StaleDevice], set[str]]:
    """QEMU's programs that serve an instance's disk, and the nbd devices that they have connected."""
    servers: dict[str, StaleDevice] = {}
    pids = set()
    for entry in os.listdir(proc):
        if not entry.isdigit():
            continue
        with contextlib.suppress(OSError):
            with open(os.path.join(proc, entry, "cmdline"), "rb") as handle:
                disks = served(handle.read().split(b"\0"))
            for disk in disks:
                if disk.startswith(f"{instances}/") and _is_idle(disk, instances):
                    servers[disk] = StaleDevice(SERVER, os.path.relpath(disk, instances), disk)
                    pids.add(entry)
    devices = set()
    for name in os.listdir(sys_block):
        with contextlib.suppress(OSError), open(os.path.join(sys_block, name, "pid"), encoding="ascii") as handle:
            if name.startswith("nbd") and handle.read().strip() in pids:
                devices.add(f"/dev/{name}")
    return [servers[disk] for disk in sorted(servers)], devices
