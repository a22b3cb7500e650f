# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Paths of a compute host's images, instances and volumes; the one place that turns an id into a path."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import uuid as uuids

from .._errors import NovaliteError
from .._host.files import INSTANCES, is_uuid
from .._host.own_directory import make_own
from .._json import JsonMapping

BASE = "_base"
VOLUMES, SNAPSHOTS, SHARES = "volumes", "snapshots", "shares"
INCOMING = "incoming"  # what is on its way from another host, by instance
DISK = "disk"
EPHEMERAL = "disk.eph0"  # Nova's names for the further disks
SWAP = "disk.swap"
KERNEL = "kernel"
RAMDISK = "ramdisk"
DISK_INFO = "disk.info"
RECORDS = re.compile(r"disk\.info(?:\.resize)?(?:\.[0-9]+)?\Z")  # what DISK_INFO is called anywhere
CONFIG_DRIVE = "disk.config"  # Nova's name
NVRAM = "nvram.fd"  # variables of a UEFI guest's firmware; libvirt makes it at the first start
IMAGE_PREFIX = "image-"  # of a copy in SNAPSHOTS that waits to become an image; the others are volumes' snapshots
CDROM = re.compile(r"disk\.cd[0-9]-[0-9a-f]{16}\Z")  # what is in a CD drive, over the image in the cache
KEPT = ".resize"  # what follows the name of a disk that is kept for a revert
RESCUE = ".rescue"  # what the files of a rescue end in, as Nova's

# A guest's QEMU runs as libvirt-qemu: it passes through these directories but cannot list them.
SEARCHABLE = 0o711

# AppArmor's profile of virt-aa-helper, which makes each guest's own, lets it read /**.raw and /**/disk.* wherever they
# are, and no file without an ending: a guest whose base it cannot read may not read it either.
RAW = ".raw"
LINK_PREFIX = ".link-"  # of a link that has no name yet

CHECKSUM = re.compile(r"sha256:([0-9a-f]{64})\Z")
_SAFE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,62}\Z")
CACHE_KEY = re.compile(r"[0-9a-f]{64}\Z|(?:ephemeral|swap|empty)_[1-9][0-9]*\Z")


def cache_key(checksum: str) -> str:
    """The name of an image in the cache: the hex digits of "sha256:<hex>". Its owner cannot choose them."""
    match = CHECKSUM.match(checksum)
    if match is None:
        raise NovaliteError(f"checksum '{checksum}' is not sha256:<64 lower case hex digits>")
    return match.group(1)


def cdrom_name(drive: int, checksum: str) -> str:
    """The file that is the CD with the image of this checksum, in an instance's drive of this number. Another CD has
    another name: libvirt takes a file of the same name for the CD that is in the drive already."""
    return f"disk.cd{drive}-{cache_key(checksum)[:16]}"


def base_dir(state_dir: str) -> str:
    return os.path.join(state_dir, BASE)


def base_path(state_dir: str, key: str) -> str:
    """The file of the cache that `key` stands for: of cache_key(), or of an empty disk."""
    return os.path.join(state_dir, BASE, key + RAW)


def cache_path(state_dir: str, checksum: str) -> str:
    return base_path(state_dir, cache_key(checksum))


def former_path(state_dir: str, key: str) -> str:
    """Former base_path(), from when the files had no ending; disks made then name it in their headers."""
    return os.path.join(state_dir, BASE, key)


def cached_path(state_dir: str, key: str) -> str:
    """Path to read the file of `key` at: base_path(), or the former one until carry_over() has run."""
    path, former = base_path(state_dir, key), former_path(state_dir, key)
    return former if not os.path.exists(path) and os.path.exists(former) else path


def lock_name(key: str) -> str:
    """The lock of the file of `key` in the cache."""
    return f"image-{key}"


def snapshot_path(state_dir: str, image_id: str) -> str:
    """Path of the copy of a disk that waits to become the image `image_id`. Raises NovaliteError."""
    if not is_uuid(image_id):
        raise NovaliteError(f"'{image_id}' is not the id of an image")
    return os.path.join(state_dir, SNAPSHOTS, IMAGE_PREFIX + image_id)


def make_searchable(*directories: str) -> list[str]:
    """Create the `directories` that are missing, in order, with mode 0711; return those that were created."""
    return [directory for directory in directories if make_own(directory, SEARCHABLE, links=True)]


def prepare_state_dir(state_dir: str) -> None:
    """Create the state directory and its two children if they are missing; give files of the cache their names."""
    make_searchable(state_dir, base_dir(state_dir), os.path.join(state_dir, INSTANCES))
    carry_over(state_dir)


def formerly_named(state_dir: str) -> list[str]:
    """The keys of the files in the cache that have no ending yet."""
    with contextlib.suppress(FileNotFoundError), os.scandir(base_dir(state_dir)) as entries:
        return sorted(
            entry.name
            for entry in entries
            if CACHE_KEY.match(entry.name) and stat.S_ISREG(entry.stat(follow_symlinks=False).st_mode)
        )
    return []


def carry_over(state_dir: str) -> list[str]:
    """Name the files of the cache by base_path(); returns the keys of those that had a former name.

    Headers of disks go on saying the former name, which becomes a link: AppArmor judges what a link leads to, and no
    disk has to be written to, not even one that a guest has open. At no time is either name without the file.
    """
    keys = formerly_named(state_dir)
    for key in keys:
        with contextlib.suppress(FileNotFoundError):  # evicted just now
            with contextlib.suppress(FileExistsError):
                os.link(former_path(state_dir, key), base_path(state_dir, key), follow_symlinks=False)
            link_former(state_dir, key)
    return keys


def link_former(state_dir: str, key: str) -> None:
    """Let the former name of `key` lead to its file."""
    aside = os.path.join(base_dir(state_dir), LINK_PREFIX + str(uuids.uuid4()))  # a link is not made over another file
    os.symlink(key + RAW, aside)
    os.rename(aside, former_path(state_dir, key))


def is_directory(directory: str) -> bool:
    """Tell whether the instance's `directory` is there. Raises NovaliteError for anything else in its place."""
    try:
        mode = os.lstat(directory).st_mode
    except FileNotFoundError:
        return False
    if not stat.S_ISDIR(mode):
        raise NovaliteError(f"{directory} is not a directory; novalite did not make it: remove it by hand")
    return True


def volume_path(volume: JsonMapping, state_dir: str) -> str:
    """The path of `volume`: its `id`, `backend` (file, lvm, nfs), `options` of its type, and `kind` (volume, snapshot).
    Raises NovaliteError for what could lead anywhere else."""
    kind = volume.get("kind") or "volume"
    if not is_uuid(volume["id"]) or kind not in ("volume", "snapshot"):
        raise NovaliteError(f"'{volume['id']}' is not the id of a volume")
    if volume["backend"] == "file":
        return os.path.join(state_dir, VOLUMES if kind == "volume" else SNAPSHOTS, volume["id"])
    if volume["backend"] == "lvm":
        return f"/dev/{_safe(volume, 'volume_group')}/{lv_name(volume)}"
    if volume["backend"] == "nfs":
        name = volume["id"] if kind == "volume" else f"snapshot-{volume['id']}"
        return os.path.join(state_dir, SHARES, _safe(volume, "share"), name)
    raise NovaliteError(f"volume {volume['id']}: its back end '{volume['backend']}' is none of file, lvm, nfs")


def lv_name(volume: JsonMapping) -> str:
    """The name of its logical volume: Cinder's for a volume; LVM keeps "snapshot" for its own."""
    return f"{'volume' if (volume.get('kind') or 'volume') == 'volume' else 'copy'}-{volume['id']}"


def _safe(volume: JsonMapping, option: str) -> str:
    value = str((volume.get("options") or {}).get(option) or "")
    if not _SAFE_NAME.match(value):
        raise NovaliteError(f"volume {volume['id']}: {option} '{value[:70]}' is not a name")
    return value
