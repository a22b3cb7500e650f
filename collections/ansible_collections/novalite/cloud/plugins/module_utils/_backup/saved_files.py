# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Single files of a backup: its disk is put together of what is in the store, every block compared, in a file that is
thrown away, and what its guest wrote there is read by a process that is nobody (guest_files.py). No kernel mounts it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import marshal
import os
import re
import secrets
import tempfile
import time
import typing as t

from .._errors import NovaliteError
from .._host.command import CommandError
from .._host.confined import Limits, run_confined
from .._host.files import remove_file
from .._json import JsonObject
from .._snapshots.server_snapshots import check_room
from . import guest_files, manifest, replay, stopped
from .catalog import Catalog
from .domain_xml import QCOW2, Disk
from .manifest import Manifest, SavedDisk
from .servers import Place

LISTED, EXTRACTED, ABSENT = STATES = ("listed", "extracted", "absent")
PYTHON = "/usr/bin/python3"  # which has Debian's libnbd and pytsk3
_BOOT = "import marshal, sys; exec(marshal.load(sys.stdin.buffer))"
_PREFIX = ".files-"
_ARCHIVE = re.compile(r"\.files-[0-9a-f]{16}\.tar")
_MEMORY, _CPU, _TIMEOUT = 1 << 30, 600, 900.0  # bytes, seconds, seconds
_LONGEST_ANSWER = 64 << 20  # bytes
_HEADERS = 2048  # bytes that an archive has for each file at most, beside its name
_ANSWERED = ("file_systems", "partition", "entries", "count", "skipped")  # that the program says, whatever it is
_LEFT_OVER = 24 * 3600  # seconds after which nobody fetches an archive any more


@dataclasses.dataclass(frozen=True)
class Wish:
    """Files of the backup `backup_id` of the server `chain`: `paths` on `disk` (None: the first one), in this
    `partition` (None: that of the largest file system). What is extracted has `room` bytes at most, and belongs to the
    user with the id `owner`, who fetches it."""

    backup_id: str
    chain: str
    paths: t.Sequence[str]
    disk: str | None = None
    partition: int | None = None
    room: int = 0
    owner: int = 0


def answer(wish: Wish, state: str, place: Place) -> JsonObject:
    """List or extract. Returns `disks` (names), `disk`, `file_systems`, `partition`, `skipped`, and the `entries` that
    are listed, or the `count` of files and directories in the tar archive `archive`. Raises NovaliteError, OSError."""
    catalog = Catalog(place.known(wish.chain), wish.chain)
    needed = catalog.chain(wish.backup_id)
    saved = needed[-1]
    disk = saved.disk(wish.disk or saved.disks[0].name)
    directory = place.scratch()
    _remove_left_over(directory)
    path = os.path.join(directory, f"{_PREFIX}{secrets.token_hex(8)}")
    room = sum(each.written.data for _backup, each in manifest.disk_chain(needed, disk.name))
    check_room(room + (min(wish.room, disk.size) if state == EXTRACTED else 0), directory, f"disk {disk.name} of it")
    archive = f"{path}.tar"
    is_kept = False
    try:
        replay.restore(catalog, wish.backup_id, {disk.name: path})
        said = _read(wish, state, Disk(disk.name, disk.identity, path, QCOW2), archive)
        if "error" in said:
            raise NovaliteError(f"backup {wish.backup_id}, disk {disk.name}: {said['error']}")
        is_kept = state == EXTRACTED
        answered = {name: said[name] for name in _ANSWERED if name in said}
        return {**_about(saved, disk), **answered, **({"archive": archive} if is_kept else {})}
    finally:
        remove_file(path)
        if not is_kept:
            remove_file(archive)


def _about(saved: Manifest, disk: SavedDisk) -> JsonObject:
    return {"disks": [each.name for each in saved.disks], "disk": disk.name}


def remove(path: str, place: Place) -> None:
    """Remove an archive that answer() made. Raises NovaliteError for any other file."""
    directory, name = os.path.split(path)
    if directory != place.scratch() or not _ARCHIVE.fullmatch(name):
        raise NovaliteError(f"{path} is not an archive of files of a backup: name one as it was returned")
    remove_file(path)


def _remove_left_over(directory: str) -> None:
    """Remove what runs left that were killed."""
    for name in os.listdir(directory):
        path = os.path.join(directory, name)
        with contextlib.suppress(FileNotFoundError):
            if name.startswith(_PREFIX) and os.lstat(path).st_mtime < time.time() - _LEFT_OVER:
                remove_file(path)


def _read(wish: Wish, state: str, disk: Disk, archive: str) -> JsonObject:
    """Have a confined process read the file systems of a disk."""
    request: JsonObject = {"paths": list(wish.paths), "partition": wish.partition}
    request["room"] = wish.room if state == EXTRACTED else None
    most = wish.room + guest_files.MOST_ENTRIES * _HEADERS if state == EXTRACTED else 0
    limits = Limits(memory=_MEMORY, cpu=_CPU, file_size=max(most, _LONGEST_ANSWER))
    with contextlib.ExitStack() as stack:
        program = stack.enter_context(tempfile.TemporaryFile())
        said = stack.enter_context(tempfile.TemporaryFile())
        program.write(marshal.dumps(_code()) + json.dumps(request).encode())
        program.seek(0)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        target = os.open(archive, flags, 0o600)
        stack.callback(os.close, target)
        files = {"disk": stack.enter_context(stopped.connected(disk)), "archive": target}
        argv = [PYTHON, "-I", "-c", _BOOT, *files]
        try:
            run_confined(
                argv, open_files=files, stdin=program.fileno(), stdout=said.fileno(), limits=limits, timeout=_TIMEOUT
            )
        except CommandError as error:
            return {"error": _complaint(error)}
        os.fchown(target, wish.owner, -1)
        said.seek(0)
        try:
            return dict(json.loads(said.read(_LONGEST_ANSWER)))
        except (ValueError, TypeError):
            return {"error": "what reads its file system gave no answer: make a volume of it, and look there"}


def _complaint(error: CommandError) -> str:
    if error.rc == guest_files.NO_READER:
        return "its file system cannot be read without the Sleuth Kit: install python3-tsk on the host"
    return (
        f"its file system cannot be read within {_CPU} s of processor time and {_MEMORY >> 20} MiB of memory, or is "
        f"damaged (return code {error.rc}): make a volume of it, and look there"
    )


def _code() -> t.Any:
    """The code of the program. It is not on the host as a file that nobody may read."""
    loader = guest_files.__spec__.loader if guest_files.__spec__ else None
    return t.cast(t.Any, loader).get_code(guest_files.__name__)
