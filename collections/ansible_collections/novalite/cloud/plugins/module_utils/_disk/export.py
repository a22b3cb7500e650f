# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Attach a disk in user space: qemu-storage-daemon shows it as a raw file (FUSE), a loop device makes it mountable.

Needs no kernel module beyond fuse and loop, has no device numbers to fight over, and is quicker than nbd.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import json
import os
import shutil
import subprocess
import time
import typing as t

from .._command import run
from .._errors import NovaliteError
from . import loop
from .daemon import DAEMON_LIMITS, start, stop
from .partition import Partition
from .syscalls import unmount

EXPORT_TIMEOUT = 30.0  # seconds
POLL = 0.002
FUSE = "/dev/fuse"


@dataclasses.dataclass(frozen=True)
class FuseDisk:
    """An attached disk; `device` is the raw file that is its whole content."""

    device: str
    work: str
    read_only: bool

    @contextlib.contextmanager
    def block_device(self, partition: Partition | None) -> t.Iterator[str]:
        """A loop device over `partition` (None: over the whole disk); FUSE files have no partition nodes."""
        offset, size = (partition.start, partition.size) if partition else (0, 0)
        with loop.attached(
            self.device, os.path.join(self.work, "loop"), offset=offset, size=size, read_only=self.read_only
        ) as node:
            yield node


def is_available() -> bool:
    """Whether this host can attach disks in this way."""
    return shutil.which("qemu-storage-daemon") is not None and (
        os.path.exists(FUSE) or run(["modprobe", "fuse"], ok=range(256)).rc == 0
    )


@contextlib.contextmanager
def attached(disk: str, disk_format: str, read_only: bool, work: str) -> t.Iterator[FuseDisk]:
    """Export `disk`, of the recorded format, as a file below `work`, a private directory with an absolute path.

    The daemon is a child in the foreground: with --daemonize it would be reaped by init, late, and unmount a
    relative path from "/".
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
    block = {
        "driver": disk_format,
        "node-name": "disk",
        "read-only": read_only,
        "file": {"driver": "file", "filename": disk, "read-only": read_only},
    }
    export = {
        "type": "fuse",
        "id": "export",
        "node-name": "disk",
        "mountpoint": exported,
        "writable": not read_only,
        "allow-other": "off",
    }
    daemon = start(
        ["qemu-storage-daemon", "--blockdev", json.dumps(block), "--export", json.dumps(export), "--pidfile", ready],
        work,
        DAEMON_LIMITS,
    )
    try:
        _wait_ready(daemon, ready)
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


def _wait_ready(daemon: subprocess.Popen[bytes], ready: str) -> None:
    """The daemon writes its pid file after its exports are up."""
    deadline = time.monotonic() + EXPORT_TIMEOUT
    while not os.path.exists(ready):
        if daemon.poll() is not None:
            raise NovaliteError("the disk was not exported")  # stop() says why
        if time.monotonic() > deadline:
            raise NovaliteError(f"the disk was not exported within {EXPORT_TIMEOUT:g} s")
        time.sleep(POLL)
