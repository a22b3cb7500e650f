# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A small cloud for the API's tests: two projects, their users, and what servers are made of."""

from __future__ import annotations

import time
import typing as t

import sqlalchemy as sa
from flask import Flask
from flask.testing import FlaskClient

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.sealing import Seal
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity import users
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity.tokens import issue_token
from ansible_collections.novalite.cloud.plugins.module_utils._rules.passwords import hash_password
from tests.support.cloud import Cloud
from tests.support.rows import IMAGE_ID, QEMU, a_flavor, an_image, insert

__all__ = ["IMAGE_ID"]  # is looked for here, too

PROJECTS = ("demo", "alt")
# name -> (project, role)
USERS = {"demo": ("demo", "member"), "alt": ("alt", "member"), "reader": ("demo", "reader"), "admin": ("demo", "admin")}
PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPcCEGnhBBf9ysTNhO3L4ajAqB7KVm0yONdzSpeo+wr5 test"
IMAGE = an_image(
    id=IMAGE_ID,
    source="/nonexistent/tiny.qcow2",
    size=1 << 20,
    virtual_size=64 << 20,
    properties={"os_host_mount": "yes"},
)
PRIVATE = {"name": "private", "cidr": "10.20.0.0/24", "bridge": "br100"}


def password(name: str) -> str:
    """The password of a user of this cloud."""
    return f"the password of {name}"


def seed(cloud: Cloud) -> None:
    """Write the cloud into an empty ledger."""
    now = int(time.time())
    # named, so that it is a tenant as the others
    cloud.run("project", projects=[{"name": name, "quotas": {"instances": 10}} for name in PROJECTS])
    with transaction(cloud.engine) as connection:
        projects = {row.name: row.id for row in connection.execute(sa.select(tables.project))}
        for name, (project, role) in USERS.items():
            row = users.insert_user(
                connection,
                {"name": name, "password_hash": hash_password(password(name)), "default_project_id": projects[project]},
            )
            users.grant_role(connection, row["id"], projects[project], role)
        for name, memory_mb, root_gb in (
            ("m1.nano", 96, 1),
            ("m1.tiny", 512, 1),
            ("m1.small", 2048, 20),
            ("m1.huge", 512, 10_000_000),
        ):
            insert(connection, tables.flavor, **a_flavor(name, memory_mb=memory_mb, root_gb=root_gb))
        insert(connection, tables.image, **IMAGE, created_at=now)
        insert(
            connection,
            tables.keypair,
            project_id=projects["demo"],
            name="test",
            public_key=PUBLIC_KEY,
            fingerprint="c3:0e:9a:5d:6c:4f:aa:bc:8e:0a:27:b8:37:2b:11:9f",
            created_at=now,
        )
    cloud.run("network", networks=[PRIVATE])
    for name in ("hv1", "hv2"):
        cloud.host(name, last_seen_at=now, disk_gb=100, cpu_ratio=4.0, ram_ratio=1.5, facts=QEMU)


class Api(Cloud):
    """The application over a ledger of one test's own."""

    def __init__(self, app: Flask) -> None:
        engine = app.extensions["ledger"].engine
        super().__init__(str(engine.url), engine)
        self.app = app
        # ids by name
        self.projects: dict[str, str] = {row.name: row.id for row in self.rows(sa.select(tables.project))}
        self.users: dict[str, str] = {row.name: row.id for row in self.rows(sa.select(tables.tables_identity.user))}

    @property
    def seal(self) -> Seal:
        """Return the seal of EC2's secrets; asked for outside of a transaction."""
        return self.app.extensions["ledger"].seal

    def client_as(self, name: str | None, project: str | None = "") -> FlaskClient:
        """A client with a token of the user `name`, for its own project unless `project` names another.

        With None as the project the token is unscoped; with None as the name there is none.
        """
        client = self.app.test_client()
        client.environ_base["HTTP_ACCEPT"] = "application/json"
        if name is not None:
            client.environ_base["HTTP_X_AUTH_TOKEN"] = self.token(name, project)
        return client

    def token(self, name: str, project: str | None = "") -> str:
        if project == "":
            project = USERS[name][0]
        with transaction(self.engine) as connection:
            scope = self.projects[project] if project is not None else None
            return issue_token(connection, self.users[name], scope).text

    def instance(self, project: str, name: str, *args: t.Any, **columns: t.Any) -> str:
        """An instance of the project of this name, made now, that runs. Returns the UUID."""
        now = int(time.time())
        row = {"power_state": 1, "image": IMAGE, "created_at": now, "updated_at": now, **columns}
        return super().instance(self.projects[project], name, *args, **row)
