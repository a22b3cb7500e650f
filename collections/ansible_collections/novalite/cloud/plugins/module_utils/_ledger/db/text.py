# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ledger as text: JSON lines, the same for SQLite and PostgreSQL, so that one can become the other.

    {"novalite_ledger": 1, "revision": "0012", "numbers": {"instance": 17, ...}}
    {"table": "project", "columns": ["id", "name", ...]}
    ["dddd...", "demo", ...]
    ...
    {"rows": 4711}

Tables come in the order in which they can be written, rows in that of their keys: two texts of one ledger are equal,
and can be compared by diff. `numbers` are the highest ids ever given, which are not given again. Passwords, tokens and
keys are in it as they are in the ledger, hashed or encrypted; so is the secret that decrypts them: keep it as such.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import typing as t

import sqlalchemy as sa

from ..._errors import NovaliteError
from ..._json import JsonObject
from . import tables
from .key_owners import give_to_users
from .made import REVISION_TABLE, check_known, make, revision_of
from .revisions import HEAD

MARK = "novalite_ledger"  # the key of the first line that says what the text is
VERSION = 1
BATCH = 500  # rows of one INSERT
# What an older text lacks, by the revision that brought it. Columns and tables that it does not have are as empty as in
# a new ledger
_COMPLETIONS = {
    "0035": "UPDATE network SET made_by = owner WHERE tenant",
    # as _ledger/network/dns_names.py gives them: the first one of a name has it
    "0037": """
        INSERT INTO dns_name (network_id, name, instance_uuid)
        SELECT vif.network_id, instance.hostname, min(instance.uuid)
        FROM instance JOIN vif ON vif.instance_uuid = instance.uuid
        WHERE instance.deleted = 0
        AND instance.hostname NOT IN ('gateway', 'instance-data', 'isatap', 'localhost', 'metadata', 'wpad')
        AND instance.id = (
            SELECT min(other.id) FROM instance AS other JOIN vif AS its ON its.instance_uuid = other.uuid
            WHERE other.deleted = 0 AND other.hostname = instance.hostname AND its.network_id = vif.network_id
        )
        GROUP BY vif.network_id, instance.hostname
    """,
    "0041": """
        UPDATE compute_host SET num_instances = (
            SELECT count(*) FROM allocation WHERE allocation.compute_host_id = compute_host.id
        )
    """,
}
_SEQUENCES = (
    "SELECT c.relname AS name, pg_sequence_last_value(pg_get_serial_sequence(quote_ident(c.relname), 'id')::regclass) "
    "AS last FROM pg_class c WHERE c.relkind = 'r' AND c.relname = :name"
)


@dataclasses.dataclass(frozen=True)
class Head:
    """The first line of a text: the `revision` of the ledger that it was written from, and its `numbers`."""

    revision: str
    numbers: t.Mapping[str, int]


def lines_of(connection: sa.Connection) -> t.Iterator[str]:
    """Yield the ledger as lines of text, without line ends. `connection` is to see one state of it throughout.

    Raises NovaliteError when there is no ledger, or a newer one.
    """
    revision = revision_of(connection)
    if revision is None:
        raise NovaliteError("there is no ledger in this database")
    there = _tables(connection)
    numbered = [table for table in there if _is_numbered(table)]
    head = {MARK: VERSION, "revision": revision, "numbers": _numbers(connection, numbered)}
    yield json.dumps(head, sort_keys=True)
    rows = 0
    for table in there:
        columns = [column.name for column in table.columns]
        yield json.dumps({"table": table.name, "columns": columns})
        query = sa.select(table).order_by(*table.primary_key.columns).execution_options(yield_per=BATCH)
        for row in connection.execute(query):
            rows += 1
            yield json.dumps(list(row), ensure_ascii=False, sort_keys=True)
    yield json.dumps({"rows": rows})


def load(connection: sa.Connection, lines: t.Iterable[str]) -> Head:
    """Replace the ledger by the one that `lines` tell, at the newest revision.

    All in the transaction of `connection`. Raises NovaliteError, and then nothing must be committed, for a text that
    is no ledger's, is cut off, or was written by a newer novalite.
    """
    reader = iter(lines)
    head = read_head(next(reader, ""))
    if revision_of(connection) != HEAD:
        _drop(connection)
        make(connection)
    there = {table.name: table for table in _tables(connection)}
    for replaced in reversed(there.values()):  # also what a new ledger has
        connection.execute(sa.delete(replaced))
    rows = 0
    table: sa.Table | None = None
    columns: list[str] = []
    batch: list[JsonObject] = []
    for number, line in enumerate(reader, 2):
        value = _parsed(line, number)
        if isinstance(value, list) and table is not None and len(value) == len(columns):
            batch.append(dict(zip(columns, value)))
            rows += 1
            if len(batch) == BATCH:
                connection.execute(sa.insert(table), batch)
                batch = []
            continue
        if batch and table is not None:
            connection.execute(sa.insert(table), batch)
            batch = []
        if value == {"rows": rows}:
            for revision, completion in _COMPLETIONS.items():
                if head.revision < revision:
                    connection.execute(sa.text(completion))
            if head.revision < "0039":
                give_to_users(connection)
            _set_numbers(connection, there, head.numbers)
            return head
        try:
            table, columns = there[value["table"]], value["columns"]
            unknown = set(columns) - set(table.columns.keys())
        except (KeyError, TypeError):
            raise NovaliteError(f"line {number} is not a line of a ledger: {line[:60]!r}") from None
        if unknown:
            raise NovaliteError(f"line {number}: the table {table.name} has no {', '.join(sorted(unknown))}")
    raise NovaliteError("the ledger's text is cut off: its last line, which says how many rows there are, is missing")


def renew(connection: sa.Connection) -> None:
    """Write a ledger of an older revision anew, at the newest one, in the transaction of `connection`."""
    load(connection, list(lines_of(connection)))


def read_head(line: str) -> Head:
    """Return what a text's first line says. Raises NovaliteError for another file, or a newer ledger."""
    try:
        head = json.loads(line)
        version, revision, numbers = head[MARK], head["revision"], head["numbers"]
    except (ValueError, KeyError, TypeError):
        raise NovaliteError("this file is not a ledger: neither the text of one, nor an SQLite file of one") from None
    if version != VERSION:
        raise NovaliteError(
            f"this file holds a ledger as text of version {version}, written by a newer novalite: upgrade novalite here"
        )
    check_known(str(revision), "this file holds a ledger of")
    return Head(revision, numbers)


def is_empty(connection: sa.Connection) -> bool:
    """Tell whether nothing was recorded in the ledger: it may be replaced without a loss."""
    there = set(sa.inspect(connection).get_table_names())
    main_tables = {"project", "user", "instance", "network", "compute_host", "flavor", "image"}
    return not any(
        connection.execute(sa.text(f'SELECT 1 FROM "{name}" LIMIT 1')).first() for name in main_tables & there
    )


def _tables(connection: sa.Connection) -> list[sa.Table]:
    """The ledger's tables as the database has them, at whatever revision, the referenced ones first."""
    if revision_of(connection) == HEAD:
        return list(tables.metadata.sorted_tables)
    metadata = sa.MetaData()
    metadata.reflect(connection, only=lambda name, _metadata: name in tables.metadata.tables)
    for table in metadata.tables.values():
        for column in table.columns:
            if isinstance(column.type, sa.JSON):
                column.type = sa.JSON(none_as_null=bool(column.nullable))
    return [table for table in metadata.sorted_tables if table.name != REVISION_TABLE]


def _drop(connection: sa.Connection) -> None:
    for table in reversed(_tables(connection)):
        table.drop(connection)
    connection.execute(sa.text(f"DROP TABLE IF EXISTS {REVISION_TABLE}"))


def _is_numbered(table: sa.Table) -> bool:
    if "id" not in table.columns or not isinstance(table.columns["id"].type, sa.Integer):
        return False
    return tables.metadata.tables[table.name].columns["id"].autoincrement is True


def _numbers(connection: sa.Connection, numbered: t.Sequence[sa.Table]) -> dict[str, int]:
    if connection.dialect.name == "sqlite":
        number_by_table = dict(
            tuple(row) for row in connection.execute(sa.text("SELECT name, seq FROM sqlite_sequence"))
        )
    else:
        number_by_table = {
            table.name: connection.execute(sa.text(_SEQUENCES), {"name": table.name}).one().last for table in numbered
        }
    return {table.name: int(number_by_table.get(table.name) or 0) for table in numbered}


def _set_numbers(connection: sa.Connection, there: t.Mapping[str, sa.Table], numbers: t.Mapping[str, int]) -> None:
    for name, last in numbers.items():
        if name in there:
            _set_number(connection, name, int(last))


def raise_number(connection: sa.Connection, table: str, last: int) -> None:
    """See to it that the next id of `table` is higher than `last`, than every one that is there, and than every one
    that was issued before."""
    issued = _numbers(connection, [tables.metadata.tables[table]])[table]
    _set_number(connection, table, max(last, issued))


def _set_number(connection: sa.Connection, table: str, last: int) -> None:
    highest = connection.execute(sa.text(f'SELECT max(id) FROM "{table}"')).scalar() or 0
    last = max(last, highest)
    if connection.dialect.name == "sqlite":
        connection.execute(sa.text("DELETE FROM sqlite_sequence WHERE name = :name"), {"name": table})
        if last:
            insert = sa.text("INSERT INTO sqlite_sequence (name, seq) VALUES (:name, :seq)")
            connection.execute(insert, {"name": table, "seq": last})
    else:
        setval = sa.text("SELECT setval(pg_get_serial_sequence(quote_ident(:name), 'id'), :last, :called)")
        connection.execute(setval, {"name": table, "last": last or 1, "called": last > 0})


def _parsed(line: str, number: int) -> t.Any:
    try:
        return json.loads(line)
    except ValueError:
        raise NovaliteError(f"line {number} is not a line of a ledger: {line[:60]!r}") from None


def texts(lines: t.Iterable[str], size: int = 1000) -> t.Iterator[str]:
    """Join `lines` to larger texts, each line with its end, for writing."""
    reader = iter(lines)
    while chunk := list(itertools.islice(reader, size)):
        yield "".join(f"{line}\n" for line in chunk)
