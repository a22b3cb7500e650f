# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Images that are given as disks of other hypervisors, as OVAs or compressed: what their files become, and what the
record keeps of them, so that a second run reads nothing again. No SQL here."""

from __future__ import annotations

import dataclasses
import logging
import os
import typing as t

from ..._errors import NovaliteError
from ..._guest.image_properties import PRIVATE
from ..._image_import.imported import Foreign, Imported, ImportedDisk, import_file, is_foreign
from ..._json import JsonMapping, JsonObject
from .image_files import local_path

LOG = logging.getLogger("novalite.images")
STAT = f"{PRIVATE}stat"  # property: size and time of an image's local files, by their kind
ORIGIN = "origin"  # in STAT: the file that the image was made from
UEFI = {"hw_firmware_type": "uefi"}

Record = JsonMapping


@dataclasses.dataclass(frozen=True)
class Request:
    """An image that is asked for: the `item` as it was given, the record `before`, and what is to be imported, if
    anything is."""

    item: JsonMapping
    before: Record | None
    foreign: Foreign | None

    def items(self, home: str, keep: bool) -> list[JsonObject]:
        """The items to record: the same one, or one for each disk of its file, which is imported into `home`. Without
        `keep` nothing is made there. Raises NovaliteError."""
        if self.foreign is None:
            return [dict(self.item)]
        origin = _origin(self.foreign)
        before = (self.before or {}).get("properties", {}).get(STAT, {}).get(ORIGIN, {})
        unchanged = bool(origin["stat"]) and origin == {**before, "checksum": None}
        known = before["checksum"] if unchanged else None
        checksum, imported = import_file(self.foreign, self.item["checksum"], home, keep, LOG.info, known)
        origin["checksum"] = checksum
        return [
            {**item, "imported": {**_file(disk), "origin": origin}}
            for item, disk in zip(_named(self.item, imported), imported.disks)
        ]


def request_of(item: JsonMapping, before: Record | None) -> Request:
    """Return the work that an image of the module's `item` needs before it can be recorded."""
    if not item["source"]:
        return Request(item, before, None)
    origin = (before or {}).get("properties", {}).get(STAT, {}).get(ORIGIN, {})
    disk_format = item["disk_format"] or origin.get("disk_format") or (before or {}).get("disk_format")
    what = f"image {item['name']!r}: source {item['source']}"
    if disk_format is None or not is_foreign(item["source"], disk_format):
        return Request(item, before, None)
    source = local_path(f"image {item['name']!r}", item["source"])
    content: t.Literal["unpacked", "disk"] = "unpacked" if item.get("any_content") else "disk"
    return Request(item, before, Foreign(source, disk_format, what, content))


def _origin(foreign: Foreign) -> JsonObject:
    stat = None
    if "://" not in foreign.source:
        try:
            status = os.stat(foreign.source)
        except OSError as error:
            raise NovaliteError(f"{foreign.name} on the controller: {error.strerror}") from error
        stat = [status.st_size, status.st_mtime_ns]
    return {"source": foreign.source, "disk_format": foreign.disk_format, "stat": stat, "checksum": None}


def _named(item: JsonMapping, imported: Imported) -> list[JsonObject]:
    """An item for each disk: the first one has the name that was given, and what is said of the machine."""
    appliance, own = imported.appliance, dict(item)
    if appliance is not None:
        if own["min_ram_mb"] is None:
            own["min_ram_mb"] = appliance.memory_mib
        if appliance.uefi:
            own["properties"] = {**UEFI, **(own["properties"] or {})}
        own["appliance"] = dataclasses.asdict(appliance)
    others = [
        {**item, "name": f"{item['name']}-disk{number}", "kernel": None, "ramdisk": None, "cmdline": None}
        for number in range(2, len(imported.disks) + 1)
    ]
    return [
        {**entry, "source": disk.path, "disk_format": disk.disk_format, "checksum": None}
        for entry, disk in zip([own, *others], imported.disks)
    ]


def _file(disk: ImportedDisk) -> JsonObject:
    return {
        "source": disk.path,
        "checksum": disk.checksum,
        "size": disk.size,
        "virtual_size": disk.virtual_size,
        "stat": None,
    }
