# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Volumes, their attachments and their snapshots, out of rows. Reads only; as few queries for many as for one."""

from __future__ import annotations

import dataclasses
import typing as t

import sqlalchemy as sa

from ...._errors import NotFoundError
from ...._model.instance import Image
from ...._rules.listed_nouns import RESERVED, shown_status
from ...db.tables import instance
from ...db.tables_volumes import volume, volume_attachment, volume_reservation, volume_snapshot, volume_type
from ..catalog import volume_type_records
from ..catalog.volume_type_records import Options
from ..lookups import lock_rows, of_project


class Fault(t.TypedDict):
    """An error of a volume or snapshot, `created` in seconds since the epoch."""

    code: int
    message: str
    created: int


class BackupDisk(t.TypedDict):
    """A disk (`vdb`) of the backup `backup` of the server `server`, by their ids."""

    backup: str
    server: str
    disk: str


@dataclasses.dataclass(frozen=True)
class Attachment:
    """A volume is an instance's, or is about to be. Times are in seconds since the epoch."""

    id: str
    volume_id: str
    instance_uuid: str
    device: str
    attached_at: int | None  # None while it is under way
    created_at: int
    delete_on_termination: bool
    boot_index: int | None
    tag: str | None
    readonly: bool
    host: str | None  # the instance's


@dataclasses.dataclass(frozen=True)
class Reservation:
    """A volume is kept for a client, without an instance. Times are in seconds since the epoch."""

    id: str
    volume_id: str
    status: str  # reserved, attaching, attached: Cinder's words
    mode: str | None  # ro or rw; None: nobody said it yet
    host: str | None  # as the client's connector names it; None: it is not connected
    device: str | None
    created_at: int
    attached_at: int | None


@dataclasses.dataclass(frozen=True)
class Stored:
    """Common fields of volumes and snapshots: owner, place and format. Sizes are in GiB."""

    id: str
    project_id: str
    user_id: str | None
    name: str  # the playbooks' handle
    display_name: str | None
    description: str | None
    size_gb: int
    format: str  # raw or qcow2
    host: str | None  # the compute host that has it; None: shared, or made nowhere yet
    status: str  # Cinder's word
    metadata: dict[str, str]
    fault: Fault | None
    created_at: int
    updated_at: int
    type: str  # the type's name
    backend: str  # the type's
    options: Options  # the type's


BEFORE_DATA = ("creating", "downloading", "error", "deleting", "error_deleting")  # statuses of copies without data


@dataclasses.dataclass(frozen=True)
class Volume(Stored):
    """A volume."""

    new_size_gb: int | None  # what it is to have, while it is being extended
    type_id: str
    availability_zone: str | None
    bootable: bool
    readonly: bool
    multiattach: bool
    image: Image | None  # that it was made of, as an instance keeps it
    source_volume_id: str | None
    snapshot_id: str | None
    backup_disk: BackupDisk | None  # that it was made of
    made_at: int | None  # when its data came to be; None: on no host yet
    attachments: list[Attachment]  # the oldest first
    reservation: Reservation | None  # a volume has this, or attachments, or neither

    @property
    def is_attached(self) -> bool:
        """Tell whether an instance has it, or is about to, or a client says that it has."""
        return bool(self.attachments) or (self.reservation is not None and self.reservation.status == "attached")

    @property
    def is_unmade_copy(self) -> bool:
        """Tell whether it is to have the data of an image, a backup, a snapshot or a volume, and has none so far."""
        if self.made_at is not None:
            return False
        # what was made of a blank volume was blank, and available, from the start
        of_volume = self.source_volume_id is not None and self.status in BEFORE_DATA
        of_image = self.image is not None and bool(self.image["id"])
        return of_volume or of_image or self.snapshot_id is not None or self.backup_disk is not None

    @property
    def waits_for_unshelve(self) -> bool:
        """Tell whether an instance that is shelved has it: the guest gets the disk when that is unshelved."""
        return self.status == RESERVED and bool(self.attachments)

    @property
    def shown_status(self) -> str:
        """The status that users see."""
        return shown_status(self.status, bool(self.attachments))

    @property
    def shown_attachments(self) -> list[Attachment]:
        """The attachments that users see: those that are not under way."""
        return [record for record in self.attachments if record.attached_at or self.waits_for_unshelve]

    @property
    def shown_holders(self) -> list[Attachment | Reservation]:
        """The same, and a client that says that it has the volume."""
        return [*self.shown_attachments, *([self.reservation] if self.reservation and self.is_attached else [])]


@dataclasses.dataclass(frozen=True)
class Snapshot(Stored):
    """A snapshot of a volume; host and format are the volume's."""

    volume_id: str


_OF_TYPE = (volume_type.c.name.label("type"), volume_type.c.backend, volume_type.c.options)
_VOLUMES = (
    sa.select(volume, *_OF_TYPE)
    .join(volume_type, volume_type.c.id == volume.c.type_id)
    .order_by(volume.c.created_at, volume.c.id)
)
_ATTACHMENTS = (
    sa.select(volume_attachment, instance.c.host)
    .join(instance, instance.c.uuid == volume_attachment.c.instance_uuid)
    .order_by(volume_attachment.c.created_at, volume_attachment.c.device)
)
LOAD: dict[str, sa.Select[t.Any]] = {
    "listed_volumes": _VOLUMES.where(of_project(volume.c.project_id)),
    "volume_attachments": _ATTACHMENTS.join(volume, volume.c.id == volume_attachment.c.volume_id).where(
        of_project(volume.c.project_id)
    ),
    "volume_reservations": sa.select(volume_reservation)
    .join(volume, volume.c.id == volume_reservation.c.volume_id)
    .where(of_project(volume.c.project_id)),
}


def _among(*wishes: tuple[sa.Column[str], t.Iterable[str] | None]) -> list[sa.ColumnElement[bool]]:
    """The conditions that each column has one of its values; None is no condition."""
    return [column.in_(sorted(set(values))) for column, values in wishes if values is not None]


def volumes_by(
    connection: sa.Connection,
    *,
    ids: t.Iterable[str] | None = None,
    names: t.Iterable[str] | None = None,
    project_id: str | None = None,
    hosts: t.Iterable[str] | None = None,
    instances: t.Iterable[str] | None = None,
    statuses: t.Iterable[str] | None = None,
) -> list[Volume]:
    """The volumes that meet every condition given (None: no condition), oldest first.

    `instances`: those that are attached to one of them (UUIDs), or are being so.
    """
    c = volume.c
    query = _VOLUMES.where(*_among((c.id, ids), (c.name, names), (c.host, hosts), (c.status, statuses)))
    if project_id is not None:
        query = query.where(volume.c.project_id == project_id)
    if instances is not None:
        theirs = sa.select(volume_attachment.c.volume_id).where(*_among((volume_attachment.c.instance_uuid, instances)))
        query = query.where(volume.c.id.in_(theirs))
    rows = connection.execute(query).mappings().all()
    attached: dict[str, list[Attachment]] = {row["id"]: [] for row in rows}
    reserved: dict[str, Reservation] = {}
    if rows:
        for attachment in attachments_by(connection, volumes=attached):
            attached[attachment.volume_id].append(attachment)
        reserved = {row.volume_id: row for row in reservations_by(connection, volumes=attached)}
    return [Volume(**row, attachments=attached[row["id"]], reservation=reserved.get(row["id"])) for row in rows]


def reservations_by(
    connection: sa.Connection, *, ids: t.Iterable[str] | None = None, volumes: t.Iterable[str] | None = None
) -> list[Reservation]:
    """The reservations that meet every condition given."""
    c = volume_reservation.c
    query = sa.select(volume_reservation).where(*_among((c.id, ids), (c.volume_id, volumes)))
    return [Reservation(**row) for row in connection.execute(query).mappings()]


def root_volume(connection: sa.Connection, uuid: str) -> Volume | None:
    """The volume that the instance starts from, instead of a disk of its own."""
    attached_volumes = volumes_by(connection, instances=[uuid])
    return next((row for row in attached_volumes for holder in row.attachments if holder.boot_index == 0), None)


def attachments_by(
    connection: sa.Connection,
    *,
    ids: t.Iterable[str] | None = None,
    volumes: t.Iterable[str] | None = None,
    instances: t.Iterable[str] | None = None,
) -> list[Attachment]:
    """The attachments that meet every condition given, oldest first, each with the `host` of its instance."""
    c = volume_attachment.c
    query = _ATTACHMENTS.where(*_among((c.id, ids), (c.volume_id, volumes), (c.instance_uuid, instances)))
    return [Attachment(**row) for row in connection.execute(query).mappings()]


def snapshots_by(
    connection: sa.Connection,
    *,
    ids: t.Iterable[str] | None = None,
    names: t.Iterable[str] | None = None,
    project_id: str | None = None,
    volumes: t.Iterable[str] | None = None,
) -> list[Snapshot]:
    """The snapshots that meet every condition given, oldest first."""
    c = volume_snapshot.c
    query = (
        sa.select(volume_snapshot, volume.c.host, volume.c.format, *_OF_TYPE)
        .join(volume, volume.c.id == c.volume_id)
        .join(volume_type, volume_type.c.id == volume.c.type_id)
        .where(*_among((c.id, ids), (c.name, names), (c.volume_id, volumes)))
        .order_by(c.created_at, c.id)
    )
    if project_id is not None:
        query = query.where(c.project_id == project_id)
    return [Snapshot(**row) for row in connection.execute(query).mappings()]


def used(connection: sa.Connection, project_id: str) -> dict[str, int]:
    """Return a project's use of the quotas `volumes`, `gigabytes` (with snapshots, as Cinder counts) and `snapshots`.

    A volume that is being extended counts with what it is to have.
    """
    size = sa.func.coalesce(volume.c.new_size_gb, volume.c.size_gb)
    volumes, gigabytes = connection.execute(
        sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(size), 0)).where(volume.c.project_id == project_id)
    ).one()
    snapshots, more = connection.execute(
        sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(volume_snapshot.c.size_gb), 0)).where(
            volume_snapshot.c.project_id == project_id
        )
    ).one()
    return {"volumes": volumes, "gigabytes": int(gigabytes) + int(more), "snapshots": snapshots}


def from_volumes(connection: sa.Connection, uuids: t.Iterable[str]) -> set[str]:
    """Return those of these instances that start from a volume, instead of a root disk of their own."""
    table = volume_attachment
    query = sa.select(table.c.instance_uuid).where(table.c.instance_uuid.in_(sorted(set(uuids))))
    return set(connection.execute(query.where(table.c.boot_index == 0)).scalars())


def one_volume(
    connection: sa.Connection, volume_id: str, project_id: str | None = None, *, lock: bool = False
) -> Volume:
    """The volume of this id, if the project (None: anybody) has it; with `lock`, nobody else changes it before this
    transaction ends. Raises NotFoundError."""
    if lock:
        lock_rows(connection, volume.c.id == volume_id, by=volume.c.id)
    volumes = volumes_by(connection, ids=[volume_id], project_id=project_id)
    if not volumes:
        raise NotFoundError(f"Volume {volume_type_records.check_shown(volume_id)} could not be found.")
    return volumes[0]


def one_snapshot(connection: sa.Connection, snapshot_id: str, project_id: str | None = None) -> Snapshot:
    """The snapshot of this id, likewise."""
    snapshots = snapshots_by(connection, ids=[snapshot_id], project_id=project_id)
    if not snapshots:
        raise NotFoundError(f"Snapshot {volume_type_records.check_shown(snapshot_id)} could not be found.")
    return snapshots[0]
