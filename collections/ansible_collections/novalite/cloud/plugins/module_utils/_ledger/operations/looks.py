# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A quick look at a ledger in a file, by the driver alone: to import SQLAlchemy takes longer than the look.

looks.json has the texts of the queries, which `python -m tools.looks` writes from the queries themselves. All that is
not as usual (another revision, a ledger that is lost or behind its hosts) is for engine.py, which says what is wrong.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import sqlite3
import typing as t

from ..._errors import NovaliteError
from ..._json import JsonMapping, JsonObject
from ..db import known, sqlite_files
from ..db.revisions import BUSY_TIMEOUT, FILE_NAME, HEAD

STATEMENTS = pathlib.Path(__file__).with_name("looks.json")


class Statement(t.TypedDict):
    """A query as SQLite takes it: its text, its own values, and those of its columns that are not kept as they are."""

    text: str
    values: JsonObject
    json: list[str]
    booleans: list[str]


Read = t.Callable[[str, JsonMapping], list[JsonObject]]


@contextlib.contextmanager
def looking(home: str) -> t.Iterator[Read | None]:
    """Open a consistent view of the ledger in this directory: what runs a statement of looks.json by its name, with
    these values; a list stands for the rows of an IN. None where the ledger is not as usual."""
    place = known.File(home, os.path.join(home, FILE_NAME))
    with contextlib.ExitStack() as opened:
        try:
            connection = _opened(place)
            opened.callback(connection.close)
            connection.execute("BEGIN")
            if connection.execute("SELECT version_num FROM alembic_version").fetchall() != [(HEAD,)]:
                raise NovaliteError("the ledger is of another revision")
            if connection.execute("SELECT behind FROM ledger_identity").fetchall() != [(None,)]:
                raise NovaliteError("the ledger is behind its hosts")
        except (OSError, sqlite3.Error, NovaliteError):
            yield None
            return
        statements: dict[str, Statement] = json.loads(STATEMENTS.read_text(encoding="utf-8"))

        def read(name: str, values: JsonMapping) -> list[JsonObject]:
            statement = statements[name]
            named = {**statement["values"], **values}
            bound = {key: json.dumps(value) if isinstance(value, list) else value for key, value in named.items()}
            cursor = connection.execute(statement["text"], bound)
            names = [column[0] for column in cursor.description]
            rows = [dict(zip(names, row)) for row in cursor]
            for columns, kept in ((statement["json"], json.loads), (statement["booleans"], bool)):
                for row in rows:
                    for column in columns:
                        if row[column] is not None:
                            row[column] = kept(row[column])
            return rows

        yield read


def _opened(place: known.File) -> sqlite3.Connection:
    """Connect to the ledger that is known to be there."""
    if not os.path.exists(place.path) or known.known(place) is None:
        raise NovaliteError(f"{place.shown} was not opened before")
    connection = sqlite_files.connect(place.path, BUSY_TIMEOUT)
    try:
        connection.isolation_level = None
        known.verifier(place)(connection)
    except BaseException:
        connection.close()
        raise
    return connection
