# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A server's disks as they were at one moment, and the way back to them.

`snapshots/<id>` in the instance's directory holds a qcow2 of each disk that stands on no other file, the variables of
the firmware, and `snapshot.json`, which says what there is. A guest goes on writing to the files that it had, so that
nothing else has to know of snapshots. What is made has its name only once it is whole.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import shutil
import typing as t

from .._disk import layout, lvm, records
from .._disk.inspect import inspect_image, qcow2_size
from .._disk.overlay import GIB
from .._disk.sparse import copy_file, resize, wipe_files
from .._errors import NotFoundError, NovaliteError
from .._host import events
from .._host.confined import ANY_SIZE, Limits, run_bounded
from .._host.files import instance_dir, is_uuid, remove_file, sync, write_atomically
from .._host.locks import locked
from .._host.waiting import in_threads
from .._json import JsonMapping
from .image_snapshots import convert

DIRECTORY = "snapshots"  # in an instance's directory
MANIFEST = "snapshot.json"
PART = ".part"  # after the name of what is not whole yet
CREATE, REVERT, DELETE, NONE = "create", "revert", "delete", "none"
OFF, FROZEN, CRASH = "off", "frozen", "crash"  # how consistent a snapshot is
KEPT_FREE = 20  # of how many parts of the file system one stays free
WORKERS = 2  # each of them reads and writes whole disks


class Guests(t.Protocol):
    """Operations on the disks of guests, to whose files nobody else may write while they run."""

    def running(self, uuid: str) -> bool: ...

    def copy_all(
        self, uuid: str, copies: t.Mapping[str, str], at_once: t.Callable[[], None], timeout: float, quiesce: bool
    ) -> bool:
        """Copy the disks of a guest, path -> new file, as they are at one moment, at which `at_once` is called; tell
        whether its file systems were frozen then. With `quiesce`, copy nothing unless they are."""

    def release(self, uuid: str) -> None:
        """End what a run that was killed has left in a running guest."""


@dataclasses.dataclass(frozen=True)
class Spec:
    """The snapshot `snapshot_id` of the instance `uuid`, and the `volumes` in it, as step volume_disk takes them.
    `quiesce`: only if a guest that runs freezes its file systems for it."""

    uuid: str
    snapshot_id: str
    volumes: t.Sequence[JsonMapping] = ()
    quiesce: bool = False


@dataclasses.dataclass
class Done:
    """Result of one snapshot: what was done (in check mode: would be), how `consistent` it is, its bytes on the disk,
    and `error`, why it was not done."""

    uuid: str
    snapshot_id: str
    action: str = NONE
    consistency: str | None = None
    size: int = 0
    error: str | None = None


@dataclasses.dataclass(frozen=True)
class Disk:
    """A disk of an instance: `name` is that of its copy. `base` is the file of the cache that it stands on."""

    name: str
    path: str
    format: str
    base: str | None = None
    volume: JsonMapping | None = None

    @property
    def is_block(self) -> bool:
        return self.volume is not None and self.volume["backend"] == "lvm"


def ensure(
    specs: t.Sequence[Spec],
    state: str,
    state_dir: str,
    guests: Guests,
    check_mode: bool = False,
    timeout: float = 3600.0,
    wipe: str = "none",
) -> list[Done]:
    """Make each snapshot `present` or `absent`, or give its server the disks of it (`reverted`). Each is for itself:
    what failed says so in its own `error`."""

    def work(spec: Spec, directory: str, done: Done) -> None:
        if state == "absent":
            _remove(spec, directory, done, guests, check_mode, wipe)
        else:
            ensured = _take if state == "present" else _revert
            ensured(spec, directory, done, state_dir, guests, check_mode, timeout)

    def ensure_snapshot(spec: Spec) -> Done:
        done = Done(spec.uuid, spec.snapshot_id)
        try:
            directory = snapshot_dir(state_dir, spec)
            with locked(f"snapshot-{spec.uuid}", timeout=timeout):  # a run that was cut off may still be at it
                work(spec, directory, done)
        except NovaliteError as error:
            done.error = f"instance {spec.uuid}: {error}"
        except OSError as error:
            done.error = f"instance {spec.uuid}: {error.filename or 'its snapshot'}: {error.strerror}"
        return done

    return in_threads(ensure_snapshot, specs, WORKERS)


def snapshot_dir(state_dir: str, spec: Spec) -> str:
    """The directory of a snapshot. Raises NovaliteError for what could lead anywhere else."""
    if not is_uuid(spec.snapshot_id):
        raise NovaliteError(f"'{spec.snapshot_id}' is not the id of a snapshot")
    return os.path.join(instance_dir(state_dir, spec.uuid), DIRECTORY, spec.snapshot_id)


def disks_of(spec: Spec, state_dir: str) -> list[Disk]:
    """Return all disks of the instance: its own, by their records, and the volumes."""
    directory = instance_dir(state_dir, spec.uuid)
    known, own = records.read_records(directory), []
    for name in (layout.DISK, layout.EPHEMERAL, layout.SWAP):
        if record := known.get(name):
            key = record.base and os.path.basename(record.base)
            base = layout.cached_path(os.path.abspath(state_dir), key) if key else None
            own.append(Disk(name, os.path.join(directory, name), record.format, base))
    return own + [
        Disk(volume["id"], layout.volume_path(volume, state_dir), volume["format"], volume=volume)
        for volume in spec.volumes
    ]


# --- taken ------------------------------------------------------------------------------------------------------------


def _take(
    spec: Spec, directory: str, done: Done, state_dir: str, guests: Guests, check_mode: bool, timeout: float
) -> None:
    if layout.is_directory(directory):
        said = _manifest(directory)
        done.consistency, done.size = str(said["consistency"]), _size(directory)
        return
    disks, active = disks_of(spec, state_dir), guests.running(spec.uuid)
    done.action = CREATE
    if not disks:
        raise NotFoundError("it has no disks on this host")
    if check_mode:
        return
    part = directory + PART
    if active:
        guests.release(spec.uuid)
    _drop(part)
    layout.make_searchable(os.path.dirname(directory), part)
    try:
        check_room(sum(_taken_by(disk) for disk in disks), part, "a snapshot")
        nvram = os.path.join(instance_dir(state_dir, spec.uuid), layout.NVRAM)
        keep_nvram = functools.partial(_keep_nvram, nvram, os.path.join(part, layout.NVRAM))
        copies = {disk.path: os.path.join(part, disk.name) for disk in disks}
        total = sum(_taken_by(disk) for disk in disks)
        with events.moving(lambda: (_size(part), total)):
            if active:
                frozen = guests.copy_all(spec.uuid, copies, keep_nvram, timeout, spec.quiesce)
                done.consistency = FROZEN if frozen else CRASH
            else:
                keep_nvram()
                for disk in disks:
                    _copy(disk, copies[disk.path], state_dir, timeout)
                done.consistency = OFF
        # from here on they are images like any other, and are judged like them
        sizes = {
            disk.name: inspect_image(copies[disk.path], "qcow2", name=f"the copy of {disk.name}").virtual_size
            for disk in disks
        }
        for path in copies.values():
            os.chown(path, 0, 0)  # a guest's QEMU wrote it, where it made the copy
            sync(path, 0o400)
        said = {"disks": sizes, "consistency": done.consistency}
        write_atomically(os.path.join(part, MANIFEST), json.dumps(said), 0o600)
        sync(part)
        os.rename(part, directory)
    except BaseException:
        _drop(part)
        raise
    sync(os.path.dirname(directory))
    done.size = _size(directory)


def check_room(needed: int, directory: str, name: str) -> None:
    """Raise NovaliteError unless the file system of `directory` has room for `needed` bytes of `name`, and some stays
    free."""
    filesystem = os.statvfs(directory)
    room = filesystem.f_frsize * (filesystem.f_bavail - filesystem.f_blocks // KEPT_FREE)
    if needed > room:
        raise NovaliteError(
            f"{name} takes up to {needed / GIB:.1f} GiB, and {max(0, room) / GIB:.1f} GiB are left for it on the "
            f"file system of {directory} (a {KEPT_FREE}th stays free): delete snapshots, or make room there"
        )


def _taken_by(disk: Disk) -> int:
    """Bytes that the copy of the disk may come to take."""
    if disk.is_block and disk.volume is not None:
        return lvm.size_of(disk.volume["options"]["volume_group"], layout.lv_name(disk.volume)) or 0
    return sum(events.size_on_disk(path) for path in (disk.path, disk.base) if path)


def _keep_nvram(source: str, target: str) -> None:
    if os.path.lexists(source):  # a guest with a BIOS has none
        remove_file(target)
        copy_file(source, target, 0o600)


def _copy(disk: Disk, target: str, state_dir: str, timeout: float) -> None:
    """Copy a disk that no guest has open."""
    if disk.volume is None:
        convert(disk.path, disk.format, state_dir, target, timeout)
    else:  # a guest writes what is in a volume, and never its header
        _run(["qemu-img", "convert", "-q", "-f", disk.format, "-O", "qcow2", disk.path, target], timeout)


# --- and gone back to -------------------------------------------------------------------------------------------------


def _revert(
    spec: Spec, directory: str, done: Done, state_dir: str, guests: Guests, check_mode: bool, timeout: float
) -> None:
    done.action = REVERT
    if not layout.is_directory(directory):
        raise NotFoundError(f"its snapshot is gone: it should be at {directory}")
    sizes = _manifest(directory)["disks"]
    disks = {disk.name: disk for disk in disks_of(spec, state_dir)}
    if missing := sorted(set(sizes) - set(disks)):
        raise NotFoundError(f"the snapshot has a disk {missing[0]}, which the server has no more: attach it again")
    done.size = _size(directory)
    if check_mode:
        return
    if guests.running(spec.uuid):
        raise NovaliteError("its guest runs, and its disks cannot be replaced: stop it first")
    own = instance_dir(state_dir, spec.uuid)
    todo = [disks[name] for name in sizes]
    files = [disk for disk in todo if not disk.is_block]
    try:
        for disk in files:
            _bring_back(disk, os.path.join(directory, disk.name), int(sizes[disk.name]), timeout)
        for disk in todo:
            if disk.is_block:  # in its place: whoever is cut off here does it again
                source = os.path.join(directory, disk.name)
                _run(["qemu-img", "convert", "-q", "-n", "-f", "qcow2", "-O", disk.format, source, disk.path], timeout)
        for name in (records.FRESH, records.FRESH_RESCUE):  # a guest has written to what comes
            remove_file(os.path.join(own, name))
        _keep_nvram(os.path.join(directory, layout.NVRAM), os.path.join(own, layout.NVRAM + PART))
        sync(own)
        for path in (*(disk.path for disk in files), os.path.join(own, layout.NVRAM)):
            if os.path.lexists(path + PART):
                os.rename(path + PART, path)
        for parent in {os.path.dirname(disk.path) for disk in files}:
            sync(parent)
    finally:
        for disk in files:
            remove_file(disk.path + PART)


def _bring_back(disk: Disk, source: str, size: int, timeout: float) -> None:
    """Make the disk of the snapshot beside the one that is there, in its format, on its base and not smaller. On the
    base lies only what differs from it."""
    part = disk.path + PART
    remove_file(part)
    now = virtual_size(disk) if os.path.lexists(disk.path) else 0
    if disk.base is not None:
        os.utime(disk.base)  # its last use, for the eviction
        larger = str(max(now, size))
        _run(["qemu-img", "create", "-q", "-f", disk.format, "-F", "qcow2", "-b", source, part, larger], timeout)
        _run(["qemu-img", "rebase", "-q", "-f", disk.format, "-F", "raw", "-b", disk.base, part], timeout)
    else:
        _run(["qemu-img", "convert", "-q", "-f", "qcow2", "-O", disk.format, source, part], timeout)
        if now > size:
            resize(part, disk.format, now)
    os.chown(part, 0, 0)
    sync(part, 0o600)  # libvirt gives it to the guest's QEMU, and takes it back


def virtual_size(disk: Disk) -> int:
    """Bytes of a disk that is a file, as its guest sees it."""
    return qcow2_size(disk.path) if disk.format == "qcow2" else os.stat(disk.path).st_size


def _remove(spec: Spec, directory: str, done: Done, guests: Guests, check_mode: bool, wipe: str) -> None:
    there = [path for path in (directory, directory + PART) if layout.is_directory(path)]
    done.action = DELETE if there else NONE
    if check_mode:
        return
    if directory + PART in there and guests.running(spec.uuid):
        guests.release(spec.uuid)
    for path in there:
        if wipe != "none":
            wipe_files(wipe, path)
        _drop(path)


def _run(argv: list[str], timeout: float) -> None:
    run_bounded(argv, limits=Limits(memory=2 << 30, cpu=int(timeout), file_size=ANY_SIZE), timeout=timeout)


def _manifest(directory: str) -> JsonMapping:
    path = os.path.join(directory, MANIFEST)
    try:
        with open(path, encoding="utf-8") as handle:
            said = json.load(handle)
        return {"disks": dict(said["disks"]), "consistency": str(said["consistency"])}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise NovaliteError(f"{path} cannot be read ({error}): delete the snapshot") from error


def _size(directory: str) -> int:
    return sum(events.size_on_disk(os.path.join(directory, name)) for name in os.listdir(directory))


def _drop(directory: str) -> None:
    if layout.is_directory(directory):
        shutil.rmtree(directory)
