# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Records of what a stack has made, so that it removes nothing else.

A record that it made is written down with the record's own id: one of the same name that somebody made later is not
its work. Servers carry the stack's name in their metadata, which is written with them.
"""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..db import tables
from ..db.tables import site_record

METADATA_KEY = "novalite:site"  # as servers have it in ledgers from before the document was called a stack


class Made(t.NamedTuple):
    """A record by kind, owner (a project's id, or "" for a public one) and name."""

    kind: str
    owner: str
    name: str


# where a record's name, owner and id stand; a key pair has no id, but the time at which it was made stays
_REFERENCES: dict[str, tuple[sa.Table, str | None, str]] = {
    "flavor": (tables.flavor, None, "id"),
    "image": (tables.image, "owner", "id"),
    "network": (tables.network, "owner", "uuid"),
    "keypair": (tables.keypair, "project_id", "created_at"),
    "security_group": (tables.security_group, "project_id", "uuid"),
    "server_group": (tables.server_group, "project_id", "id"),
}


def remember(connection: sa.Connection, stack: str, made: t.Collection[Made]) -> None:
    """Write down that these records, which are there now, are the stack's work."""
    references = _references(connection, made)
    rows = [{"site": stack, **mark._asdict(), "reference": reference} for mark, reference in references.items()]
    forget(connection, stack, made)
    if rows:
        connection.execute(sa.insert(site_record), rows)


def forget(connection: sa.Connection, stack: str, gone: t.Iterable[Made]) -> None:
    """Strike out records of the stack's that are gone."""
    columns = site_record.c
    for mark in gone:
        connection.execute(
            sa.delete(site_record).where(
                columns.site == stack, columns.kind == mark.kind, columns.owner == mark.owner, columns.name == mark.name
            )
        )


def made_by(connection: sa.Connection, stack: str, owner: str) -> list[Made]:
    """The stack's own records of this project, and public ones, that are still those which it made."""
    rows = connection.execute(
        sa.select(site_record).where(site_record.c.site == stack, site_record.c.owner.in_(["", owner]))
    )
    stored = {Made(row.kind, row.owner, row.name): row.reference for row in rows}
    now = _references(connection, stored)
    return [mark for mark, reference in stored.items() if now.get(mark) == reference]


def _references(connection: sa.Connection, made: t.Collection[Made]) -> dict[Made, str]:
    reference_by_mark: dict[Made, str] = {}
    for kind, (table, owner, reference) in _REFERENCES.items():
        names = sorted({mark.name for mark in made if mark.kind == kind})
        if not names:
            continue
        whose = sa.literal("") if owner is None else table.c[owner]
        query = sa.select(table.c.name, whose.label("owner"), table.c[reference].label("reference"))
        for row in connection.execute(query.where(table.c.name.in_(names))):
            mark = Made(kind, row.owner, row.name)
            if mark in made:
                reference_by_mark[mark] = str(row.reference)
    return reference_by_mark
