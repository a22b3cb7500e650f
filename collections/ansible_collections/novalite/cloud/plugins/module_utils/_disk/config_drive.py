# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Config drives: the ISO9660 images from which cloud-init reads what it is told. They may hold secrets."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import shutil
import typing as t

from .._errors import NotFoundError, NovaliteError
from .._host.command import run
from .._host.files import instance_dir, make_private, remove_file, sync, write_atomically
from .._host.locks import locked
from .._host.waiting import in_threads
from .._json import JsonObject
from .._model.plain_text import is_plain
from . import layout

LABELS = {"config-2": "config-2", "nocloud": "cidata"}
MAX_SIZE = 64 << 20  # bytes; Nova's CONFIGDRIVESIZE_BYTES
LOCK = "config_drives"
# Debian and EL up to 9 have genisoimage (cdrkit), which EL 10 dropped; xorriso's xorrisofs is everywhere, and takes the
# same options. mkisofs is a name of either, or of cdrtools.
PROGRAMS = ("genisoimage", "mkisofs", "xorrisofs")
TREE = f".{layout.CONFIG_DRIVE}.tree"
RESCUE_DRIVE = layout.CONFIG_DRIVE + layout.RESCUE
RECORD, RESCUE_RECORD = f"{layout.CONFIG_DRIVE}.sha256", f"{RESCUE_DRIVE}.sha256"
PUBLISHER = "novalite"


@dataclasses.dataclass(frozen=True, repr=False)
class ConfigDrive:
    """Config drive of one instance: `files` by relative path; `format` is config-2 or nocloud. With `rescue` it is the
    one for a rescue, beside the instance's own."""

    uuid: str
    format: str
    files: t.Mapping[str, bytes]
    rescue: bool = False

    @property
    def name(self) -> str:
        """Name of the drive's file; the hash of what the drive holds stands in the file beside it."""
        return RESCUE_DRIVE if self.rescue else layout.CONFIG_DRIVE

    @property
    def record(self) -> str:
        return RESCUE_RECORD if self.rescue else RECORD

    def __post_init__(self) -> None:
        if self.format not in LABELS:
            raise NovaliteError(
                f"instance {self.uuid}: '{self.format}' is not a config drive format; there are {', '.join(LABELS)}"
            )
        for path in self.files:
            parts = path.split("/")
            if not path or not is_plain(path) or any(part in ("", ".", "..") for part in parts):
                raise NovaliteError(f"instance {self.uuid}: {path[:80]!r} is not a path on a config drive")
        size = sum(len(content) for content in self.files.values())
        if size > MAX_SIZE:
            raise NovaliteError(f"instance {self.uuid}: {size} bytes do not go on a config drive of {MAX_SIZE}")

    @property
    def digest(self) -> str:
        """Hash of format, paths and contents, each with its length, so that no two drives can share it."""
        digest = hashlib.sha256()
        for part in (
            self.format.encode(),
            *(part for path, content in sorted(self.files.items()) for part in (path.encode(), content)),
        ):
            digest.update(len(part).to_bytes(8, "big") + part)
        return digest.hexdigest()


def write_config_drives(drives: t.Sequence[ConfigDrive], state_dir: str, check_mode: bool = False) -> JsonObject:
    """Make each instance's directory hold its config drive. Returns `changed`, `config_drives` (uuid, path, changed)
    and `diff`, which names files and sizes only. Raises NovaliteError; what stood there is there still then."""
    stale = [drive for drive in drives if _recorded(drive, state_dir) != drive.digest]
    if stale and not check_mode:
        # One lock for all: a second run at the same instance would remove the first one's tree of files.
        with locked(LOCK):
            in_threads(lambda drive: _write(drive, state_dir), stale)
    changed = {drive.uuid for drive in stale}
    return {
        "changed": bool(stale),
        "config_drives": [
            {
                "uuid": drive.uuid,
                "changed": drive.uuid in changed,
                "path": os.path.join(instance_dir(state_dir, drive.uuid), drive.name),
            }
            for drive in drives
        ],
        "diff": {
            "before": {drive.uuid: None for drive in stale},
            "after": {
                drive.uuid: {
                    "format": drive.format,
                    "bytes": {path: len(content) for path, content in sorted(drive.files.items())},
                }
                for drive in stale
            },
        },
    }


def _recorded(drive: ConfigDrive, state_dir: str) -> str | None:
    """The hash of what the drive holds, or None when there is none. The record is written after the drive."""
    directory = instance_dir(state_dir, drive.uuid)
    if not os.path.exists(os.path.join(directory, drive.name)):
        return None
    try:
        with open(os.path.join(directory, drive.record), encoding="ascii") as handle:
            return handle.read().strip()
    except (OSError, ValueError):
        return None


def _write(drive: ConfigDrive, state_dir: str) -> None:
    directory = instance_dir(state_dir, drive.uuid)
    if not os.path.isdir(directory):
        raise NotFoundError(f"{directory} does not exist; create the instance's disk first (module disk)")
    tree, part = os.path.join(directory, TREE), os.path.join(directory, f"{drive.name}.part")
    record, path = os.path.join(directory, drive.record), os.path.join(directory, drive.name)
    try:
        shutil.rmtree(tree, ignore_errors=True)  # of a run that was killed
        _lay_out(drive, tree)
        _make_image(drive, tree, part)
        remove_file(record)  # a crash from here on leaves a drive without a record: it is made again
        os.rename(part, path)
        write_atomically(record, f"{drive.digest}\n", 0o600)
    except OSError as error:
        raise NovaliteError(
            f"instance {drive.uuid}: its config drive cannot be written in {directory}: {error.strerror}"
        ) from error
    finally:
        shutil.rmtree(tree, ignore_errors=True)
        remove_file(part)


def _lay_out(drive: ConfigDrive, tree: str) -> None:
    os.mkdir(tree, 0o700)
    for path, content in drive.files.items():
        target = os.path.join(tree, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "xb") as handle:
            handle.write(content)


def _make_image(drive: ConfigDrive, tree: str, part: str) -> None:
    program = next((name for name in PROGRAMS if shutil.which(name)), None)
    if program is None:
        raise NovaliteError(
            "no program that writes a config drive is installed on this host; install one of "
            f"{', '.join(PROGRAMS)} (package xorriso)"
        )
    make_private(part)  # genisoimage would create it readable to all
    # Nova's options; -l, -J and -r keep the names as they are
    names = ["-input-charset", "utf-8", "-allow-lowercase", "-allow-multidot", "-l", "-J", "-r"]
    run([program, "-quiet", *names, "-publisher", PUBLISHER, "-V", LABELS[drive.format], "-o", part, tree])
    sync(part)
