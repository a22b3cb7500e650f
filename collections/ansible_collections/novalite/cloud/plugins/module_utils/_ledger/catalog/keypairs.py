# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Key pairs: the public keys that instances can be launched with."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._errors import ConflictError, ForbiddenError, NovaliteError
from ..._json import JsonMapping, JsonObject
from ..._rules.public_keys import parse_public_key
from ..._rules.records import Changes, checked_names
from ..db import clock, tables
from ..db.tables_ec2 import ec2_keypair
from ..db.tables_identity import user
from ..identity.quotas import check_quota
from ..queries.counts import count
from ..queries.lookups import keypairs_seen, project_by_name

SHOWN = ("type", "public_key", "fingerprint")


def write_keypairs(
    connection: sa.Connection,
    project: str,
    items: t.Sequence[JsonMapping],
    user_id: str = "",
    refuse_there: bool = False,
) -> JsonObject:
    """Make or replace key pairs of a user who acts in the project of this name: `keypairs`, `changed` and `diff`.
    `refuse_there`: raise ConflictError for one that there is.

    Without a user they are shared by all of the project, as a playbook makes them; instances carry a copy of theirs.
    Raises NovaliteError for what is not exactly one public key, QuotaError: the project says how many a user may have.
    """
    owner = project_by_name(connection, project, lock=True)["id"]
    names = checked_names("key pair", items)
    table = tables.keypair
    if user_id and connection.dialect.name != "sqlite":  # who may add keys in another project at the same time
        connection.execute(sa.select(user.c.id).where(user.c.id == user_id).with_for_update())
    place = _place(owner, user_id)
    rows = connection.execute(sa.select(table).where(*_at(table, place), table.c.name.in_(names))).mappings()
    there = {row["name"]: _shown(row) for row in rows}
    changes = Changes()
    for item, name in zip(items, names):
        before = there.get(name)
        if refuse_there and before is not None:
            raise ConflictError(f"Key pair '{name}' already exists.")
        after = before if item["public_key"] is None else _key_record(item["public_key"], name, before)
        if after is None:
            raise NovaliteError(f"key pair {name!r} does not exist yet: give its public_key to make it")
        there[name] = after
        if changes.note(name, before, after):
            if before is None:
                values = {**place, "name": name, "created_at": clock.seconds(connection), **after}
                connection.execute(sa.insert(table).values(**values))
            else:
                connection.execute(sa.update(table).where(*_at(table, place), table.c.name == name).values(**after))
    if changes.made:
        check_quota(connection, owner, "key_pairs", count(connection, *_at(table, place)))
    return changes.result("keypairs", [{"name": name, **there[name]} for name in names])


def remove_keypairs(
    connection: sa.Connection, project: str, items: t.Sequence[JsonMapping], user_id: str = "", by_manager: bool = False
) -> JsonObject:
    """Remove the key pairs that `items` name: a user's own, and where there is none of the name, the project's shared
    one. Raises ForbiddenError for a shared one, unless `by_manager`."""
    owner = project_by_name(connection, project, lock=True)["id"]
    names = checked_names("key pair", items)
    rows = {row["name"]: row for row in connection.execute(keypairs_seen(owner, user_id)).mappings()}
    changes = Changes()
    for name in names:
        row = rows.get(name)
        changes.note(name, None if row is None else _shown(row), None)
        if row is None:
            continue
        if row["user_id"] != user_id and not by_manager:
            raise ForbiddenError(
                f"key pair '{name}' is shared by all of the project, as its operator made it: ask them, or a manager"
            )
        for table in (tables.keypair, ec2_keypair):
            where = _at(table, _place(owner, row["user_id"]))
            connection.execute(sa.delete(table).where(*where, table.c.name == name))
    return changes.result("keypairs", [])


def _place(project_id: str, user_id: str) -> dict[str, str]:
    return {"user_id": user_id, "project_id": "" if user_id else project_id}


def _at(table: sa.Table, place: t.Mapping[str, str]) -> list[sa.ColumnElement[bool]]:
    return [table.c[column] == value for column, value in place.items()]


def _shown(row: sa.RowMapping) -> JsonObject:
    return {key: row[key] for key in SHOWN}


def _key_record(text: str, name: str, before: JsonMapping | None) -> JsonObject:
    """Return the key as it is kept: with a final line break that came with it, for clients compare what they sent with
    what they read (Terraform replaces a key pair that differs). The same key with and without one is no change."""
    try:
        key = parse_public_key(text)
    except NovaliteError as error:
        raise NovaliteError(f"key pair {name!r}: {error}") from error
    if before is not None and before["public_key"].rstrip("\n") == key.text:
        return dict(before)
    end = "\n" if text.endswith("\n") else ""
    return {"type": "ssh", "public_key": f"{key.text}{end}", "fingerprint": key.fingerprint}
