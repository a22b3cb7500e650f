# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operations on flavors, for every door that knows them by ids."""

from __future__ import annotations

import typing as t
import uuid

from ...._errors import ConflictError, NotFoundError
from ...catalog import flavors
from ...db.tables import flavor
from ...queries.catalog import flavor_records
from ...queries.catalog.flavor_records import NewFlavor, SeenFlavor
from ...queries.lookups import lock_rows
from ..call import Call

Change = t.Callable[[t.Mapping[str, str]], t.Mapping[str, str]]


def create(call: Call, values: NewFlavor) -> SeenFlavor:
    """Make a flavor. Raises as catalog.flavors.create_flavor()."""
    flavorid = values["flavorid"] or str(uuid.uuid4())
    flavors.create_flavor(call.connection, {**values, "flavorid": flavorid})
    return _again(call, flavorid)


def describe(call: Call, row: SeenFlavor, description: str | None) -> SeenFlavor:
    """Give a flavor this description. Raises NotFoundError for one that is gone."""
    row = _locked(call, row)
    flavors.describe_flavor(call.connection, row["name"], description)
    return _again(call, row["flavorid"])


def delete(call: Call, row: SeenFlavor) -> None:
    """Remove a flavor. Servers carry a copy of theirs."""
    flavors.remove_flavors(call.connection, [row])


def write_specs(call: Call, row: SeenFlavor, change: Change) -> SeenFlavor:
    """Make of a flavor's extra specs what `change` makes of them. Raises NovaliteError for another text, NotFoundError
    for a flavor that is gone."""
    row = _locked(call, row)
    item = {"name": row["name"], "extra_specs": {**change(row["extra_specs"])}, **dict.fromkeys(flavors.LOWEST)}
    flavors.write_flavors(call.connection, [item])
    return _again(call, row["flavorid"])


def grant(call: Call, row: SeenFlavor, project_id: str) -> None:
    """Let a project see a private flavor. Raises ConflictError for a public one, and for one that it sees already;
    NotFoundError for no project."""
    _check_private(row)
    if not flavors.grant_access(call.connection, row["id"], project_id):
        raise ConflictError(f"Flavor access already exists for flavor {row['flavorid']} and project {project_id[:64]}")


def revoke(call: Call, row: SeenFlavor, project_id: str) -> None:
    """Have a project see a private flavor no more. Raises ConflictError for a public one, NotFoundError for a project
    that does not see it."""
    _check_private(row)
    if not flavors.revoke_access(call.connection, row["id"], project_id):
        raise NotFoundError(f"Flavor access not found for {row['flavorid']} / {project_id[:64]} combination.")


def _check_private(row: SeenFlavor) -> None:
    if row["is_public"]:
        raise ConflictError("Can not add or remove access to a public flavor.")


def _locked(call: Call, row: SeenFlavor) -> SeenFlavor:
    """Return the flavor as it is once nobody else is changing it. Raises NotFoundError for one that is gone."""
    if lock_rows(call.connection, flavor.c.id == row["id"], by=flavor.c.id):
        return _again(call, row["flavorid"])
    raise NotFoundError(f"Flavor {row['flavorid']} could not be found.")


def _again(call: Call, flavorid: str) -> SeenFlavor:
    rows = flavor_records.flavors_seen(call.connection, call.permits("compute:flavors:private"), call.project)
    return next(row for row in rows if row["flavorid"] == flavorid)
