# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operation `user`: who may ask the API for what."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._errors import NovaliteError
from ..._json import JsonMapping, JsonObject
from ..._rules.passwords import hash_password, is_password
from ..._rules.records import Changes, checked_names
from ..db import engine
from ..operations.call import by_playbook
from ..operations.identity import users as operations
from ..operations.identity.assignments import Held
from ..operations.identity.users import UserRequest
from ..queries.identity import user_records
from ..queries.identity.projects import project_name
from ..queries.lookups import project_by_name

SHOWN = ("enabled", "description", "email")


def prepare_user(ledger: sa.Engine, params: JsonMapping) -> JsonObject:
    """Work with the passwords before user() runs: that is meant to take time, in which the ledger must not be locked.
    Each user gets "password_hash": of a new password, or None where the one there is right."""
    if params["state"] == "absent":
        return dict(params)
    with engine.reading(ledger) as connection:
        there = {item["name"]: user_records.user_by_name(connection, item["name"]) for item in params["users"]}
    hashed = [{**item, "password_hash": _new_hash(item, there[item["name"]])} for item in params["users"]]
    return {**params, "users": hashed}


def user(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Make, change or remove `params["users"]`. What is not named stays as it is; `roles`, when named, are all that the
    user has. A new password, or to disable a user, makes the user's tokens void. Raises NotFoundError for an unknown
    project."""
    call = by_playbook(connection)
    names = checked_names("user", params["users"])
    changes = Changes()
    if params["state"] == "absent":
        for name in names:
            row = user_records.user_by_name(connection, name)
            if row is not None:
                changes.note(name, _shown(connection, row), None)
                operations.delete(call, row["id"])
        return changes.result("users", [])
    records = []
    for item, name in zip(params["users"], names):
        row = user_records.user_by_name(connection, name)
        before = _shown(connection, row) if row is not None else None
        values = t.cast(UserRequest, {key: item[key] for key in SHOWN if item[key] is not None})
        if item["default_project"] is not None:
            values["default_project_id"] = project_by_name(connection, item["default_project"])["id"]
        hashed = item["password_hash"] if "password_hash" in item else _new_hash(item, row)
        if hashed is not None:
            values["password_hash"] = hashed
        roles = None if item["roles"] is None else _roles(connection, item["roles"])
        if row is None:
            row = operations.create(call, {"name": name, **values}, roles or ())
        else:
            row = operations.update(call, row["id"], values, roles)
        after = _shown(connection, row)
        records.append({"id": row["id"], "name": name, **after})
        if before is not None and hashed is not None:
            before, after = {**before, "password": "the old one"}, {**after, "password": "the new one"}
        changes.note(name, before, after)
    return changes.result("users", records)


def _new_hash(item: JsonMapping, row: JsonMapping | None) -> str | None:
    """The hash to write for a user, or None where what is there stays."""
    if item["password"] is None:
        return None
    if row is not None:
        if row["password_hash"] is not None and item["update_password"] == "on_create":
            return None
        if is_password(row["password_hash"], item["password"]):
            return None
    try:
        return hash_password(item["password"])
    except NovaliteError as error:
        raise NovaliteError(f"user {item['name']!r}: {error}") from None


def _roles(connection: sa.Connection, roles: t.Sequence[JsonMapping]) -> list[Held]:
    """Raises NotFoundError for an unknown project."""
    return [Held(project_by_name(connection, role["project"])["id"], role["role"]) for role in roles]


def _shown(connection: sa.Connection, row: JsonMapping) -> JsonObject:
    """A user as people see one: no id, no hash."""
    assignments = user_records.list_roles(connection, row["id"])
    default = row["default_project_id"]
    return {
        **{key: row[key] for key in SHOWN},
        "default_project": None if default is None else project_name(connection, default),
        "roles": [{"project": assignment["project_name"], "role": assignment["role"]} for assignment in assignments],
    }
