# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What each disk file of an instance is: `disk.info`, written before the file that it speaks about.

A guest can write any header into its disk (CVE-2014-0134; Nova pins formats the same way, LP 1221190), so the file
itself is never asked. The record also says which file of the cache a disk stands on, so that this one is kept.
"""

from __future__ import annotations

import dataclasses
import json
import os
import typing as t

from .._errors import NotFoundError, NovaliteError
from .._host import write_atomically
from . import layout

FORMATS = ("qcow2", "raw")


@dataclasses.dataclass(frozen=True)
class Record:
    """A disk file's `format`, and `base`, the name in the image cache of the file it stands on (None: on none)."""

    format: str
    base: str | None = None


def read_records(directory: str) -> dict[str, Record]:
    """`{file name: Record}` of the instance's `directory`; empty when there is no disk.info. Raises NovaliteError."""
    path = os.path.join(directory, layout.DISK_INFO)
    try:
        with open(path, encoding="utf-8") as handle:
            records = {str(name): Record(**fields) for name, fields in json.load(handle).items()}
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError, AttributeError) as error:
        raise NovaliteError(
            f"{path} cannot be read ({error}); remove the instance's disk and create it again (module disk)"
        ) from error
    for name, record in records.items():
        if record.format not in FORMATS:
            raise NovaliteError(
                f"{path} gives {name} the format '{record.format}', which is none of {', '.join(FORMATS)}"
            )
    return records


def write_records(directory: str, records: t.Mapping[str, Record]) -> None:
    """Replace the disk.info of `directory`."""
    text = json.dumps({name: dataclasses.asdict(record) for name, record in records.items()}, indent=1)
    write_atomically(os.path.join(directory, layout.DISK_INFO), f"{text}\n")


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
