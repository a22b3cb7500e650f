# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Disks of other hypervisors and compressed files, made into images of the controller's: read, unpacked, converted.

Each is converted once and kept in the ledger's home under the checksum of the file that it came from. What converts it
is a process of nobody's, whose files were judged before (inspect.py, foreign_disks.py, ova.py).
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import tempfile
import typing as t

from .._disk.controller_files import convert_file
from .._disk.download import download
from .._disk.download_request import Source
from .._disk.inspect import DISK_FORMATS, inspect_image
from .._disk.sparse import sha256_of
from .._errors import ImageRefusedError, NovaliteError
from .._host.command import CommandError
from .._host.confined import ANY_SIZE, run_confined
from .._host.files import make_private, opened, remove_file, sync, write_atomically
from .._host.locks import locked_file
from .._likeness import Content
from .foreign_disks import inspect_foreign
from .ova import copy_member, read_archive
from .ovf import Appliance
from .ovf import Disk as ApplianceDisk
from .packed import MAX_SIZE, suffix_of, unpack

DIRECTORY = "imported"  # in the ledger's home
OVA = "ova"
CONVERTED = "qcow2"
TIMEOUT = 3600.0  # seconds, for a download, and for another run's conversion
TABLES = 64 << 20  # bytes that a qcow2 file may have beyond a fiftieth more than its disk
Report = t.Callable[[str], None]


@dataclasses.dataclass(frozen=True)
class ImportedDisk:
    """Disk that can be registered: its file on the controller, sizes in bytes. Before it is converted, in check mode,
    its `checksum` is empty and its `size` 0."""

    path: str
    disk_format: str
    size: int
    virtual_size: int
    checksum: str


@dataclasses.dataclass(frozen=True)
class Imported:
    """Disks of a file, the one that the guest boots from first, and the `appliance` that they belong to in an OVA."""

    disks: tuple[ImportedDisk, ...]
    appliance: Appliance | None


@dataclasses.dataclass(frozen=True)
class Foreign:
    """A file that is to be imported: `source` is a path or URL, `name` what messages call it."""

    source: str
    disk_format: str
    name: str
    content: Content = "disk"  # of a raw disk


def is_foreign(source: str, disk_format: str) -> bool:
    """Tell whether this has to be converted or unpacked before a host can have it."""
    return disk_format not in DISK_FORMATS or suffix_of(source) is not None


def import_file(
    foreign: Foreign, checksum: str | None, home: str, keep: bool, report: Report, known: str | None = None
) -> tuple[str, Imported]:
    """Return the checksum of the file, and its disks, made in `home` unless an earlier run did. Without `keep` nothing
    is made, and nothing stays.

    `checksum` is what the file must have, "sha256:<hex>"; a URL needs one. `known` is what an earlier run read, of a
    file that did not change since. Raises NovaliteError for a file that cannot be read or had, ImageRefusedError for
    one that is not what it was declared to be.
    """
    directory = os.path.join(home, DIRECTORY)
    ready = known or (checksum if "://" in foreign.source else None)
    if ready is not None and checksum in (None, ready) and (imported := _recorded(_base(directory, ready, foreign))):
        return ready, imported
    try:
        with contextlib.ExitStack() as stack:
            if keep:
                os.makedirs(directory, mode=0o700, exist_ok=True)
            workplace = stack.enter_context(
                tempfile.TemporaryDirectory(prefix=".import-", dir=directory if keep else None)
            )
            path = _brought(foreign, checksum, workplace, report)
            with opened(path, os.O_RDONLY | os.O_NONBLOCK) as fd:
                here = f"sha256:{sha256_of(fd)}"
            if checksum not in (None, here):
                raise ImageRefusedError(f"{foreign.name} has the checksum {here}, not {checksum}")
            base = _base(directory, here, foreign)
            if keep:
                stack.enter_context(locked_file(f"{base}.lock", TIMEOUT))
            imported = _recorded(base)
            if imported is None:
                report(f"{foreign.name}: reading and converting it")
                imported = _imported(foreign, path, base, workplace, keep)
                if keep:
                    write_atomically(f"{base}.json", json.dumps(dataclasses.asdict(imported)), 0o600)
            return here, imported
    except OSError as error:
        raise NovaliteError(f"{foreign.name} cannot be imported: {error.strerror}") from error


def _brought(foreign: Foreign, checksum: str | None, workplace: str, report: Report) -> str:
    if "://" not in foreign.source:
        return foreign.source
    if checksum is None:
        raise NovaliteError(f"{foreign.name} is a URL: give its checksum, so that it can be verified")
    path = os.path.join(workplace, "download")
    download(Source(foreign.source, foreign.name, MAX_SIZE, TIMEOUT), path, report)
    return path


def _base(directory: str, checksum: str, foreign: Foreign) -> str:
    """Beginning of the names of a file's disks."""
    suffix = suffix_of(foreign.source) or ""
    return os.path.join(directory, f"{checksum[len('sha256:') :][:32]}-{foreign.disk_format}{suffix}")


def _recorded(base: str) -> Imported | None:
    """The record of an earlier run, whose files are all there."""
    try:
        with open(f"{base}.json", encoding="utf-8") as file:
            record = json.load(file)
    except FileNotFoundError:
        return None
    disks = tuple(ImportedDisk(**disk) for disk in record["disks"])
    appliance = record["appliance"]
    if appliance is not None:
        parts = {"disks": tuple(ApplianceDisk(**disk) for disk in appliance["disks"])}
        appliance = Appliance(**{**appliance, **parts, "networks": tuple(appliance["networks"])})
    return Imported(disks, appliance) if all(os.path.exists(disk.path) for disk in disks) else None


def _imported(foreign: Foreign, path: str, base: str, workplace: str, keep: bool) -> Imported:
    suffix = suffix_of(foreign.source)
    if suffix is not None:
        unpacked = os.path.join(workplace, "unpacked")
        unpack(path, suffix, unpacked, f"{foreign.name}, unpacked,")
        path = unpacked
    if foreign.disk_format != OVA:
        return Imported((_disk(foreign, path, f"{base}-1", workplace, keep),), None)
    archive, disks = read_archive(path, foreign.name), []
    for number, disk in enumerate(archive.appliance.disks, 1):
        part = dataclasses.replace(
            foreign, disk_format=disk.disk_format, name=f"{foreign.name}: {disk.file}", content="unpacked"
        )
        member = os.path.join(workplace, f"member-{number}")
        with open(member, "xb") as target:
            copy_member(path, archive.members[disk.file], target)
        disks.append(_disk(part, member, f"{base}-{number}", workplace, keep))
        remove_file(member)
    return Imported(tuple(disks), archive.appliance)


def convert(foreign: Foreign, path: str, made: str, most: int = ANY_SIZE) -> int:
    """Convert the disk of another hypervisor in the file `path` into the new file `made`, of the format CONVERTED and
    at most `most` bytes; return its virtual size in bytes. Raises ImageRefusedError for one that is not what it was
    declared to be, or becomes too large; CommandError, OSError."""
    disk = inspect_foreign(path, foreign.disk_format, foreign.name)
    _ask_qemu(foreign, path, disk.driver)
    make_private(made)
    _convert(foreign, path, disk.driver, made, min(most, disk.virtual_size + disk.virtual_size // 50 + TABLES))
    name = f"{foreign.name}, converted,"
    return inspect_image(made, CONVERTED, limit=disk.virtual_size, name=name).virtual_size


def _disk(foreign: Foreign, path: str, base: str, workplace: str, keep: bool) -> ImportedDisk:
    """The disk in the file `path`, converted to, or moved to, a file that begins with `base`."""
    if foreign.disk_format in DISK_FORMATS:
        disk_format, made = foreign.disk_format, path
        virtual_size = inspect_image(path, disk_format, name=foreign.name, content=foreign.content).virtual_size
    else:
        disk = inspect_foreign(path, foreign.disk_format, foreign.name)
        disk_format, virtual_size, made = CONVERTED, disk.virtual_size, os.path.join(workplace, "converted")
        if keep:
            virtual_size = convert(foreign, path, made)
        else:
            _ask_qemu(foreign, path, disk.driver)
    target = f"{base}.{disk_format}"
    if not keep:
        return ImportedDisk(target, disk_format, 0, virtual_size, "")
    with opened(made) as fd:
        checksum = f"sha256:{sha256_of(fd)}"
    sync(made, 0o600)
    os.rename(made, target)
    return ImportedDisk(target, disk_format, os.path.getsize(target), virtual_size, checksum)


def _ask_qemu(foreign: Foreign, path: str, driver: str) -> None:
    """Raise ImageRefusedError where QEMU, which will open the file, sees another one behind it."""
    argv = ["qemu-img", "info", "--output=json", "-f", driver, path]
    try:
        info = json.loads(run_confined(argv, reads=[path]).stdout)
    except CommandError as error:
        if error.rc in (124, 127):
            raise
        raise ImageRefusedError(f"{foreign.name} is damaged, or made to do harm: {str(error)[:500]}") from error
    except ValueError as error:
        raise ImageRefusedError(f"{foreign.name}: qemu-img info cannot describe it") from error
    if info.get("backing-filename") or info.get("full-backing-filename"):
        raise ImageRefusedError(f"{foreign.name} needs another file, its parent: merge the chain into one disk first")


def _convert(foreign: Foreign, path: str, driver: str, made: str, most: int) -> None:
    try:
        convert_file(path, driver, made, CONVERTED, most)
    except CommandError as error:
        if error.rc in (124, 127):
            raise
        raise ImageRefusedError(f"{foreign.name} cannot be converted: {str(error)[:500]}") from error
