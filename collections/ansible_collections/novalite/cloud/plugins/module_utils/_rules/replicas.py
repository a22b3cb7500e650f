# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Copies of servers' disks on a second host: which servers can have one, when the next is due, how old one is."""

from __future__ import annotations

import dataclasses

LEAST = 60  # seconds between two copies
RAW = "raw"


@dataclasses.dataclass(frozen=True)
class Disks:
    """Disks of a server, as far as they decide whether they can be copied: the format of its own ones (None: it has
    none), the name of a volume that only its host has; and whether others defined its guest, or it has a TPM."""

    backend: str | None
    local_volume: str | None = None
    is_adopted: bool = False
    has_tpm: bool = False


def refused(disks: Disks) -> str | None:
    """Return why a server cannot have a copy of its disks on a second host; None if it can."""
    if disks.is_adopted:
        return "its guest was defined by others, and cannot be built on another host: launch a server of its image"
    if disks.has_tpm:
        return "the state of its TPM stays on its host: take backups of it (backup.yml)"
    if disks.local_volume is not None:
        return f"volume {disks.local_volume} is on its host alone, and is not copied: detach it, or take backups"
    if disks.backend is None:
        return "all its disks are volumes that every host reaches: shared storage needs no copy"
    if disks.backend == RAW:
        return "its disks are raw, and keep no record of what changed: take backups, or launch it with qcow2 disks"
    return None


def is_due(every: int | None, tried_at: int | None, now: int) -> bool:
    """Tell whether the next copy is to be taken; one that failed is tried again after the same time."""
    return every is not None and (tried_at is None or now - tried_at >= every)


def in_words(age: int) -> str:
    """Return an age in seconds as people read it."""
    if age < 120:
        return f"{age} s old"
    return f"{age // 60} min old" if age < 7200 else f"{age // 3600} h old"
