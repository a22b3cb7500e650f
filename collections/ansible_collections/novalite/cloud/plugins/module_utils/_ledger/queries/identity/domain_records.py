# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Domains by id and by name. Reads only."""

from __future__ import annotations

import sqlalchemy as sa

from ...._errors import NotFoundError
from ...._json import JsonObject
from ...db import tables_identity
from ...db.tables_identity import domain as table
from ..counts import equal

Domain = JsonObject
DEFAULT_DOMAIN = tables_identity.DEFAULT_DOMAIN


def domain_by_id(connection: sa.Connection, domain_id: str) -> Domain | None:
    """Return the domain of this id; None where there is none."""
    row = connection.execute(sa.select(table).where(table.c.id == domain_id)).mappings().first()
    return None if row is None else dict(row)


def find_domain(connection: sa.Connection, domain_id: str) -> Domain:
    """Return the domain of this id. Raises NotFoundError."""
    record = domain_by_id(connection, domain_id)
    if record is None:
        raise NotFoundError(f"Could not find domain: {domain_id[:64]}.")
    return record


def list_domains(connection: sa.Connection, name: str | None = None, enabled: bool | None = None) -> list[Domain]:
    """Return all domains, by name; or those of this name, or that are enabled or not."""
    key = None if name is None else domain_key(name)
    query = sa.select(table).where(*equal({table.c.name_key: key, table.c.enabled: enabled})).order_by(table.c.name)
    return [dict(row) for row in connection.execute(query).mappings()]


def domain_key(name: str) -> str:
    """Return the form in which names of domains are compared, as Keystone's usual database does."""
    return name.casefold()[:128]
