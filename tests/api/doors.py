# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Users with tokens, who ask the application's OpenStack part; and what the ledger says afterwards."""

from __future__ import annotations

import time
import typing as t
import uuid

import sqlalchemy as sa
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables, tables_identity, tables_jobs
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.identity.token_holders import token_hash
from tests.support.rows import insert

if t.TYPE_CHECKING:
    from tests.api.conftest import Cloud

Body = dict[str, t.Any]


class User:
    """Someone with a role in a project. `base` is the path under which it asks."""

    def __init__(self, cloud: Cloud, client: FlaskClient, project: str, role: str, base: str) -> None:
        self.cloud, self.client, self.project, self.base = cloud, client, project, base
        self.id = uuid.uuid4().hex
        self.token = uuid.uuid4().hex
        self.headers = {"X-Auth-Token": self.token, "Accept": "application/json"}
        now = time.time()
        token = {"hash": token_hash(self.token), "method": "password", "audit_id": "a"}
        with transaction(cloud.engine) as connection:
            insert(connection, tables_identity.user, id=self.id, name=f"{role}-{self.id[:8]}", created_at=0)
            own = {"user_id": self.id, "project_id": project}
            insert(connection, tables_identity.role_assignment, **own, role=role)
            insert(connection, tables_identity.token, **own, **token, issued_at=now, expires_at=now + 3600)

    def ask(self, method: str, path: str, body: t.Any = None, version: str | None = None) -> TestResponse:
        headers = dict(self.headers)
        if version is not None:
            headers["OpenStack-API-Version"] = f"compute {version}"
        return self.client.open(self.base + path, method=method, json=body, headers=headers)

    def get(self, path: str, status: int = 200, version: str | None = None) -> t.Any:
        return self._checked(self.ask("GET", path, version=version), status)

    def post(self, path: str, body: t.Any, status: int, version: str | None = None) -> t.Any:
        return self._checked(self.ask("POST", path, body, version), status)

    def put(self, path: str, body: t.Any, status: int = 200, version: str | None = None) -> t.Any:
        return self._checked(self.ask("PUT", path, body, version), status)

    def delete(self, path: str, status: int, version: str | None = None) -> t.Any:
        return self._checked(self.ask("DELETE", path, version=version), status)

    def _checked(self, answer: TestResponse, status: int) -> t.Any:
        text = answer.get_data(as_text=True)
        assert answer.status_code == status, (answer.request.path, answer.status, text)
        return answer.get_json() if text and answer.is_json else text


class Doors:
    """A project with a member, a reader and an admin; and a stranger of another project."""

    def __init__(self, cloud: Cloud, base: str, app: Flask) -> None:
        self.cloud, self.base, self.app = cloud, base, app
        self.client = client = self.app.test_client()
        self.project, self.other = cloud.project("demo"), cloud.project("alt")
        self.member = User(cloud, client, self.project, "member", base)
        self.reader = User(cloud, client, self.project, "reader", base)
        self.admin = User(cloud, client, self.project, "admin", base)
        self.stranger = User(cloud, client, self.other, "member", base)

    def rows(self, table: sa.Table) -> list[Body]:
        with self.cloud.engine.connect() as connection:
            return [dict(row) for row in connection.execute(sa.select(table)).mappings()]

    def jobs(self) -> list[Body]:
        return self.rows(tables_jobs.job)

    def group(self, name: str, project: str | None = None) -> tuple[int, str]:
        group_uuid = str(uuid.uuid4())
        number = self.cloud.insert(
            tables.security_group, uuid=group_uuid, project_id=project or self.project, name=name, description=""
        )
        return number, group_uuid
