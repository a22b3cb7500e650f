# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""Flavors by the ids that clients of the Compute API know them by, and what their records have beside sizes."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from .._errors import ConflictError
from .flavors import flavor as operation
from .tables import flavor

Record = dict[str, t.Any]

SIZES = ("vcpus", "memory_mb", "root_gb", "ephemeral_gb", "swap_mb")


def flavors_seen(connection: sa.Connection, private: bool) -> list[Record]:
    """The flavors, each with the id that it is known by as `flavorid`; `private` adds those not public."""
    query = sa.select(flavor).order_by(flavor.c.id)
    rows = connection.execute(query if private else query.where(flavor.c.is_public)).mappings()
    return [{**row, "flavorid": row["flavorid"] or str(row["id"])} for row in rows]


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
    operation(connection, {"state": "present", "flavors": [{"name": record["name"], "extra_specs": None, **sizes}]})
    values = {key: record[key] for key in ("flavorid", "is_public", "description")}
    connection.execute(sa.update(flavor).where(flavor.c.name == record["name"]).values(**values))


def describe_flavor(connection: sa.Connection, name: str, description: str | None) -> None:
    connection.execute(sa.update(flavor).where(flavor.c.name == name).values(description=description))


def delete_flavor(connection: sa.Connection, name: str) -> None:
    """Instances carry a copy: those that have this flavor keep it."""
    operation(connection, {"state": "absent", "flavors": [{"name": name}]})


def write_specs(connection: sa.Connection, name: str, specs: t.Mapping[str, str]) -> None:
    """Give a flavor these extra specs, and no others. Raises NovaliteError for what is no spec."""
    item = {"name": name, "extra_specs": dict(specs), **dict.fromkeys(SIZES)}
    operation(connection, {"state": "present", "flavors": [item]})
