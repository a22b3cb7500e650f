# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Data of a download: its source, its result, and the part of a file that it keeps.

A file of its own: an HTTP client costs a launch whose images are in the cache more than its look at them.
"""

from __future__ import annotations

import dataclasses
import typing as t

from .._host.files import remove_file

Report = t.Callable[[str], None]


@dataclasses.dataclass(frozen=True)
class Transfer:
    """Result of a download: `size` in bytes of the whole file, of which the first `resumed_from` were there already."""

    size: int
    resumed_from: int
    seconds: float


@dataclasses.dataclass(frozen=True)
class Source:
    """`name` is what messages call `url`; `limit` (bytes) the most that is read, `timeout` (seconds) how long."""

    url: str
    name: str
    limit: int
    timeout: float


def remove_part(part: str) -> None:
    """Throw away what a download left."""
    for path in (part, f"{part}.json"):
        remove_file(path)
