# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A ledger that somebody else keeps: requests are told to come back (503, Retry-After), and clients do so."""

from __future__ import annotations

import contextlib
import pathlib
import sqlite3
import typing as t

import botocore.exceptions
import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import engine
from tests.api import conftest, ec2_door, foreign
from tests.api.seeds import IMAGE_ID, PUBLIC_KEY, Api


@pytest.fixture
def api(seeded: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> t.Iterator[Api]:
    monkeypatch.setattr(engine, "BUSY_TIMEOUT", 0.01)
    with conftest.application(seeded, tmp_path / "cloud") as opened:
        yield opened


@contextlib.contextmanager
def kept(api: Api) -> t.Iterator[None]:
    """Another run in the midst of a transaction."""
    with contextlib.closing(sqlite3.connect(api.engine.url.database or "", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


def test_whatever_would_write_is_to_be_asked_again(api: Api) -> None:
    """Everything that can be deleted, by every service, and the launch of a server."""
    objects, client = foreign.make(api), api.client_as("alt")
    flavor = api.client_as("demo").get("/compute/v2.1/flavors").get_json()["flavors"][0]["id"]
    server = {"name": "web", "flavorRef": flavor, "imageRef": IMAGE_ID, "networks": "none"}
    requests: list[tuple[str, str, t.Any]] = [
        ("POST", "/compute/v2.1/servers", {"server": server}),
        ("POST", "/compute/v2.1/os-keypairs", {"keypair": {"name": "new", "public_key": PUBLIC_KEY}}),
        ("POST", "/network/v2.0/networks", {"network": {"name": "new"}}),
        ("POST", f"/volume/v3/{api.projects['alt']}/volumes", {"volume": {"size": 1}}),
    ]
    must = len(requests)
    for rule in api.app.url_map.iter_rules():
        if "DELETE" in (rule.methods or ()):
            requests += [("DELETE", path, None) for (path, _decoy, _own), _kinds in foreign.paths(rule, objects, "x")]
    headers = {"OpenStack-API-Version": "compute latest, volume latest"}
    with kept(api):
        answers = [client.open(path, method=method, json=body, headers=headers) for method, path, body in requests]
    busy = [answer for answer in answers if answer.status_code == 503]
    assert {answer.status_code for answer in answers[:must]} == {503}
    assert len(busy) > 40
    assert all(int(answer.headers["Retry-After"]) > 0 and "ledger" in answer.text for answer in busy)
    refusals = {answer.request.path: answer.status_code for answer in answers if answer.status_code in (409, 413, 500)}
    assert refusals == {}
    assert client.post("/compute/v2.1/servers", json={"server": server}, headers=headers).status_code == 202


def test_boto3_is_told_so_in_its_own_words(api: Api) -> None:
    with ec2_door.open_door(api) as door, kept(api):
        client = door.client()
        with pytest.raises(botocore.exceptions.ClientError) as caught:
            client.import_key_pair(KeyName="new", PublicKeyMaterial=PUBLIC_KEY.encode())
    answer = caught.value.response
    assert (answer["Error"]["Code"], answer["ResponseMetadata"]["HTTPStatusCode"]) == ("Unavailable", 503)
