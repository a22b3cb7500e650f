# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The time that a step may take on its host, and an alarm that ends what takes longer.

The host ends a step by itself, so that its undo runs there; the controller waits a while longer, and gives up on a host
that has not said even that. What guards a single command (`command.run`) is shorter: these limits are for what hangs
where nobody thought of it, so they are generous.
"""

from __future__ import annotations

import contextlib
import math
import signal
import threading
import time
import typing as t

from .._json import JsonMapping

DEFAULT = 900.0  # seconds: some locks (60 s each) and commands (120 s)
UNDO = 120.0  # seconds that a step gets to take back what it did, before its process is killed
ANSWER = 30.0  # seconds for the way there and back
_LOCK = 1800.0  # of the disks: another run may be copying raw ones (_disk/overlay.py)
_COPY = 6 * 3600.0  # a disk of unknown size: _disk/volumes.py, _disk/lvm.py, _domain/volumes.py
_SENT = 4 * 3600.0  # _transfer/transfer.py
_BACKUP = 24 * 3600.0  # all disks of a server, whatever their size
_MOVED = 12 * 3600.0  # the lifetime of a move's key (_transfer/channel.py)
_SLOWEST = 20 << 20  # bytes a second that the slowest disk reads and writes
_SLOWEST_WIRE = 1 << 20  # bytes a second of the slowest download that is waited for
_GIB = 1 << 30


class OverdueError(BaseException):
    """A step that takes too long. None of the errors that a module expects, which would have it go on: what is to be
    taken back is taken back, and the step ends."""


def of_trip(steps: t.Iterable[JsonMapping]) -> float:
    """Seconds after which nobody waits any more for an answer to these steps (`module`, `args`)."""
    return sum(of_step(step["module"], step["args"]) for step in steps) + UNDO + ANSWER


def of_file(size: int) -> float:
    """Seconds that a file of so many bytes may be on its way between the controller and a host."""
    return DEFAULT + size / _SLOWEST_WIRE


def of_step(module: str, args: JsonMapping) -> float:
    """Seconds that a step of this module with these arguments may take on its host.

    What waits has an option that says how long (`timeout`): for each of the things that it is about, of which there may
    be a list.
    """
    things = max([1, *(len(value) for value in args.values() if isinstance(value, list))])
    seconds = DEFAULT + things * float(args.get("timeout") or 0) * int(args.get("attempts") or 1)
    return seconds + (_MORE[module](args) if module in _MORE else 0.0)


def _of_images(args: JsonMapping) -> float:
    """Downloads, looks and conversions, by this run or by the one that it waits for."""
    images = args.get("images") or []
    wire = sum(float(image.get("size") or 0) for image in images) / _SLOWEST_WIRE
    disk = sum(float(image.get("virtual_size") or image.get("size") or 0) for image in images) / _SLOWEST
    return 2 * (wire + disk) + len(images) * _LOCK


def _of_disks(args: JsonMapping) -> float:
    if args.get("state") == "absent":
        return _LOCK + (_COPY if args.get("wipe") not in (None, "none") else 0.0)
    gib = sum(float(disk.get(key) or 0) for disk in args["disks"] for key in ("virtual_size_gb", "ephemeral_gb"))
    return _LOCK + gib * _GIB / _SLOWEST + (_COPY if args.get("state") == "anew" else 0.0)


def _each(seconds: float, option: str) -> t.Callable[[JsonMapping], float]:
    return lambda args: seconds * len(args.get(option) or ())


def _of_power(args: JsonMapping) -> float:
    waits = [domain.get("shutdown_timeout") or args.get("shutdown_timeout") or 0 for domain in args["domains"]]
    return max(map(float, waits), default=0.0) + 600.0 * len(waits)  # libvirt writes a guest's memory to a file


_MORE: dict[str, t.Callable[[JsonMapping], float]] = {
    "backup_files": lambda _args: _BACKUP,
    "config_drive": _each(60.0, "config_drives"),
    "disk": _of_disks,
    "disk_move": lambda args: _LOCK + (_SENT if args["state"] == "sent" else _COPY) * math.ceil(_count(args) / 4),
    "disk_snapshot": _each(_COPY, "snapshots"),
    "domain_cdroms": lambda _args: _LOCK,
    "domain_power": _of_power,
    "image_cache": _of_images,
    "live_migration": _each(_MOVED, "moves"),
    "nbd_inject": _each(600.0, "instances"),  # to connect, look for the partition, mount, disconnect
    "nfs_mount": _each(60.0, "shares"),
    "server_backup": _each(_BACKUP, "backups"),
    "server_replica": _each(_BACKUP, "copies"),
    "server_snapshot": _each(_COPY, "snapshots"),
    "volume_backup": _each(_BACKUP, "backups"),
    "volume_disk": _each(_COPY, "volumes"),
}


def _count(args: JsonMapping) -> int:
    return len(args.get("moves") or args.get("disks") or ())


@contextlib.contextmanager
def limited(seconds: float, message: str) -> t.Iterator[None]:
    """Raise OverdueError(message) in the block if it takes longer than `seconds`.

    By the process's alarm, which a signal handler of Python hears as soon as the main thread runs Python again: neither
    a thread of Python nor a call into C is interrupted. An alarm that is set already, such as that of Ansible's keyword
    `timeout` (signal.alarm(), as of 2.19), stays the one that counts where it is due earlier, and is set again
    afterwards.
    """

    def ring(signum: int, frame: object) -> None:
        raise OverdueError(message)

    due, _interval = signal.getitimer(signal.ITIMER_REAL)
    if threading.current_thread() is not threading.main_thread() or 0 < due <= seconds:
        yield
        return
    began, before = time.monotonic(), signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.signal(signal.SIGALRM, before)
        if due:
            signal.setitimer(signal.ITIMER_REAL, max(due - (time.monotonic() - began), 0.001))
