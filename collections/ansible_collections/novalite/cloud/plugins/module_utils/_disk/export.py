# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Attach a disk in user space: qemu-storage-daemon shows it as a raw file (FUSE), a loop device makes it mountable.

Needs no kernel module beyond fuse and loop, has no device numbers to fight over, and is quicker than nbd.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import fcntl
import json
import os
import shutil
import stat
import struct
import typing as t

from .._errors import NovaliteError
from .._host.command import run
from .._host.files import opened, remove_file
from .._host.waiting import wait_until
from .daemon import DAEMON_LIMITS, start, stop, wait_ready
from .partition import Partition
from .syscalls import unmount

EXPORT_TIMEOUT = 30.0  # seconds
POLL = 0.002
FUSE = "/dev/fuse"

LOOP_CONTROL = "/dev/loop-control"
LOOP_CTL_GET_FREE, LOOP_CONFIGURE, LOOP_CLR_FD = 0x4C82, 0x4C0A, 0x4C01
LO_FLAGS_READ_ONLY, LO_FLAGS_AUTOCLEAR = 1, 4
# struct loop_config: fd, block size, struct loop_info64 (offset, size limit and flags matter here), reserved.
LOOP_CONFIG = struct.Struct("=II 5Q 4I 64s 64s 32s 2Q 8Q")
LOOP_ATTEMPTS = 200
LOOP_TIMEOUT = 10.0  # seconds to detach


@dataclasses.dataclass(frozen=True)
class FuseDisk:
    """An attached disk; `device` is the raw file that is its whole content."""

    device: str
    work: str
    read_only: bool

    @contextlib.contextmanager
    def block_device(self, partition: Partition | None) -> t.Iterator[str]:
        """A loop device over `partition` (None: the whole disk): FUSE files have no partition nodes. Its node is in
        `work`: the host's own /dev may lack it (no udev, a container, more devices than max_loop)."""
        offset, size = (partition.start, partition.size) if partition else (0, 0)
        node, mode = os.path.join(self.work, "loop"), os.O_RDONLY if self.read_only else os.O_RDWR
        try:
            if not os.path.exists(LOOP_CONTROL):
                run(["modprobe", "loop"])
            with opened(self.device, mode) as backing:
                number, device = _configure_loop(backing, node, mode, offset, size)
        except OSError as error:
            raise NovaliteError(f"{self.device} cannot be opened: {error.strerror}") from error
        try:
            yield node
        finally:
            fcntl.ioctl(device, LOOP_CLR_FD)
            os.close(device)
            os.unlink(node)
            # Detaching is asynchronous after an unmount; the file may be closed under it only when it is done.
            wait_until(
                lambda: _loop_backing(number) != self.device,  # somebody else may have it already
                LOOP_TIMEOUT,
                f"/dev/loop{number} still holds {self.device} after {LOOP_TIMEOUT:g} s; "
                f"run losetup --detach /dev/loop{number}",
                POLL,
            )


def is_available() -> bool:
    """Tell whether this host can attach disks in this way."""
    return shutil.which("qemu-storage-daemon") is not None and (
        os.path.exists(FUSE) or run(["modprobe", "fuse"], ok=range(256)).rc == 0
    )


@contextlib.contextmanager
def attached(disk: str, disk_format: str, read_only: bool, work: str) -> t.Iterator[FuseDisk]:
    """Export `disk`, of the recorded format, as a file below `work`, a private directory with an absolute path.

    The daemon is a child in the foreground: with --daemonize init would reap it, late, and it would unmount from "/".
    """
    if not is_available():
        raise NovaliteError(
            "this host has no qemu-storage-daemon or no /dev/fuse; install qemu-utils, or use backend nbd"
        )
    # The name is unique on the host: loop devices are told apart by it in /sys.
    exported = os.path.join(work, f"{os.path.basename(os.path.dirname(disk))}.raw")
    ready = os.path.join(work, "ready")
    with open(exported, "xb"):
        pass
    file = {"driver": "file", "filename": disk, "read-only": read_only}
    block = {"driver": disk_format, "node-name": "disk", "read-only": read_only, "file": file}
    export = {"type": "fuse", "id": "export", "node-name": "disk", "mountpoint": exported, "allow-other": "off"}
    export_json = json.dumps({**export, "writable": not read_only})
    # It writes its pid file after its exports are up.
    argv = ["qemu-storage-daemon", "--blockdev", json.dumps(block), "--export", export_json, "--pidfile", ready]
    daemon = start(argv, work, DAEMON_LIMITS)
    try:
        wait_ready(daemon, lambda: os.path.exists(ready), EXPORT_TIMEOUT, "the disk was not exported", POLL)
        yield FuseDisk(exported, work, read_only)
    finally:
        try:
            stop(daemon, work)
        finally:
            _unmount_remains(exported)


def _unmount_remains(exported: str) -> None:
    """The daemon unmounts its export when it ends; now and then, under load, it does not (seen with QEMU 7.2)."""
    try:
        unmount(exported)
    except OSError as error:
        if error.errno != errno.EINVAL:  # EINVAL: it is no mount point, as it should be
            raise NovaliteError(f"{exported} cannot be unmounted: {error.strerror}") from error


def _configure_loop(backing: int, node: str, mode: int, offset: int, size: int) -> tuple[int, int]:
    """Attach `size` bytes (0: all) of `backing`, with AUTOCLEAR in the same call, so that a killed process leaves none
    behind. Returns the device's number and descriptor."""
    flags = LO_FLAGS_AUTOCLEAR | (LO_FLAGS_READ_ONLY if mode == os.O_RDONLY else 0)
    config = LOOP_CONFIG.pack(backing, 0, 0, 0, 0, offset, size, 0, 0, 0, flags, b"novalite", b"", b"", *[0] * 10)
    for _attempt in range(LOOP_ATTEMPTS):
        try:
            with open(LOOP_CONTROL, "rb") as control:
                number = fcntl.ioctl(control.fileno(), LOOP_CTL_GET_FREE)
            with open(f"/sys/block/loop{number}/dev", encoding="ascii") as handle:
                major, minor = handle.read().split(":")
            os.mknod(node, stat.S_IFBLK | 0o600, os.makedev(int(major), int(minor)))
            device = os.open(node, mode | os.O_CLOEXEC)
        except OSError as error:
            remove_file(node)
            if error.errno in (errno.ENXIO, errno.ENOENT, errno.EBUSY) and os.path.exists(LOOP_CONTROL):
                continue  # the device was taken away between two of these steps
            raise NovaliteError(f"no loop device: {error.strerror}; injection needs {LOOP_CONTROL}") from error
        try:
            fcntl.ioctl(device, LOOP_CONFIGURE, config)
            return number, device
        except OSError as error:
            os.close(device)
            remove_file(node)
            if error.errno != errno.EBUSY:  # EBUSY: another process was quicker; ask for the next one
                raise NovaliteError(f"loop device {number} cannot be set up: {error.strerror}") from error
    raise NovaliteError(f"no free loop device after {LOOP_ATTEMPTS} attempts; look at `losetup --list`")


def _loop_backing(number: int) -> str | None:
    """The file that a loop device is attached to."""
    try:
        with open(f"/sys/block/loop{number}/loop/backing_file", encoding="utf-8") as handle:
            return handle.read().strip()
    except OSError:
        return None
