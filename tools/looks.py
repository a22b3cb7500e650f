# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write the ledger's queries that the command `novalite` uses for a quick look as texts for SQLite: `python -m
tools.looks`, after a change of them."""

from __future__ import annotations

import itertools
import json
import typing as t

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite
from sqlalchemy.sql import visitors

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import listings, looks
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import lookups
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute import (
    server_history,
    server_listing,
    views,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network import host_networks
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.placement import status
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volumes import replica_records

DIALECT = sqlite.dialect(paramstyle="named")
_ONE = (tables.instance.c.uuid == sa.bindparam("uuid"), tables.instance.c.deleted == 0)
# columns whose values SQLAlchemy takes as they are kept
PLAIN = (sa.String, sa.Integer, sa.Float, sa.LargeBinary)


def statements() -> dict[str, looks.Statement]:
    """Return the statements by their names."""
    queries: dict[str, sa.Select[t.Any]] = {
        "projects": lookups.PROJECT_NAMES,
        **server_listing.LOAD,
        **status.LOAD_HOSTS,
        **status.LOAD_PLACEMENT,
        **status.LOAD_ADDRESSES,
        **status.LOAD_SUSPECTS,
        **listings.LOAD,
        **server_history.LOAD,
        **replica_records.LOAD,
        **{name: query if name in views.OF_GROUPS else query.where(*_ONE) for name, query in views.LOAD.items()},
        "servers_named": views.SERVERS_NAMED,
        "further_ranges": host_networks.FURTHER_RANGES,
    }
    for of_project, on_host in itertools.product((False, True), repeat=2):
        # a value of either, which is said when the statement is run
        chosen = server_listing.Query(
            project_id=t.cast(str, sa.bindparam("project_id")) if of_project else None,
            equals={"host": sa.bindparam("host")} if on_host else {},
        )
        name = "numbers" + "_of_project" * of_project + "_on_host" * on_host
        queries[name] = server_listing.ordered("sqlite", chosen)
    return {name: _statement(query) for name, query in queries.items()}


def _statement(query: sa.Select[t.Any]) -> looks.Statement:
    compiled = visitors.replacement_traverse(query, {}, _rows_of_list).compile(dialect=DIALECT)
    values: dict[str, t.Any] = {}
    for bound, name in compiled.bind_names.items():
        if not bound.required:
            process = bound.type.dialect_impl(DIALECT).bind_processor(DIALECT)
            values[name] = bound.value if process is None else process(bound.value)
    kinds = {column.name: column.type for column in query.selected_columns}
    odd = [name for name, kind in kinds.items() if not isinstance(kind, (*PLAIN, sa.JSON, sa.Boolean))]
    if odd:
        raise TypeError(f"operations/looks.py has to learn how the values of {odd} are kept")
    return {
        "text": " ".join(str(compiled).split()),
        "values": values,
        "json": [name for name, kind in kinds.items() if isinstance(kind, sa.JSON)],
        "booleans": [name for name, kind in kinds.items() if isinstance(kind, sa.Boolean)],
    }


def _rows_of_list(element: t.Any, **_words: object) -> t.Any:
    """A list of values, of which SQLAlchemy makes as many parameters when it runs a statement, as one of JSON."""
    if isinstance(element, sa.BindParameter) and element.expanding:
        listed = sa.bindparam(element.key, element.value, type_=sa.Text, required=element.required)
        rows = sa.func.json_each(listed).table_valued("value")
        return sa.select(rows.c.value).scalar_subquery()
    return None


if __name__ == "__main__":
    looks.STATEMENTS.write_text(json.dumps(statements(), indent=1, sort_keys=True) + "\n", encoding="utf-8")
