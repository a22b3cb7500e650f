# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Application credentials with their access rules, and credentials of EC2. Reads only."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ...._errors import NotFoundError, NovaliteError
from ...._json import JsonObject
from ...db import tables
from ...db.sealing import Seal
from ...db.tables_identity import access_rule as table
from ...db.tables_identity import application_credential as application
from ...db.tables_identity import domain, user
from ...db.tables_identity import ec2_credential as ec2
from ..counts import equal
from .assignments import roles_in_project

Rule = JsonObject
FIELDS = ("id", "service", "method", "path")


def list_access_rules(connection: sa.Connection, user_id: str) -> list[Rule]:
    """Return the user's rules."""
    query = sa.select(*(table.c[name] for name in FIELDS)).where(table.c.user_id == user_id)
    ordered = query.order_by(table.c.service, table.c.path, table.c.method)
    return [dict(row) for row in connection.execute(ordered).mappings()]


def find_access_rule(connection: sa.Connection, user_id: str, rule_id: str) -> Rule:
    """Return one of the user's rules. Raises NotFoundError."""
    for rule in list_access_rules(connection, user_id):
        if rule["id"] == rule_id:
            return rule
    raise NotFoundError(f"Could not find Access Rule: {rule_id[:64]}.")


Credential = JsonObject


class UnreadableError(NovaliteError):
    """A secret was encrypted with another key than this ledger's."""


def list_application_credentials(connection: sa.Connection, user_id: str, name: str | None = None) -> list[Credential]:
    mine = equal({application.c.user_id: user_id, application.c.name: name})
    query = sa.select(application).where(*mine).order_by(application.c.name)
    return [dict(row) for row in connection.execute(query).mappings()]


def find_application_credential(connection: sa.Connection, user_id: str, credential_id: str) -> Credential:
    """Return one of the user's own application credentials. Raises NotFoundError."""
    mine = (application.c.user_id == user_id, application.c.id == credential_id)
    row = connection.execute(sa.select(application).where(*mine)).mappings().first()
    if row is None:
        raise NotFoundError(f"Could not find Application Credential: {credential_id[:64]}.")
    return dict(row)


def application_credential_of(
    connection: sa.Connection, *, credential_id: str | None = None, user_id: str | None = None, name: str | None = None
) -> Credential | None:
    """The one that somebody says to have, by its id, or by its user and name."""
    mine = sa.and_(application.c.user_id == user_id, application.c.name == name)
    condition = mine if credential_id is None else application.c.id == credential_id
    row = connection.execute(sa.select(application).where(condition)).mappings().first()
    return None if row is None else dict(row)


def ec2_credential(connection: sa.Connection, seal: Seal, access: str) -> Credential | None:
    """The pair of `access` with what a request under it is: user_name, project_name, roles, all of it if allowed.

    None for an unknown one, and for one whose user or project is disabled, or whose user has no role there any more.
    """
    project = tables.project
    enabled = sa.select(domain.c.id).where(domain.c.enabled)
    query = (
        sa.select(ec2, user.c.name.label("user_name"), project.c.name.label("project_name"))
        .select_from(ec2.join(user, user.c.id == ec2.c.user_id).join(project, project.c.id == ec2.c.project_id))
        .where(ec2.c.access == access, user.c.enabled, project.c.enabled)
        .where(user.c.domain_id.in_(enabled), project.c.domain_id.in_(enabled))
    )
    row = connection.execute(query).mappings().first()
    if row is None:
        return None
    pair = dict(row)
    roles = roles_in_project(connection, pair["user_id"], pair["project_id"])
    return {**_unsealed(seal, pair), "roles": sorted(roles)} if roles else None


def ec2_credential_rows(
    connection: sa.Connection, user_id: str | None = None, project_id: str | None = None
) -> list[Credential]:
    """Return the user's pairs (None: everybody's), with their secrets encrypted, the oldest first."""
    mine = equal({ec2.c.user_id: user_id, ec2.c.project_id: project_id})
    query = sa.select(ec2).where(*mine).order_by(ec2.c.created_at, ec2.c.access)
    return [dict(row) for row in connection.execute(query).mappings()]


def list_ec2_credentials(
    connection: sa.Connection, seal: Seal, user_id: str, project_id: str | None = None
) -> list[Credential]:
    """Return the user's pairs, with their secrets in the clear; one that cannot be read has None."""
    rows = ec2_credential_rows(connection, user_id, project_id)
    return [{**row, "secret": seal.read(row["secret"])} for row in rows]


def find_ec2_credential(connection: sa.Connection, seal: Seal, user_id: str, access: str) -> Credential:
    """Return one of the user's pairs, with its secret in the clear. Raises NotFoundError, UnreadableError."""
    mine = (ec2.c.user_id == user_id, ec2.c.access == access)
    row = connection.execute(sa.select(ec2).where(*mine)).mappings().first()
    if row is None:
        raise NotFoundError(f"Could not find credential: {access[:64]}.")
    return _unsealed(seal, dict(row))


def _unsealed(seal: Seal, row: t.Mapping[str, t.Any]) -> Credential:
    secret = seal.read(row["secret"])
    if secret is None:
        raise UnreadableError(
            f"the secret of EC2 credential {row['access']} cannot be read with this ledger's key (credentials.secret): "
            "was that replaced? Delete the credential and make a new one"
        )
    return {**row, "secret": secret}
