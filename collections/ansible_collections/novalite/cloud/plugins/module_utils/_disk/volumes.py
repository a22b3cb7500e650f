# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The data of volumes and their snapshots on this host: made, copied, extended, deleted.

A format is what the ledger says, never what a file looks like: a guest can write anything into its volume. Whatever is
made has its name only once it is whole.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import typing as t

from .._errors import NotFoundError, NovaliteError
from .._host import events
from .._host.confined import ANY_SIZE, Limits, run_bounded
from .._host.files import remove_file, sync
from .._host.locks import locked
from .._host.waiting import in_threads
from .._json import JsonMapping
from . import layout, lvm
from .inspect import inspect_image
from .layout import lv_name, volume_path
from .sparse import resize

GIB = 1 << 30
COPY_TIMEOUT = 6 * 3600.0  # seconds
LOCK_TIMEOUT = 600.0

Spec = JsonMapping  # an entry of the module's `volumes`, see its documentation


class Guests(t.Protocol):
    """Operations on disks of running guests, to whose files nobody else may write."""

    def running(self, uuid: str) -> bool: ...
    def resize(self, uuid: str, serial: str, size: int) -> None: ...
    def copy(self, uuid: str, serial: str, path: str, fmt: str, block: bool) -> None: ...


@dataclasses.dataclass
class Done:
    """Result for one volume: `action` is what was done (in check mode: would be), `error` why it was not."""

    id: str
    path: str
    action: str = "none"
    size_gb: int = 0
    error: str | None = None
    before: str | None = None
    after: str | None = None


def ensure(
    volumes: t.Sequence[Spec], state: str, state_dir: str, guests: Guests, check_mode: bool = False, workers: int = 2
) -> list[Done]:
    """Make each of `volumes` present with its size, or absent, or restore it. Each is independent: an error is in its
    own result."""

    def work(spec: Spec) -> Done:
        path = volume_path(spec, state_dir)
        done = Done(spec["id"], path)
        try:
            if check_mode:
                _work(done, spec, state, state_dir, guests, True)
            else:
                _prepare(spec, path)
                with locked(f"volume-{spec['id']}", timeout=LOCK_TIMEOUT):
                    _work(done, spec, state, state_dir, guests, False)
        except NovaliteError as error:
            done.error = str(error)
        except OSError as error:
            done.error = f"volume {spec['id']}: {path}: {error.strerror}"
        return done

    return in_threads(work, list(volumes), workers)


def _work(done: Done, spec: Spec, state: str, state_dir: str, guests: Guests, check_mode: bool) -> None:
    size = _size(spec, done.path)
    done.before = None if size is None else f"{spec['format']}, {size / GIB:g} GiB"
    if state == "absent":
        if size is not None or _is_begun(spec, done.path):
            done.action = "delete"
            if not check_mode:
                _delete(spec, done.path)
        return
    desired_size = spec["size_gb"] * GIB
    done.size_gb, done.after = spec["size_gb"], f"{spec['format']}, {spec['size_gb']:g} GiB"
    if size is None:
        if not spec.get("create", True):
            raise NotFoundError(f"volume {spec['id']} is gone: its data should be at {done.path}")
        done.action = "copy" if spec.get("source") else "create"
        if not check_mode:
            _create(spec, done.path, state_dir, guests)
    elif spec.get("restore"):
        done.action = "restore"
        if not check_mode:
            _restore(spec, done.path, state_dir, guests)
    elif size < desired_size:
        done.action = "extend"
        if not check_mode:
            _extend(spec, done.path, guests)
    else:
        done.after = done.before  # never made smaller


def _prepare(spec: Spec, path: str) -> None:
    directory = os.path.dirname(path)
    if spec["backend"] == "file":
        layout.make_searchable(os.path.dirname(directory), directory)
    elif spec["backend"] == "nfs" and not os.path.isdir(directory):
        # made here, it would be a file of this host alone
        raise NovaliteError(
            f"volume {spec['id']}: the share {directory} is not mounted on this host; give the host "
            "compute_node_shares and run playbooks/compute_nodes.yml"
        )


def _size(spec: Spec, path: str) -> int | None:
    """Bytes that the guest sees; None when there is nothing."""
    if spec["backend"] == "lvm":
        return lvm.size_of(spec["options"]["volume_group"], lv_name(spec))
    if not os.path.lexists(path):
        return None
    if os.path.islink(path) or not os.path.isfile(path):
        raise NovaliteError(f"volume {spec['id']}: {path} is not a file; novalite did not make it: remove it by hand")
    if spec["format"] == "raw":
        return os.stat(path).st_size
    return inspect_image(path, spec["format"], name=f"volume {spec['id']}").virtual_size


def replace(spec: Spec, source: str, fmt: str, state_dir: str) -> None:
    """Give the volume `spec`, which no guest has open, the data of the file `source`, which stands on no other. A file
    is replaced as a whole; a logical volume is written over, or made. Raises NovaliteError for data that is too
    large."""
    path = volume_path(spec, state_dir)
    _prepare(spec, path)
    with locked(f"volume-{spec['id']}", timeout=LOCK_TIMEOUT):
        _refuse_larger(spec, inspect_image(source, fmt, name=f"data for volume {spec['id']}").virtual_size)
        if spec["backend"] != "lvm":
            _make(spec, path, lambda target: _convert(spec, source, fmt, target))
        elif _size(spec, path) is None:
            fill = functools.partial(_convert, spec, source, fmt)
            lvm.create(spec["options"]["volume_group"], lv_name(spec), spec["size_gb"], fill)
        else:
            _convert(spec, source, fmt, path)


def _create(spec: Spec, path: str, state_dir: str, guests: Guests) -> None:
    fill = (lambda target: _copy(spec, target, state_dir, guests)) if spec.get("source") else None
    if spec["backend"] == "lvm":
        group, name = spec["options"]["volume_group"], lv_name(spec)
        lvm.create(group, name, spec["size_gb"], fill)
    else:
        _make(spec, path, fill)


def _make(spec: Spec, path: str, fill: t.Callable[[str], None] | None) -> None:
    """Make the file of the volume, empty, or as `fill` has it, and give it its name once it is whole."""
    part = f"{path}.part"  # a killed run leaves this, never half a volume under its name
    remove_file(part)
    try:
        if fill is not None:
            fill(part)
            resize(part, spec["format"], spec["size_gb"] * GIB)
        else:
            argv = ["qemu-img", "create", "-q", "-f", spec["format"], part, str(spec["size_gb"] * GIB)]
            run_bounded(argv, limits=Limits(file_size=ANY_SIZE))
        os.chown(part, 0, 0)  # a guest's QEMU wrote it, where it made the copy
        os.chmod(part, 0o600)  # libvirt gives it to the guest's QEMU, and takes it back
        sync(part)
        os.rename(part, path)
    finally:
        remove_file(part)


def _restore(spec: Spec, path: str, state_dir: str, guests: Guests) -> None:
    """Give the volume the data of its source. A file is replaced as a whole; a logical volume is written over, and
    holds half of both where that is cut off."""
    if not spec.get("source"):
        raise NotFoundError(f"volume {spec['id']} is to be restored, and no snapshot of it is: ask for it again")
    if spec["backend"] == "lvm":
        _copy(spec, path, state_dir, guests)
    else:
        _create(spec, path, state_dir, guests)


def _copy(spec: Spec, target: str, state_dir: str, guests: Guests) -> None:
    """Fill `target` with what `spec` is made of: an image of the cache (raw there), or another volume or snapshot."""
    source = spec["source"]
    block = spec["backend"] == "lvm"
    if source.get("checksum"):
        path, fmt = layout.cache_path(state_dir, source["checksum"]), "raw"
        if not os.path.exists(path):
            raise NotFoundError(
                f"volume {spec['id']}: image {source['checksum']} is not in the cache of this host "
                f"({path}); run module image_cache first"
            )
        os.utime(path)  # its last use, for the eviction
        _refuse_larger(spec, inspect_image(path, fmt, name=f"base image {path}").virtual_size)
    else:
        path, fmt = volume_path(source, state_dir), source["format"]
        if source.get("instance_uuid") and guests.running(source["instance_uuid"]):
            guests.copy(source["instance_uuid"], source["id"], target, spec["format"], block)
            return
        _prepare(source, path)
        size = _size(source, path)
        if size is None:
            raise NotFoundError(f"volume {spec['id']} is made of {source['id']}, whose data should be at {path}")
        _refuse_larger(spec, size)
    _convert(spec, path, fmt, target)


def _convert(spec: Spec, path: str, fmt: str, target: str) -> None:
    block = spec["backend"] == "lvm"
    # -n: a logical volume is there. No --target-is-zero: zeros are written where extents held something else before
    with contextlib.nullcontext() if block else events.growing(target, events.size_on_disk(path)):
        run_bounded(
            ["qemu-img", "convert", "-q", *(["-n"] if block else []), "-f", fmt, "-O", spec["format"], path, target],
            limits=Limits(memory=2 << 30, cpu=int(COPY_TIMEOUT), file_size=ANY_SIZE),
            timeout=COPY_TIMEOUT,
        )


def _refuse_larger(spec: Spec, size: int) -> None:
    if size > spec["size_gb"] * GIB:
        raise NovaliteError(f"volume {spec['id']} of {spec['size_gb']} GiB is to be made of {size} bytes")


def _extend(spec: Spec, path: str, guests: Guests) -> None:
    holder = spec.get("instance_uuid")
    live = holder is not None and guests.running(str(holder))
    if spec["backend"] == "lvm":
        lvm.extend(spec["options"]["volume_group"], lv_name(spec), spec["size_gb"])
    elif not live:
        resize(path, spec["format"], spec["size_gb"] * GIB)
    if live:
        guests.resize(str(holder), spec["id"], spec["size_gb"] * GIB)


def _is_begun(spec: Spec, path: str) -> bool:
    """Tell whether a run that was killed has left the beginning of the volume."""
    if spec["backend"] == "lvm":
        return bool(lvm.parts_of(spec["options"]["volume_group"], lv_name(spec)))
    return os.path.lexists(f"{path}.part")


def _delete(spec: Spec, path: str) -> None:
    if spec["backend"] == "lvm":
        group = spec["options"]["volume_group"]
        for name in lvm.parts_of(group, lv_name(spec)):
            lvm.remove(group, name)
        return
    # a new file has no blocks of an old one: nobody reads what was in this one
    for name in (path, f"{path}.part"):
        remove_file(name)
