# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""Operation `keypair`: the public keys that instances can be launched with."""

from __future__ import annotations

import time
import typing as t

import sqlalchemy as sa

from ..._errors import ForbiddenError, NovaliteError
from ..._rules.public_keys import parse_public_key
from ..._rules.records import Changes, checked_names
from ..db import tables
from ..identity.quotas import check_quota
from ..queries.lookups import project_by_name

SHOWN = ("type", "public_key", "fingerprint")


def keypair(connection: sa.Connection, params: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Make, replace or remove `params["keypairs"]` of the project named `params["project"]`, for `params["user_id"]`.

    Without a user they are the project's own, as a playbook makes them. With one, and without `params["by_manager"]`,
    those of others are left alone: ForbiddenError.
    Instances carry a copy of the key that they were launched with. Raises NovaliteError for a text that is not exactly
    one public key, QuotaError beyond the project's key_pairs.
    """
    owner = project_by_name(connection, params["project"], lock=True)["id"]
    names = checked_names("key pair", params["keypairs"])
    table = tables.keypair
    mine = table.c.project_id == owner
    named = sa.and_(mine, table.c.name.in_(names))
    rows = connection.execute(sa.select(table).where(named)).mappings().all()
    user_id = params.get("user_id") or ""
    if user_id and not params.get("by_manager"):
        _check_owner(rows, user_id)
    there = {row["name"]: {key: row[key] for key in SHOWN} for row in rows}
    changes = Changes()
    if params["state"] == "absent":
        for name in names:
            changes.note(name, there.get(name), None)
        connection.execute(sa.delete(table).where(named))
        return changes.result("keypairs", [])
    for item, name in zip(params["keypairs"], names):
        before = there.get(name)
        after = before if item["public_key"] is None else _wanted(item["public_key"], name)
        if after is None:
            raise NovaliteError(f"key pair {name!r} does not exist yet: give its public_key to make it")
        there[name] = after
        if changes.note(name, before, after):
            if before is None:
                values = {"project_id": owner, "name": name, "created_at": int(time.time()), "user_id": user_id}
                values |= after
                connection.execute(sa.insert(table).values(**values))
            else:
                connection.execute(sa.update(table).where(mine, table.c.name == name).values(**after))
    if changes.after:
        used = connection.execute(sa.select(sa.func.count()).select_from(table).where(mine)).scalar_one()
        check_quota(connection, owner, "key_pairs", used)
    return changes.result("keypairs", [{"name": name, **there[name]} for name in names])


def _check_owner(rows: t.Iterable[sa.RowMapping], user_id: str) -> None:
    """Raise ForbiddenError for a key pair that another user made, or a playbook.

    Whoever could remove it could put one of its own under its name, which the others' next launch would take. (Nova's
    keys are their user's; here the members of a project see and use each other's.)
    """
    for row in rows:
        if row["user_id"] != user_id:
            raise ForbiddenError(
                f"key pair '{row['name']}' is another user's of the project, or its operator's: ask them, or a manager"
            )


def _wanted(text: str, name: str) -> dict[str, t.Any]:
    try:
        key = parse_public_key(text)
    except NovaliteError as error:
        raise NovaliteError(f"key pair {name!r}: {error}") from error
    return {"type": "ssh", "public_key": key.text, "fingerprint": key.fingerprint}
