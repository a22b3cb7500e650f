# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Logical volumes on this host: made, extended, and removed with nothing of their content left to read."""

from __future__ import annotations

import os
import typing as t

from .._errors import NovaliteError
from .._host.command import CommandError, Result, run
from .._host.waiting import wait_until

GIB = 1 << 30
WIPE_TIMEOUT = 6 * 3600.0  # seconds; a disk that cannot be told to zero itself is written over
NODE_TIMEOUT = 10.0  # seconds that a device node may take to appear
UNFINISHED = "unfinished-"  # before the name of one that is being filled
UDEV = "/run/udev/control"
# without udev nobody but LVM itself makes the nodes, and it waits for ever for somebody who does
WITHOUT_UDEV = "activation{udev_rules=0 udev_sync=0} devices{obtain_device_list_from_udev=0}"


def _lvm(*argv: str, ok: t.Container[int] = (0,)) -> Result:
    return run([*argv, *([] if os.path.exists(UDEV) else ["--config", WITHOUT_UDEV])], ok=ok)


def size_of(group: str, name: str) -> int | None:
    """Bytes of the logical volume, None when there is none. Raises NovaliteError for an unknown volume group."""
    return _sizes(group).get(name)


def parts_of(group: str, name: str) -> list[str]:
    """The logical volumes that there are of it: itself, or what a run that was killed had begun to fill."""
    sizes = _sizes(group)
    return [part for part in (name, f"{UNFINISHED}{name}") if part in sizes]


def _sizes(group: str) -> dict[str, int]:
    listing = _lvm("lvs", "--noheadings", "--units", "b", "--nosuffix", "-o", "lv_name,lv_size", group, ok=(0, 5))
    if listing.rc:
        raise NovaliteError(f"this host has no volume group {group}: {' '.join(listing.stderr.split())[:200]}")
    return {fields[0]: int(fields[1]) for line in listing.stdout.splitlines() if len(fields := line.split()) == 2}


def create(group: str, name: str, size_gb: int, fill: t.Callable[[str], None] | None = None) -> None:
    """Make it, of `size_gb` GiB: its extents were wiped when their last volume was removed. `fill` writes what it shall
    hold to a path; it has its name only after that, so that one that was begun is none."""
    if fill is None:
        _create(group, name, size_gb)
        return
    unfinished = f"{UNFINISHED}{name}"
    if size_of(group, unfinished) is not None:
        remove(group, unfinished)
    _create(group, unfinished, size_gb)
    try:
        fill(f"/dev/{group}/{unfinished}")
        _lvm("lvrename", group, unfinished, name)
    except BaseException:
        remove(group, unfinished)
        raise
    wait_for(f"/dev/{group}/{name}")


def _create(group: str, name: str, size_gb: int) -> None:
    options = ["--yes", "--wipesignatures", "y", "--zero", "y", "--addtag", "novalite"]
    _lvm("lvcreate", *options, "-n", name, "-L", f"{size_gb}g", group)
    try:
        wait_for(f"/dev/{group}/{name}")
    except NovaliteError:
        remove(group, name, wipe=False)
        raise


def extend(group: str, name: str, size_gb: int) -> None:
    _lvm("lvextend", "-L", f"{size_gb}g", f"{group}/{name}")


def remove(group: str, name: str, wipe: bool = True) -> None:
    """Write zeros over it, and remove it; in this order, so that a run that was killed has freed nothing readable."""
    path = f"/dev/{group}/{name}"
    if wipe:
        _lvm("lvchange", "--activate", "y", f"{group}/{name}")
        wait_for(path)
        try:
            run(["blkdiscard", "--zeroout", path], timeout=WIPE_TIMEOUT)
        except CommandError as error:
            raise NovaliteError(f"logical volume {group}/{name} cannot be wiped, and stays: {error}") from error
    _lvm("lvremove", "--yes", f"{group}/{name}")


def wait_for(path: str) -> None:
    """The device's node may come a moment after the command that made the device."""
    complaint = f"{path} did not appear within {NODE_TIMEOUT:g} s; see dmsetup info and udev's log"
    wait_until(lambda: os.path.exists(path), NODE_TIMEOUT, complaint, pause=0.1)
