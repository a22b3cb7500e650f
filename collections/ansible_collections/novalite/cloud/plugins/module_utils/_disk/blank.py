# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Empty disks, file systems and swap areas that every disk of one kind and size is an overlay, or a copy, of.

Their names in the cache are made of a kind and a size in the flavor's units, and of nothing that a user gives: with
names that an image's properties took part in, one user could fill a host (CVE-2013-6437).
"""

from __future__ import annotations

import os

from .._errors import NovaliteError
from .._host.command import run
from .._host.files import make_private, remove_file, sync
from .._host.locks import locked
from . import layout

EPHEMERAL = "ephemeral"
SWAP = "swap"
EMPTY = "empty"  # for a root disk that a system is installed on
KINDS = (EPHEMERAL, SWAP, EMPTY)
LABEL = "ephemeral0"  # Nova's label; cloud-init mounts the file system by it
GIB = 1 << 30
MIB = 1 << 20
MAX_SIZE = 16 << 40  # bytes; the largest file on ext4
LOCK_TIMEOUT = 300.0  # seconds


def blank_name(kind: str, size: int) -> str:
    """Name of an empty disk in the cache: `size` in MiB for swap, in GiB for others. Raises NovaliteError."""
    unit = MIB if kind == SWAP else GIB
    if not 0 < size * unit <= MAX_SIZE:
        raise NovaliteError(f"a disk for {kind} cannot have {size} {'MiB' if kind == SWAP else 'GiB'}")
    return f"{kind}_{size}"


def is_blank(name: str) -> bool:
    """Tell whether the file of this name in the cache is an empty disk, and no image."""
    return name.partition("_")[0] in KINDS


def ensure_blank(name: str, state_dir: str) -> str:
    """Make the empty disk `name` (of blank_name) unless it is there; returns its path. Raises NovaliteError."""
    path = layout.base_path(state_dir, name)
    if not os.path.exists(path):
        with locked(layout.lock_name(name), timeout=LOCK_TIMEOUT):
            if not os.path.exists(path):
                _make(name, path)
    return path


def blank_size(name: str) -> int:
    """The size in bytes of the empty disk `name`."""
    kind, _sep, size = name.partition("_")
    return int(size) * (MIB if kind == SWAP else GIB)


def _make(name: str, path: str) -> None:
    part = f"{path}.part"
    try:
        make_private(part)
        os.truncate(part, blank_size(name))
        if name.startswith(EPHEMERAL):
            # lazy: the guest's kernel fills in the inode tables; the file stays a few MiB
            run(["mke2fs", "-q", "-F", "-t", "ext4", "-L", LABEL, "-E", "lazy_itable_init=1,lazy_journal_init=1", part])
        elif name.startswith(SWAP):
            run(["mkswap", part])
        sync(part, 0o444)
        os.rename(part, path)
    except OSError as error:
        raise NovaliteError(f"{path} cannot be made: {error.strerror}") from error
    finally:
        remove_file(part)
