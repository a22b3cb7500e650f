# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Volumes, snapshots and attachments as a list asks for them: which ones, in what order. The database filters, sorts
and cuts the page; no other row is read to its end.

Values are compared as the texts that Cinder's API shows; what an object has none of is an empty text.
"""

from __future__ import annotations

import dataclasses
import typing as t

import sqlalchemy as sa

from ...._errors import NotFoundError
from ...._rules.listed_nouns import RESERVED
from ...db.tables_volumes import (
    volume,
    volume_attachment,
    volume_backup,
    volume_reservation,
    volume_snapshot,
    volume_type,
)
from ..compute.server_listing import behind

Column = sa.ColumnElement[t.Any]
LEAST = 100  # rows that are read at a time, where few are asked for


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of objects, in the order of their making (`made`, of which the last says which object it is); `fields` are
    what lists are filtered and sorted by, by Cinder's names."""

    source: sa.FromClause
    project_id: sa.Column[str]
    made: tuple[Column, ...]
    fields: dict[str, Column]
    metadata: Column | None = None

    @property
    def id(self) -> Column:
        return self.made[-1]


@dataclasses.dataclass(frozen=True)
class Query:
    """Conditions on the objects of a list; None is no condition."""

    project_id: str | None = None
    equals: t.Mapping[str, str] = dataclasses.field(default_factory=dict)
    parts: t.Mapping[str, str] = dataclasses.field(default_factory=dict)  # texts that fields have in them
    metadata: t.Mapping[str, str] | None = None  # pairs that are among an object's
    sort: t.Sequence[tuple[str, bool]] = ()  # (field, ascending); what is alike stays as without: the newest first


def _name(table: sa.Table) -> Column:
    """The name that is shown: none where a handle was made up."""
    made_up = sa.or_(
        table.c.name.like("%-" + sa.func.substr(table.c.id, 1, 8)), table.c.name.like(sa.literal("%") + table.c.id)
    )
    return sa.func.coalesce(table.c.display_name, sa.case((made_up, ""), else_=table.c.name))


def _texts(table: sa.Table, *names: str) -> dict[str, Column]:
    return {name: sa.func.coalesce(table.c[name], "") for name in names}


def _fields(table: sa.Table) -> dict[str, Column]:
    """The fields that volumes and snapshots have in common."""
    return {
        **_texts(table, "description"),
        **{"id": table.c.id, "name": _name(table), "size": table.c.size_gb, "status": table.c.status},
        **{name: table.c[name] for name in ("created_at", "updated_at")},
        "user_id": sa.func.coalesce(table.c.user_id, table.c.project_id),
    }


_waits = sa.and_(  # as Volume.waits_for_unshelve
    volume.c.status == RESERVED, sa.exists().where(volume_attachment.c.volume_id == volume.c.id).correlate(volume)
)
_shown_status = sa.case((_waits, "in-use"), else_=volume.c.status)
_held_id = sa.func.coalesce(volume_attachment.c.id, volume_reservation.c.id)
VOLUMES = Kind(
    source=volume,
    project_id=volume.c.project_id,
    made=(volume.c.created_at, volume.c.id),
    fields={
        **_fields(volume),
        **_texts(volume, "snapshot_id"),
        "status": _shown_status,
        "availability_zone": sa.func.coalesce(volume.c.availability_zone, "nova"),
        "bootable": sa.case((volume.c.bootable, "true"), else_="false"),
        "volume_type": sa.select(volume_type.c.name).where(volume_type.c.id == volume.c.type_id).scalar_subquery(),
        "source_volid": sa.func.coalesce(volume.c.source_volume_id, ""),
    },
    metadata=volume.c.metadata,
)
SNAPSHOTS = Kind(
    source=volume_snapshot,
    project_id=volume_snapshot.c.project_id,
    made=(volume_snapshot.c.created_at, volume_snapshot.c.id),
    fields={**_fields(volume_snapshot), "volume_id": volume_snapshot.c.volume_id},
    metadata=volume_snapshot.c.metadata,
)
BACKUPS = Kind(
    source=volume_backup,
    project_id=volume_backup.c.project_id,
    made=(volume_backup.c.created_at, volume_backup.c.id),
    fields={
        **_texts(volume_backup, "name", "description"),
        **{"id": volume_backup.c.id, "size": volume_backup.c.size_gb},
        **{name: volume_backup.c[name] for name in ("status", "volume_id", "created_at", "updated_at")},
        "user_id": sa.func.coalesce(volume_backup.c.user_id, volume_backup.c.project_id),
    },
    metadata=volume_backup.c.metadata,
)
ATTACHMENTS = Kind(
    source=volume.outerjoin(volume_attachment, volume_attachment.c.volume_id == volume.c.id).outerjoin(
        volume_reservation, volume_reservation.c.volume_id == volume.c.id
    ),
    project_id=volume.c.project_id,
    made=(volume.c.created_at, volume.c.id, _held_id),
    fields={
        "id": _held_id,
        "volume_id": volume.c.id,
        "instance_id": sa.func.coalesce(volume_attachment.c.instance_uuid, ""),
        "status": sa.func.coalesce(
            volume_reservation.c.status, sa.case((_shown_status == "in-use", "attached"), else_=volume.c.status)
        ),
    },
)


def find(
    connection: sa.Connection, kind: Kind, query: Query, limit: int, marker: str | None = None, offset: int = 0
) -> list[str]:
    """The ids of the page of objects that `query` asks for. Raises NotFoundError for a marker that is none."""
    sort = [(kind.fields[name], up) for name, up in query.sort if name in kind.fields]
    order = [*sort, *((column, False) for column in kind.made)]
    select = sa.select(kind.id).select_from(kind.source).where(*_conditions(connection, kind, query))
    select = select.order_by(*(column.asc() if up else column.desc() for column, up in order))
    if marker is not None:
        select = select.where(_after(connection, kind, query, order, marker))
    if query.metadata is None:
        return list(connection.execute(select.limit(limit).offset(offset)).scalars())
    ids: list[str] = []
    for number in _with_metadata(connection, kind, query, select):
        ids.append(number)
        if len(ids) >= offset + limit:
            break  # what comes behind the page is not read
    return ids[offset : offset + limit]


def count(connection: sa.Connection, kind: Kind, query: Query) -> int:
    """Return how many objects `query` asks for on all pages."""
    select = sa.select(kind.id).select_from(kind.source).where(*_conditions(connection, kind, query))
    if query.metadata is None:
        return connection.execute(sa.select(sa.func.count()).select_from(select.subquery())).scalar_one()
    return sum(1 for _number in _with_metadata(connection, kind, query, select))


def _key(kind: Kind, name: str) -> Column:
    return kind.fields.get(name, sa.literal(""))


def _with_metadata(connection: sa.Connection, kind: Kind, query: Query, select: sa.Select[t.Any]) -> t.Iterator[str]:
    """The ids of those whose metadata have the pairs that the query asks for: keys are any texts, which no path of JSON
    takes as they are."""
    pairs = (query.metadata or {}).items()
    metadata = sa.null() if kind.metadata is None else kind.metadata
    rows = select.with_only_columns(kind.id.label("id"), metadata.label("metadata"))
    with connection.execute(rows.execution_options(yield_per=LEAST)) as result:
        for row in result:
            if pairs <= (row.metadata or {}).items():
                yield row.id


def _conditions(connection: sa.Connection, kind: Kind, query: Query) -> list[sa.ColumnElement[bool]]:
    conditions: list[sa.ColumnElement[bool]] = [kind.id.is_not(None)]  # a volume that nobody has, has no attachment
    if query.project_id is not None:
        conditions.append(kind.project_id == query.project_id)
    position = sa.func.instr if connection.dialect.name == "sqlite" else sa.func.strpos
    for name, text in query.equals.items():
        conditions.append(sa.cast(_key(kind, name), sa.String) == text)
    for name, text in query.parts.items():
        conditions.append(position(sa.cast(_key(kind, name), sa.String), text) > 0)
    return conditions


def _after(
    connection: sa.Connection, kind: Kind, query: Query, order: t.Sequence[tuple[Column, bool]], marker: str
) -> sa.ColumnElement[bool]:
    mine = [kind.id == marker] + ([] if query.project_id is None else [kind.project_id == query.project_id])
    columns = (column.label(f"key{number}") for number, (column, _up) in enumerate(order))
    place = connection.execute(sa.select(*columns).select_from(kind.source).where(*mine)).first()
    if place is None:
        raise NotFoundError(f"marker [{marker[:60]}] not found")
    return behind(order, place)
