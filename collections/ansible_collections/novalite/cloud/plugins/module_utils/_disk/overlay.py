# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""Copy-on-write disks: what an instance's directory on its compute host holds before the guest is defined."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import os
import shutil
import stat
import typing as t

from .._command import run
from .._errors import NotFoundError, NovaliteError
from .._host import in_threads, locked, write_atomically
from . import layout
from .inspect import inspect_image

GIB = 1 << 30
LOCK = "instances"
OVERLAY_FORMAT = "qcow2"
FICLONE = 0x40049409  # linux/fs.h; share the blocks of a file on XFS and Btrfs


@dataclasses.dataclass(frozen=True)
class Disk:
    """The disk of one instance. `base`, `kernel`, `ramdisk` are checksums of cached images; `virtual_size_gb` in
    GiB, 0 for the base's own size."""

    uuid: str
    base: str | None = None
    virtual_size_gb: int = 0
    kernel: str | None = None
    ramdisk: str | None = None


def recorded_format(directory: str, name: str = layout.DISK) -> str:
    """The format of the disk file `name` in an instance's directory, from disk.info; never from the file itself.

    A guest can write any header into its disk (CVE-2014-0134; Nova pins formats the same way, LP 1221190).
    """
    path = os.path.join(directory, layout.DISK_INFO)
    try:
        with open(path, encoding="utf-8") as handle:
            return str(json.load(handle)[os.path.join(directory, name)])
    except FileNotFoundError:
        raise NotFoundError(f"{path} does not exist: create the instance's disk first (module disk)") from None
    except (ValueError, KeyError, TypeError) as error:
        raise NovaliteError(f"{path} does not say the format of {name}; remove the instance's disk and "
                            "create it again (module disk)") from error


def create_disks(disks: t.Sequence[Disk], state_dir: str, check_mode: bool = False) -> dict[str, t.Any]:
    """Make every instance directory hold what it needs; files that are there are left alone.

    Returns `changed`, `disks` (uuid, path, created) and `diff`. Everything is checked before anything is made, and
    if one disk fails, what this call made for all of them is removed again. Raises NovaliteError.
    """
    plans = [(disk, _missing_files(disk, state_dir)) for disk in disks]
    for disk, names in plans:
        _check(disk, names, state_dir, check_mode)
    if not check_mode and any(names for _disk, names in plans):
        layout.prepare_state_dir(state_dir)
        # One lock for all: two runs for one instance would both see its disk missing.
        with locked(LOCK):
            plans = [(disk, _missing_files(disk, state_dir)) for disk in disks]
            _create(plans, state_dir)
    return {
        "changed": any(names for _disk, names in plans),
        "disks": [{"uuid": disk.uuid, "path": os.path.join(layout.instance_dir(state_dir, disk.uuid), layout.DISK),
                   "created": names} for disk, names in plans],
        "diff": {"before": {disk.uuid: dict.fromkeys(names) for disk, names in plans if names},
                 "after": {disk.uuid: {name: _described(disk, name) for name in names}
                           for disk, names in plans if names}},
    }


def remove_disks(disks: t.Sequence[Disk], state_dir: str, check_mode: bool = False) -> dict[str, t.Any]:
    """Remove the directories of these instances, and nothing else. Returns `changed`, `disks`, `diff`."""
    directories = {disk.uuid: layout.instance_dir(state_dir, disk.uuid) for disk in disks}
    present = {uuid: sorted(os.listdir(directory)) for uuid, directory in directories.items()
               if _is_directory(uuid, directory)}
    if present and not check_mode:
        with locked(LOCK):
            for uuid in present:
                with contextlib.suppress(FileNotFoundError):
                    shutil.rmtree(directories[uuid])
    return {
        "changed": bool(present),
        "disks": [{"uuid": uuid, "removed": present.get(uuid, [])} for uuid in directories],
        "diff": {"before": present, "after": dict.fromkeys(present)},
    }


def _is_directory(uuid: str, directory: str) -> bool:
    try:
        mode = os.lstat(directory).st_mode
    except FileNotFoundError:
        return False
    if not stat.S_ISDIR(mode):
        raise NovaliteError(f"{directory} is not a directory; novalite did not make it: remove it by hand")
    return True


def _wanted(disk: Disk) -> dict[str, str]:
    """file name -> checksum of the image it comes from."""
    sources = {layout.DISK: disk.base, layout.KERNEL: disk.kernel, layout.RAMDISK: disk.ramdisk}
    return {name: checksum for name, checksum in sources.items() if checksum}


def _missing_files(disk: Disk, state_dir: str) -> list[str]:
    directory = layout.instance_dir(state_dir, disk.uuid)
    _is_directory(disk.uuid, directory)
    names = [name for name in _wanted(disk) if not os.path.lexists(os.path.join(directory, name))]
    if layout.DISK not in names and not os.path.lexists(os.path.join(directory, layout.DISK_INFO)):
        # disk.info is written after the disk: this run was cut off between them.
        names.append(layout.DISK_INFO)
    return names


def _check(disk: Disk, names: t.Sequence[str], state_dir: str, check_mode: bool) -> None:
    if disk.base is None:
        raise NovaliteError(f"instance {disk.uuid}: a disk needs its base image")
    if disk.virtual_size_gb < 0:
        raise NovaliteError(f"instance {disk.uuid}: virtual_size_gb is {disk.virtual_size_gb}; use 0 or more GiB")
    for name in names:
        checksum = _wanted(disk).get(name)
        if checksum is None:
            continue
        path = layout.cache_path(state_dir, checksum)
        if not os.path.exists(path):
            if check_mode:  # the task before would have fetched it
                continue
            raise NotFoundError(f"instance {disk.uuid}: image {checksum} ({name}) is not in the cache of this host "
                                f"({path}); run module image_cache first")
        if name == layout.DISK:
            _check_size(disk, inspect_image(path, "raw", name=f"base image {path}").virtual_size)


def _check_size(disk: Disk, base_size: int) -> None:
    """CVE-2013-2096: the base's size is compared before the overlay exists; QEMU would shrink it silently."""
    if 0 < disk.virtual_size_gb * GIB < base_size:
        raise NovaliteError(
            f"instance {disk.uuid}: its image has a virtual size of {base_size} bytes ({base_size / GIB:.1f} GiB), "
            f"more than the flavor's root disk of {disk.virtual_size_gb} GiB; use a larger flavor"
        )


def _create(plans: t.Sequence[tuple[Disk, list[str]]], state_dir: str) -> None:
    made: list[str] = []  # in order of creation; list.append is atomic between threads

    def build(plan: tuple[Disk, list[str]]) -> None:
        disk, names = plan
        directory = layout.instance_dir(state_dir, disk.uuid)
        made.extend(layout.make_searchable(directory))
        for name in names:
            try:
                _make_file(disk, name, directory, state_dir, made)
            except OSError as error:
                raise NovaliteError(f"instance {disk.uuid}: {name} cannot be created in {directory}: "
                                    f"{error.strerror}") from error

    try:
        in_threads(build, plans)
    except BaseException:
        for path in reversed(made):
            # A directory that holds more than what we made, as a console log, is not ours to take away.
            with contextlib.suppress(OSError):
                os.rmdir(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)
        raise


def _make_file(disk: Disk, name: str, directory: str, state_dir: str, made: list[str]) -> None:
    path = os.path.join(directory, name)
    if name == layout.DISK_INFO:
        _write_record(directory, made)
        return
    source = layout.cache_path(state_dir, _wanted(disk)[name])
    part = f"{path}.part"  # a killed run leaves this, never half a disk under its name
    with contextlib.suppress(FileNotFoundError):
        os.unlink(part)
    made.append(part)
    if name == layout.DISK:
        # Both formats are always said: without -f and -F QEMU would look at the content.
        size = [str(disk.virtual_size_gb * GIB)] if disk.virtual_size_gb else []
        run(["qemu-img", "create", "-q", "-f", OVERLAY_FORMAT, "-b", source, "-F", "raw", part, *size])
        os.chmod(part, 0o600)
    else:
        _copy(source, part)
    os.rename(part, path)
    made.append(path)
    if name == layout.DISK:
        _write_record(directory, made)


def _copy(source: str, target: str) -> None:
    """A copy, not a hard link: libvirt's DAC driver changes the owner of the files a guest opens, and would change
    that of the cache and of every other instance with it."""
    with open(source, "rb") as reader, open(target, "xb") as writer:
        try:
            fcntl.ioctl(writer.fileno(), FICLONE, reader.fileno())
        except OSError:  # another file system, or one that cannot share blocks
            shutil.copyfileobj(reader, writer, 1 << 20)
        os.fchmod(writer.fileno(), 0o644)


def _write_record(directory: str, made: list[str]) -> None:
    path = os.path.join(directory, layout.DISK_INFO)
    write_atomically(path, json.dumps({os.path.join(directory, layout.DISK): OVERLAY_FORMAT}) + "\n")
    made.append(path)


def _described(disk: Disk, name: str) -> str:
    if name == layout.DISK:
        size = f"{disk.virtual_size_gb} GiB" if disk.virtual_size_gb else "the base's size"
        return f"{OVERLAY_FORMAT}, {size}, on {disk.base}"
    return f"copy of {_wanted(disk)[name]}" if name in _wanted(disk) else "formats of the disks"
