# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Images as instances and volumes keep them, and the files that belong to them, where a host told of them.

A path comes from the ledger's own record of the image, or is that of its store; never from a host, which could have the
controller hand out any file of its own. Until there is one, it is "".
"""

from __future__ import annotations

import contextlib
import re

import sqlalchemy as sa

from ..._json import JsonMapping, JsonObject
from ..db.tables import image, instance
from ..db.tables_volumes import volume
from ..queries.catalog import image_views
from . import image_store

_OF_RECORD = ("source", "kernel", "ramdisk", "cmdline", "properties")
_COPIES = ((instance, "image"), (instance, "rescue_image"), (instance, "disk_image"), (volume, "image"))
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch


class KeptImages:
    """Finds the files of images; `home` is the controller's."""

    def __init__(self, connection: sa.Connection, home: str | None) -> None:
        self._connection = connection
        self._home = home
        self._stored: dict[tuple[str, str], bool] = {}  # (id, checksum) -> whether the store has it

    def of_record(self, row: JsonObject) -> JsonObject:
        """An image's new row. One without a file waits for its data, as one does that was just made."""
        path = self._path(str(row["id"]), str(row["checksum"]))
        return {**row, "source": path, "status": row.get("status", "active") if path else "queued"}

    def of_copy(self, kept: JsonMapping) -> JsonObject:
        """An image as an instance, or a volume, keeps it: as the ledger's own record of the same one has it."""
        row = self._connection.execute(sa.select(image).where(image.c.id == kept["id"])).mappings().first()
        if row is not None and row["source"] and row["checksum"] == kept["checksum"]:
            return {**kept, **{name: row[name] for name in _OF_RECORD}}
        return {**kept, "source": self._path(str(kept["id"]), str(kept["checksum"]))}

    def _path(self, image_id: str, checksum: str) -> str:
        """The path of the image's data in the store; "" where they are not."""
        key = (image_id, checksum)
        path = image_store.file_of(self._home, image_id)
        if key not in self._stored:
            self._stored[key] = False
            with contextlib.suppress(OSError):
                self._stored[key] = bool(_ID(image_id)) and image_views.is_intact(path, checksum)
        return path if self._stored[key] else ""


def give_files(connection: sa.Connection, image_id: str) -> None:
    """The image has its data again: so do its copies, as far as they are of the same data."""
    record = connection.execute(sa.select(image).where(image.c.id == image_id)).mappings().one()
    now = {part: record[part] for part in _OF_RECORD}

    def with_file(kept: JsonObject | None) -> JsonObject | None:
        mine = kept and (kept["id"], kept["checksum"], kept["source"]) == (image_id, record["checksum"], "")
        return {**kept, **now} if kept and mine else kept

    drives = sa.select(instance.c.id, instance.c.cdroms).where(instance.c.cdroms.is_not(None), instance.c.deleted == 0)
    for number, inside in connection.execute(drives).all():
        if (after := [with_file(kept) for kept in inside]) != inside:
            connection.execute(sa.update(instance).where(instance.c.id == number).values(cdroms=after))
    for table, name in _COPIES:
        column, (key,) = table.c[name], table.primary_key.columns
        of_it = sa.and_(column["id"].as_string() == image_id, column["source"].as_string() == "")
        for number, kept in connection.execute(sa.select(key, column).where(of_it)).all():
            if kept["checksum"] == record["checksum"]:
                values = {name: {**kept, **now}}
                connection.execute(sa.update(table).where(key == number).values(**values))
