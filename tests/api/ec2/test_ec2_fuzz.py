# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every action of the EC2 dialect, rightly signed, with parameters that no client would send: nothing may be our fault.

Values are drawn from what hurts and from ids of things that are there, of one's own and of another project's; names
from what the action takes, and a few that it does not. NOVALITE_FUZZ_EXAMPLES says how many requests each action gets
from each user (default: 2), NOVALITE_FUZZ_SEED which.
"""

from __future__ import annotations

import base64
import hmac
import os
import random
import time
import typing as t
import urllib.parse
import xml.etree.ElementTree as ElementTree

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity import credentials
from api.ec2 import ids, parameters
from api.ec2.blueprint import ACTIONS
from tests.api import foreign, seeds
from tests.api.web.fuzz_words import EC2_WORDS, TEXTS

EXAMPLES = int(os.environ.get("NOVALITE_FUZZ_EXAMPLES", "2"))
SEED = int(os.environ.get("NOVALITE_FUZZ_SEED", "1"))
USERS = ("demo", "reader", "admin", "alt")
NUMBERS = {"i": "server", "sg": "security_group", "vol": "volume", "snap": "snapshot", "ami": "image", "eni": "port"}


def flat(shape: parameters.Shape, name: str, draw: random.Random, values: t.Sequence[str]) -> dict[str, str]:
    """Parameters that a shape takes, by and large."""
    if draw.random() < 0.05:
        return {f"{name}.{draw.choice(['x', '-1', '1.2.3', '0', 'Value'])}": draw.choice(values)}
    request_parameters: dict[str, str] = {}
    if isinstance(shape, parameters.Group):
        for field, below in shape._fields.items():
            if draw.random() < (0.3 if len(shape._fields) > 6 else 0.6) or (
                field in shape._required and draw.random() < 0.9
            ):
                request_parameters.update(flat(below, f"{name}.{field}" if name else field, draw, values))
    elif isinstance(shape, parameters.ListOf):
        for index in range(1, draw.choice([2, 2, 3, 5])):
            request_parameters.update(flat(shape._member, f"{name}.{index}", draw, values))
    elif draw.random() < 0.6 and isinstance(shape, parameters.Text) and shape._choices:
        request_parameters[name] = draw.choice(list(shape._choices))
    elif draw.random() < 0.6 and isinstance(shape, parameters.Boolean):
        request_parameters[name] = draw.choice(["true", "false"])
    elif draw.random() < 0.6 and isinstance(shape, parameters.Number):
        request_parameters[name] = str(draw.choice([0, 1, 5, 22, 1000]))
    else:
        request_parameters[name] = draw.choice(values)
    return request_parameters


def signed(access: str, secret: str, method: str, request_parameters: t.Mapping[str, str]) -> str:
    """`request_parameters` as a query or a form, with a signature of version 2."""
    asked = {
        **request_parameters,
        "AWSAccessKeyId": access,
        "SignatureVersion": "2",
        "SignatureMethod": "HmacSHA256",
        "Timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }

    def quote(text: str) -> str:
        return urllib.parse.quote(text, safe="-_.~", errors="surrogatepass")

    names = sorted(asked, key=lambda name: name.encode("utf-8", "surrogatepass"))
    canonical = "&".join(f"{quote(name)}={quote(asked[name])}" for name in names)
    digest = hmac.digest(secret.encode(), f"{method}\nlocalhost\n/ec2\n{canonical}".encode(), "sha256")
    return f"{canonical}&Signature={quote(base64.b64encode(digest).decode())}"


def test_no_request_is_our_fault(api: seeds.Api) -> None:
    draw = random.Random(SEED)
    objects = foreign.make(api)
    mine = api.instance("demo", "web", host="hv1", launched_at=1)
    seal = api.seal
    with transaction(api.engine) as connection:
        keys = {}
        for name, (project, _role) in seeds.USERS.items():
            row = credentials.create_ec2_credential(connection, seal, api.users[name], api.projects[project])
            keys[name] = (row["access"], row["secret"])
        groups = connection.execute(sa.select(tables.security_group.c.uuid)).scalars().all()
    known = [ids.of("i", mine), ids.of("ami", seeds.IMAGE_ID), *(ids.of("sg", uuid) for uuid in groups)]
    known += [ids.of(kind, objects.ids[name]) for kind, name in NUMBERS.items() if name in objects.ids]
    known += [ids.of(kind, api.projects["demo"]) for kind in ("vpc", "rtb", "igw", "acl", "dopt")]
    mild, wild = [*EC2_WORDS, *known * 3], [*(text[:2000] for text in TEXTS), *EC2_WORDS * 2, *known * 3]
    statuses: dict[int, int] = {}
    faults = []
    client = api.app.test_client()
    for name, action in [*ACTIONS.items()] * EXAMPLES:
        for user in USERS:
            values = draw.choice([mild, wild])
            request_parameters = flat(action.shape, "", draw, values) if draw.random() < 0.8 else {}
            if draw.random() < 0.1:
                request_parameters[draw.choice(["Nosuch", "", ".", "Filter", "a" * 300, "Version", "\0"])] = (
                    draw.choice(values)
                )
            method = draw.choice(["GET", "POST"])
            data = signed(*keys[user], method, {**request_parameters, "Action": name})
            if method == "GET":
                answer = client.get(f"/ec2?{data}")
            else:
                answer = client.post("/ec2", data=data, content_type="application/x-www-form-urlencoded")
            statuses[answer.status_code] = statuses.get(answer.status_code, 0) + 1
            root = ElementTree.fromstring(answer.data)
            error_code = root.findtext("Errors/Error/Code")
            if answer.status_code >= 500 or (answer.status_code >= 400) != (error_code is not None):
                faults.append(
                    (name, user, method, request_parameters, answer.status_code, answer.get_data(as_text=True)[:300])
                )
    assert faults == [], f"seed {SEED}: {faults[:5]}"
    assert statuses.get(200, 0) > 30 and statuses.get(400, 0) > 50, statuses


V4, V2 = "AWS4-HMAC-SHA256 Credential=", "SignatureVersion=2&SignatureMethod=HmacSHA1&AWSAccessKeyId=x"
RAW: tuple[tuple[str, dict[str, t.Any]], ...] = (
    ("GET", {"query_string": "%ff%fe=%ff&Action=%ed%a0%80"}),
    ("GET", {"query_string": "X-Amz-Algorithm=AWS4-HMAC-SHA256&" + "&".join(f"a{n}=b" for n in range(500))}),
    ("POST", {"data": b"\xff" * 1000, "content_type": "application/x-www-form-urlencoded"}),
    ("POST", {"data": b"a=b", "content_type": "multipart/form-data; boundary=x"}),
    ("POST", {"data": b"{}", "content_type": "application/json"}),
    ("POST", {"data": b"&&==&%", "headers": {"Authorization": "AWS4-HMAC-SHA256 " + "," * 5000}}),
    ("POST", {"headers": {"Authorization": V4 + "\u00e4/1/2/ec2/aws4_request, SignedHeaders=;;, Signature=\u00e4"}}),
    ("POST", {"headers": {"Authorization": V4 + "x/1/2/ec2/aws4_request, SignedHeaders=host, Signature="}}),
    ("GET", {"query_string": V2 + "&Signature=%E2%98%83&Timestamp=0000-99-99T99:99:99Z"}),
    ("GET", {"query_string": V2 + "&Signature=%E2%98%83&Timestamp=2026-11-20T00:00:00Z"}),
    ("GET", {"query_string": V2 + "&Signature=%ff&Expires=9999-12-31T23:59:59Z"}),
    ("PUT", {}),
    ("DELETE", {}),
)


@pytest.mark.parametrize(("method", "options"), RAW, ids=range(len(RAW)))
def test_what_is_not_signed_is_refused_in_xml(api: seeds.Api, method: str, options: dict[str, t.Any]) -> None:
    for path in ("/ec2", "/ec2/", "/ec2/services/Cloud"):
        answer = api.app.test_client().open(path, method=method, **options)
        assert 400 <= answer.status_code < 500
        if method in ("GET", "POST"):
            assert ElementTree.fromstring(answer.data).findtext("Errors/Error/Code"), answer.data
