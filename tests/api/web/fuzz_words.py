# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What hurts: the values, paths, headers and bodies that the fuzzing of routes draws from."""

from __future__ import annotations

import pathlib
import re
import typing as t
import uuid

import yaml

SOMETHING = str(uuid.UUID(int=1))  # in a body: the id of what the field is about, see KINDS
VARIABLE = re.compile(r"<(?:[^:<>]+:)?([^<>:]+)>")

CORPUS = yaml.safe_load(pathlib.Path(__file__).with_name("fuzz_routes.yml").read_text())
LONG = {  # values of headers
    "X-OpenStack-Request-ID": "x" * 5000,
    "X-Subject-Token": "x" * 300,
    "Idempotency-Key": "x" * 300,
    "Last-Event-ID": "9" * 40,
}
TEXTS: tuple[str, ...] = (*CORPUS["texts"], "a" * 300, "x" * 70_000, "9" * 40, str(uuid.UUID(int=0)), "0" * 32)
NUMBERS = (0, -1, 1, 2**31, 2**63 - 1, 2**63, -(2**63) - 1, 2**200, 1.5, -0.0, 1e308)
VALUES: tuple[t.Any, ...] = (
    None,
    True,
    False,
    [],
    {},
    [[]],
    [{}],
    [None],
    {"": None},
    {"a": {"b": [{}]}},
    ["x"] * 2000,
    *NUMBERS,
    *TEXTS,
)
RAW = (
    b"",
    b" ",
    b"{",
    b"}",
    b"null",
    b"[]",
    b"1",
    b'"x"',
    b"NaN",
    b'{"a": NaN}',
    b'{"a": Infinity}',
    b'{"a": 1e999}',
    b"[" * 100_000,
    b'{"a":' * 50_000,
    b'{"server": {}, "server": []}',
    b'{"a": "\\ud800"}',
    b'{"a": "\\u0000"}',
    b"\xff\xfe",
    b'{"a": ' + b"9" * 5000 + b"}",
    b"\x00",
    b"a=b&c=d",
    b"--x\r\nContent-Disposition: form-data; name=a\r\n\r\n",
    b"\xef\xbb\xbf{}",
    '{"a": "ü"}'.encode("utf-16"),
    b'{"a"' + b" " * 10_000 + b": 1}",
)
SEGMENTS: tuple[str, ...] = (*CORPUS["segments"], "x" * 3000, "9" * 30, SOMETHING)
QUERIES: tuple[str, ...] = tuple(CORPUS["queries"])
EC2_WORDS: tuple[str, ...] = tuple(CORPUS["ec2"])
BODIES: dict[str, list[t.Any]] = CORPUS["bodies"]
HEADERS: tuple[tuple[str, tuple[str, ...]], ...] = tuple(
    (name, (*values, LONG[name]) if name in LONG else tuple(values)) for name, values in CORPUS["headers"].items()
)

KINDS = {
    "uuid": "network",
    "network_id": "network",
    "net_id": "network",
    "floating_network_id": "network",
    "security_group_id": "security_group",
    "parent_group_id": "security_group",
    "security_groups": "security_group",
    "group": "server_group",
    "port_id": "port",
    "volumeId": "nothing",
    "instances": "server",
    "source_volid": "volume",
    "volume_id": "volume",
    "volume_uuid": "volume",
    "instance_uuid": "server",
}
# Fields of the pages' forms
FIELDS = (
    *("name", "description", "cidr", "vlan", "interface", "shared", "is_default", "direction", "ethertype", "protocol"),
    *("port_min", "port_max", "remote_group", "rule", "public_key", "size", "type", "image", "pool", "port", "value"),
    *("password", "email", "project", "role", "held", "enabled", "instances", "ram"),
)
FORMS: tuple[dict[str, str], ...] = (
    {"user": "demo", "password": "x", "project": "demo", "next": "/"},
    {"csrf": "x"},
    {},
)
