# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""Where a compute host keeps its images and instances; the one place that turns an id into a path."""

from __future__ import annotations

import os
import re
import uuid as uuids

from .._errors import NovaliteError

BASE = "_base"
INSTANCES = "instances"
DISK = "disk"
EPHEMERAL = "disk.eph0"  # Nova's names for the further disks
SWAP = "disk.swap"
KERNEL = "kernel"
RAMDISK = "ramdisk"
DISK_INFO = "disk.info"
CONFIG_DRIVE = "disk.config"  # Nova's name
KEPT = ".resize"  # what follows the name of a disk that is kept for a revert
RESCUE = ".rescue"  # what the files of a rescue end in, as Nova's

# A guest's QEMU runs as libvirt-qemu: it passes through these directories but cannot list them.
SEARCHABLE = 0o711

CHECKSUM = re.compile(r"sha256:([0-9a-f]{64})\Z")


def cache_key(checksum: str) -> str:
    """The name of an image in the cache: the hex digits of "sha256:<hex>". The content's owner cannot choose it."""
    match = CHECKSUM.match(checksum)
    if match is None:
        raise NovaliteError(f"checksum '{checksum}' is not sha256:<64 lower case hex digits>")
    return match.group(1)


def base_dir(state_dir: str) -> str:
    return os.path.join(state_dir, BASE)


def cache_path(state_dir: str, checksum: str) -> str:
    return os.path.join(state_dir, BASE, cache_key(checksum))


def lock_name(name: str) -> str:
    """The lock of the file `name` in the cache."""
    return f"image-{name}"


def instance_dir(state_dir: str, uuid: str) -> str:
    """The directory of the instance `uuid`; whatever is not a plain UUID is refused, so no path can leave it."""
    try:
        plain = str(uuids.UUID(uuid)) == uuid
    except ValueError:
        plain = False
    if not plain:
        raise NovaliteError(f"'{uuid}' is not the UUID of an instance")
    return os.path.join(state_dir, INSTANCES, uuid)


def make_searchable(*directories: str) -> list[str]:
    """Create the `directories` that are missing, in order, with mode 0711; return those that were created."""
    created = []
    for directory in directories:
        try:
            os.mkdir(directory)
        except FileExistsError:
            continue
        os.chmod(directory, SEARCHABLE)  # mkdir's own mode is cut by the umask
        created.append(directory)
    return created


def prepare_state_dir(state_dir: str) -> None:
    """Create the state directory and its two children if they are missing."""
    os.makedirs(state_dir, mode=0o755, exist_ok=True)
    make_searchable(base_dir(state_dir), os.path.join(state_dir, INSTANCES))
