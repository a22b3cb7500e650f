# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Flavors by the ids that clients of the Compute API know them by, and what their records have beside sizes."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._errors import ConflictError, NotFoundError
from ..._json import JsonObject
from ..db.tables import flavor
from ..db.tables_networking import flavor_access
from .flavors import remove_flavors, write_flavors
from .project_usage import is_project

Record = JsonObject

SIZES = ("vcpus", "memory_mb", "root_gb", "ephemeral_gb", "swap_mb")


def flavors_seen(connection: sa.Connection, private: bool, project_id: str | None = None) -> list[Record]:
    """The flavors, each with the id that it is known by as `flavorid`; `private` adds those not public.

    Those that the project may see although they are private are always there, with `granted` set.
    """
    granted = sa.select(flavor_access.c.flavor_id).where(flavor_access.c.project_id == project_id)
    mine = set(connection.execute(granted).scalars()) if project_id is not None else set()
    query = sa.select(flavor).order_by(flavor.c.id)
    if not private:
        query = query.where(sa.or_(flavor.c.is_public, flavor.c.id.in_(sorted(mine))))
    rows = connection.execute(query).mappings()
    return [{**row, "flavorid": row["flavorid"] or str(row["id"]), "granted": row["id"] in mine} for row in rows]


def access_of(connection: sa.Connection, number: int) -> list[str]:
    """The projects that a private flavor was given to."""
    query = sa.select(flavor_access.c.project_id).where(flavor_access.c.flavor_id == number)
    return list(connection.execute(query.order_by(flavor_access.c.project_id)).scalars())


def grant_access(connection: sa.Connection, number: int, project_id: str) -> bool:
    """Let the project see a private flavor; returns whether it did not before. Raises NotFoundError for no project."""
    if project_id in access_of(connection, number):
        return False
    if not is_project(connection, project_id):
        raise NotFoundError(f"Project ID {project_id[:64]} is not a valid project.")
    connection.execute(sa.insert(flavor_access).values(flavor_id=number, project_id=project_id))
    return True


def revoke_access(connection: sa.Connection, number: int, project_id: str) -> bool:
    """Returns whether the project had it."""
    mine = sa.and_(flavor_access.c.flavor_id == number, flavor_access.c.project_id == project_id)
    return connection.execute(sa.delete(flavor_access).where(mine)).rowcount == 1


def create_flavor(connection: sa.Connection, record: t.Mapping[str, t.Any]) -> None:
    """Make a flavor of `record`: flavorid, name, sizes, is_public, description.

    Raises NovaliteError for sizes that cannot be, ConflictError for a name or id that there is.
    """
    for row in flavors_seen(connection, private=True):
        if row["flavorid"] == record["flavorid"]:
            raise ConflictError(f"Flavor with ID {record['flavorid']} already exists.")
        if row["name"] == record["name"]:
            raise ConflictError(f"Flavor with name {record['name']} already exists.")
    sizes = {key: record[key] for key in SIZES}
    write_flavors(connection, [{"name": record["name"], "extra_specs": None, **sizes}])
    values = {key: record[key] for key in ("flavorid", "is_public", "description")}
    connection.execute(sa.update(flavor).where(flavor.c.name == record["name"]).values(**values))


def describe_flavor(connection: sa.Connection, name: str, description: str | None) -> None:
    connection.execute(sa.update(flavor).where(flavor.c.name == name).values(description=description))


def delete_flavor(connection: sa.Connection, name: str) -> None:
    """Instances carry a copy: those that have this flavor keep it."""
    remove_flavors(connection, [{"name": name}])


def write_specs(connection: sa.Connection, name: str, specs: t.Mapping[str, str]) -> None:
    """Give a flavor these extra specs, and no others. Raises NovaliteError for what is no spec."""
    write_flavors(connection, [{"name": name, "extra_specs": dict(specs), **dict.fromkeys(SIZES)}])
