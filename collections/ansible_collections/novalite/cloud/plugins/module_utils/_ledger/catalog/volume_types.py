# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Volume types: on which back end the volumes of a type are, as what, and who may use one that is not for everybody."""

from __future__ import annotations

import dataclasses
import re
import typing as t
import uuid

import sqlalchemy as sa

from ..._errors import ConflictError, NotFoundError, NovaliteError
from ..._json import JsonMapping, JsonObject
from ..._rules.records import checked_names
from ..db import clock
from ..db.tables_images import volume_type_access
from ..db.tables_volumes import volume, volume_type
from ..queries.catalog.volume_type_records import (
    DEFAULT_ID,
    OPTIONS,
    OWN_TYPE,
    Options,
    VolumeType,
    access_of,
    check_shown,
    type_called,
    type_of,
    types_seen,
)
from ..queries.counts import is_any

LOCAL_BACKENDS = ("file", "lvm")  # their volumes are on one compute host; those of nfs are on none
FORMATS = ("raw", "qcow2")
_REQUIRED = {"lvm": "volume_group", "nfs": "share"}
# each becomes a part of a path on the hosts. LVM's own rule, and no option of a command begins like this
_SAFE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,62}")


def ensure_default(connection: sa.Connection) -> None:
    """Write the row of the default type, qcow2 files on the compute host of the instance, on first use."""
    if not is_any(connection, volume_type.c.id == DEFAULT_ID):
        connection.execute(sa.insert(volume_type).values(dataclasses.asdict(OWN_TYPE)))


def create_type(connection: sa.Connection, params: JsonMapping) -> VolumeType:
    """Record a type: `name`, `backend` (file without), `options`, `description`, `extra_specs`, `is_public`.

    Raises ConflictError for a name that is taken, NovaliteError for options that the back end does not have.
    """
    ensure_default(connection)
    (name,) = checked_names("volume type", [{"name": str(params["name"])}])
    backend = params.get("backend") or "file"
    made = VolumeType(
        id=str(uuid.uuid4()),
        name=name,
        description=params.get("description"),
        backend=backend,
        options=checked_options(name, backend, params.get("options") or {}),
        extra_specs=dict(params.get("extra_specs") or {}),
        is_public=params.get("is_public") is not False,
        created_at=clock.seconds(connection),
    )
    _refuse_taken(connection, name)
    connection.execute(sa.insert(volume_type).values(dataclasses.asdict(made)))
    return made


def change_type(connection: sa.Connection, type_id: str, changes: JsonMapping) -> VolumeType:
    """Change `name`, `description`, `is_public` or `extra_specs` of a type. Where its volumes are stays as it is."""
    ensure_default(connection)
    there = type_of(connection, type_id)
    known_changes = {key: changes[key] for key in ("name", "description", "is_public", "extra_specs") if key in changes}
    if "name" in known_changes and known_changes["name"] != there.name:
        _refuse_taken(connection, known_changes["name"])
    if known_changes:
        connection.execute(sa.update(volume_type).where(volume_type.c.id == there.id).values(**known_changes))
    return dataclasses.replace(there, **known_changes)


def delete_type(connection: sa.Connection, type_id: str) -> None:
    """Remove a type. Raises NotFoundError, and ConflictError while volumes are of it."""
    there = type_of(connection, type_id)
    if there.id == DEFAULT_ID:
        raise ConflictError(f"Volume Type {DEFAULT_ID} is the default one: it stays")
    if is_any(connection, volume.c.type_id == there.id):
        raise ConflictError(f"Volume Type {there.id} deletion is not allowed with volumes present with the type.")
    connection.execute(sa.delete(volume_type).where(volume_type.c.id == there.id))


def _refuse_taken(connection: sa.Connection, name: str) -> None:
    if is_any(connection, volume_type.c.name == name):
        raise ConflictError(f"Volume Type {check_shown(name)} already exists.")


def checked_options(name: str, backend: str, options: JsonMapping) -> Options:
    """Return all options of a type, the usual ones included. Raises NovaliteError for an option that makes no sense."""
    if backend not in OPTIONS:
        raise NovaliteError(f"volume type {name!r}: unknown back end {backend!r}: use {', '.join(OPTIONS)}")
    for option in options:
        if option not in OPTIONS[backend]:
            raise NovaliteError(
                f"volume type {name!r}: back end {backend} has no option {option!r}, only {', '.join(OPTIONS[backend])}"
            )
    all_options: JsonObject = {
        **OPTIONS[backend],
        **{key: value for key, value in options.items() if value is not None},
    }
    needed = _REQUIRED.get(backend)
    if needed is not None:
        value = all_options[needed]
        if not isinstance(value, str) or not _SAFE_NAME.fullmatch(value):
            raise NovaliteError(
                f"volume type {name!r}: {needed} {value!r} is not a name: use letters, digits and _ . + - (at most 63)"
            )
    if all_options.get("format", "raw") not in FORMATS:
        raise NovaliteError(
            f"volume type {name!r}: format {all_options['format']!r} is unknown: use {' or '.join(FORMATS)}"
        )
    hosts = all_options["hosts"]
    if hosts is not None and not (isinstance(hosts, list) and hosts and all(isinstance(host, str) for host in hosts)):
        raise NovaliteError(f"volume type {name!r}: hosts {hosts!r} is not a list of compute hosts")
    return t.cast("Options", all_options)


def type_usable(connection: sa.Connection, name_or_id: str, project_id: str, everything: bool) -> VolumeType:
    """The type for a new volume of the project (with `everything`: any type). Raises NotFoundError."""
    return type_called(name_or_id, types_seen(connection, project_id, everything))


def grant_access(connection: sa.Connection, of_type: VolumeType, project_id: str) -> None:
    """Raises ConflictError for a type that is for everybody, and for a project that has it."""
    _refuse_public(of_type)
    if project_id in access_of(connection, of_type.id):
        raise ConflictError(f"Volume type access for {of_type.id} / {project_id} combination already exists.")
    connection.execute(sa.insert(volume_type_access).values(type_id=of_type.id, project_id=project_id))


def revoke_access(connection: sa.Connection, of_type: VolumeType, project_id: str) -> None:
    """Raises ConflictError for a type that is for everybody, NotFoundError for a project that has it not."""
    _refuse_public(of_type)
    if project_id not in access_of(connection, of_type.id):
        raise NotFoundError(f"Volume type access not found for {of_type.id} / {project_id} combination.")
    access = volume_type_access.c
    mine = sa.and_(access.type_id == of_type.id, access.project_id == project_id)
    connection.execute(sa.delete(volume_type_access).where(mine))


def _refuse_public(of_type: VolumeType) -> None:
    if of_type.is_public:
        raise ConflictError("Type access modification is not applicable to public volume type.")


def format_of(of_type: VolumeType) -> str:
    """The format of a volume of this type."""
    return of_type.options.get("format") or "raw"
