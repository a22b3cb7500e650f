# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Flavors: the sizes that instances come in."""

from __future__ import annotations

import re
import typing as t

import sqlalchemy as sa

from ..._errors import NovaliteError
from ..._json import Json, JsonMapping, JsonObject
from ..._rules.records import Changes, check_range, checked_names, given, scalar_text
from ..db import tables

LOWEST = {"vcpus": 1, "memory_mb": 1, "root_gb": 0, "ephemeral_gb": 0, "swap_mb": 0}
# novalite's own extra specs, which say what an instance's disks are
OWN_SPECS = {"novalite:disk_backend": ("qcow2", "raw"), "novalite:preallocation": ("none", "space")}
SPEC_KEY = re.compile(r"[A-Za-z0-9_.: -]{1,255}")  # Nova's rule


def write_flavors(connection: sa.Connection, items: t.Sequence[JsonMapping]) -> JsonObject:
    """Make or change these flavors: `flavors`, `changed` and `diff`, as modules return them.

    Sizes that are not given stay as they are; a new flavor needs vcpus and memory_mb. Raises NovaliteError for what
    cannot be.
    """
    names = checked_names("flavor", items)
    table = tables.flavor
    there = _flavors(connection, names)
    changes = Changes()
    for item, name in zip(items, names):
        before = there.get(name)
        after = {**(before or _new(item, name)), **_wanted(item, name)}
        if changes.note(name, before, after):
            if before is None:
                connection.execute(sa.insert(table).values(name=name, **after))
            else:
                connection.execute(sa.update(table).where(table.c.name == name).values(**after))
    rows = connection.execute(sa.select(table).where(table.c.name.in_(names)).order_by(table.c.id)).mappings()
    return changes.result("flavors", [{**row} for row in rows])


def remove_flavors(connection: sa.Connection, items: t.Sequence[JsonMapping]) -> JsonObject:
    """Remove the flavors that `items` name. Instances carry a copy: those that have one of these keep it."""
    names = checked_names("flavor", items)
    there = _flavors(connection, names)
    changes = Changes()
    for name in names:
        changes.note(name, there.get(name), None)
    connection.execute(sa.delete(tables.flavor).where(tables.flavor.c.name.in_(names)))
    return changes.result("flavors", [])


def _flavors(connection: sa.Connection, names: t.Sequence[str]) -> dict[str, JsonObject]:
    rows = connection.execute(sa.select(tables.flavor).where(tables.flavor.c.name.in_(names))).mappings()
    return {row["name"]: {key: row[key] for key in row if key not in ("id", "name")} for row in rows}


def _new(item: JsonMapping, name: str) -> JsonObject:
    for key in ("vcpus", "memory_mb"):
        if item[key] is None:
            raise NovaliteError(f"flavor {name!r} does not exist yet: give its {key} to make it")
    return {"root_gb": 0, "ephemeral_gb": 0, "swap_mb": 0, "extra_specs": {}}


def _wanted(item: JsonMapping, name: str) -> JsonObject:
    wanted = given(item, (*LOWEST, "extra_specs"))
    for key, low in LOWEST.items():
        if key in wanted:
            check_range(f"flavor {name!r}: {key}", wanted[key], low)
    if "extra_specs" in wanted:
        wanted["extra_specs"] = {
            _spec_key(key, name): _spec_value(value, key, name) for key, value in wanted["extra_specs"].items()
        }
    return wanted


def _spec_key(key: str, name: str) -> str:
    if not SPEC_KEY.fullmatch(key):
        raise NovaliteError(
            f"flavor {name!r}: extra spec {key[:60]!r} is no valid key: use letters, digits, '_', '-', '.', ':', ' '"
        )
    return key


def _spec_value(value: Json, key: str, name: str) -> str:
    if key in OWN_SPECS and value not in OWN_SPECS[key] and not isinstance(value, bool):
        raise NovaliteError(f"flavor {name!r}: extra spec {key} is {value!r}: use {' or '.join(OWN_SPECS[key])}")
    return scalar_text(f"flavor {name!r}: extra spec {key}", value)
