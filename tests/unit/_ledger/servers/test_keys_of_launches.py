# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The key that a server gets, by each way in which servers are recorded, and what its host is sliced of it."""

from __future__ import annotations

import json
import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute import new_servers, reimage
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute.slices import Slicer
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.drift.carried import Filter
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute.instance_rows import instance_row
from tests.support.cloud import Cloud
from tests.support.rows import DEMO

ANN, BOB = "a" * 32, "b" * 32
KEYS = {"": "shared", ANN: "of ann", BOB: "of bob"}


def by_module(cloud: Cloud, user: str | None, key: str) -> str:
    request = {"name": "web", "flavor": "m1.tiny", "image": "ami-tiny", "key": key}
    more: dict[str, t.Any] = {} if user is None else {"user_id": user}
    return str(cloud.server(request, **more)["to_build"][0]["uuid"])


def by_api(cloud: Cloud, user: str | None, key: str) -> str:
    with transaction(cloud.engine) as connection:
        image = connection.execute(sa.select(tables.image.c.id).where(tables.image.c.name == "ami-tiny")).scalar_one()
        request = new_servers.CreateRequest("web", "1", image, key=key)
        return new_servers.create(connection, DEMO, request, request_id="req-1", user_id=user).uuids[0]


@pytest.mark.parametrize("user", [ANN, BOB, None])
@pytest.mark.parametrize("launch", [by_module, by_api])
def test_a_server_gets_the_key_that_its_user_means(
    launch: t.Callable[[Cloud, str | None, str], str], user: str | None, cloud: Cloud
) -> None:
    values = {"fingerprint": "00", "created_at": 1}
    cloud.write(sa.delete(tables.keypair))
    for owner, key in KEYS.items():
        where = {"user_id": owner, "project_id": "" if owner else DEMO}
        cloud.write(sa.insert(tables.keypair).values(name="test", public_key=key, **where, **values))
    cloud.write(sa.insert(tables.keypair).values(name="bobs", user_id=BOB, project_id="", public_key="b", **values))
    if user != BOB:
        with pytest.raises(NotFoundError):
            launch(cloud, user, "bobs")
    uuid = launch(cloud, user, "test")
    with transaction(cloud.engine) as connection:
        table = tables.instance.c
        keys = connection.execute(sa.select(table.key_name, table.public_key, table.user_id)).one()
        assert tuple(keys) == ("test", KEYS[user or ""], user)
        sliced = json.loads(Slicer(connection).of_instances([uuid])[uuid])["tables"]
        owners = {row["user_id"] for row in Filter(10**10).of_instance(uuid, sliced)["keypair"]}
        assert owners == {"", *([user] if user else [])}
        row = instance_row(connection, uuid)
        looked_up = reimage.looked_up(connection, row, {"key": "test"})
        assert looked_up["key"]["public_key"] == KEYS[user or ""]
