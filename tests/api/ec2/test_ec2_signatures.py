# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Signatures of EC2 requests: botocore's, of both versions, are right; whatever was changed after it is not."""

from __future__ import annotations

import base64
import datetime
import hashlib
import hmac
import http.client
import re
import time
import typing as t
import urllib.parse

import botocore.auth
import botocore.awsrequest
import botocore.credentials
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from api.ec2 import signing
from tests.api import ec2_door
from tests.api.ec2_door import Door
from tests.support.examples import part_of

ACCESS, SECRET = "0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210"
HOST, FORM = "127.0.0.1:8774", "application/x-www-form-urlencoded"
KEY = botocore.credentials.Credentials(ACCESS, SECRET)

NAMES = st.text("ABCabc.019-_~ +%&=/é☃", min_size=1, max_size=12).map("p".__add__)
PARAMETERS = st.dictionaries(NAMES, st.text(st.characters(exclude_categories=["Cs"]), max_size=40), max_size=6)
PATHS = st.sampled_from(["/ec2", "/ec2/", "/", "/ec2/services/Cloud", "/a b/ec2"])


def taken(method: str, url: str, headers: t.Mapping[str, t.Any], body: bytes) -> signing.Request:
    """The request as the application takes it in from the wire."""
    split = urllib.parse.urlsplit(url)
    return signing.Request(
        method=method,
        host=split.netloc,
        path=urllib.parse.unquote(split.path) or "/",
        query=urllib.parse.parse_qsl(split.query, keep_blank_values=True),
        form=urllib.parse.parse_qsl(body.decode(), keep_blank_values=True) if body else [],
        body=body,
        headers={"host": split.netloc, **{name.lower(): str(value) for name, value in headers.items()}},
    )


def signed(
    signer: type,
    method: str,
    path: str,
    parameters: t.Mapping[str, str],
    *arguments: t.Any,
    host: str = HOST,
    **options: t.Any,
) -> signing.Request:
    """A request that botocore's `signer` has signed."""
    url = f"http://{host}{urllib.parse.quote(path)}"
    if method == "GET":
        query = urllib.parse.urlencode(parameters, quote_via=urllib.parse.quote, safe="-_.~")
        request = botocore.awsrequest.AWSRequest("GET", f"{url}?{query}" if query else url)
    else:
        request = botocore.awsrequest.AWSRequest("POST", url, data=dict(parameters), headers={"Content-Type": FORM})
    signer(KEY, *arguments, **options).add_auth(request)
    ready = request.prepare()
    body = ready.body.encode() if isinstance(ready.body, str) else ready.body or b""
    headers = {name: value.decode() if isinstance(value, bytes) else value for name, value in ready.headers.items()}
    return taken(method, ready.url, headers, body)


def is_right(request: signing.Request, secret: str = SECRET) -> bool:
    try:
        claim = signing.claim_of(request)
    except signing.Unsigned:
        return False
    return claim.access == ACCESS and signing.is_right(claim, secret)


@settings(max_examples=part_of(150), deadline=None)
@given(st.sampled_from(["GET", "POST"]), PATHS, PARAMETERS, st.sampled_from(["RegionOne", "us-east-1"]))
def test_a_signature_of_version_4_in_the_header_is_right(
    method: str, path: str, parameters: dict[str, str], region: str
) -> None:
    request = signed(botocore.auth.SigV4Auth, method, path, parameters, "ec2", region)
    assert is_right(request)
    assert not is_right(request, SECRET[:-1] + "1")
    assert request.parameters == parameters


@settings(max_examples=part_of(100), deadline=None)
@given(PATHS, PARAMETERS, st.integers(1, 604800))
def test_a_signature_of_version_4_in_the_query_is_right(path: str, parameters: dict[str, str], lasts: int) -> None:
    request = signed(botocore.auth.SigV4QueryAuth, "GET", path, parameters, "ec2", "RegionOne", expires=lasts)
    assert is_right(request)
    claim = signing.claim_of(request)
    assert claim.expires_at == claim.signed_at + lasts


def version_2(
    method: str, path: str, parameters: t.Mapping[str, str], digest: str = "HmacSHA256", host: str = HOST, **more: str
) -> signing.Request:
    """As the documentation of signature version 2 says, step by step."""
    asked = {
        **parameters,
        "AWSAccessKeyId": ACCESS,
        "SignatureVersion": "2",
        "SignatureMethod": digest,
        **(more or {"Timestamp": "2026-11-20T10:00:00Z"}),
    }
    quoted = sorted((name.encode(), name, value) for name, value in asked.items())
    canonical = "&".join(
        f"{urllib.parse.quote(name, safe='-_.~')}={urllib.parse.quote(value, safe='-_.~')}"
        for _bytes, name, value in quoted
    )
    text = f"{method}\n{host.lower()}\n{urllib.parse.quote(path)}\n{canonical}"
    algorithm = {"HmacSHA256": hashlib.sha256, "HmacSHA1": hashlib.sha1}[digest]
    asked["Signature"] = base64.b64encode(hmac.new(SECRET.encode(), text.encode(), algorithm).digest()).decode()
    data = urllib.parse.urlencode(asked)
    url = f"http://{HOST}{urllib.parse.quote(path)}"
    if method == "GET":
        return taken("GET", f"{url}?{data}", {}, b"")
    return taken("POST", url, {"content-type": FORM}, data.encode())


@settings(max_examples=part_of(150), deadline=None)
@given(
    st.sampled_from(["GET", "POST"]),
    PATHS,
    PARAMETERS,
    st.sampled_from(["HmacSHA256", "HmacSHA1"]),
    st.sampled_from([HOST, HOST.partition(":")[0]]),
)
def test_a_signature_of_version_2_is_right(
    method: str, path: str, parameters: dict[str, str], digest: str, host: str
) -> None:
    request = version_2(method, path, parameters, digest, host)
    assert is_right(request)
    assert not is_right(request, SECRET[:-1] + "1")


def test_botocores_signature_of_version_2_is_right() -> None:
    assert is_right(signed(botocore.auth.SigV2Auth, "POST", "/ec2", {"Action": "DescribeInstances"}))


@settings(max_examples=part_of(200), deadline=None)
@given(st.data())
def test_nothing_can_be_changed_after_it_was_signed(data: st.DataObject) -> None:
    parameters = {"Action": "TerminateInstances", "InstanceId.1": "i-1", **data.draw(PARAMETERS)}
    how = data.draw(st.sampled_from(["v4", "v4 in GET", "query", "v2", "v2 in GET"]))
    request = {
        "v4": lambda: signed(botocore.auth.SigV4Auth, "POST", "/ec2", parameters, "ec2", "RegionOne"),
        "v4 in GET": lambda: signed(botocore.auth.SigV4Auth, "GET", "/ec2", parameters, "ec2", "RegionOne"),
        "query": lambda: signed(botocore.auth.SigV4QueryAuth, "GET", "/ec2", parameters, "ec2", "RegionOne"),
        "v2": lambda: version_2("POST", "/ec2", parameters),
        "v2 in GET": lambda: version_2("GET", "/ec2", parameters),
    }[how]()
    assert is_right(request)
    parameter_pairs = [*request.query, *request.form]
    at = data.draw(st.integers(0, len(parameter_pairs) - 1))
    name, value = parameter_pairs[at]
    change = data.draw(st.sampled_from(["value", "name", "more", "less", "method", "host", "path"]))
    if change == "value":
        parameter_pairs[at] = (name, value + "x")
    elif change == "name":
        parameter_pairs[at] = (name + "x", value)
    elif change == "more":
        parameter_pairs.append(("InstanceId.2", "i-2"))
    elif change == "less":
        del parameter_pairs[at]
    body = request.body
    if request.form or body:
        body = urllib.parse.urlencode(parameter_pairs).encode()
    fields: dict[str, t.Any] = {
        "query": parameter_pairs if not body else [],
        "form": parameter_pairs if body else [],
        "body": body,
        "method": request.method,
        "host": request.host,
        "path": request.path,
    }
    if change == "method":
        fields["method"] = {"GET": "POST", "POST": "GET"}[request.method]
    elif change == "host":
        fields["host"] = "evil.example"
    elif change == "path":
        fields["path"] = request.path + "x"
    assert not is_right(signing.Request(**fields, headers={**request.headers, "host": fields["host"]}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("x-amz-date", "20200101T000000Z"),
        ("content-type", "text/plain"),
        ("x-amz-target", "something that was not signed"),
        ("authorization", "Basic x"),
        ("authorization", signing.ALGORITHM),
        ("authorization", f"{signing.ALGORITHM} Credential=a, SignedHeaders=host, Signature=b"),
        (
            "authorization",
            f"{signing.ALGORITHM} Credential={ACCESS}/20261120/r/s3/aws4_request, SignedHeaders=host, Signature=b",
        ),
    ],
)
def test_headers_are_part_of_it(name: str, value: str) -> None:
    request = signed(botocore.auth.SigV4Auth, "POST", "/ec2", {"Action": "x"}, "ec2", "RegionOne")
    assert is_right(request)
    changed = signing.Request(**{**vars(request), "headers": {**request.headers, name: value}})
    assert not is_right(changed)


@pytest.mark.parametrize("host", ["127.0.0.1:8774", "localhost:8774", "ec2.example"])
def test_boto_2_names_the_service_after_the_host(host: str) -> None:
    service = re.split("[.:]", host)[0]
    request = signed(botocore.auth.SigV4Auth, "POST", "/ec2", {"Action": "x"}, service, "0", host=host)
    assert is_right(request)
    with pytest.raises(signing.Unsigned, match="Credential should be scoped to correct service: 'ec2'"):
        signing.claim_of(signed(botocore.auth.SigV4Auth, "POST", "/ec2", {"Action": "x"}, "s3", "0", host=host))


def test_a_parameter_that_comes_twice_is_refused() -> None:
    request = signed(botocore.auth.SigV4Auth, "POST", "/ec2", {"Action": "x"}, "ec2", "RegionOne")
    with pytest.raises(signing.Unsigned, match="twice"):
        _ = signing.Request(**{**vars(request), "query": [("Action", "y")]}).parameters


# --- over a socket --------------------------------------------------------------------------------------------------


def send(
    door: Door, method: str, parameters: t.Mapping[str, str], headers: t.Mapping[str, str] | None = None
) -> tuple[int, str]:
    split = urllib.parse.urlsplit(door.url)
    connection = http.client.HTTPConnection(split.netloc, timeout=30)
    data = urllib.parse.urlencode(parameters)
    if method == "GET":
        connection.request("GET", f"{split.path}?{data}", headers=dict(headers or {}))
    else:
        connection.request("POST", split.path, data, {"Content-Type": FORM, **(headers or {})})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def old_tool(door: Door, user: str = "demo", method: str = "GET", **more: str) -> tuple[int, str]:
    """DescribeRegions with a signature of version 2."""
    access, secret = door.keys[user]
    asked = {
        "Action": "DescribeRegions",
        "Version": "2009-04-04",
        "AWSAccessKeyId": access,
        "SignatureVersion": "2",
        "SignatureMethod": "HmacSHA256",
        **(more or {"Timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}),
    }
    quote = urllib.parse.quote
    canonical = "&".join(f"{quote(key, safe='-_.~')}={quote(asked[key], safe='-_.~')}" for key in sorted(asked))
    split = urllib.parse.urlsplit(door.url)
    text = f"{method}\n{split.netloc}\n{split.path}\n{canonical}"
    asked["Signature"] = base64.b64encode(hmac.digest(secret.encode(), text.encode(), "sha256")).decode()
    return send(door, method, asked)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_old_tools_are_understood_in_their_version(door: Door, method: str) -> None:
    status, text = old_tool(door, method=method)
    assert status == 200 and "RegionOne" in text
    assert 'xmlns="http://ec2.amazonaws.com/doc/2009-04-04/"' in text


def stamp(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))


@pytest.mark.parametrize(
    ("seconds_by_name", "status"),
    [
        ({"Timestamp": -3600}, 400),
        ({"Timestamp": 3600}, 400),
        ({"Timestamp": -60}, 200),
        ({"Timestamp": 60}, 200),
        ({"Expires": 60}, 200),
        ({"Expires": -1}, 400),
        ({"Expires": 30 * 24 * 3600}, 400),
    ],
)
def test_what_was_signed_for_another_time_is_refused(
    door: Door, seconds_by_name: dict[str, float], status: int
) -> None:
    answer = old_tool(door, **{name: stamp(seconds) for name, seconds in seconds_by_name.items()})
    assert answer[0] == status, answer
    assert status == 200 or "<Code>RequestExpired</Code>" in answer[1]


@pytest.mark.parametrize("age", [-3600, -400, 400, 3600])
def test_a_replay_outside_of_the_window_is_refused(door: Door, age: int, monkeypatch: pytest.MonkeyPatch) -> None:
    client = door.client()
    now = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=age)
    monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda remove_tzinfo=True: now.replace(tzinfo=None))
    with ec2_door.refused("RequestExpired"):
        client.describe_regions()


def test_unknown_keys_and_wrong_secrets_are_refused(door: Door) -> None:
    access, secret = door.keys["demo"]
    with ec2_door.refused("AuthFailure") as caught:
        ec2_door.client(door.url, "nosuchkey", secret).describe_regions()
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 401
    with ec2_door.refused("SignatureDoesNotMatch") as caught:
        ec2_door.client(door.url, access, secret[::-1]).describe_regions()
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403
    for parameters in ({}, {"Action": "DescribeRegions"}, {"Action": "DescribeRegions", "SignatureVersion": "1"}):
        status, text = send(door, "POST", parameters)
        assert status == 401 and "<Code>AuthFailure</Code>" in text and "<RequestID>req-" in text


def test_a_key_that_was_taken_away_counts_no_more(door: Door) -> None:
    client = door.client()
    client.describe_regions()
    visitor = door.api.client_as("demo")
    path = f"/identity/v3/users/{door.api.users['demo']}/credentials/OS-EC2/{door.keys['demo'][0]}"
    assert visitor.delete(path).status_code == 204
    with ec2_door.refused("AuthFailure"):
        client.describe_regions()


def test_a_presigned_address_answers(door: Door) -> None:
    url = door.client().generate_presigned_url("describe_regions", ExpiresIn=60, HttpMethod="GET")
    split = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(split.netloc, timeout=30)
    connection.request("GET", f"{split.path}?{split.query}")
    answer = connection.getresponse()
    assert answer.status == 200 and b"RegionOne" in answer.read()
    connection.request("GET", f"{split.path}?{split.query.replace('DescribeRegions', 'DescribeVpcs')}")
    assert connection.getresponse().status == 403
    connection.close()


def test_a_request_that_is_too_large_is_refused(door: Door) -> None:
    for body in ({"Action": "x" * 2_000_000}, {f"p{number}": "x" for number in range(5000)}):
        status, text = send(door, "POST", body)
        assert status == 413 and "<Code>RequestEntityTooLarge</Code>" in text
