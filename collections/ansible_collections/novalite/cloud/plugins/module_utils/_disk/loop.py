# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Loop devices by ioctl: AUTOCLEAR is set in the same call that attaches, so a killed process leaves none behind."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import struct
import time
import typing as t

from .._command import run
from .._errors import NovaliteError

CONTROL = "/dev/loop-control"
LOOP_CTL_GET_FREE = 0x4C82
LOOP_CONFIGURE = 0x4C0A
LOOP_CLR_FD = 0x4C01
LO_FLAGS_READ_ONLY = 1
LO_FLAGS_AUTOCLEAR = 4
# struct loop_config: fd, block size, struct loop_info64 (offset, size limit and flags matter here), reserved.
LOOP_CONFIG = struct.Struct("=II 5Q 4I 64s 64s 32s 2Q 8Q")
ATTEMPTS = 200
DETACH_TIMEOUT = 10.0  # seconds


@contextlib.contextmanager
def attached(path: str, node: str, *, offset: int = 0, size: int = 0, read_only: bool = False) -> t.Iterator[str]:
    """Attach `size` bytes (0: all) of the file `path` from `offset` to a free loop device; yields `node`.

    `node` is where the device node is made: the host's own /dev may lack it (no udev, a container, more devices
    than max_loop). Raises NovaliteError.
    """
    mode = os.O_RDONLY if read_only else os.O_RDWR
    try:
        if not os.path.exists(CONTROL):
            run(["modprobe", "loop"])
        backing = os.open(path, mode | os.O_CLOEXEC)
    except OSError as error:
        raise NovaliteError(f"{path} cannot be opened: {error.strerror}") from error
    try:
        number, device = _configure(backing, node, mode, offset, size)
    finally:
        os.close(backing)
    try:
        yield node
    finally:
        fcntl.ioctl(device, LOOP_CLR_FD)
        os.close(device)
        os.unlink(node)
        _wait_detached(number, path)


def _configure(backing: int, node: str, mode: int, offset: int, size: int) -> tuple[int, int]:
    flags = LO_FLAGS_AUTOCLEAR | (LO_FLAGS_READ_ONLY if mode == os.O_RDONLY else 0)
    config = LOOP_CONFIG.pack(backing, 0, 0, 0, 0, offset, size, 0, 0, 0, flags, b"novalite", b"", b"", *[0] * 10)
    for _attempt in range(ATTEMPTS):
        try:
            with open(CONTROL, "rb") as control:
                number = fcntl.ioctl(control.fileno(), LOOP_CTL_GET_FREE)
            with open(f"/sys/block/loop{number}/dev", encoding="ascii") as handle:
                major, minor = handle.read().split(":")
            os.mknod(node, stat.S_IFBLK | 0o600, os.makedev(int(major), int(minor)))
            device = os.open(node, mode | os.O_CLOEXEC)
        except OSError as error:
            _forget(node)
            if error.errno in (errno.ENXIO, errno.ENOENT, errno.EBUSY) and os.path.exists(CONTROL):
                continue  # the device was taken away between two of these steps
            raise NovaliteError(f"no loop device: {error.strerror}; injection needs {CONTROL}") from error
        try:
            fcntl.ioctl(device, LOOP_CONFIGURE, config)
            return number, device
        except OSError as error:
            os.close(device)
            _forget(node)
            if error.errno != errno.EBUSY:  # EBUSY: another process was quicker; ask for the next one
                raise NovaliteError(f"loop device {number} cannot be set up: {error.strerror}") from error
    raise NovaliteError(f"no free loop device after {ATTEMPTS} attempts; look at `losetup --list`")


def _forget(node: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(node)


def _wait_detached(number: int, path: str) -> None:
    """Detaching is asynchronous after an unmount; the file may be closed under it only when it is done."""
    deadline = time.monotonic() + DETACH_TIMEOUT
    while True:
        try:
            with open(f"/sys/block/loop{number}/loop/backing_file", encoding="utf-8") as handle:
                backing = handle.read().strip()
        except OSError:
            return
        if backing != path:  # somebody else has it already
            return
        if time.monotonic() > deadline:
            raise NovaliteError(
                f"/dev/loop{number} still holds {path} after {DETACH_TIMEOUT:g} s; "
                f"run losetup --detach /dev/loop{number}"
            )
        time.sleep(0.002)
