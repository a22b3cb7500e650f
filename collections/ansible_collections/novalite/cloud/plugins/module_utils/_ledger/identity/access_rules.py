# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Access rules of a user: what application credentials are bound to. A credential keeps copies of its own."""

from __future__ import annotations

import typing as t
import uuid

import sqlalchemy as sa

from ..._errors import ForbiddenError, QuotaError
from ..._json import JsonMapping
from ..db.tables_identity import access_rule as table
from ..db.tables_identity import application_credential
from ..queries.counts import count
from ..queries.identity.credential_records import FIELDS, Rule, find_access_rule, list_access_rules

MOST = 1000  # of one user


def record_access_rules(
    connection: sa.Connection, user_id: str, requested_rules: t.Iterable[JsonMapping]
) -> list[Rule]:
    """Return the `requested_rules`, which the user has from now on.

    Each names one that is there by its `id`, or has a service, a method and a path. Raises NotFoundError.
    """
    there = {tuple(rule[name] for name in FIELDS[1:]): rule for rule in list_access_rules(connection, user_id)}
    rules = []
    for item in requested_rules:
        if "id" in item:
            rules.append(find_access_rule(connection, user_id, item["id"]))
            continue
        key = tuple(item[name] for name in FIELDS[1:])
        if key not in there:
            there[key] = {"id": uuid.uuid4().hex, **dict(zip(FIELDS[1:], key))}
            connection.execute(sa.insert(table).values(**there[key], user_id=user_id))
        rules.append(there[key])
    if count(connection, table.c.user_id == user_id) > MOST:
        raise QuotaError(f"a user has at most {MOST} access rules: delete some first")
    return rules


def delete_access_rule(connection: sa.Connection, user_id: str, rule_id: str) -> None:
    """Remove a rule. Raises NotFoundError, and ForbiddenError while an application credential is bound to it."""
    find_access_rule(connection, user_id, rule_id)
    bound = sa.select(application_credential.c.name, application_credential.c.access_rules).where(
        application_credential.c.user_id == user_id
    )
    for row in connection.execute(bound):
        if any(rule["id"] == rule_id for rule in row.access_rules or ()):
            raise ForbiddenError(f"access rule {rule_id} is in use by application credential {row.name!r}")
    connection.execute(sa.delete(table).where(table.c.id == rule_id, table.c.user_id == user_id))
