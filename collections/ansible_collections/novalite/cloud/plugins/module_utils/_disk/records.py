# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Records of an instance's disks: the format of each is in `disk.info`, written before the file that it speaks about.

A guest can write any header into its disk (CVE-2014-0134; Nova pins formats the same way, LP 1221190), so the file
itself is never asked. The record also says which file of the cache a disk stands on, so that this one is kept.

A second record, `disk.fresh`, says that no guest can have written to the disk that an instance starts from. It is made
with the disk (or with the directory of an instance that starts from a volume), and goes before its domain is defined.
Without it, as beside disks that came from another host, the host's kernel reads no file system of the disk.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import typing as t
from xml.etree import ElementTree

from .._errors import NotFoundError, NovaliteError
from .._host.files import INSTANCES, sync, write_atomically, write_less
from . import layout

FRESH = "disk.fresh"
FRESH_RESCUE = FRESH + layout.RESCUE
DEFINITION = "libvirt.xml"  # Nova's name
FORMATS = ("qcow2", "raw")


@dataclasses.dataclass(frozen=True)
class Record:
    """A disk file's `format`, and `base`, the name in the image cache of the file it stands on (None: on none)."""

    format: str
    base: str | None = None


def read_records(directory: str, name: str = layout.DISK_INFO) -> dict[str, Record]:
    """`{file name: Record}` of the instance's `directory`, out of the file `name`; empty when there is none. Raises
    NovaliteError."""
    path = os.path.join(directory, name)
    try:
        with open(path, encoding="utf-8") as handle:
            records = {str(name): Record(**fields) for name, fields in json.load(handle).items()}
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError, AttributeError) as error:
        raise NovaliteError(
            f"{path} cannot be read ({error}); remove the instance's disk and create it again (module disk)"
        ) from error
    for file, record in records.items():
        if record.format not in FORMATS:
            raise NovaliteError(
                f"{path} gives {file} the format '{record.format}', which is none of {', '.join(FORMATS)}"
            )
    return records


def write_records(directory: str, records: t.Mapping[str, Record]) -> None:
    """Replace the disk.info of `directory`."""
    text = json.dumps({name: dataclasses.asdict(record) for name, record in records.items()}, indent=1)
    write_less(os.path.join(directory, layout.DISK_INFO), f"{text}\n")


def recorded_format(directory: str, name: str = layout.DISK) -> str:
    """The format of the disk file `name` in an instance's directory, from disk.info; never from the file itself."""
    records = read_records(directory)
    if not records:
        path = os.path.join(directory, layout.DISK_INFO)
        raise NotFoundError(f"{path} does not exist: create the instance's disk first (module disk)")
    if name not in records:
        raise NovaliteError(
            f"{os.path.join(directory, layout.DISK_INFO)} does not say the format of {name}; remove "
            "the instance's disk and create it again (module disk)"
        )
    return records[name].format


def note_fresh(directory: str, disk: str) -> None:
    """Record that the root disk with the file name `disk` was made just now in this instance's directory."""
    write_atomically(os.path.join(directory, beside(disk)), "", 0o600)


def is_fresh(directory: str, disk: str) -> bool:
    """Tell whether no guest can have written to that disk."""
    return os.path.lexists(os.path.join(directory, beside(disk)))


def forget_fresh(xml: str) -> None:
    """Record that a domain is about to have the disks beside the files that its `xml` names."""
    for directory in sorted(_directories(xml)):
        gone = False
        for name in (FRESH, FRESH_RESCUE):
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                os.unlink(os.path.join(directory, name))
                gone = True
        if gone:
            sync(directory)  # what the guest writes must not be on the disk before this is


def keep_definition(xml: str, uuid: str) -> None:
    """Write the XML that a domain was asked for into the instance's directory, if there is one: for people, who find in
    libvirt only what libvirt made of it."""
    for directory in _directories(xml):
        parent, name = os.path.split(directory)
        if name == uuid and os.path.basename(parent) == INSTANCES and layout.is_directory(directory):
            with contextlib.suppress(OSError):  # no guest is kept from its start by it
                write_atomically(os.path.join(directory, DEFINITION), xml, 0o600)


def beside(disk: str) -> str:
    """The name of the file that speaks of this disk."""
    return FRESH_RESCUE if disk.endswith(layout.RESCUE) else FRESH


def _directories(xml: str) -> t.Iterable[str]:
    """Return the directories of disks and console logs: a guest that starts from a volume has only its log there."""
    values = (element.get(name) for element in ElementTree.fromstring(xml).iter() for name in ("file", "path"))
    return {os.path.dirname(path) for path in values if path and os.path.isabs(path)}
