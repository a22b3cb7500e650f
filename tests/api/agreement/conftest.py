# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""One cloud for a file of requests that change nothing in it, or of tests that put it right again."""

from __future__ import annotations

import pathlib
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables_addresses
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity import credentials, users
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity.tokens import issue_token
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.records import floating_pool
from ansible_collections.novalite.cloud.plugins.module_utils._ledger_module import operation_of
from api.ec2 import ids
from tests.api import conftest, ec2_door, foreign, scenes
from tests.api.agreement.doors import CALLERS, Cloud
from tests.api.seeds import Api


@pytest.fixture(scope="module")
def cloud(seeded: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[Cloud]:
    with conftest.application(seeded, tmp_path_factory.mktemp("doors") / "cloud") as api:
        scenes.build(api)
        objects = foreign.make(api)
        with transaction(api.engine) as connection:
            unlimited = dict.fromkeys(("instances", "cores", "ram", "fixed_ips", "ports", "volumes", "gigabytes"), -1)
            operation_of("project")(
                connection, {"state": "present", "projects": [{"name": "alt", "quotas": unlimited}]}
            )
        tokens, keys, spares = {}, {}, {}
        seal = api.seal
        for caller, membership in CALLERS.items():
            if membership is None:
                continue
            project = api.projects[membership[0]]
            with transaction(api.engine) as connection:
                user = {"name": f"the {caller}", "password_hash": "x", "default_project_id": project}
                row = users.insert_user(connection, user)
                users.grant_role(connection, row["id"], project, membership[1])
                tokens[caller] = issue_token(connection, row["id"], project).text
                key = credentials.create_ec2_credential(connection, seal, row["id"], project)
                spare = users.insert_user(connection, {**user, "name": f"spare of {caller}"})
                users.grant_role(connection, spare["id"], project, "reader")
                spares[caller] = spare["id"]
                keys[caller] = (key["access"], key["secret"])
        kinds_of_ec2 = {
            "server": "i",
            "volume": "vol",
            "image": "ami",
            "floating_ip": "eipalloc",
            "port": "eni",
            "security_group": "sg",
            "network": "subnet",
        }
        idle, steady = api.instance("alt", "idle"), api.instance("alt", "steady", host="hv1")
        numbers = {f"ec2_{kind}": ids.of(prefix, objects.id(kind)) for kind, prefix in kinds_of_ec2.items()}
        numbers["ec2_idle"] = ids.of("i", idle)
        with ec2_door.open_door(api) as door:
            clients = {name: ec2_door.client(door.url, *key) for name, key in keys.items()}
            clients["nobody"] = ec2_door.client(door.url, "nosuch", "nosuch")
            yield Cloud(api, tokens, clients, {**objects.ids, **numbers, "steady": steady}, spares)


@pytest.fixture
def pool(api: Api) -> str:
    """A floating pool; returns the UUID of its network."""
    item = {"name": "public", "cidr": "203.0.113.0/29", "addresses": None, "interface": "eth0"}
    with transaction(api.engine) as connection:
        floating_pool(connection, {"floating_pools": [item], "state": "present"})
    return tables_addresses.pool_network_id("public")
