# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files that an image record names: what they are, how large, and their SHA-256. No SQL here."""

from __future__ import annotations

import logging
import os
import re
import stat
import time
import typing as t
import urllib.parse

from ..._disk.inspect import inspect_image
from ..._disk.sparse import sha256_of
from ..._errors import ImageRefusedError, NovaliteError
from ..._rules.records import check_text

CHECKSUM = re.compile(r"sha256:[0-9a-f]{64}")
SOURCE_LENGTH = 2048
FILE_URL = "file://"
LOG = logging.getLogger("novalite.images")
REPORT_AFTER, REPORT_EVERY = 5.0, 30.0  # seconds
GIB = 1 << 30
# What a host opens as a disk, and as which format. The rest is kept and given back, and no program of ours reads it.
LAUNCHED_AS = {"raw": "raw", "qcow2": "qcow2", "ami": "raw", "iso": "iso"}

# {"source", "checksum", "size", "virtual_size", "stat"}: sizes in bytes, 0 where a URL has not been fetched yet; stat
# is [size, mtime in ns] of a local file, null for a URL
File = dict[str, t.Any]


def measure(
    what: str, source: str, checksum: str | None, disk_format: str | None, known: File | None, any_content: bool = False
) -> File:
    """Return the record of `source`, an absolute path or file: URL on the controller, or an http(s) URL.

    A local file is read in full, unless its size and time are those of `known`: it must be what `disk_format` says
    (None: a kernel or ramdisk, which has no format), and match `checksum` when one is given. A URL is not fetched, and
    needs its checksum. `what` names the image in errors. A raw disk shows a sign that it is one, unless it is meant to
    have `any_content`. Raises NovaliteError.
    """
    check_text(f"{what}: source", source, SOURCE_LENGTH)
    if checksum is not None and not CHECKSUM.fullmatch(checksum):
        raise NovaliteError(f"{what}: checksum {checksum[:80]!r} is not of the form sha256:<64 hex digits>")
    source = local_path(what, source)
    if "://" in source:
        return _remote(what, source, checksum)
    if not os.path.isabs(source):
        raise NovaliteError(f"{what}: source {source!r} is neither an absolute path nor an http(s) URL")
    try:
        return _local(what, source, checksum, disk_format, known, any_content)
    except OSError as error:
        raise NovaliteError(f"{what}: source {source} on the controller: {error.strerror}") from error


def inspected(path: str, disk_format: str, name: str) -> int:
    """The virtual size in bytes of what came in from a stranger as `disk_format`; 0 where a host cannot start that.

    Raises ImageRefusedError, which calls the file `name`.
    """
    if disk_format in LAUNCHED_AS:
        return inspect_image(path, LAUNCHED_AS[disk_format], name=name, content="unpacked").virtual_size
    if not os.stat(path).st_size:
        raise ImageRefusedError(f"{name} are empty")
    return 0


class _Progress:
    """Lines of the log about a file that takes long to read."""

    def __init__(self, what: str, size: int) -> None:
        self.what = what
        self.size = size
        self.began = time.monotonic()
        self.next = self.began + REPORT_AFTER

    def report(self, done: int) -> None:
        """Say how much is `done`, in bytes, and how long the rest will take; now and then."""
        now = time.monotonic()
        if now < self.next:
            return
        self.next = now + REPORT_EVERY
        left = (now - self.began) * (self.size - done) / done
        LOG.info(
            "%s: its checksum is computed: %.1f of %.1f GiB, about %d s left",
            self.what, done / GIB, self.size / GIB, left,
        )  # fmt: skip


def local_path(what: str, source: str) -> str:
    """The path that a file: URL names, for such a URL is kept as that path; any other `source` as it is."""
    if not source.startswith(FILE_URL):
        return source
    parts = urllib.parse.urlsplit(source)
    if parts.netloc not in ("", "localhost") or parts.query or parts.fragment:
        raise NovaliteError(f"{what}: source {source!r} is not a file of the controller: use file:///path")
    path = urllib.parse.unquote(parts.path)
    return check_text(f"{what}: source", path, SOURCE_LENGTH)


def _remote(what: str, source: str, checksum: str | None) -> File:
    try:
        parts = urllib.parse.urlsplit(source)
    except ValueError as error:
        raise NovaliteError(f"{what}: source {source!r} is not an http(s) URL: {error}") from error
    if parts.scheme not in ("http", "https") or not parts.hostname or " " in source:
        raise NovaliteError(f"{what}: source {source!r} is not an http(s) URL")
    if parts.username is not None or parts.password is not None:
        # it would be shown with the record, and in the arguments of every task that carries it to a host
        raise NovaliteError(f"{what}: source on {parts.hostname} carries a user or a password: use a URL without")
    if checksum is None:
        raise NovaliteError(f"{what}: source {source} is a URL: give its checksum, so that hosts can verify it")
    return {"source": source, "checksum": checksum, "size": 0, "virtual_size": 0, "stat": None}


def _local(
    what: str, source: str, checksum: str | None, disk_format: str | None, known: File | None, any_content: bool
) -> File:
    # O_NONBLOCK: to open a FIFO would wait for its writer
    with open(os.open(source, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb", buffering=0) as handle:
        status = os.fstat(handle.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise NovaliteError(f"{what}: source {source} is not a regular file")
        if not status.st_size:
            raise NovaliteError(f"{what}: source {source} is empty")
        seen = [status.st_size, status.st_mtime_ns]
        if known is not None and known["source"] == source and known["stat"] == seen:
            file = known
        else:
            virtual_size = 0
            if disk_format is not None:
                virtual_size = inspect_image(
                    source, disk_format, name=f"{what}: source {source}", content="unpacked" if any_content else "disk"
                ).virtual_size
            progress = _Progress(f"{what}: source {source}", status.st_size)
            checksum_there = sha256_of(handle.fileno(), progress.report)
            file = {
                "source": source,
                "checksum": f"sha256:{checksum_there}",
                "size": status.st_size,
                "virtual_size": virtual_size,
                "stat": seen,
            }
    if checksum not in (None, file["checksum"]):
        raise NovaliteError(f"{what}: source {source} has the checksum {file['checksum']}, not {checksum}")
    return file
