# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Key pairs: the public keys that instances can be launched with."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._errors import ForbiddenError, NovaliteError
from ..._json import JsonMapping, JsonObject
from ..._rules.public_keys import parse_public_key
from ..._rules.records import Changes, checked_names
from ..db import clock, tables
from ..identity.quotas import check_quota
from ..queries.counts import owned
from ..queries.lookups import project_by_name

SHOWN = ("type", "public_key", "fingerprint")


def write_keypairs(
    connection: sa.Connection, project: str, items: t.Sequence[JsonMapping], user_id: str = "", by_manager: bool = False
) -> JsonObject:
    """Make or replace key pairs of the project of this name, for a user: `keypairs`, `changed` and `diff`.

    Without a user they are the project's own, as a playbook makes them; instances carry a copy of theirs. Raises
    ForbiddenError for other users' (unless `by_manager`), NovaliteError for what is not exactly one public key,
    QuotaError.
    """
    owner = project_by_name(connection, project, lock=True)["id"]
    names = checked_names("key pair", items)
    table = tables.keypair
    mine = table.c.project_id == owner
    there = _keypairs(connection, owner, names, "" if by_manager else user_id)
    changes = Changes()
    for item, name in zip(items, names):
        before = there.get(name)
        after = before if item["public_key"] is None else _key_record(item["public_key"], name, before)
        if after is None:
            raise NovaliteError(f"key pair {name!r} does not exist yet: give its public_key to make it")
        there[name] = after
        if changes.note(name, before, after):
            if before is None:
                values = {
                    "project_id": owner,
                    "name": name,
                    "created_at": clock.seconds(connection),
                    "user_id": user_id,
                }
                values |= after
                connection.execute(sa.insert(table).values(**values))
            else:
                connection.execute(sa.update(table).where(mine, table.c.name == name).values(**after))
    if changes.after:
        check_quota(connection, owner, "key_pairs", owned(connection, owner, "key_pairs"))
    return changes.result("keypairs", [{"name": name, **there[name]} for name in names])


def remove_keypairs(
    connection: sa.Connection, project: str, items: t.Sequence[JsonMapping], user_id: str = "", by_manager: bool = False
) -> JsonObject:
    """Remove the key pairs that `items` name; whose they may be is as for write_keypairs()."""
    owner = project_by_name(connection, project, lock=True)["id"]
    names = checked_names("key pair", items)
    there = _keypairs(connection, owner, names, "" if by_manager else user_id)
    changes = Changes()
    for name in names:
        changes.note(name, there.get(name), None)
    table = tables.keypair
    connection.execute(sa.delete(table).where(table.c.project_id == owner, table.c.name.in_(names)))
    return changes.result("keypairs", [])


def _keypairs(connection: sa.Connection, owner: str, names: t.Sequence[str], only_of: str) -> dict[str, JsonObject]:
    table = tables.keypair
    query = sa.select(table).where(table.c.project_id == owner, table.c.name.in_(names))
    rows = connection.execute(query).mappings().all()
    # Whoever could remove another user's key pair, or a playbook's, could put one of its own under its name, which the
    # others' next launch would take. (Nova's keys are their user's; here a project's members see and use each other's.)
    for row in rows:
        if only_of and row["user_id"] != only_of:
            raise ForbiddenError(
                f"key pair '{row['name']}' is another user's of the project, or its operator's: ask them, or a manager"
            )
    return {row["name"]: {key: row[key] for key in SHOWN} for row in rows}


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
