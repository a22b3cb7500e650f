# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""An instance's root disk as an image of its own: `snapshots/image-<image id>`, a qcow2 that stands on no other file,
which waits there for the controller to fetch it."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import typing as t

from .._disk import layout
from .._disk.inspect import inspect_image
from .._disk.records import read_records, recorded_format
from .._errors import NovaliteError
from .._host import events
from .._host.command import run
from .._host.confined import ANY_SIZE, Limits, confined, lent, new_user, run_bounded
from .._host.files import instance_dir, make_private, remove_file, remove_stale
from .._host.locks import locked
from .._host.waiting import in_threads
from .._json import JsonMapping, JsonObject

WORKERS = 2  # each of them reads and writes a whole disk
STALE = 86400.0  # seconds; whoever was to fetch it is dead
LIVE, COLD, NONE = "live", "cold", "none"
QCOW2 = "qcow2"

# Copies a guest's disk while the guest runs: (the snapshot, path of the disk, path of the copy).
Backup = t.Callable[["Snapshot", str, str], None]


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """The image `image_id` to be made of the root disk of the instance `uuid`, or of a `volume` of this `uuid`, as the
    step volume_disk has it. `quiesce`: only if a guest that runs freezes its file systems for it."""

    uuid: str
    image_id: str
    disk_format: str = QCOW2
    volume: JsonMapping | None = None
    quiesce: bool = False

    @property
    def holder(self) -> str | None:
        """The instance whose guest may have the disk open."""
        return self.uuid if self.volume is None else self.volume.get("instance_uuid")


@dataclasses.dataclass
class Taken:
    """Result of one snapshot: `how` it was taken (live, cold, none), sizes in bytes, and `error`, why it was not."""

    uuid: str
    image_id: str
    path: str
    how: str = NONE
    size: int = 0
    virtual_size: int = 0
    error: str | None = None


def take(
    snapshots: t.Sequence[Snapshot],
    state_dir: str,
    is_active: t.Callable[[str], bool],
    backup: Backup,
    check_mode: bool = False,
    owner: int | None = None,
    timeout: float = 3600.0,
) -> list[Taken]:
    """Copy the disk of each instance, by `backup` where `is_active` says that QEMU has it open; each for itself: what
    failed leaves but an `error`.

    `owner` is the number of the user who is to fetch the files. One that is there already is made anew.
    """
    for snapshot in snapshots:
        layout.snapshot_path(state_dir, snapshot.image_id)
    if not check_mode:
        layout.prepare_state_dir(state_dir)
        layout.make_searchable(os.path.join(state_dir, layout.SNAPSHOTS))
        # by their prefix: the snapshots of volumes lie there, too, and nobody writes to those any more
        remove_stale(os.path.join(state_dir, layout.SNAPSHOTS), STALE, layout.IMAGE_PREFIX)

    def work(snapshot: Snapshot) -> Taken:
        taken = Taken(snapshot.uuid, snapshot.image_id, layout.snapshot_path(state_dir, snapshot.image_id))
        try:
            active = snapshot.holder is not None and is_active(snapshot.holder)
            disk, disk_format = _disk(snapshot, state_dir)
            taken.how = LIVE if active else COLD
            if not check_mode:
                # a run that was cut off may still be at it, on this host
                with locked(f"snapshot-{snapshot.uuid}", timeout=timeout):
                    _take(taken, snapshot, disk, disk_format, state_dir, backup, owner, timeout)
        except (NovaliteError, OSError) as error:
            what = f"instance {snapshot.uuid}: its disk" if snapshot.volume is None else f"volume {snapshot.uuid}"
            taken.error = f"{what} cannot be copied: {getattr(error, 'strerror', None) or error}"
        return taken

    return in_threads(work, snapshots, WORKERS)


def remove(image_ids: t.Iterable[str], state_dir: str, check_mode: bool = False) -> list[str]:
    """Remove the files of these images; returns the ids of those that were there."""
    there = [image_id for image_id in image_ids if os.path.lexists(layout.snapshot_path(state_dir, image_id))]
    for image_id in [] if check_mode else there:
        remove_file(layout.snapshot_path(state_dir, image_id))
    return there


def _disk(snapshot: Snapshot, state_dir: str) -> tuple[str, str]:
    """Path and format of what is to be copied."""
    if snapshot.volume is not None:
        return layout.volume_path(snapshot.volume, state_dir), str(snapshot.volume["format"])
    disk = os.path.join(instance_dir(state_dir, snapshot.uuid), layout.DISK)
    return disk, recorded_format(os.path.dirname(disk))


def _take(
    taken: Taken,
    snapshot: Snapshot,
    disk: str,
    disk_format: str,
    state_dir: str,
    backup: Backup,
    owner: int | None,
    timeout: float,
) -> None:
    remove_file(taken.path)
    try:
        with events.growing(taken.path, events.size_on_disk(disk)):
            if taken.how == LIVE:
                backup(snapshot, disk, taken.path)
            elif snapshot.volume is not None:
                # a guest writes what is in a volume, and never its header
                argv = ["qemu-img", "convert", "-f", disk_format, "-O", snapshot.disk_format, disk, taken.path]
                run_bounded(argv, limits=Limits(memory=2 << 30, cpu=int(timeout), file_size=ANY_SIZE), timeout=timeout)
            else:
                convert(disk, disk_format, state_dir, taken.path, timeout)
        # From here on it is an image like any other, and is judged like one.
        taken.virtual_size = inspect_image(taken.path, snapshot.disk_format, name="the copy").virtual_size
        os.chmod(taken.path, 0o400)
        if owner is not None:
            os.chown(taken.path, owner, -1)
        taken.size = os.stat(taken.path).st_size
    except BaseException:
        remove_file(taken.path)
        raise


def convert(disk: str, disk_format: str, state_dir: str, path: str, timeout: float) -> None:
    """Convert an instance's disk to an image at `path`, over the base in its record, whatever its header names;
    `timeout` in seconds. QEMU's lock refuses a disk that a guest has open after all."""
    base = read_records(os.path.dirname(disk))[os.path.basename(disk)].base
    make_private(path)
    user, limits = new_user(), Limits(memory=2 << 30, cpu=int(timeout), file_size=ANY_SIZE)
    with contextlib.ExitStack() as stack:
        handles = [stack.enter_context(lent(disk, user)), stack.enter_context(lent(path, user, write=True))]
        source: JsonObject = {"driver": disk_format, "file": _file(handles[0])}
        if disk_format == "qcow2" and base:
            # everybody may read what is in the cache, so that it is not lent
            below = layout.base_path(os.path.abspath(state_dir), os.path.basename(base))
            handles.append(os.open(below, os.O_RDONLY | os.O_CLOEXEC))
            stack.callback(os.close, handles[-1])
            source["backing"] = {"driver": "raw", "file": _file(handles[-1])}
        elif disk_format == "qcow2":
            source["backing"] = None
        argv = ["qemu-img", "convert", "-O", "qcow2", f"json:{json.dumps(source)}", _file(handles[1])["filename"]]
        run([*confined(user, limits), *argv], timeout=timeout, pass_fds=handles)


def _file(handle: int) -> dict[str, str]:
    return {"driver": "file", "filename": f"/proc/self/fd/{handle}"}
