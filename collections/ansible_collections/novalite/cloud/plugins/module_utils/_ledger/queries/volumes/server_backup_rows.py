# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Backups of servers, out of rows. Reads only."""

from __future__ import annotations

import dataclasses
import typing as t

import sqlalchemy as sa

from ...._errors import NotFoundError
from ...._model.instance import Flavor
from ...db.tables_images import server_backup as table
from ..lookups import of_project
from .volume_views import Fault

_LARGE = ("console", "picture")  # columns that are read for one backup at a time
_COLUMNS = [column for column in table.c if column.name not in _LARGE]
LOAD = {
    "server_backups": sa.select(*_COLUMNS)
    .where(of_project(table.c.project_id))
    .order_by(table.c.server, table.c.created_at, table.c.id)
}
AVAILABLE, FULL = "available", "full"


class Boot(t.TypedDict):
    """Outcome of a backup that was booted: by what its guest was known to be up, after how many seconds, or why
    it was not."""

    by: str | None
    seconds: float | None
    error: str | None


class Disk(t.TypedDict):
    """A disk in a backup: its place in the guest, its bytes, whether all of it was taken, and why; older ones do not
    say which volume it is."""

    name: str
    size: int
    kind: str
    reason: str
    volume: t.NotRequired[str | None]  # the id of the volume that it is


@dataclasses.dataclass(frozen=True)
class ServerBackup:
    """A backup of a server, as the ledger has it. Times are in seconds since the epoch, sizes in bytes."""

    id: str
    instance_uuid: str
    project_id: str
    server: str  # the name that it had
    name: str
    status: str
    host: str  # that took it
    kind: str | None  # full or incremental
    reason: str | None  # why it is a full one
    parent_id: str | None
    consistency: str | None  # crash or filesystem
    disks: list[Disk]
    gigabytes: int
    moved: int | None  # read of the disks
    size: int | None  # of data in the store
    flavor: Flavor
    image_id: str | None
    verified_at: int | None
    complaint: str | None  # why it cannot be restored, as it was verified last
    proven_at: int | None  # when it was booted, and its guest was up
    booted_at: int | None  # when it was booted last
    boot: Boot | None
    fault: Fault | None
    user_id: str | None
    created_at: int
    updated_at: int

    @property
    def is_proven(self) -> bool:
        """Tell whether all of it was put together and compared, and its guest was up with it."""
        return self.proven_at is not None and self.complaint is None


def backups_by(
    connection: sa.Connection,
    *,
    servers: t.Iterable[str] | None = None,
    project_id: str | None = None,
    name: str | None = None,
) -> list[ServerBackup]:
    """The backups of these servers (UUIDs), of this project, and with this name or id (None: any), oldest first."""
    query = sa.select(*_COLUMNS)
    if servers is not None:
        query = query.where(table.c.instance_uuid.in_(sorted(set(servers))))
    if project_id is not None:
        query = query.where(table.c.project_id == project_id)
    if name is not None:
        query = query.where(sa.or_(table.c.name == name, table.c.id == name))
    rows = connection.execute(query.order_by(table.c.created_at, table.c.id)).mappings()
    return [ServerBackup(**row) for row in rows]


def backup_of(connection: sa.Connection, uuid: str, name: str, project_id: str | None = None) -> ServerBackup:
    """The backup of this server with this name or id, or one of another server in the project by its id. Raises
    NotFoundError."""
    named = backups_by(connection, servers=[uuid], name=name)
    if not named and project_id is not None:
        named = [each for each in backups_by(connection, project_id=project_id, name=name) if each.id == name]
    if not named:
        raise NotFoundError(f"Instance {uuid} has no backup '{name[:255]}': see the list of backups")
    return named[0]


def backup_in(connection: sa.Connection, project_id: str | None, name: str) -> ServerBackup:
    """The backup in this project (None: in any) that alone has this name, or has this id. Raises NotFoundError."""
    named = backups_by(connection, project_id=project_id, name=name)
    named = [each for each in named if each.id == name] or named
    if len(named) != 1:
        count = "several backups have" if named else "no backup has"
        raise NotFoundError(f"{count} the name or id {name[:64]!r}: take an id of `novalite backup list -o wide`")
    return named[0]


class Proof(t.NamedTuple):
    """Return what the guest of a backup said on its console when it was booted last, and its screen, PNG in base64."""

    console: str
    picture: str | None


def proof_of(connection: sa.Connection, backup_id: str) -> Proof | None:
    """Return what is kept of the last boot of a backup; None of one that was never booted."""
    row = connection.execute(sa.select(table.c.console, table.c.picture).where(table.c.id == backup_id)).first()
    return None if row is None or row.console is None else Proof(row.console, row.picture)
