# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Common parts of the declarations of all tables of the ledger."""

from __future__ import annotations

import sqlalchemy as sa

metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# SQLite only auto-increments INTEGER keys; PostgreSQL gets the 64 bits.
BigId = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def table(name: str, *items: sa.schema.SchemaItem, sqlite_autoincrement: bool = False) -> sa.Table:
    """Declare a table of the ledger."""
    return sa.Table(name, metadata, *items, sqlite_autoincrement=sqlite_autoincrement)


def numbered(name: str, *items: sa.schema.SchemaItem) -> sa.Table:
    """Declare a table whose rows have numbers, `id`, of which none is given twice."""
    number = sa.Column("id", BigId, primary_key=True, autoincrement=True)
    return table(name, number, *items, sqlite_autoincrement=True)


def partial_index(
    name: str,
    where: sa.ColumnElement[bool] | sa.TextClause,
    *columns: sa.Column[int] | sa.Column[str],
    unique: bool = False,
) -> None:
    """Declare an index of those rows that meet `where`.

    To set the option of PostgreSQL takes 25 ms, in which SQLAlchemy imports its dialect. It is set where tables are
    made, which no run does: the migrations make them.
    """
    sa.Index(name, *columns, unique=unique, info={"where": where})


@sa.event.listens_for(metadata, "before_create")
def _set_conditions(_metadata: sa.MetaData, connection: sa.Connection, **_options: object) -> None:
    for declared in metadata.tables.values():
        for index in declared.indexes:
            if "where" in index.info:
                index.dialect_options[connection.dialect.name]["where"] = index.info["where"]
