# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The disks of instances: what an instance's directory on its compute host holds before the guest is defined."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import typing as t

from .._errors import NotFoundError, NovaliteError
from .._host.files import instance_dir, remove_file, write_atomically
from .._host.locks import locked
from .._host.waiting import in_threads
from .._json import JsonObject
from . import config_drive, layout, records
from .blank import EMPTY, EPHEMERAL, SWAP, blank_name, blank_size, ensure_blank, is_blank
from .inspect import inspect_image
from .qcow2 import write_overlay
from .records import Record, read_records, recorded_format, write_records
from .sparse import allocate, check_wipe, copy_file, wipe_files

GIB = 1 << 30
LOCK = "instances"
LOCK_TIMEOUT = 1800.0  # seconds; another run may be copying raw disks
BACKENDS = ("qcow2", "raw")
CDROM_FORMAT = "qcow2"
NOTE = "boots-from-volume"  # an empty file in place of a root disk
PREALLOCATIONS = ("none", "space")
KINDS = ("root", "ephemeral")  # of disks that have a guest's data
REPLACED = "replaced"  # where the old files are, beside the new ones, until these are complete
OWN_FILES = (
    layout.DISK,
    EPHEMERAL,
    SWAP,
    layout.KERNEL,
    layout.RAMDISK,
    layout.CONFIG_DRIVE,
    config_drive.RECORD,
    layout.DISK_INFO,
    layout.NVRAM,
    records.FRESH,
)
RESCUE_FILES = (
    *(name + layout.RESCUE for name in (layout.DISK, layout.KERNEL, layout.RAMDISK, layout.NVRAM)),
    config_drive.RESCUE_DRIVE,
    config_drive.RESCUE_RECORD,
    records.FRESH_RESCUE,
)


@dataclasses.dataclass(frozen=True)
class Disk:
    """The disks of one instance. `base`, `kernel`, `ramdisk` are checksums of cached images; a root disk without a
    base is empty. `virtual_size_gb` is its size in GiB, 0 for the base's own; `cdroms` are the checksums of the CDs in
    the drives ("": an empty one); `ephemeral_gb` (GiB) and `swap_mb` (MiB) are further disks, 0 for
    none. `backend` is "qcow2" (overlays) or "raw" (copies); `preallocation` "none" or "space", as Nova's
    preallocate_images. With `rescue` it is the disk that the instance is rescued with, beside its own ones."""

    uuid: str
    base: str | None = None
    virtual_size_gb: int = 0
    kernel: str | None = None
    ramdisk: str | None = None
    backend: str = "qcow2"
    preallocation: str = "none"
    ephemeral_gb: int = 0
    swap_mb: int = 0
    root: bool = True  # without one, the instance starts from a volume
    rescue: bool = False
    cdroms: t.Sequence[str] = ()

    @property
    def name(self) -> str:
        """Name of the root disk's file."""
        return layout.DISK + self._suffix

    def boot_files(self) -> list[tuple[str, str]]:
        """Name and checksum of the kernel and the ramdisk."""
        files = ((layout.KERNEL, self.kernel), (layout.RAMDISK, self.ramdisk))
        return [(name + self._suffix, checksum) for name, checksum in files if checksum]

    @property
    def _suffix(self) -> str:
        return layout.RESCUE if self.rescue else ""


@dataclasses.dataclass(frozen=True)
class _File:
    """File of an instance. `source` is the cache's key of what it is made from; a disk has a format."""

    name: str
    source: str
    shown: str
    format: str | None = None
    size: int = 0  # bytes; 0 for the source's own


class _Plan(t.NamedTuple):
    disk: Disk
    missing: list[_File]


def create_disks(
    disks: t.Sequence[Disk], state_dir: str, check_mode: bool = False, existing: t.Collection[str] = ()
) -> JsonObject:
    """Make every instance directory hold what it needs; files that are there are left alone.

    Returns `changed`, `disks` (uuid, path, created) and `diff`. Everything is checked before anything is made, and
    if one disk fails, what this call made for all of them is removed again. Raises NovaliteError, also for a missing
    disk of a kind in `existing` (of KINDS): its guest has written to it, and a blank one would be without that.
    """
    for disk in disks:
        refuse_missing(disk, instance_dir(state_dir, disk.uuid), existing)
    plans = _plan(disks, state_dir, check_mode)
    if not check_mode and any(plan.missing for plan in plans):
        layout.prepare_state_dir(state_dir)
        # One lock for all: two runs for one instance would both see its disk missing, and an eviction would see no
        # record yet of the base that is about to be used.
        with locked(LOCK, timeout=LOCK_TIMEOUT):
            plans = _plan(disks, state_dir, check_mode)
            _create(plans, state_dir)
    return _made(plans, state_dir)


def refuse_missing(disk: Disk, directory: str, kinds: t.Collection[str], suffix: str = "") -> None:
    """Raise NotFoundError for an own disk of these `kinds` (of KINDS) that is not in the directory, under its name with
    this `suffix`."""
    own = {"root": disk.name if disk.root else None, "ephemeral": layout.EPHEMERAL if disk.ephemeral_gb else None}
    for name in (own[kind] for kind in kinds):
        path = os.path.join(directory, f"{name}{suffix}")
        if name is not None and not os.path.lexists(path):
            raise NotFoundError(
                f"instance {disk.uuid}: its disk {path} is not there, and none is made in its place, which would be "
                "without the guest's data"
            )


def replace_disks(disks: t.Sequence[Disk], state_dir: str, check_mode: bool = False, wipe: str = "none") -> JsonObject:
    """Make all that every instance directory needs anew, whatever is there: of a rescue, the rescue's files alone.

    Returns what create_disks() does. If one disk fails, the old ones of all are back in their places; else what was in
    their files is treated as `wipe` says, and they are gone. No guest may have them open. Raises NovaliteError.
    """
    check_wipe(wipe)
    plans = _plan(disks, state_dir, check_mode, anew=True)
    if not check_mode:
        layout.prepare_state_dir(state_dir)
        with locked(LOCK, timeout=LOCK_TIMEOUT):
            with contextlib.ExitStack() as undo:
                for disk in disks:
                    _set_aside(disk, instance_dir(state_dir, disk.uuid), undo)
                _create(plans, state_dir)
                undo.pop_all()
            for disk in disks:
                _drop(os.path.join(instance_dir(state_dir, disk.uuid), REPLACED), wipe)
    return _made(plans, state_dir)


def _set_aside(disk: Disk, directory: str, undo: contextlib.ExitStack) -> None:
    aside = os.path.join(directory, REPLACED)
    _drop(aside, "none")  # of a run that was killed: what it had set aside was to go
    if not os.path.isdir(directory):
        return
    os.mkdir(aside, 0o700)
    undo.callback(os.rmdir, aside)
    cdroms = [] if disk.rescue else [name for name in os.listdir(directory) if layout.CDROM.match(name)]
    for name in (*(RESCUE_FILES if disk.rescue else OWN_FILES), *cdroms):
        old, kept = os.path.join(directory, name), os.path.join(aside, name)
        if os.path.lexists(old):
            os.rename(old, kept)
            undo.callback(os.rename, kept, old)


def _drop(aside: str, wipe: str) -> None:
    if os.path.isdir(aside):
        if wipe != "none":
            wipe_files(wipe, aside)
        shutil.rmtree(aside)


def _made(plans: t.Sequence[_Plan], state_dir: str) -> JsonObject:
    """Result of the module."""
    changing = [plan for plan in plans if plan.missing]
    return {
        "changed": bool(changing),
        "disks": [
            {
                "uuid": plan.disk.uuid,
                "path": os.path.join(instance_dir(state_dir, plan.disk.uuid), plan.disk.name),
                "created": [file.name for file in plan.missing],
            }
            for plan in plans
        ],
        "diff": {
            "before": {plan.disk.uuid: {file.name: None for file in plan.missing} for plan in changing},
            "after": {plan.disk.uuid: {file.name: file.shown for file in plan.missing} for plan in changing},
        },
    }


def _files(disk: Disk) -> t.Iterator[_File]:
    """Yield all files that an instance needs, in the order of Nova's devices."""
    if disk.root and disk.base is None and not disk.virtual_size_gb:
        raise NovaliteError(f"instance {disk.uuid}: a disk needs its base image, or a size to be empty with")
    size = f"{disk.virtual_size_gb} GiB" if disk.virtual_size_gb else "the base's size"
    if disk.root:
        yield _File(
            disk.name,
            layout.cache_key(disk.base) if disk.base else blank_name(EMPTY, disk.virtual_size_gb),
            f"{disk.backend}, {size}, on {disk.base}" if disk.base else f"{disk.backend}, {size}, empty",
            disk.backend,
            disk.virtual_size_gb * GIB,
        )
    else:
        yield _File(NOTE, "", "starts from a volume")  # it needs its directory
    for name, kind, amount in ((layout.EPHEMERAL, EPHEMERAL, disk.ephemeral_gb), (layout.SWAP, SWAP, disk.swap_mb)):
        if amount:
            blank = blank_name(kind, amount)
            yield _File(name, blank, f"{disk.backend}, empty, {blank}", disk.backend, blank_size(blank))
    for number, checksum in enumerate(disk.cdroms):
        if checksum:
            name = layout.cdrom_name(number, checksum)
            yield _File(name, layout.cache_key(checksum), f"CD of {checksum}", CDROM_FORMAT)
    for name, checksum in disk.boot_files():
        yield _File(name, layout.cache_key(checksum), f"copy of {checksum}")


def _plan(disks: t.Sequence[Disk], state_dir: str, check_mode: bool, anew: bool = False) -> list[_Plan]:
    sizes: dict[str, int] = {}  # of bases, each inspected once a call
    plans = []
    for disk in disks:
        _check(disk)
        directory = instance_dir(state_dir, disk.uuid)
        layout.is_directory(directory)
        missing = []
        for file in _files(disk):
            if anew or not os.path.lexists(os.path.join(directory, file.name)):
                missing.append(file)
                _check_source(disk, file, state_dir, check_mode, sizes)
            elif file.format:
                _check_format(disk, file, directory)
        plans.append(_Plan(disk, missing))
    return plans


def _check(disk: Disk) -> None:
    for option in ("virtual_size_gb", "ephemeral_gb", "swap_mb"):
        value = getattr(disk, option)
        if value < 0:
            raise NovaliteError(f"instance {disk.uuid}: {option} is {value}; use 0 or more")
    for option, choices in (("backend", BACKENDS), ("preallocation", PREALLOCATIONS)):
        if getattr(disk, option) not in choices:
            raise NovaliteError(
                f"instance {disk.uuid}: {option} '{getattr(disk, option)}' is none of {', '.join(choices)}"
            )


def _check_format(disk: Disk, file: _File, directory: str) -> None:
    recorded = recorded_format(directory, file.name)
    if recorded != file.format:
        # to go on would start a guest with the wrong driver on its disk
        raise NovaliteError(
            f"instance {disk.uuid}: its {file.name} is {recorded}, not {file.format}; its backend "
            "cannot change: terminate the instance and launch it again"
        )


def _check_source(disk: Disk, file: _File, state_dir: str, check_mode: bool, sizes: dict[str, int]) -> None:
    if file.name == NOTE or is_blank(file.source):
        return  # made when it is missing
    path = layout.cached_path(state_dir, file.source)
    if not os.path.exists(path):
        if check_mode:  # the task before would have fetched it
            return
        raise NotFoundError(
            f"instance {disk.uuid}: image sha256:{file.source} ({file.name}) is not in the cache of "
            f"this host ({path}); run module image_cache first"
        )
    if not file.format:
        return
    if file.source not in sizes:
        sizes[file.source] = inspect_image(path, "raw", name=f"base image {path}").virtual_size
    base_size = sizes[file.source]
    # CVE-2013-2096: the base's size is compared before the overlay exists; QEMU would shrink it silently.
    if 0 < file.size < base_size:
        raise NovaliteError(
            f"instance {disk.uuid}: its image has a virtual size of {base_size} bytes ({base_size / GIB:.1f} GiB), "
            f"more than the flavor's root disk of {disk.virtual_size_gb} GiB; use a larger flavor"
        )


def _create(plans: t.Sequence[_Plan], state_dir: str) -> None:
    for blank in sorted({file.source for plan in plans for file in plan.missing if is_blank(file.source)}):
        ensure_blank(blank, state_dir)
    sizes = {file.source: _size_of(file, state_dir) for plan in plans for file in plan.missing}
    # One stack for every thread: its list of callbacks only ever grows, until all have ended.
    with contextlib.ExitStack() as undo:
        in_threads(lambda plan: _build(plan, state_dir, sizes, undo), [plan for plan in plans if plan.missing])
        undo.pop_all()


def _size_of(file: _File, state_dir: str) -> int:
    if file.name == NOTE:
        return 0
    path = layout.base_path(state_dir, file.source)
    os.utime(path)  # its last use, for the eviction
    return os.stat(path).st_size


def _build(plan: _Plan, state_dir: str, sizes: t.Mapping[str, int], undo: contextlib.ExitStack) -> None:
    directory = instance_dir(state_dir, plan.disk.uuid)
    try:
        for made in layout.make_searchable(directory):
            undo.callback(_remove, made)
        _record(plan, directory, undo)
        for file in plan.missing:
            _make_file(plan.disk, file, directory, state_dir, sizes[file.source], undo)
            if file.name in (plan.disk.name, NOTE):
                undo.callback(_remove, os.path.join(directory, records.beside(file.name)))
                records.note_fresh(directory, file.name)
    except OSError as error:
        raise NovaliteError(
            f"instance {plan.disk.uuid}: its disks cannot be created in {directory}: {error.strerror}"
        ) from error


def _record(plan: _Plan, directory: str, undo: contextlib.ExitStack) -> None:
    """Say what the disks are to be before they are there: no file, not even of a killed run, is without its record."""
    before = read_records(directory)
    records = {
        file.name: Record(file.format, file.source if file.format == "qcow2" else None)
        for file in plan.missing
        if file.format
    }
    if not records:
        return
    if before:
        undo.callback(write_records, directory, before)
    else:
        undo.callback(_remove, os.path.join(directory, layout.DISK_INFO))
    write_records(directory, {**before, **records})


def _make_file(
    disk: Disk, file: _File, directory: str, state_dir: str, source_size: int, undo: contextlib.ExitStack
) -> None:
    path = os.path.join(directory, file.name)
    if file.name == NOTE:
        undo.callback(_remove, path)
        write_atomically(path, "", 0o644)
        return
    source = layout.base_path(os.path.abspath(state_dir), file.source)
    part = f"{path}.part"  # a killed run leaves this, never half a disk under its name
    remove_file(part)
    undo.callback(_remove, part)
    size = file.size or -(-source_size // 512) * 512
    if file.format == "qcow2":
        write_overlay(part, source, size)
    else:
        copy_file(source, part, 0o600 if file.format else 0o644)
        if file.format:
            os.truncate(part, size)
    if file.format and disk.preallocation == "space" and not layout.CDROM.match(file.name):
        allocate(part, size)
    undo.callback(_remove, path)
    os.rename(part, path)


def _remove(path: str) -> None:
    """Undo one step. A directory that holds more than what we made, as a console log, is not ours to take away."""
    with contextlib.suppress(OSError):
        os.rmdir(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)
