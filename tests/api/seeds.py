# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A small cloud for the API's tests: two projects, their users, and what servers are made of."""

from __future__ import annotations

import dataclasses
import time
import typing as t
import uuid

import sqlalchemy as sa
from flask import Flask
from flask.testing import FlaskClient

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.sealing import Seal
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity import users
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity.tokens import issue_token
from ansible_collections.novalite.cloud.plugins.module_utils._ledger_module import operation_of, plain
from ansible_collections.novalite.cloud.plugins.module_utils._rules.passwords import hash_password

PROJECTS = ("demo", "alt")
# name -> (project, role)
USERS = {"demo": ("demo", "member"), "alt": ("alt", "member"), "reader": ("demo", "reader"), "admin": ("demo", "admin")}
PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPcCEGnhBBf9ysTNhO3L4ajAqB7KVm0yONdzSpeo+wr5 test"
IMAGE_ID = "6a6f9a8a-5f43-4f4e-9d0e-0d0c6a1f7a11"


def password(name: str) -> str:
    """The password of a user of this cloud."""
    return f"the password of {name}"


def seed(engine: sa.Engine) -> None:
    """Write the cloud into an empty ledger."""
    with transaction(engine) as connection:

        def run(name: str, **params: t.Any) -> None:
            operation_of(name)(connection, plain(params))

        run("project", state="present", projects=[{"name": name, "quotas": None} for name in PROJECTS])
        projects = {row.name: row.id for row in connection.execute(sa.select(tables.project))}
        for name, (project, role) in USERS.items():
            row = users.insert_user(
                connection,
                {"name": name, "password_hash": hash_password(password(name)), "default_project_id": projects[project]},
            )
            users.grant_role(connection, row["id"], projects[project], role)
        for name, vcpus, memory, disk in (
            ("m1.nano", 1, 96, 1),
            ("m1.tiny", 1, 512, 1),
            ("m1.small", 1, 2048, 20),
            ("m1.huge", 1, 512, 10_000_000),
        ):
            connection.execute(
                sa.insert(tables.flavor).values(
                    name=name, vcpus=vcpus, memory_mb=memory, root_gb=disk, extra_specs={}, is_public=True
                )
            )
        connection.execute(
            sa.insert(tables.image).values(
                id=IMAGE_ID,
                owner="",
                name="ami-tiny",
                disk_format="qcow2",
                source="/nonexistent/tiny.qcow2",
                checksum="sha256:" + "0" * 64,
                size=1 << 20,
                virtual_size=64 << 20,
                kernel=None,
                ramdisk=None,
                cmdline="",
                min_disk_gb=0,
                min_ram_mb=0,
                properties={"os_host_mount": "yes"},
                created_at=int(time.time()),
            )
        )
        connection.execute(
            sa.insert(tables.keypair).values(
                project_id=projects["demo"],
                name="test",
                type="ssh",
                public_key=PUBLIC_KEY,
                fingerprint="c3:0e:9a:5d:6c:4f:aa:bc:8e:0a:27:b8:37:2b:11:9f",
                created_at=int(time.time()),
            )
        )
    with transaction(engine) as connection:
        operation_of("network")(connection, network("private"))
        for host in ("hv1", "hv2"):
            connection.execute(
                sa.insert(tables.compute_host).values(
                    name=host,
                    enabled=True,
                    up=True,
                    last_seen_at=int(time.time()),
                    zone="nova",
                    aggregates=[],
                    traits=[],
                    vcpus=4,
                    memory_mb=4096,
                    disk_gb=100,
                    reserved_vcpus=0,
                    reserved_memory_mb=0,
                    reserved_disk_gb=0,
                    cpu_ratio=4.0,
                    ram_ratio=1.5,
                    disk_ratio=1.0,
                    facts={"hypervisor_type": "QEMU", "hypervisor_version": 7002000, "arch": "x86_64"},
                )
            )


def network(name: str, cidr: str = "10.20.0.0/24", bridge: str = "br100") -> dict[str, t.Any]:
    """The parameters of operation `network` for one of this name."""
    from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

    from ansible_collections.novalite.cloud.plugins.modules import network as module

    found = ArgumentSpecValidator(module.ARGUMENT_SPEC, **module.SPEC_RULES).validate(
        {"networks": [{"name": name, "cidr": cidr, "bridge": bridge}]}
    )
    assert found.error_messages == [], found.error_messages
    return plain(found.validated_parameters)


@dataclasses.dataclass(frozen=True)
class Api:
    """The application over a ledger of one test's own."""

    app: Flask
    engine: sa.Engine
    projects: t.Mapping[str, str]  # ids by name
    users: t.Mapping[str, str]

    @property
    def seal(self) -> Seal:
        """Return the seal of EC2's secrets; asked for outside of a transaction."""
        return self.app.extensions["ledger"].seal

    def client_as(self, name: str | None, project: str | None = "") -> FlaskClient:
        """A client with a token of the user `name`, for its own project unless `project` names another.

        With None as the project the token is unscoped; with None as the name there is none.
        """
        client = self.app.test_client()
        if name is not None:
            client.environ_base["HTTP_X_AUTH_TOKEN"] = self.token(name, project)
        return client

    def token(self, name: str, project: str | None = "") -> str:
        if project == "":
            project = USERS[name][0]
        with transaction(self.engine) as connection:
            scope = self.projects[project] if project is not None else None
            return issue_token(connection, self.users[name], scope).text

    def insert(self, table: sa.Table, **values: t.Any) -> t.Any:
        """Write one row; returns the value of its (first) key."""
        with transaction(self.engine) as connection:
            done = connection.execute(sa.insert(table).values(**values)).inserted_primary_key
        assert done is not None
        return done[0]

    def instance(self, project: str, name: str, **values: t.Any) -> str:
        """A server of `project`, on no host unless `values` say so. Returns its UUID."""
        row = {
            "uuid": str(uuid.uuid4()),
            "project_id": self.projects[project],
            "name": name,
            "hostname": name,
            "vm_state": "active",
            "power_state": 1,
            "metadata": {},
            "attempts": [],
            "host": None,
            "flavor": {
                "name": "m1.tiny",
                "vcpus": 1,
                "memory_mb": 512,
                "root_gb": 1,
                "ephemeral_gb": 0,
                "swap_mb": 0,
                "extra_specs": {},
            },
            "image": {
                "id": IMAGE_ID,
                "name": "ami-tiny",
                "disk_format": "qcow2",
                "source": "/nonexistent/tiny.qcow2",
                "checksum": "sha256:" + "0" * 64,
                "size": 1 << 20,
                "virtual_size": 64 << 20,
                "kernel": None,
                "ramdisk": None,
                "cmdline": "",
                "min_disk_gb": 0,
                "min_ram_mb": 0,
                "properties": {"os_host_mount": "yes"},
            },
            "created_at": int(time.time()),
            "updated_at": int(time.time()),
            **values,
        }
        self.insert(tables.instance, **row)
        return str(row["uuid"])
