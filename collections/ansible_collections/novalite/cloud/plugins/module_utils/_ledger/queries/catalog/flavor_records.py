# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Flavors as a project sees them, and who may use those that are not public. Reads only."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ...._rules.listed_nouns import shown_flavor
from ...db.tables import flavor
from ...db.tables_networking import flavor_access


class FlavorValues(t.TypedDict):
    """Attributes of a flavor that clients say."""

    name: str
    vcpus: int
    memory_mb: int
    root_gb: int
    ephemeral_gb: int
    swap_mb: int
    is_public: bool
    description: str | None


class NewFlavor(FlavorValues):
    """A flavor that is to be made; without a `flavorid` it gets a new UUID."""

    flavorid: str | None


class SeenFlavor(FlavorValues):
    """A flavor as a project sees it, with the id that it is known by; `granted`: a private one that it may use."""

    id: int
    flavorid: str
    extra_specs: dict[str, str]
    granted: bool


def flavors_seen(connection: sa.Connection, private: bool, project_id: str | None = None) -> list[SeenFlavor]:
    """The flavors, each with the id that it is known by as `flavorid`; `private` adds those not public.

    Those that the project may see although they are private are always there, with `granted` set.
    """
    granted = sa.select(flavor_access.c.flavor_id).where(flavor_access.c.project_id == project_id)
    mine = set(connection.execute(granted).scalars()) if project_id is not None else set()
    query = LOAD["all_flavors"]
    if not private:
        query = query.where(sa.or_(flavor.c.is_public, flavor.c.id.in_(sorted(mine))))
    rows = connection.execute(query).mappings()
    return [t.cast("SeenFlavor", shown_flavor({**row}, granted=row["id"] in mine)) for row in rows]


LOAD = {"all_flavors": sa.select(flavor).order_by(flavor.c.id)}


def access_of(connection: sa.Connection, number: int) -> list[str]:
    """The projects that a private flavor was given to."""
    query = sa.select(flavor_access.c.project_id).where(flavor_access.c.flavor_id == number)
    return list(connection.execute(query.order_by(flavor_access.c.project_id)).scalars())
