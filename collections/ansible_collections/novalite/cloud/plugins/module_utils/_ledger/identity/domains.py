# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Domains: what users, groups and projects belong to. The first one, `default`, is the playbooks'."""

from __future__ import annotations

import uuid

import sqlalchemy as sa

from ..._errors import ConflictError, ForbiddenError, NovaliteError
from ..._json import JsonMapping, JsonObject
from ..._rules.records import check_text, checked_names
from ..db import clock, tables
from ..db.tables_identity import domain as table
from ..db.tables_identity import token, user, user_group
from ..queries.counts import count
from ..queries.identity.projects import DEFAULT_DOMAIN, Domain, domain_by_id, domain_key, find_domain, projects_below
from .key_owners import remove_keys
from .projects import delete_project

NAME_LENGTH = 64  # Keystone's
MOST = 1000


def domain_by_name(connection: sa.Connection, name: str) -> Domain | None:
    """Return the domain of this name, in upper or lower case; None where there is none."""
    row = connection.execute(sa.select(table).where(table.c.name_key == domain_key(name))).mappings().first()
    return None if row is None else dict(row)


def domain_named(connection: sa.Connection, domain_id: str | None, name: str | None) -> Domain | None:
    """Return the domain of this id, of this name in upper or lower case, or of both; None where there is none."""
    record = domain_by_name(connection, name or "") if domain_id is None else domain_by_id(connection, domain_id)
    has_name = record is not None and (name is None or record["name_key"] == domain_key(name))
    return record if has_name else None


def hold_domain(connection: sa.Connection, domain_id: str) -> Domain:
    """Return the domain of this id, which stays until the transaction ends. Raises NotFoundError."""
    connection.execute(sa.select(table.c.id).where(table.c.id == domain_id).with_for_update())
    return find_domain(connection, domain_id)


def create_domain(connection: sa.Connection, values: JsonMapping) -> Domain:
    """Make a domain of `name`, `description` and `enabled`. Raises ConflictError for a name that is taken."""
    row = {"id": uuid.uuid4().hex, "created_at": clock.seconds(connection), **_checked(values)}
    if count(connection, table.c.id.is_not(None)) >= MOST:
        raise NovaliteError(f"there are {MOST} domains, and no more can be made: delete one first")
    _refuse_taken(connection, row["name"])
    connection.execute(sa.insert(table).values(**row))
    return find_domain(connection, row["id"])


def update_domain(connection: sa.Connection, domain_id: str, values: JsonMapping) -> Domain:
    """Change a domain. To disable it ends all tokens of its users and for its projects."""
    before = hold_domain(connection, domain_id)
    changed = {key: value for key, value in _checked(values).items() if before[key] != value}
    if changed.get("name_key", before["name_key"]) != before["name_key"]:
        _refuse_taken(connection, changed["name"])
    if changed:
        connection.execute(sa.update(table).where(table.c.id == domain_id).values(**changed))
    if changed.get("enabled") is False:
        _end_tokens(connection, domain_id)
    return find_domain(connection, domain_id)


def _end_tokens(connection: sa.Connection, domain_id: str) -> None:
    mine = user.c.domain_id == domain_id
    connection.execute(sa.update(user).where(mine).values(tokens_valid_since=clock.now(connection)))
    users = sa.select(user.c.id).where(mine)
    projects = sa.select(tables.project.c.id).where(tables.project.c.domain_id == domain_id)
    ended = sa.or_(token.c.user_id.in_(users), token.c.project_id.in_(projects), token.c.domain_id == domain_id)
    connection.execute(sa.delete(token).where(ended))


def delete_domain(connection: sa.Connection, domain_id: str) -> None:
    """Remove a disabled domain with its users, groups, projects and roles.

    Raises ForbiddenError for the first domain and for one that is enabled, ConflictError where a project is in use.
    """
    record = hold_domain(connection, domain_id)
    if domain_id == DEFAULT_DOMAIN:
        raise ForbiddenError("Cannot delete the default domain: playbooks and clients that name none work in it.")
    if record["enabled"]:
        raise ForbiddenError("Cannot delete a domain that is enabled, please disable it first.")
    top = sa.select(tables.project.c.id).where(
        tables.project.c.domain_id == domain_id, tables.project.c.parent_id.is_(None)
    )
    for project_id in connection.execute(top).scalars().all():
        children = projects_below(connection, project_id)
        while children:  # those below which there is nothing first
            parents = {row["parent_id"] for row in children}
            for row in [row for row in children if row["id"] not in parents]:
                delete_project(connection, row["id"])
                children.remove(row)
        delete_project(connection, project_id)
    leaving = connection.execute(sa.select(user.c.id).where(user.c.domain_id == domain_id)).scalars().all()
    remove_keys(connection, "user_id", leaving)
    connection.execute(sa.delete(user).where(user.c.domain_id == domain_id))
    connection.execute(sa.delete(user_group).where(user_group.c.domain_id == domain_id))
    connection.execute(sa.delete(table).where(table.c.id == domain_id))


def _refuse_taken(connection: sa.Connection, name: str) -> None:
    if domain_by_name(connection, name) is not None:
        raise ConflictError(
            f"Conflict occurred attempting to store project - it is not permitted to have two projects "
            f"acting as domains with the same name: {name}."
        )


def _checked(values: JsonMapping) -> JsonObject:
    checked: JsonObject = {key: values[key] for key in ("enabled",) if key in values}
    if "name" in values:
        (checked["name"],) = checked_names("domain", [values], NAME_LENGTH)
        checked["name_key"] = domain_key(checked["name"])
    if "description" in values:
        checked["description"] = check_text("domain's description", values["description"])
    return checked
