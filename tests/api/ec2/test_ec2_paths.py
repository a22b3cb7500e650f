# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Clients that can be told a host and no path (libcloud), and that write a list of one without its index."""

from __future__ import annotations

import pathlib
import typing as t

import botocore.auth
import botocore.awsrequest
import botocore.credentials
import pytest
from werkzeug.test import TestResponse

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from api.ec2.blueprint import ACTIONS
from api.ec2.faults import Ec2Error
from api.ec2.parameters import Group, ListOf, Raw, Shape, Text
from api.settings import Settings
from tests.api import conftest, ec2_door
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


def _lists(shape: Shape, name: str) -> t.Iterator[tuple[str, ListOf]]:
    """Each list of plain values at any depth below `shape`."""
    if isinstance(shape, Group):
        for field, below in shape._fields.items():
            yield from _lists(below, f"{name}.{field}")
    elif isinstance(shape, ListOf):
        if not isinstance(shape._member, Group):
            yield name, shape
        yield from _lists(shape._member, f"{name}.N")


def _parsed(shape: ListOf, raw: Raw) -> object:
    try:
        return shape.parse(raw, "Of")
    except Ec2Error as error:
        return error.code


def test_each_list_at_any_depth_reads_a_value_without_its_index() -> None:
    below = set()
    for action_name, action in ACTIONS.items():
        for name, shape in _lists(action.shape, action_name):
            values = [_parsed(shape, {"1": value}) for value in ("test", "1", "true")]
            assert any(isinstance(value, list) for value in values), name
            assert [_parsed(shape, value) for value in ("test", "1", "true")] == values, name
            below.add(name.count(".N"))
    assert len(below) > 1  # Filter.N.Value is one of those within another list


@pytest.mark.parametrize("host", ["ec2.example.org", "EC2.example.org:8774", "aws.example.org"])
def test_the_root_of_these_names_is_for_ec2(seeded: pathlib.Path, tmp_path: pathlib.Path, host: str) -> None:
    names = "ec2.example.org, AWS.example.org"
    with conftest.application(seeded, tmp_path / "cloud", api_ec2_hosts=names) as api:
        visitor = api.app.test_client()
        for query in ("", "?Action=DescribeInstances"):
            refused = visitor.get(f"/{query}", headers={"Host": host})
            assert (refused.status_code, refused.mimetype) == (401, "text/xml")
            elsewhere = visitor.get(f"/{query}", headers={"Host": "cloud.example.org"})
            assert elsewhere.headers["Location"].startswith("/login")


@pytest.mark.parametrize("name", ["https://ec2.example.org", "ec2.example.org:8774", "ec2.example.org/", "*"])
def test_what_is_not_a_hosts_name_is_refused(name: str) -> None:
    with pytest.raises(NovaliteError, match=r"NOVALITE_API_EC2_HOSTS.*is not a host's name"):
        Settings(api_ec2_hosts=name).check()
