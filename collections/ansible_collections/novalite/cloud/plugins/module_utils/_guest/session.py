# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Injection from end to end: attach, mount, compare, write, read back, and take everything down again."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import fcntl
import os
import time
import typing as t

from .._disk import export, layout, nbd
from .._disk.daemon import DiskInUseError, end_leftovers
from .._disk.overlay import recorded_format
from .._disk.partition import FileSystem, Partition, find_partition, identify_file_system
from .._disk.records import is_fresh
from .._disk.syscalls import MS_NODEV, MS_NOEXEC, MS_NOSUID, MS_RDONLY, MS_REMOUNT, mount, unmount, with_private_mounts
from .._errors import NotFoundError, NovaliteError
from .._host.confined import ANY_SIZE, Limits, run_confined
from .._host.files import instance_dir, opened
from .._host.locks import locked_directory
from .._host.own_directory import make_own
from .._host.waiting import in_threads
from .._json import JsonObject
from .guest_root import GuestRoot
from .inject import Request, Step, apply, describe, expected_paths, plan

WORK_DIR = "/run/novalite"  # only ever a mount point, in each injection's own namespace
WORK_SIZE = "size=1m,mode=0700"
BLKFLSBUF = 0x1261
# A guest's file system gives the host no programs, no devices and no setuid bits.
GUARDED = MS_NOSUID | MS_NODEV | MS_NOEXEC
DAMAGE = (errno.EUCLEAN, errno.EBADMSG, errno.EINVAL, errno.EIO)  # what the kernel says of a broken file system
# More than this many daemons at once only take the processors from each other.
MAX_WORKERS = 8
IN_USE_PAUSES = (0.05, 0.2)  # seconds before a disk that is in use is tried again
BACKENDS = ("auto", "nbd", "fuse")


class AttachedDisk(t.Protocol):
    """Disk as both back ends give it: one file or device, and block devices of its parts."""

    @property
    def device(self) -> str: ...

    def block_device(self, partition: Partition | None) -> t.ContextManager[str]: ...


Attach = t.Callable[[str, str, bool, str], t.ContextManager[AttachedDisk]]


@dataclasses.dataclass(frozen=True)
class Outcome:
    """Result for one instance: `steps` written, or that would be; `checks`: periodic fsck was switched off."""

    uuid: str
    steps: tuple[Step, ...]
    checks: bool = False
    disk_exists: bool = True


def choose_backend(backend: str, check_mode: bool = False) -> str:
    """Return "nbd" or "fuse" for "auto": nbd, as Nova, where the kernel has it. Check mode loads no kernel module."""
    if backend not in BACKENDS:
        raise NovaliteError(f"backend '{backend}' is none of {', '.join(BACKENDS)}")
    if backend != "auto":
        return backend
    if nbd.is_loaded() if check_mode else nbd.load():
        return "nbd"
    if export.is_available():
        return "fuse"
    raise NovaliteError(
        "this host can attach no disk: it has neither the nbd driver nor qemu-storage-daemon with "
        "/dev/fuse; install qemu-utils, or use a config drive"
    )


def inject_all(requests: t.Sequence[Request], state_dir: str, backend: str, check_mode: bool = False) -> JsonObject:
    """Write into the disks of instances what they miss, as long as no guest has had them: none is mounted later.

    Returns `changed`, `backend`, `instances` (uuid, changed, written: paths) and `diff`. Each instance is a thread
    with its own daemon and mounts. Raises NovaliteError, which names every instance that failed and why.
    """
    chosen = choose_backend(backend, check_mode) if requests else backend
    attach: Attach = nbd.attached if chosen == "nbd" else export.attached
    errors: list[str] = []

    def work(request: Request) -> Outcome | None:
        try:
            return _inject(request, state_dir, attach, check_mode)
        except NovaliteError as error:
            errors.append(f"instance {request.uuid}: {_whole_message(error)}")
        except OSError as error:
            errors.append(f"instance {request.uuid}: {error.filename or 'its disk'}: {error.strerror}")
        return None

    workers = min(MAX_WORKERS, 2 * (os.cpu_count() or 1))
    outcomes = [outcome for outcome in in_threads(work, requests, workers) if outcome is not None]
    if errors:
        raise NovaliteError("; ".join(sorted(errors)))
    written = {outcome.uuid: _written(outcome, request) for outcome, request in zip(outcomes, requests)}
    changing = [outcome for outcome in outcomes if written[outcome.uuid]]
    return {
        "changed": any(written.values()),
        "backend": chosen,
        "instances": [{"uuid": uuid, "changed": bool(paths), "written": paths} for uuid, paths in written.items()],
        "diff": {
            "before": {
                outcome.uuid: {step.path: describe(step.before, step.secret) for step in outcome.steps}
                for outcome in changing
            },
            "after": {
                outcome.uuid: {step.path: describe(step.after, step.secret) for step in outcome.steps}
                if outcome.disk_exists
                else dict.fromkeys(written[outcome.uuid], "written to the new disk")
                for outcome in changing
            },
        },
    }


def _written(outcome: Outcome, request: Request) -> list[str]:
    if not outcome.disk_exists:
        return expected_paths(request)
    return [*(["periodic file system checks"] if outcome.checks else []), *(step.path for step in outcome.steps)]


def _whole_message(error: BaseException) -> str:
    """A failure, and with a failed teardown the failure before it: neither hides the other."""
    earlier = error.__context__
    if isinstance(earlier, NovaliteError) and error.__cause__ is None and not error.__suppress_context__:
        return f"{_whole_message(earlier)}; {error}"
    return str(error)


def _inject(request: Request, state_dir: str, attach: Attach, check_mode: bool) -> Outcome:
    directory = instance_dir(state_dir, request.uuid)
    disk = os.path.join(os.path.abspath(directory), request.disk)
    if request.volume is not None:
        disk = layout.volume_path(request.volume, os.path.abspath(state_dir))
    if not os.path.exists(disk):
        if check_mode:  # the task before would have made it
            return Outcome(request.uuid, (), disk_exists=False)
        raise NotFoundError(f"{disk} does not exist; create it first (module disk)")
    if request.volume is not None:
        disk_format = str(request.volume["format"])
    else:
        disk_format = recorded_format(directory, request.disk)

    def work() -> Outcome:
        with _work_dir() as work_dir, attach(disk, disk_format, check_mode, work_dir) as attached:
            partition = find_partition(attached.device, request.partition)
            with attached.block_device(partition) as device:
                # A second namespace, for the guest's file system alone, which the daemon is not in. After kill -9 the
                # last process of a namespace unmounts what is there: were that the daemon, it would wait for ever, in
                # its own exit, for an answer of its own.
                return with_private_mounts(lambda: _write(request, device, os.path.join(work_dir, "root"), check_mode))

    with locked_directory(directory):
        if not is_fresh(directory, request.disk):
            return Outcome(request.uuid, ())  # it was told at its first start
        for pause in IN_USE_PAUSES:
            try:
                return with_private_mounts(work)
            except DiskInUseError:
                # Of a run that was killed, or on its way out: the kernel closes its files a moment after its end.
                if not end_leftovers(disk):
                    time.sleep(pause)
        return with_private_mounts(work)


def _write(request: Request, device: str, root: str, check_mode: bool) -> Outcome:
    file_system = identify_file_system(device)
    os.mkdir(root)
    if file_system.checks_scheduled and not check_mode:
        # As Nova: a guest that was cloned from an old image must not start with a check of its disk.
        run_confined(["tune2fs", "-c", "0", "-i", "0", device], writes=[device], limits=Limits(file_size=ANY_SIZE))
    with _mounted(device, root, file_system, check_mode):
        with GuestRoot(root) as guest:
            steps = plan(guest, request)
        # Mounted for writing only when there is something to write: a second run leaves no trace in the guest.
        if steps and not check_mode:
            _make_writable(device, root, file_system)
            with GuestRoot(root) as guest:
                apply(guest, steps)
    outcome = Outcome(request.uuid, tuple(steps), file_system.checks_scheduled)
    if steps and not check_mode:
        _flush(device)
        with _mounted(device, root, identify_file_system(device), False), GuestRoot(root) as guest:
            left = plan(guest, request)
        if left:
            raise NovaliteError(f"what was written is not on the disk: {', '.join(step.path for step in left)}")
    return outcome


def _make_writable(device: str, root: str, file_system: FileSystem) -> None:
    options = file_system.options if file_system.type == "ext4" else ""
    try:
        mount(device, root, file_system.type, GUARDED | MS_REMOUNT, options)
    except OSError as error:
        raise NovaliteError(
            f"its {file_system.type} file system can only be read: it is damaged, or has features "
            f"that this host's kernel cannot write ({error.strerror}); use a config drive"
        ) from error


@contextlib.contextmanager
def _work_dir() -> t.Iterator[str]:
    """A directory in memory that only this thread's mount namespace has: nothing of it can be left behind."""
    make_own(WORK_DIR)
    mount("novalite", WORK_DIR, "tmpfs", MS_NOSUID | MS_NOEXEC, WORK_SIZE)
    try:
        yield WORK_DIR
    finally:
        unmount(WORK_DIR)


@contextlib.contextmanager
def _mounted(device: str, root: str, file_system: FileSystem, read_only_device: bool) -> t.Iterator[None]:
    options = file_system.read_only_options if read_only_device else file_system.options
    try:
        # The journal is replayed here, also for a read-only mount: what was written would be lost with it.
        mount(device, root, file_system.type, GUARDED | MS_RDONLY, options)
    except OSError as error:
        why = "it is damaged" if error.errno in DAMAGE else "this host refused"
        raise NovaliteError(
            f"its {file_system.type} file system cannot be mounted: {why} ({error.strerror})"
        ) from error
    try:
        yield
    finally:
        unmount(root)
        _flush(device)


def _flush(device: str) -> None:
    """Flush `device` as `blockdev --flushbufs` does: nothing of this disk stays in the cache for the next one."""
    with opened(device) as fd:
        fcntl.ioctl(fd, BLKFLSBUF, 0)
