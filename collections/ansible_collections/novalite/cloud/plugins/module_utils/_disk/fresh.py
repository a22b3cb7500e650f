# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a guest can have written to the disk that an instance starts from: a file beside a new one says no.

The file is made with the disk (or with the directory of an instance that starts from a volume), and goes before its
domain is defined, whoever may start that then. Without it, as beside disks that came from another host or are older
than this, the disk is a guest's, and the host's kernel reads no file system of it.
"""

from __future__ import annotations

import contextlib
import os
import typing as t
from xml.etree import ElementTree

from .._host import write_atomically
from . import layout

FRESH = "disk.fresh"
FRESH_RESCUE = FRESH + layout.RESCUE


def note_fresh(directory: str, disk: str) -> None:
    """Record that the root disk with the file name `disk` was made just now in this instance's directory."""
    write_atomically(os.path.join(directory, beside(disk)), "", 0o600)


def is_fresh(directory: str, disk: str) -> bool:
    """Whether no guest can have had that disk."""
    return os.path.lexists(os.path.join(directory, beside(disk)))


def forget_fresh(xml: str) -> None:
    """Record that a domain is about to have the disks beside the files that its `xml` names."""
    for directory in sorted(_directories(xml)):
        gone = False
        for name in (FRESH, FRESH_RESCUE):
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                os.unlink(os.path.join(directory, name))
                gone = True
        if gone:
            handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(handle)  # what the guest writes must not be on the disk before this is
            finally:
                os.close(handle)


def beside(disk: str) -> str:
    """The name of the file that speaks of this disk."""
    return FRESH_RESCUE if disk.endswith(layout.RESCUE) else FRESH


def _directories(xml: str) -> t.Iterable[str]:
    """Of disks, and of the console's log: a guest that starts from a volume has only that in its directory."""
    values = (element.get(name) for element in ElementTree.fromstring(xml).iter() for name in ("file", "path"))
    return {os.path.dirname(path) for path in values if path and os.path.isabs(path)}
