# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The disks of a guest that is off, and files that backups are restored to: by qemu-nbd and qemu-img.

A disk's format is declared and its base named; of what a header says, that it names a base is all that is believed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import socket as sockets
import subprocess
import tempfile
import typing as t

from .._errors import NovaliteError
from .._host.command import CommandError, run
from .._host.confined import ANY_SIZE, Limits, bounded
from .._host.waiting import wait_until
from .._json import JsonObject
from . import export
from .blocks import BLOCK
from .domain_xml import QCOW2, Disk
from .export import Export

TIMEOUT = 60.0  # seconds
_MEMORY = 2 << 30  # bytes
EXPORT = "disk"


@dataclasses.dataclass(frozen=True)
class Bitmap:
    """A bitmap in a qcow2: one that is in use was not written back when its QEMU ended, and tells nothing."""

    name: str
    is_sound: bool


def look(disk: Disk, base: str | None) -> list[Bitmap]:
    """List the bitmaps in the disk of a guest that is off. Raises NovaliteError where the disk's header and `base`, the
    raw file below it, do not fit together, or where a QEMU has it open."""
    argv = ["qemu-img", "info", "--output=json", "-f", disk.fmt, disk.source]
    limits = Limits(memory=_MEMORY, cpu=int(TIMEOUT))
    header: JsonObject = json.loads(run([*bounded(limits, "dac_override"), *argv], timeout=TIMEOUT).stdout)
    if bool(header.get("backing-filename")) != (base is not None):
        names = f"names {header['backing-filename']}" if header.get("backing-filename") else "names nothing"
        raise NovaliteError(f"disk {disk.source} {names} below it instead of {base or 'nothing'}: commit its snapshots")
    data = (header.get("format-specific") or {}).get("data") or {}
    return [Bitmap(each["name"], "in-use" not in each["flags"]) for each in data.get("bitmaps") or ()]


def add_bitmap(disk: Disk, name: str) -> None:
    """Begin a bitmap in a qcow2 whose guest is off. Raises CommandError."""
    _bitmap(disk, name, "--add", "-g", str(BLOCK))


def remove_bitmap(disk: Disk, name: str) -> None:
    """Remove a bitmap from a qcow2 whose guest is off. Raises CommandError."""
    _bitmap(disk, name, "--remove")


def _bitmap(disk: Disk, name: str, *words: str) -> None:
    argv = ["qemu-img", "bitmap", *words, "-f", disk.fmt, disk.source, name]  # it opens nothing below the disk
    limits = Limits(memory=_MEMORY, cpu=int(TIMEOUT), file_size=ANY_SIZE)
    run([*bounded(limits, "dac_override"), *argv], timeout=TIMEOUT)


def opened(disk: Disk, base: str | None, bitmap: str | None = None, write: bool = False) -> t.ContextManager[Export]:
    """Export a disk that no QEMU has open, with this bitmap, for reading or for writing. Raises NovaliteError."""
    return _served(_image(disk.source, disk.fmt, base), bitmap, write)


@contextlib.contextmanager
def connected(disk: Disk) -> t.Iterator[int]:
    """Export a disk that no QEMU has open, for reading; yields a socket that is connected to its server, whose export
    is EXPORT. Raises NovaliteError."""
    image = _image(disk.source, disk.fmt, None)
    with _listening(image, None, False) as path, sockets.socket(sockets.AF_UNIX) as client:
        client.connect(path)
        yield client.fileno()


@contextlib.contextmanager
def _served(image: JsonObject, bitmap: str | None, write: bool) -> t.Iterator[Export]:
    with _listening(image, bitmap, write) as socket, export.opened(socket, EXPORT, bitmap) as opened_export:
        yield opened_export


@contextlib.contextmanager
def _listening(image: JsonObject, bitmap: str | None, write: bool) -> t.Iterator[str]:
    """Run a server; yields the path of its socket."""
    with tempfile.TemporaryDirectory(prefix="novalite-nbd-") as directory, tempfile.TemporaryFile() as errors:
        socket = os.path.join(directory, "socket")
        argv = [
            "qemu-nbd",
            "--socket",
            socket,
            "--export-name",
            EXPORT,
            "--persistent",
            "--shared=0",
            "--discard=unmap",
            *([] if write else ["--read-only"]),
            *([] if bitmap is None else ["--bitmap", bitmap]),
            f"json:{json.dumps(image)}",
        ]
        limits = Limits(memory=_MEMORY, cpu=1 << 30, file_size=ANY_SIZE)
        with subprocess.Popen(
            [*bounded(limits, "dac_override", options=["--pdeathsig", "KILL"]), *argv],  # it would hold the disk
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
        ) as process:
            try:
                complaint = f"qemu-nbd did not start within {TIMEOUT:g} s"
                wait_until(lambda: process.poll() is not None or _is_heard(socket), TIMEOUT, complaint)
                if process.poll() is not None:
                    errors.seek(0)
                    raise CommandError(argv, process.returncode, errors.read(4096).decode(errors="replace"))
                yield socket
            finally:
                process.terminate()
                try:
                    process.wait(TIMEOUT)
                except subprocess.TimeoutExpired:  # a signal that comes before its main loop is lost on it
                    process.kill()


def _is_heard(path: str) -> bool:
    """Tell whether somebody listens at a socket: qemu-nbd binds it a moment before."""
    with contextlib.closing(sockets.socket(sockets.AF_UNIX)) as client:
        return client.connect_ex(path) == 0


def _image(path: str, fmt: str, base: str | None) -> JsonObject:
    """Return how QEMU opens the file: with its format, and those of what is below it, by name."""
    options: JsonObject = {"driver": fmt, "file": {"driver": "file", "filename": path}}
    if os.path.exists(path) and not os.path.isfile(path):
        options["file"]["driver"] = "host_device"
    if fmt == QCOW2:
        options["backing"] = None if base is None else {"driver": "raw", "file": {"driver": "file", "filename": base}}
    return options


def make(path: str, size: int) -> None:
    """Make an empty qcow2 of `size` bytes at `path`. Raises CommandError."""
    run(["qemu-img", "create", "-q", "-f", QCOW2, path, str(size)], timeout=TIMEOUT)
