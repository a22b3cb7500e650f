# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Flavors, the sizes that instances come in: by name, and by the ids that clients of the Compute API know them by."""

from __future__ import annotations

import re
import typing as t

import sqlalchemy as sa

from ..._errors import ConflictError, NotFoundError, NovaliteError
from ..._json import Json, JsonMapping, JsonObject
from ..._model import hardware
from ..._rules.records import Changes, check_range, checked_names, scalar_text, set_values
from ..db.tables import flavor
from ..db.tables_networking import flavor_access
from ..queries.catalog.flavor_records import access_of, flavors_seen
from ..queries.counts import is_project
from ..queries.lookups import lock_rows

LOWEST = {"vcpus": 1, "memory_mb": 1, "root_gb": 0, "ephemeral_gb": 0, "swap_mb": 0}
# novalite's own extra specs, which say what an instance's disks are
OWN_SPECS = {"novalite:disk_backend": ("qcow2", "raw"), "novalite:preallocation": ("none", "space")}
SPEC_KEY = re.compile(r"[A-Za-z0-9_.: -]{1,255}")  # Nova's rule


def write_flavors(connection: sa.Connection, items: t.Sequence[JsonMapping]) -> JsonObject:
    """Make or change these flavors: `flavors`, `changed` and `diff`, as modules return them.

    Sizes that are not given stay; a new flavor needs vcpus and memory_mb. Raises NovaliteError for what cannot be.
    """
    names = checked_names("flavor", items)
    lock_rows(connection, flavor.c.name.in_(names), by=flavor.c.id)
    there = _flavors(connection, names)
    changes = Changes()
    for item, name in zip(items, names):
        before = there.get(name)
        after = {**(before or _new(item, name)), **_requested_attributes(item, name)}
        if changes.note(name, before, after):
            if before is None:
                connection.execute(sa.insert(flavor).values(name=name, **after))
            else:
                connection.execute(sa.update(flavor).where(flavor.c.name == name).values(**after))
    rows = connection.execute(sa.select(flavor).where(flavor.c.name.in_(names)).order_by(flavor.c.id)).mappings()
    return changes.result("flavors", [{**row} for row in rows])


def remove_flavors(connection: sa.Connection, items: t.Sequence[JsonMapping]) -> JsonObject:
    """Remove the flavors that `items` name. Instances carry a copy: those that have one of these keep it."""
    names = checked_names("flavor", items)
    there = _flavors(connection, names)
    changes = Changes()
    for name in names:
        changes.note(name, there.get(name), None)
    connection.execute(sa.delete(flavor).where(flavor.c.name.in_(names)))
    return changes.result("flavors", [])


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


def create_flavor(connection: sa.Connection, record: JsonMapping) -> None:
    """Make a flavor of `record`: flavorid, name, sizes, is_public, description.

    Raises NovaliteError for sizes that cannot be, ConflictError for a name or id that there is.
    """
    for row in flavors_seen(connection, private=True):
        if row["flavorid"] == record["flavorid"]:
            raise ConflictError(f"Flavor with ID {record['flavorid']} already exists.")
        if row["name"] == record["name"]:
            raise ConflictError(f"Flavor with name {record['name']} already exists.")
    write_flavors(connection, [{"extra_specs": None, **record}])
    values = {key: record[key] for key in ("flavorid", "is_public", "description")}
    connection.execute(sa.update(flavor).where(flavor.c.name == record["name"]).values(**values))


def describe_flavor(connection: sa.Connection, name: str, description: str | None) -> None:
    connection.execute(sa.update(flavor).where(flavor.c.name == name).values(description=description))


def _flavors(connection: sa.Connection, names: t.Sequence[str]) -> dict[str, JsonObject]:
    rows = connection.execute(sa.select(flavor).where(flavor.c.name.in_(names))).mappings()
    return {row["name"]: {key: row[key] for key in row if key not in ("id", "name")} for row in rows}


def _new(item: JsonMapping, name: str) -> JsonObject:
    for key in ("vcpus", "memory_mb"):
        if item[key] is None:
            raise NovaliteError(f"flavor {name!r} does not exist yet: give its {key} to make it")
    return {"root_gb": 0, "ephemeral_gb": 0, "swap_mb": 0, "extra_specs": {}}


def _requested_attributes(item: JsonMapping, name: str) -> JsonObject:
    attributes = set_values(item, (*LOWEST, "extra_specs"))
    for key, low in LOWEST.items():
        if key in attributes:
            check_range(f"flavor {name!r}: {key}", attributes[key], low)
    if "extra_specs" in attributes:
        attributes["extra_specs"] = {
            _spec_key(key, name): _spec_value(value, key, name) for key, value in attributes["extra_specs"].items()
        }
    return attributes


def _spec_key(key: str, name: str) -> str:
    if not SPEC_KEY.fullmatch(key):
        raise NovaliteError(
            f"flavor {name!r}: extra spec {key[:60]!r} is not a valid key: use letters, digits, '_', '-', '.', ':', ' '"
        )
    return key


def _spec_value(value: Json, key: str, name: str) -> str:
    if key in OWN_SPECS and value not in OWN_SPECS[key] and not isinstance(value, bool):
        raise NovaliteError(f"flavor {name!r}: extra spec {key} is {value!r}: use {' or '.join(OWN_SPECS[key])}")
    hardware.check_extra_spec(f"flavor {name!r}", key, value)
    return scalar_text(f"flavor {name!r}: extra spec {key}", value)
