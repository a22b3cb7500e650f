# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The Linux system calls that Python's standard library does not wrap: mounts, a mount namespace, openat2."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import threading
import typing as t

from .._errors import NovaliteError
from .._host.waiting import retried

R = t.TypeVar("R")

CLONE_NEWNS = 0x00020000
MS_RDONLY = 0x1
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_REMOUNT = 0x20
MS_BIND = 0x1000
MS_REC = 0x4000
MS_SLAVE = 0x80000

SYS_OPENAT2 = 437  # the same on every architecture since Linux 5.6
RESOLVE_NO_XDEV = 0x01
RESOLVE_NO_MAGICLINKS = 0x02
RESOLVE_IN_ROOT = 0x10
BUSY_TIMEOUT = 5.0  # seconds

OPEN_HOW = struct.Struct("QQQ")  # flags, mode, resolve

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def _checked(result: int, path: str) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), path)
    return result


def mount(source: str, target: str, fstype: str, flags: int, data: str = "") -> None:
    """mount(2). Raises OSError."""
    _checked(
        _libc.mount(
            os.fsencode(source), os.fsencode(target), fstype.encode(), ctypes.c_ulong(flags), data.encode() or None
        ),
        target,
    )


def unmount(target: str) -> None:
    """umount(2), never lazy, which would hide that something still writes. While another thread starts a program, its
    child has our open files until it calls exec; that passes. Raises OSError."""
    retried(lambda: _checked(_libc.umount2(os.fsencode(target), 0), target), errno.EBUSY, BUSY_TIMEOUT, pause=0.002)


def open_in_root(root: int, path: str, flags: int) -> int:
    """Open `path` as if the directory `root` were "/": no symbolic link, "..", mount or /proc link leaves it.

    The kernel decides while it walks the path (openat2), so nothing can change between a check and its use, which
    is how CVE-2012-3361 and CVE-2012-3447 came about. Raises OSError; NovaliteError on Linux before 5.6.
    """
    how = OPEN_HOW.pack(flags | os.O_CLOEXEC, 0, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV)
    arguments = ctypes.c_int(root), os.fsencode(path), how, ctypes.c_size_t(len(how))
    try:
        # EAGAIN: a link with ".." in it, while something was renamed or mounted anywhere on the host: the kernel cannot
        # say that the walk stayed inside, and lets us ask again.
        return retried(
            lambda: _checked(_libc.syscall(ctypes.c_long(SYS_OPENAT2), *arguments), path),
            errno.EAGAIN,
            BUSY_TIMEOUT,
            pause=0,
        )
    except OSError as error:
        if error.errno != errno.ENOSYS:
            raise
        raise NovaliteError(
            "this host's kernel has no openat2: injection needs Linux 5.6 or newer; use a config drive"
        ) from None


def with_private_mounts(work: t.Callable[[], R]) -> R:
    """Return what `work` does in a thread that has a mount namespace of its own: nobody else sees what it mounts, and
    all of it vanishes with the thread, or with the process on `kill -9`.

    A thread, not a forked child: Linux keeps namespaces per thread, and a module that is several threads must not go on
    in Python after fork(), where a lock of another thread stays locked for ever. A process that the thread starts
    shares its namespace, and PR_SET_PDEATHSIG counts from the death of this thread, which waits for it.
    """
    results: list[R] = []
    errors: list[BaseException] = []

    def body() -> None:
        try:
            # Implies CLONE_FS; unlike most namespaces this one may be left by one thread of many.
            _checked(_libc.unshare(CLONE_NEWNS), "/")
            # Slave, not private: nothing goes out, but an unmount on the host still comes in, so that this
            # namespace does not keep some unrelated device busy.
            mount("none", "/", "", MS_REC | MS_SLAVE)
            results.append(work())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=body, name="novalite-mounts")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]
