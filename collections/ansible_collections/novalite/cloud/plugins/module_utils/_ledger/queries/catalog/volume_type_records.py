# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Types of volumes, and which of them a project may use. Reads only."""

from __future__ import annotations

import dataclasses
import typing as t

import sqlalchemy as sa

from ...._errors import NotFoundError
from ...db.tables_images import volume_type_access
from ...db.tables_volumes import volume_type


class Options(t.TypedDict, total=False):
    """The options of a volume type; which there are depends on its back end (catalog/volume_types.py)."""

    format: str
    volume_group: str | None
    share: str | None
    hosts: list[str] | None  # the only compute hosts that have it; None: all


DEFAULT_TYPE = "file"
# always the same: it is there, with this id, before anything had to be written
DEFAULT_ID = "0a8b9d52-6f0c-5c0e-8a55-3f1f0d1b7c01"
# which options a type of this back end has, and what they are when nobody says
OPTIONS: t.Mapping[str, Options] = {
    "file": {"format": "qcow2", "hosts": None},
    "lvm": {"volume_group": None, "hosts": None},
    "nfs": {"format": "qcow2", "share": None, "hosts": None},
}


@dataclasses.dataclass(frozen=True)
class VolumeType:
    """A volume type: backend and format of its volumes; `created_at` is in seconds since the epoch."""

    id: str
    name: str
    description: str | None
    backend: str  # file, lvm or nfs
    options: Options
    extra_specs: dict[str, str]
    is_public: bool
    created_at: int


OWN_TYPE = VolumeType(DEFAULT_ID, DEFAULT_TYPE, "files on the compute host", "file", OPTIONS["file"], {}, True, 0)


def types_by(
    connection: sa.Connection, *, ids: t.Iterable[str] | None = None, names: t.Iterable[str] | None = None
) -> list[VolumeType]:
    """The volume types that meet every condition given (None: no condition), by name. Reads only."""
    rows = [VolumeType(**row) for row in connection.execute(sa.select(volume_type)).mappings()]
    if all(row.id != DEFAULT_ID for row in rows):
        rows.append(OWN_TYPE)
    return sorted(
        (row for row in rows if (ids is None or row.id in set(ids)) and (names is None or row.name in set(names))),
        key=lambda row: row.name,
    )


def type_of(connection: sa.Connection, name_or_id: str | None) -> VolumeType:
    """The type that is called so, None for the default one. Raises NotFoundError. Reads only."""
    return type_called(DEFAULT_ID if name_or_id is None else name_or_id, types_by(connection))


def types_seen(connection: sa.Connection, project_id: str, everything: bool) -> list[VolumeType]:
    """The types that the project may use (with `everything`: all), by name."""
    mine = sa.select(volume_type_access.c.type_id).where(volume_type_access.c.project_id == project_id)
    granted = set(connection.execute(mine).scalars())
    rows = types_by(connection)
    return [row for row in rows if everything or row.is_public or row.id in granted]


def type_seen(connection: sa.Connection, name_or_id: str, project_id: str, everything: bool) -> VolumeType:
    """Return a volume type that the project sees; `default` names the default one. Raises NotFoundError."""
    resolved_name_or_id = DEFAULT_ID if name_or_id == "default" else name_or_id
    return type_called(resolved_name_or_id, types_seen(connection, project_id, everything))


def access_of(connection: sa.Connection, type_id: str) -> list[str]:
    query = sa.select(volume_type_access.c.project_id).where(volume_type_access.c.type_id == type_id)
    return list(connection.execute(query.order_by(volume_type_access.c.project_id)).scalars())


def type_called(name_or_id: str, types: t.Iterable[VolumeType]) -> VolumeType:
    for of_type in types:
        if name_or_id in (of_type.id, of_type.name):
            return of_type
    raise NotFoundError(f"Volume type {check_shown(name_or_id)} could not be found.")


def check_shown(text: str) -> str:
    """A user's text in an error, at a length that can be read."""
    return text if len(text) <= 64 else f"{text[:61]}..."
