# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What revision 0025 makes of the users, roles and credentials of an older ledger, and what goes back."""

from __future__ import annotations

import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import (
    HEAD,
    move_to_revision,
    transaction,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity import domains, users
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity.credentials import credential_id_of
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.assignments import roles_in_project

pytestmark = pytest.mark.both_databases

OLDER = "0024"
USER, PROJECT = "u" * 32, "p" * 32


def write(connection: sa.Connection, table: str, **values: t.Any) -> None:
    words = f'INSERT INTO "{table}" ({", ".join(values)}) VALUES ({", ".join(f":{name}" for name in values)})'
    connection.execute(sa.text(words), values)


def read(connection: sa.Connection, columns: str, table: str) -> list[tuple[t.Any, ...]]:
    return [tuple(row) for row in connection.execute(sa.text(f'SELECT {columns} FROM "{table}"'))]


def test_an_older_ledger_keeps_its_users(engine: sa.Engine) -> None:
    with transaction(engine, while_behind=True) as connection:
        move_to_revision(connection, OLDER)
        write(connection, "project", id=PROJECT, name="old", created_at=1)
        write(connection, "user", id=USER, name="ann", created_at=1)
        write(connection, "role_assignment", user_id=USER, project_id=PROJECT, role="manager")
        owned = {"user_id": USER, "project_id": PROJECT, "created_at": 1}
        write(connection, "ec2_credential", access="a" * 32, secret="x", **owned)
        write(connection, "application_credential", id="c" * 32, name="c", secret_hash="x", roles="[]", **owned)
        connection.execute(sa.text("UPDATE application_credential SET expires_at = 1900000000"))
    with transaction(engine, while_behind=True) as connection:
        move_to_revision(connection, HEAD)
        assert roles_in_project(connection, USER, PROJECT) == {"manager": "manager"}
        assert users.find_user(connection, USER)["domain_id"] == domains.DEFAULT_DOMAIN
        assert read(connection, "credential_id", "ec2_credential") == [(credential_id_of("a" * 32),)]
        assert read(connection, "expires_at", "application_credential") == [(1900000000.0,)]
        users.grant_role(connection, USER, PROJECT, "manager")  # what is there already is not there twice
        assert len(read(connection, "id", "role_assignment")) == 1


def test_the_older_code_meets_nothing_that_would_have_more_than_it_had(engine: sa.Engine) -> None:
    with transaction(engine, while_behind=True) as connection:
        domain = domains.create_domain(connection, {"name": "Acme"})
        user = users.insert_user(connection, {"name": "ann"}, domain["id"])
        write(connection, "project", id=PROJECT, name="p", created_at=1)
        for role, inherited in (("member", False), ("admin", True)):
            place = {"user_id": user["id"], "project_id": PROJECT, "inherited": inherited}
            write(connection, "role_assignment", role=role, **place)
        owned = {"user_id": user["id"], "project_id": PROJECT, "created_at": 1, "secret_hash": "x", "roles": "[]"}
        write(connection, "application_credential", id="a" * 32, name="bounded", access_rules="[]", **owned)
        write(connection, "application_credential", id="b" * 32, name="free", **owned)
        move_to_revision(connection, OLDER)
        assert read(connection, "role", "role_assignment") == [("member",)]
        assert read(connection, "name", "application_credential") == [("free",)]
        assert [bool(row[0]) for row in read(connection, "enabled", "user")] == [False]
