# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files of the images that clients upload, on the controller: one each, named by the image's id. No SQL here.

What comes in lies under another name until it is whole. Several controllers or API nodes mount the same directory.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import time
import typing as t

from ..._errors import BrokenOffError, TooLargeError
from ..db.engine import DEFAULT_HOME

CHUNK = 1 << 20
MIB = 1 << 20
RESERVE = 256 * MIB  # that stay free in the file system of the store
REPORT_BYTES = 64 * MIB
REPORT_SECONDS = 10.0
PART, STAGED = ".part", ".staged"


Report = t.Callable[[int], None]


class Received(t.NamedTuple):
    """Received data: their size in bytes, and their checksums in hexadecimal."""

    size: int
    sha256: str
    md5: str


def home_of(home: str | None) -> str:
    """The directory of the ledger, and of what belongs to it."""
    return os.path.abspath(home or os.environ.get("NOVALITE_HOME") or DEFAULT_HOME)


def directory(home: str | None) -> str:
    return os.path.join(home_of(home), "images")


def file_of(home: str | None, image_id: str) -> str:
    """Return the path of an image's data that came in through an API, or from an instance."""
    return os.path.join(directory(home), image_id)


def part_of(home: str | None, image_id: str, transfer: str) -> str:
    """Return the path of data while they come in."""
    return os.path.join(directory(home), f".{image_id}.{transfer}{PART}")


def staged_of(home: str | None, image_id: str) -> str:
    """Return the path of data that wait for an import."""
    return os.path.join(directory(home), f".{image_id}{STAGED}")


def receive(stream: t.Any, path: str, limit: int, report: Report, expected: int | None = None) -> Received:
    """Write what `stream` gives to the new file `path`, and it is on the disk on return.

    Never more than a chunk of it is in memory. `report` is told the bytes that came, now and then; what it raises ends
    all. Raises TooLargeError for more than `limit` bytes, or than fit, BrokenOffError for fewer than `expected`.
    """
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    sha256, md5 = hashlib.sha256(), hashlib.md5(usedforsecurity=False)
    size = reported = 0
    last = time.monotonic()
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with open(fd, "wb", buffering=0) as target:
            check_room(path, expected or 0)
            while chunk := _read(stream):
                size += len(chunk)
                if size > limit:
                    raise TooLargeError(f"the image is larger than the {limit} bytes that it may have")
                target.write(chunk)
                sha256.update(chunk)
                md5.update(chunk)
                if size - reported >= REPORT_BYTES or time.monotonic() - last >= REPORT_SECONDS:
                    reported, last = size, time.monotonic()
                    check_room(path, 0)
                    report(size)
            if expected is not None and size != expected:
                raise BrokenOffError(f"the upload ended after {size} of {expected} bytes")
            os.fsync(target.fileno())
    except BaseException:
        remove(path)
        raise
    return Received(size, sha256.hexdigest(), md5.hexdigest())


def _read(stream: t.Any) -> bytes:
    try:
        return t.cast(bytes, stream.read(CHUNK))
    except OSError as error:  # a server's word for a client that went away, or is silent
        raise BrokenOffError(f"the upload broke off: {type(error).__name__}") from error


def check_room(path: str, size: int) -> None:
    """Raise TooLargeError unless `size` more bytes fit into the store, and some are left then."""
    free = shutil.disk_usage(os.path.dirname(path)).free
    if free - size < RESERVE:
        raise TooLargeError(f"there is no room for the image: {max(0, free - RESERVE)} bytes are left in the store")


def free(path: str) -> int:
    """Return the bytes that may still be written beside `path`."""
    return max(0, shutil.disk_usage(os.path.dirname(path)).free - RESERVE)


def measured(path: str) -> Received:
    """Return the size and the checksums of the file."""
    with open(path, "rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        file.seek(0)
        md5 = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
        return Received(os.fstat(file.fileno()).st_size, sha256, md5)


def put_in_place(part: str, path: str) -> None:
    """Give a file that is whole its name, also after a crash. Raises OSError."""
    os.rename(part, path)
    fd = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def remove(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def claim(staged: str, part: str) -> None:
    """Take a staged file for the one who imports it, under the name `part`. Raises OSError."""
    put_in_place(staged, part)
    os.utime(part)  # it is in use from now on, however long it was staged


def entries(home: str | None) -> list[tuple[str, float]]:
    """(name, time of the last write) of every file in the store."""
    files = []
    with contextlib.suppress(FileNotFoundError):
        for entry in os.scandir(directory(home)):
            with contextlib.suppress(FileNotFoundError):
                if entry.is_file(follow_symlinks=False):
                    files.append((entry.name, entry.stat(follow_symlinks=False).st_mtime))
    return files
