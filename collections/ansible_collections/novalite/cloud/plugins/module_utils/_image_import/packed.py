# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compressed files, unpacked by their own programs: as nobody, with bounded memory, and never beyond a size."""

from __future__ import annotations

import os
import posixpath
import re
import shutil
import signal

from .._errors import ImageRefusedError
from .._host.command import CommandError
from .._host.confined import Limits, run_confined
from .._host.files import opened

MAX_SIZE = 64 << 30  # bytes, unpacked
MEMORY = 512 << 20  # bytes: `xz -9` needs 65 MiB, a zstd file of a window of 128 MiB a little more
SECONDS = 3600
PROGRAMS = {
    ".xz": ("xz", "--decompress", "--stdout", "--format=xz", "--memlimit-decompress=256MiB"),
    ".gz": ("gzip", "--decompress", "--stdout"),
    ".bz2": ("bzip2", "--decompress", "--stdout"),
    ".zst": ("zstd", "--decompress", "--stdout", "--quiet", "--memory=128MB"),
}  # by the suffix of a file's name


def suffix_of(source: str) -> str | None:
    """The suffix of a compressed file, by its path or URL; None for any other file."""
    path = re.split("[?#]", source)[0] if "://" in source else source
    suffix = posixpath.splitext(path)[1].lower()
    return suffix if suffix in PROGRAMS else None


def unpack(packed: str, suffix: str, path: str, name: str) -> None:
    """Unpack the file `packed`, compressed as its `suffix` says, into the new file `path`; messages call it `name`.

    Raises ImageRefusedError for what is damaged, of another kind or cut off, and for what would become larger than
    MAX_SIZE or than what is free here; CommandError where the program is missing or too slow; OSError.
    """
    limit = min(MAX_SIZE, shutil.disk_usage(os.path.dirname(path)).free)
    limits = Limits(memory=MEMORY, cpu=SECONDS, file_size=limit)
    with opened(packed) as source, opened(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as target:
        try:
            run_confined(PROGRAMS[suffix], stdin=source, stdout=target, limits=limits, timeout=float(SECONDS))
        except CommandError as error:
            if error.rc in (124, 127):
                raise
            if -error.rc == signal.SIGXFSZ or os.fstat(target).st_size >= limit:
                raise ImageRefusedError(f"{name} is larger than the {limit} bytes that are accepted") from error
            raise ImageRefusedError(f"{name} cannot be unpacked: {error}") from error
