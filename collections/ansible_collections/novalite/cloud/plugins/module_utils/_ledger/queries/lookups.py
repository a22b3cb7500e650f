# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Finding records by name. Each function returns rows as plain dicts of their columns, or raises NotFoundError."""

from __future__ import annotations

import typing as t
import zlib

import sqlalchemy as sa

from ..._errors import ImageNotFoundError, NotFoundError, NovaliteError
from ..._guest.image_properties import public_properties, shown_name
from ..._json import JsonMapping, JsonObject
from ..db import revisions, tables
from ..db.engine import take_turns

Record = JsonObject

DEFAULT_PROJECT = revisions.DEFAULT_PROJECT
NAMES_SHOWN = 10
THINGS = 0x6E6F7674 << 32  # PostgreSQL advisory locks: take_turns_at()

PROJECT_NAMES = sa.select(tables.project.c.id, tables.project.c.name)
_FLAVOR = sa.select(tables.flavor).where(
    sa.func.coalesce(tables.flavor.c.flavorid, sa.cast(tables.flavor.c.id, sa.String)) == sa.bindparam("flavorid")
)
LAUNCHABLE = ("raw", "qcow2", "iso")
CMDLINE = "root=/dev/vda console=tty0 console=ttyS0"  # of a kernel that comes without one, as in Nova


def project_by_name(connection: sa.Connection, name: str, lock: bool = False) -> Record:
    """The project `name`. With `lock` no other transaction can count and add records of it meanwhile (quotas)."""
    table = tables.project
    query = sa.select(table).where(table.c.name == name)
    # SQLite's transactions exclude each other as a whole
    row = connection.execute(query.with_for_update() if lock else query).mappings().first()
    if row is None:
        raise unknown("project", name, connection.execute(sa.select(table.c.name)).scalars())
    return dict(row)


def project_names(connection: sa.Connection) -> dict[str, str]:
    """The names of all projects by their ids."""
    return {row.id: row.name for row in connection.execute(PROJECT_NAMES)}


def flavor_by_name(connection: sa.Connection, name: str, project_id: str | None = None) -> Record:
    """The flavor `name`: id, name, vcpus, memory_mb, root_gb, ephemeral_gb, swap_mb, extra_specs.

    With `project_id` only one that is public or that the project was given: an operator may name any.
    """
    table, access = tables.flavor, tables.tables_networking.flavor_access
    seen: sa.ColumnElement[bool] = sa.true()
    if project_id is not None:
        mine = sa.select(access.c.flavor_id).where(access.c.project_id == project_id)
        seen = sa.or_(table.c.is_public, table.c.id.in_(mine))
    row = connection.execute(sa.select(table).where(table.c.name == name, seen)).mappings().first()
    if row is None:
        # the smallest first: whoever mistyped a name looks for a size
        names = sa.select(table.c.name).where(seen).order_by(table.c.memory_mb, table.c.name)
        raise unknown("flavor", name, connection.execute(names).scalars())
    return dict(row)


def lock_project(connection: sa.Connection, project_id: str) -> None:
    """Let no other transaction count and add records of this project until the end of this one."""
    if connection.dialect.name != "sqlite":  # its transactions exclude each other as a whole
        connection.execute(sa.select(tables.project.c.id).where(tables.project.c.id == project_id).with_for_update())


def lock_rows(connection: sa.Connection, *conditions: sa.ColumnElement[bool], by: sa.Column[t.Any]) -> bool:
    """Let no other transaction change the rows of these conditions until the end of this one, which has to read them
    after this; return whether there are any. They are locked in the order of their column `by`."""
    rows = sa.select(by).where(*conditions).order_by(by)
    # SQLite's transactions exclude each other as a whole
    return bool(connection.execute(rows.with_for_update(key_share=True)).all())


def take_turns_at(connection: sa.Connection, thing: str) -> None:
    """Let no other transaction pass here for the same `thing`, an id, until the end of this one: whoever makes its
    metadata of what that was has to read it after this."""
    take_turns(connection, zlib.crc32(thing.lower().encode()) | THINGS)


def flavor_by_id(
    connection: sa.Connection, flavorid: str, private: bool = False, project_id: str | None = None
) -> Record:
    """The flavor that clients know by `flavorid`: what it was given as its id, else its number.

    One that is not public only if `private` says so, or the project was given it.
    """
    row = connection.execute(_FLAVOR, {"flavorid": flavorid}).mappings().first()
    if row is not None and not (row["is_public"] or private):
        access = tables.tables_networking.flavor_access
        mine = sa.select(access.c.flavor_id).where(access.c.flavor_id == row["id"], access.c.project_id == project_id)
        row = row if connection.execute(mine).first() is not None else None
    if row is None:
        raise NotFoundError(f"Flavor {flavorid} could not be found.")
    return dict(row)


def of_project(column: sa.Column[str]) -> sa.ColumnElement[bool]:
    """Return the condition of a row of the project that is bound as `project_id`; None: of any."""
    bound = sa.bindparam("project_id", type_=sa.String)
    return sa.or_(bound.is_(None), column == bound)


def image_sharing(project_id: str | sa.BindParameter[str], *states: str) -> sa.ColumnElement[bool]:
    """Return the condition of an image that is shared with the project, in one of `states` there (default: in any)."""
    member = tables.tables_images.image_member.alias()  # the query around this may ask for members as well
    mine = sa.select(member.c.image_id).where(member.c.member == project_id)
    if states:
        mine = mine.where(member.c.status.in_(states))
    return sa.and_(tables.image.c.visibility == "shared", tables.image.c.id.in_(mine))


def image_visible(project_id: str | sa.BindParameter[str]) -> sa.ColumnElement[bool]:
    """Return the condition of an image that the project may use, if it knows its id: also one without an owner."""
    columns = tables.image.c
    return sa.or_(
        columns.owner.in_(["", project_id]), columns.visibility.in_(["public", "community"]), image_sharing(project_id)
    )


_IMAGE = sa.select(tables.image).where(
    tables.image.c.id == sa.bindparam("image_id"), image_visible(sa.bindparam("project_id"))
)


def image_by_id(connection: sa.Connection, image_id: str, project_id: str) -> Record:
    """The image of this id, if `project_id` sees it, as a launch takes it. Raises NovaliteError if none can."""
    row = connection.execute(_IMAGE, {"image_id": image_id.lower(), "project_id": project_id}).mappings().first()
    if row is None:
        raise NotFoundError("Can not find requested image")
    record = dict(row)
    return _launchable(connection, {**record, "name": shown_name(record)}, project_id)


def image_by_name(connection: sa.Connection, name: str, project_id: str) -> Record:
    """The image `name` that `project_id` sees, as image_by_id(); its own one before a public one of the same name, and
    these before one that somebody shares with it and that it accepted."""
    columns = tables.image.c
    public = sa.or_(columns.owner == "", columns.visibility == "public")
    seen = sa.or_(columns.owner == project_id, public, image_sharing(project_id, "accepted"))
    rank = sa.case((columns.owner == project_id, 0), (columns.owner == "", 1), (public, 2), else_=3)
    query = sa.select(tables.image).where(seen, columns.name == name).order_by(rank, columns.created_at, columns.id)
    row = connection.execute(query.limit(1)).mappings().first()
    if row is None:
        names = sa.select(columns.name).where(seen).order_by(columns.name)
        raise ImageNotFoundError(str(unknown("image", name, connection.execute(names).scalars())), name)
    return _launchable(connection, dict(row), project_id)


def _launchable(connection: sa.Connection, row: Record, project_id: str) -> Record:
    """The record of an image with its boot files. Raises NovaliteError for one that no host can start."""
    what = f"Image {row['id']}"
    if row["status"] != "active":
        raise NovaliteError(f"{what} is not active.")
    properties = public_properties(row["properties"])
    disk_format, kernel, ramdisk, cmdline = row["disk_format"], row["kernel"], row["ramdisk"], row["cmdline"]
    if kernel is None:
        kernel = _boot_file(connection, what, "kernel_id", properties, project_id)
        ramdisk = kernel and _boot_file(connection, what, "ramdisk_id", properties, project_id)
        cmdline = (cmdline or CMDLINE) if kernel else ""
    if disk_format == "ami" and kernel:
        disk_format = "raw"  # a file system without a boot loader
    if disk_format not in LAUNCHABLE:
        raise NovaliteError(
            f"{what} cannot be started: its disk_format is '{disk_format}'; convert it to one of "
            f"{', '.join(LAUNCHABLE)} first"
        )
    boot = {"disk_format": disk_format, "kernel": kernel, "ramdisk": ramdisk, "cmdline": cmdline}
    return {**row, "properties": properties, **boot}


def _boot_file(
    connection: sa.Connection, what: str, name: str, properties: JsonMapping, project_id: str
) -> Record | None:
    """The file of the image that the property `name` names: a kernel, or a RAM disk."""
    image_id = properties.get(name)
    if not image_id:
        return None
    row = connection.execute(_IMAGE, {"image_id": image_id.lower(), "project_id": project_id}).first()
    if row is None or row.status != "active":
        raise NovaliteError(f"{what} cannot be started: its {name} {image_id} is not an image that is active")
    return {"source": row.source, "checksum": row.checksum, "size": row.size}


def network_by_name(connection: sa.Connection, name: str, project_id: str) -> Record:
    """The network `name` that `project_id` sees; its own one before a public one of the same name."""
    return networks_by_name(connection, [name], project_id)[0]


def networks_by_name(connection: sa.Connection, names: t.Sequence[str], project_id: str) -> list[Record]:
    """Find several networks as network_by_name() finds one, with one query, in the order of `names`."""
    table = tables.network
    # "" sorts first, so that the project's own record overwrites the public one
    seen = sa.select(table).where(table.c.owner.in_(["", project_id])).order_by(table.c.owner)
    return _named(connection, seen, table, "network", names)


def keypairs_seen(project_id: str, user_id: str | None) -> sa.Select[tuple[object, ...]]:
    """The query for the key pairs that a user (None: a playbook) may use in the project: the user's own, and those that
    all of the project share. Of two of one name the own one counts, which comes later. A project "" shares none."""
    table = tables.keypair
    whose = (table.c.user_id.in_(["", user_id or ""]), table.c.project_id.in_(["", project_id]))
    return sa.select(table).where(*whose).order_by(table.c.user_id)


def keypair_by_name(connection: sa.Connection, name: str, project_id: str, user_id: str | None = None) -> Record:
    """The key pair that a user (None: a playbook) means by `name`: type, public_key, fingerprint, created_at, whose."""
    return _named(connection, keypairs_seen(project_id, user_id), tables.keypair, "key pair", [name])[0]


def security_group_by_name(connection: sa.Connection, name: str, project_id: str) -> Record:
    """The security group `name` of the project: id, uuid, project_id, name, description."""
    return security_groups_by_name(connection, [name], project_id)[0]


def security_groups_by_name(connection: sa.Connection, names: t.Sequence[str], project_id: str) -> list[Record]:
    """Find several groups as security_group_by_name() finds one, with one query, in the order of `names`."""
    return _owned(connection, tables.security_group, "security group", names, project_id)


def compute_host_names(connection: sa.Connection) -> list[str]:
    """Return the names of all compute hosts, in order."""
    table = tables.compute_host
    return list(connection.execute(sa.select(table.c.name).order_by(table.c.name)).scalars())


def check_compute_hosts(connection: sa.Connection, names: t.Collection[str]) -> None:
    """Raise NotFoundError for the first of `names` under which no compute host has ever reported."""
    table = tables.compute_host
    known = set(connection.execute(sa.select(table.c.name).where(table.c.name.in_(sorted(names)))).scalars())
    for name in sorted(names):
        if name not in known:
            raise unknown("compute host", name, compute_host_names(connection))


def unknown(kind: str, name: str, names: t.Iterable[str]) -> NotFoundError:
    """The error for a `kind` that does not exist under `name`; it tells which `names` there are."""
    there = list(dict.fromkeys(names))
    if not there:
        return NotFoundError(f"unknown {kind} {name!r}: there is none yet")
    more = f" and {len(there) - NAMES_SHOWN} more" if len(there) > NAMES_SHOWN else ""
    return NotFoundError(
        f"unknown {kind} {name!r}: there {'are' if len(there) > 1 else 'is'} {', '.join(there[:NAMES_SHOWN])}{more}"
    )


def unknown_server(connection: sa.Connection, project_id: str, name: str) -> NotFoundError:
    """The error for a server that the project does not have; it tells which ones it has."""
    c = tables.instance.c
    names = sa.select(c.name).where(c.project_id == project_id, c.deleted == 0).order_by(c.id)
    return unknown("server", name, connection.execute(names).scalars())


def _owned(
    connection: sa.Connection, table: sa.Table, kind: str, names: t.Sequence[str], project_id: str
) -> list[Record]:
    return _named(connection, sa.select(table).where(table.c.project_id == project_id), table, kind, names)


def _named(
    connection: sa.Connection, seen: sa.Select[tuple[object, ...]], table: sa.Table, kind: str, names: t.Sequence[str]
) -> list[Record]:
    """The records of these names among those `seen`, in the order of the names. Raises NotFoundError."""
    rows = connection.execute(seen.where(table.c.name.in_(names))).mappings()
    record_by_name = {row["name"]: dict(row) for row in rows}
    for name in names:
        if name not in record_by_name:
            there = seen.with_only_columns(table.c.name).order_by(None).order_by(table.c.name)
            raise unknown(kind, name, connection.execute(there).scalars())
    return [record_by_name[name] for name in names]
