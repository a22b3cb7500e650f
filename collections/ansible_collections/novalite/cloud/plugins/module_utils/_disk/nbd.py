# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Attach a disk as Nova does: `qemu-nbd --connect` and the kernel's nbd driver.

Nova picks a device that looks free, and two processes that pick the same one cross over: qemu-nbd talks to itself
over /var/lock/qemu-nbd-nbdN, the second replaces the first one's socket, and a key lands in another instance's disk
while its module reports success. Here a lock is held on the device for the whole use, and the socket is our own.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import fcntl
import os
import random
import subprocess
import time
import typing as t

from .._errors import ConflictError, NovaliteError
from .._host.command import run
from .._host.files import opened
from .._host.locks import LOCK_DIR, locked
from .._host.waiting import retried, wait_until
from .daemon import DAEMON_LIMITS, start, stop, wait_ready
from .partition import Partition

DEVICES = 16  # the driver's default nbds_max
MAX_PARTITIONS = 16
BLKRRPART = 0x125F
NBD_CLEAR_SOCK, NBD_CLEAR_QUE, NBD_DISCONNECT = 0xAB04, 0xAB05, 0xAB08  # linux/nbd.h
# Seconds. Nova's timeout_nbd is 10 and its MAX_DEVICE_WAIT 30: too little where many injections queue for the devices
# of a busy host with two emulated processors.
CONNECT_TIMEOUT = 120.0
DISCONNECT_TIMEOUT = 120.0
DEVICE_WAIT = 120.0
PARTITION_WAIT = 5.0


@dataclasses.dataclass(frozen=True)
class Paths:
    """Directories of the kernel and qemu-nbd that show whether a device is in use; tests give their own tree."""

    sys_block: str = "/sys/block"
    qemu_locks: str = "/var/lock"
    locks: str = LOCK_DIR


def is_loaded(paths: Paths = Paths()) -> bool:
    return os.path.isdir(os.path.join(paths.sys_block, "nbd0"))


def load() -> bool:
    """Load the driver if it is not there; False when this kernel has none."""
    if not is_loaded():
        run(["modprobe", "nbd", f"max_part={MAX_PARTITIONS}"], ok=range(256))
    return is_loaded()


def is_free(name: str, paths: Paths) -> bool:
    """Tell whether the device `name` exists and nobody uses it. True only means something under its lock."""
    block = os.path.join(paths.sys_block, name)
    return (
        os.path.isdir(block)
        and not os.path.exists(os.path.join(block, "pid"))
        # Another qemu-nbd is about to connect, or did and was killed: Nova leaves such a device alone, too.
        and not _is_roots(os.path.join(paths.qemu_locks, f"qemu-nbd-{name}"))
    )


def _is_roots(path: str) -> bool:
    """Tell whether a file is there that is ours: anybody may make some in /var/lock, for all devices."""
    with contextlib.suppress(FileNotFoundError):
        return os.lstat(path).st_uid == os.geteuid()
    return False


@contextlib.contextmanager
def reserved_device(paths: Paths = Paths(), wait: float = DEVICE_WAIT, start_at: int | None = None) -> t.Iterator[str]:
    """The name of a free nbd device, locked for as long as the context lasts. The search starts anywhere (`start_at`:
    for tests), so that parallel runs rarely ask for the same one. Raises ConflictError after `wait` seconds."""
    deadline = time.monotonic() + wait
    first = random.randrange(DEVICES) if start_at is None else start_at
    with contextlib.ExitStack() as stack:
        yield _find_free(stack, paths, first, deadline)


def _find_free(stack: contextlib.ExitStack, paths: Paths, first: int, deadline: float) -> str:
    while True:
        for index in range(DEVICES):
            name = f"nbd{(first + index) % DEVICES}"
            if os.path.isdir(os.path.join(paths.sys_block, name)) and _reserve(stack, name, paths):
                return name
        if time.monotonic() >= deadline:
            raise ConflictError(
                f"all {DEVICES} nbd devices have been in use for {DEVICE_WAIT:g} s; look at "
                f"{paths.sys_block}/nbd*/pid and {paths.qemu_locks}/qemu-nbd-nbd*"
            )
        time.sleep(0.2)


def _reserve(stack: contextlib.ExitStack, name: str, paths: Paths) -> bool:
    with contextlib.ExitStack() as attempt:
        try:
            attempt.enter_context(locked(name, timeout=0, directory=paths.locks))
        except ConflictError:
            return False
        if not is_free(name, paths):
            return False
        stack.push(attempt.pop_all())
        return True


@dataclasses.dataclass(frozen=True)
class NbdDisk:
    """An attached disk; `device` is the whole of it."""

    device: str

    @contextlib.contextmanager
    def block_device(self, partition: Partition | None) -> t.Iterator[str]:
        """The block device of `partition` (None: of the whole disk)."""
        yield self.device if partition is None else _partition_node(self.device, partition)


@contextlib.contextmanager
def attached(disk: str, disk_format: str, read_only: bool, work: str) -> t.Iterator[NbdDisk]:
    """Connect `disk`, of the recorded format, to a free nbd device. `work` is a private directory."""
    if not load():
        raise NovaliteError("this host's kernel has no nbd driver (modprobe nbd failed); use backend fuse")
    with reserved_device() as name:
        device = f"/dev/{name}"
        argv = [
            "qemu-nbd",
            f"--format={disk_format}",
            f"--connect={device}",
            f"--socket={work}/nbd.sock",
            "--verbose",  # the only way to keep it in the foreground, as our child
            *(["--read-only"] if read_only else []),
            disk,
        ]
        daemon = start(argv, work, DAEMON_LIMITS)
        try:
            wait_ready(
                daemon,
                lambda: os.path.exists(f"/sys/block/{name}/pid") and _sectors(name) > 0,
                CONNECT_TIMEOUT,
                f"{device} was not connected",
            )
            yield NbdDisk(device)
        finally:
            _disconnect(name, daemon, work)


def _disconnect(name: str, daemon: subprocess.Popen[bytes], work: str) -> None:
    try:
        if daemon.poll() is None:
            _let_go(f"/dev/{name}")
            with contextlib.suppress(subprocess.TimeoutExpired):
                daemon.wait(DISCONNECT_TIMEOUT)
    finally:
        stop(daemon, work)
    # The device must not be given back while the driver still lets go of it.
    complaint = f"/dev/{name} is still connected after {DISCONNECT_TIMEOUT:g} s; run qemu-nbd --disconnect /dev/{name}"
    wait_until(lambda: not os.path.exists(f"/sys/block/{name}/pid"), DISCONNECT_TIMEOUT, complaint)


def _let_go(device: str) -> None:
    """Disconnect `device` as `qemu-nbd --disconnect` does; to start that takes a quarter of a short injection."""
    try:
        with opened(device, os.O_RDWR) as fd:
            for request in (NBD_CLEAR_QUE, NBD_DISCONNECT, NBD_CLEAR_SOCK):
                fcntl.ioctl(fd, request)
    except OSError as error:
        raise NovaliteError(
            f"{device} cannot be disconnected: {error.strerror}; run qemu-nbd --disconnect {device}"
        ) from error


def _partition_node(device: str, partition: Partition) -> str:
    """/dev/nbdNpM once the kernel has read the table again: without that the node is missing, or worse, left over from
    the disk that was there before. So sizes are compared."""
    node = f"{device}p{partition.number}"
    try:
        with opened(device) as fd:
            # EBUSY: a host's udev looks into each partition that appears, for a moment
            retried(lambda: fcntl.ioctl(fd, BLKRRPART), errno.EBUSY, PARTITION_WAIT)
    except OSError as error:
        raise NovaliteError(f"{device}: the kernel cannot read the partition table: {error.strerror}") from error
    wait_until(
        lambda: os.path.exists(node) and _sectors(os.path.basename(node)) * 512 == partition.size,
        PARTITION_WAIT,
        f"{node} did not appear within {PARTITION_WAIT:g} s (the driver must be loaded with max_part={MAX_PARTITIONS})",
    )
    return node


def _sectors(name: str) -> int:
    try:
        with open(f"/sys/class/block/{name}/size", encoding="ascii") as handle:
            return int(handle.read())
    except OSError:
        return 0
