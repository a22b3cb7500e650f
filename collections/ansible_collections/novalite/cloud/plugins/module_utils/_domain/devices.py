# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which name a guest's next disk gets: vda is the root disk, and no two disks have the same."""

from __future__ import annotations

import re
import string
import typing as t

from .._errors import ConflictError, NovaliteError
from .._guest.image_properties import LAST_DEVICES
from .._json import JsonMapping

PREFIX = "vd"  # virtio's
ROOT = "vda"
NAMES = tuple(PREFIX + letter for letter in string.ascii_lowercase)  # a guest has no more PCI slots than these need
_NAME = re.compile(r"(?:/dev/)?([a-z]{1,8})")


def own_devices(flavor: JsonMapping, config_drive: bool) -> dict[str, str]:
    """The names of the disks that an instance itself has, with this flavor: name -> what it is."""
    devices = {ROOT: "root disk"}
    for size, name in (("ephemeral_gb", "ephemeral disk"), ("swap_mb", "swap disk")):
        if flavor.get(size):
            devices[NAMES[len(devices)]] = name
    # whatever bus it is on: which of them depends on the host's machine type, and the guest may move
    if config_drive:
        devices[LAST_DEVICES["virtio"]] = "config drive"
    return devices


def next_device(taken: t.Iterable[str]) -> str:
    """The first name that is not `taken`. Raises ConflictError when there is none."""
    used = set(taken)
    for name in NAMES:
        if name not in used and name != ROOT:
            return name
    raise ConflictError(f"the instance has {len(used)} disks: there is no device name left for another one")


def choose_device(taken: t.Iterable[str], wanted: str | None = None) -> str:
    """The name for a new disk: `wanted` (vdb or /dev/vdb), or the first free one; a name of another bus (/dev/sdb) is
    no wish, as to Nova's libvirt driver. Raises ConflictError for a name that is taken, NovaliteError for what is
    none."""
    used = set(taken)
    if wanted is None:
        return next_device(used)
    match = _NAME.fullmatch(wanted)
    if match is None or len(match[1]) < 3:
        raise NovaliteError(f"The supplied device path ({wanted[:64]}) is invalid.")
    if match[1] in used:
        raise ConflictError(f"The supplied device path (/dev/{match[1]}) is in use.")
    return match[1] if match[1] in NAMES else next_device(used)
