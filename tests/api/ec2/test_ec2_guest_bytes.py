# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""User data and files that come in base64, by OpenStack's and Amazon's contract: the guest gets their bytes."""

from __future__ import annotations

import base64
import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from tests.api.ec2.test_ec2_instances import run
from tests.api.ec2_door import Client
from tests.api.seeds import IMAGE_ID, Api
from tests.unit._ledger.servers.test_guest_bytes import KNOWN

SERVERS = "/compute/v2.1/servers"


def nova(client_as: t.Any, raw: bytes, field: str) -> None:
    packed = base64.b64encode(raw).decode()
    is_user_data = field == "user_data"
    server: dict[str, t.Any] = {"name": "web", "flavorRef": "1", "imageRef": IMAGE_ID}
    server |= {"user_data": packed} if is_user_data else {"personality": [{"path": "/x", "contents": packed}]}
    answer = client_as("demo").post(SERVERS, json={"server": server})
    assert answer.status_code == 202, answer.get_json()


@pytest.mark.parametrize("raw", KNOWN, ids=range(len(KNOWN)))
@pytest.mark.parametrize("way", ["nova user_data", "nova files", "ec2 user_data"])
def test_the_guest_gets_the_bytes_that_were_given(
    api: Api, demo: Client, client_as: t.Any, way: str, raw: bytes
) -> None:
    if way.startswith("nova"):
        nova(client_as, raw, way.split()[1])
    else:
        run(demo, UserData=raw)
    (row,) = api.rows(sa.select(tables.instance.c.user_data, tables.instance.c.files))
    packed = row.files[0]["content"] if way.endswith("files") else row.user_data
    assert base64.b64decode(packed) == raw
