# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Clients that can be told a host and no path (libcloud), and that write a list of one without its index."""

from __future__ import annotations

import botocore.auth
import botocore.awsrequest
import botocore.credentials
import pytest
from werkzeug.test import TestResponse

from api.ec2.blueprint import ACTIONS
from api.ec2.parameters import ListOf, Text
from tests.api import ec2_door
from tests.api.ec2_door import Door


def _ask(door: Door, signer: str, method: str, path: str, parameters: dict[str, str]) -> TestResponse:
    """The answer to what Amazon's library signed: in a header or the query, by version 4 or 2."""
    parameters = {"Version": "2016-11-15", **parameters}
    url = f"http://localhost{path}"
    credentials = botocore.credentials.Credentials(*door.keys["demo"])
    made = botocore.awsrequest.AWSRequest(
        method, url, **({"data": parameters} if method == "POST" else {"params": parameters})
    )
    if signer == "v2":
        botocore.auth.SigV2Auth(credentials).add_auth(made)
    elif signer == "query":
        botocore.auth.SigV4QueryAuth(credentials, "ec2", "RegionOne").add_auth(made)
    else:
        botocore.auth.SigV4Auth(credentials, "ec2", "RegionOne").add_auth(made)
    sent = made.prepare()
    return door.api.app.test_client().open(
        sent.url.removeprefix("http://localhost"), method=method, data=sent.body, headers=dict(sent.headers)
    )


@pytest.mark.parametrize("path", ["/", "/ec2", "/ec2/"])
@pytest.mark.parametrize(
    ("signer", "method"), [("v4", "POST"), ("v4", "GET"), ("query", "GET"), ("v2", "POST"), ("v2", "GET")]
)
def test_a_signed_request_is_understood_at_the_root(door: Door, signer: str, method: str, path: str) -> None:
    answer = _ask(door, signer, method, path, {"Action": "DescribeInstances"})
    assert (answer.status_code, answer.mimetype) == (200, "text/xml")


def test_boto3_needs_no_path(door: Door) -> None:
    root = door.url.removesuffix("/ec2")
    client = ec2_door.client(root, *door.keys["demo"])
    assert client.describe_key_pairs()["KeyPairs"][0]["KeyName"] == "test"
    assert client.describe_regions()["Regions"][0]["Endpoint"] == root.partition("://")[2] + "/"
    stranger = ec2_door.client(root, door.keys["demo"][0], "wrong")
    with ec2_door.refused("SignatureDoesNotMatch"):
        stranger.describe_key_pairs()


def test_the_root_stays_the_status_page_of_who_signs_nothing(door: Door) -> None:
    visitor = door.api.app.test_client()
    assert visitor.get("/").headers["Location"].startswith("/login")
    assert visitor.get("/?Action=DescribeInstances").headers["Location"].startswith("/login")
    assert b"<Code>AuthFailure</Code>" in visitor.post("/", data={"Action": "DescribeInstances"}).data


def test_each_list_of_texts_takes_one_without_its_index(door: Door) -> None:
    """Of each action that describes or changes something: the answer is that to the same with the index."""
    asked = 0
    for name, action in sorted(ACTIONS.items()):
        for field, shape in action.shape._fields.items():
            if not isinstance(shape, ListOf) or not isinstance(shape._member, Text):
                continue
            bare, indexed = (
                _ask(door, "v4", "POST", "/ec2", {"Action": name, key: "test", "DryRun": "true"})
                for key in (field, f"{field}.1")
            )
            assert bare.status_code == indexed.status_code, (name, field, bare.data)
            assert b"is a list" not in bare.data
            asked += 1
    assert asked > 20
    answer = _ask(door, "v4", "POST", "/ec2", {"Action": "DescribeKeyPairs", "KeyName": "test"})
    assert b"<keyName>test</keyName>" in answer.data
