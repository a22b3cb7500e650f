# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every route, with every method, is sent what no client would send: nothing of it may be our fault (5xx).

Requests are drawn at random from what hurts: paths, queries, headers, bodies, and bodies that are right but for one
value. NOVALITE_FUZZ_EXAMPLES says how many of them each route gets from each user (default: 2), NOVALITE_FUZZ_SEED
which; a failure names the seed.
"""

from __future__ import annotations

import collections
import contextlib
import copy
import json
import logging
import os
import pathlib
import random
import re
import sqlite3
import traceback
import typing as t
import urllib.parse
import uuid

import pytest
from flask.testing import FlaskClient

from api.dashboard import session
from api.openstack.compute.servers import console
from api.v1 import streams
from tests.api import conftest, foreign, scenes, seeds

EXAMPLES = int(os.environ.get("NOVALITE_FUZZ_EXAMPLES", "2"))
SEED = int(os.environ.get("NOVALITE_FUZZ_SEED", "1"))
USERS = ("demo", "reader", "admin", "alt")  # alt's are the objects that routes are about
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
SERVICES = ("identity", "compute", "image", "network", "volume", "v1", "pages")
SOMETHING = str(uuid.UUID(int=1))  # in a body: the id of what the field is about, see KINDS
VARIABLE = re.compile(r"<(?:[^:<>]+:)?([^<>:]+)>")

TEXTS = (
    "",
    " ",
    "a" * 300,
    "x" * 70_000,
    "ä",
    "\u202e☃",
    "\0",
    "a\0b",
    "\ud800",
    "\r\nX-Evil: 1",
    "../../etc/passwd",
    "%",
    "%s%n",
    "{{ 7*7 }}",
    "${x}",
    "' OR 1=1 --",
    "[",
    "(a+)+$",
    "*",
    "\\",
    "<b>",
    "-1",
    "0",
    "1",
    "1e999",
    "NaN",
    "²",
    "٣",
    "9" * 40,
    "true",
    "null",
    "None",
    str(uuid.UUID(int=0)),
    "0" * 32,
    "10.20.0.5",
    "::1",
    "0.0.0.0/0",
    "fe80::1%eth0",
    "2026-11-20T00:00:00Z",
    "0001-01-01T00:00:00",
    "9999-99-99",
    "ssh-rsa AAAA",
    "Zm9v",
    "=",
    "nova:hv1",
    "latest",
)
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
SEGMENTS = (
    "nope",
    "%00",
    "%ff",
    "%e4",
    "..",
    ".",
    "a%2Fb",
    "%20",
    "x" * 3000,
    "-1",
    "0",
    "9" * 30,
    "%F0%9F%92%A9",
    "detail",
    "%ED%A0%80",
    "a%0d%0ab",
    "{{7*7}}",
    "*",
    "'",
    "defaults",
    "add",
    "remove",
    SOMETHING,
    "1.5",
    "%",
)
QUERIES = (
    "limit",
    "marker",
    "sort_key",
    "sort_dir",
    "name",
    "status",
    "all_tenants",
    "changes-since",
    "changes-before",
    "deleted",
    "ip",
    "ip6",
    "flavor",
    "image",
    "host",
    "tags",
    "not-tags",
    "fields",
    "page_size",
    "id",
    "project_id",
    "tenant_id",
    "user_id",
    "offset",
    "reverse",
    "detail",
    "usage",
    "start",
    "end",
    "type",
    "kind",
    "state",
    "after",
    "before",
    "instance",
    "all_projects",
    "next",
    "network_id",
    "device_id",
    "fixed_ips",
    "port_range_min",
    "shared",
    "router:external",
    "visibility",
    "size_min",
    "created_at",
    "member_status",
    "min_version",
    "uuid",
    "vcpus",
    "minDisk",
    "minRam",
    "is_public",
    "hypervisor_hostname_pattern",
    "with_servers",
    "binary",
    "availability_zone",
)
HEADERS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "Content-Type",
        (
            "application/json",
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data",
            "multipart/form-data; boundary=x",
            "application/octet-stream",
            "application/json; charset=utf-16",
            "application/openstack-images-v2.1-json-patch",
            "x",
            ";;",
            "",
        ),
    ),
    ("Accept", ("text/event-stream", "*/*;q=x", "text/html", ",", "application/json;q=1e999", "\u00e4")),
    (
        "OpenStack-API-Version",
        (
            "compute 2.1",
            "compute latest",
            "compute 2.999999999999999999",
            "compute",
            "compute x",
            "compute 2.1, volume 3.0",
            "volume 3.70",
            "compute 0.0",
            "compute 2.-1",
            "\u00e4",
            "",
        ),
    ),
    ("X-OpenStack-Nova-API-Version", ("2.1", "latest", "x", "99.99")),
    ("X-OpenStack-Request-ID", ("req-x", "\u00e4", "x" * 5000)),
    ("X-Subject-Token", ("", "x", "\u00e4", "x" * 300)),
    ("Idempotency-Key", ("", "a b", "\u00e4", "x" * 300, "k")),
    ("Last-Event-ID", ("x", "-1", "1", "9" * 40)),
    ("Range", ("bytes=0-1", "bytes=-", "x")),
    ("If-Match", ('"x"', "*", "x")),
    ("If-None-Match", ("*", "x")),
    ("If-Modified-Since", ("x", "Thu, 01 Jan 1970 00:00:00 GMT")),
    ("Cookie", ("novalite_session=x", "a=\u00e4", ";;==")),
    ("Host", ("evil.example", "[", "a b", "")),
    ("X-Forwarded-For", ("x", "1.2.3.4, x", "::")),
    ("X-HTTP-Method-Override", ("DELETE",)),
    ("Authorization", ("Basic x", "AWS4-HMAC-SHA256 x", "Bearer")),
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
# Bodies that are right, or nearly: with one value replaced they get further than any that is wrong from the beginning
_SERVER = {"name": "web", "flavorRef": "2", "imageRef": seeds.IMAGE_ID}
BODIES: dict[str, list[t.Any]] = {
    "/auth/tokens": [
        {
            "auth": {
                "identity": {
                    "methods": ["password"],
                    "password": {"user": {"name": "nobody", "domain": {"id": "default"}, "password": "x"}},
                },
                "scope": {"project": {"name": "demo"}},
            }
        },
        {"auth": {"identity": {"methods": ["token"], "token": {"id": "x"}}, "scope": "unscoped"}},
        {
            "auth": {
                "identity": {
                    "methods": ["application_credential"],
                    "application_credential": {"id": "x", "secret": "y"},
                }
            }
        },
    ],
    "/projects": [{"project": {"name": "fuzz", "description": "x", "enabled": True}}],
    "/projects/{}": [{"project": {"name": "fuzz", "description": "x", "enabled": True}}],
    "/users": [{"user": {"name": "fuzz", "password": "x", "default_project_id": "0" * 32, "enabled": True}}],
    "/users/{}": [{"user": {"description": "x", "email": "x@example.org"}}],
    "/users/{}/password": [{"user": {"password": "x", "original_password": "y"}}],
    "/users/{}/application_credentials": [
        {
            "application_credential": {
                "name": "fuzz",
                "roles": [{"name": "member"}],
                "expires_at": "2030-01-01T00:00:00Z",
                "secret": "x",
                "unrestricted": False,
            }
        }
    ],
    "/users/{}/credentials/OS-EC2": [{"tenant_id": "0" * 32}],
    "/servers": [
        {
            "server": {
                **_SERVER,
                "networks": "auto",
                "metadata": {"a": "b"},
                "security_groups": [{"name": "default"}],
                "min_count": 1,
                "max_count": 2,
                "user_data": "Zm9v",
                "config_drive": True,
                "key_name": "test",
                "personality": [{"path": "/a", "contents": "Zm9v"}],
                "availability_zone": "nova",
                "tags": ["a"],
            },
            "os:scheduler_hints": {"group": SOMETHING, "different_host": [str(uuid.UUID(int=2))]},
        },
        {
            "server": {
                **_SERVER,
                "networks": [{"uuid": SOMETHING, "fixed_ip": "10.20.0.9"}],
                "block_device_mapping_v2": [
                    {
                        "boot_index": 0,
                        "uuid": seeds.IMAGE_ID,
                        "source_type": "image",
                        "destination_type": "local",
                        "delete_on_termination": True,
                    }
                ],
            }
        },
    ],
    "/servers/{}": [{"server": {"name": "x", "description": "y", "accessIPv4": "192.0.2.1", "hostname": "h"}}],
    "/servers/{}/action": [
        {"os-start": None},
        {"os-stop": None},
        {"reboot": {"type": "SOFT"}},
        {"pause": None},
        {"unpause": None},
        {"suspend": None},
        {"resume": None},
        {"lock": {"locked_reason": "x"}},
        {"unlock": None},
        {"os-getConsoleOutput": {"length": 10}},
        {"addSecurityGroup": {"name": "default"}},
        {"removeSecurityGroup": {"name": "default"}},
        {"addFloatingIp": {"address": "198.51.100.7"}},
        {"resize": {"flavorRef": "1"}},
        {"createImage": {"name": "x", "metadata": {}}},
        {"os-migrateLive": {"host": "h"}},
        {"changePassword": {"adminPass": "x"}},
        {"forceDelete": None},
        {"os-resetState": {"state": "active"}},
        {"rebuild": {"imageRef": seeds.IMAGE_ID}},
        {"rescue": {"adminPass": "x"}},
        {"shelve": None},
        {"addFixedIp": {"networkId": "1"}},
        {"os-getVNCConsole": {"type": "novnc"}},
        {"nosuch": {}},
    ],
    "/servers/{}/metadata": [{"metadata": {"a": "b"}}],
    "/servers/{}/metadata/{}": [{"meta": {"key": "b"}}],
    "/servers/{}/tags": [{"tags": ["a", "b"]}],
    "/servers/{}/os-interface": [
        {"interfaceAttachment": {"net_id": SOMETHING, "fixed_ips": [{"ip_address": "10.20.0.9"}]}}
    ],
    "/servers/{}/remote-consoles": [{"remote_console": {"protocol": "vnc", "type": "novnc"}}],
    "/servers/{}/os-volume_attachments": [{"volumeAttachment": {"volumeId": SOMETHING, "device": "/dev/vdb"}}],
    "/flavors": [
        {
            "flavor": {
                "name": "fuzz",
                "ram": 64,
                "vcpus": 1,
                "disk": 1,
                "id": "auto",
                "swap": 0,
                "OS-FLV-EXT-DATA:ephemeral": 0,
                "rxtx_factor": 1.0,
                "os-flavor-access:is_public": True,
            }
        }
    ],
    "/flavors/{}": [{"flavor": {"description": "x"}}],
    "/flavors/{}/action": [{"addTenantAccess": {"tenant": "0" * 32}}, {"removeTenantAccess": {"tenant": "0" * 32}}],
    "/flavors/{}/os-extra_specs": [{"extra_specs": {"hw:cpu_policy": "shared"}}],
    "/flavors/{}/os-extra_specs/{}": [{"key": "x"}],
    "/os-keypairs": [
        {"keypair": {"name": "fuzz", "type": "ssh", "public_key": seeds.PUBLIC_KEY}},
        {"keypair": {"name": "fuzz"}},
    ],
    "/os-server-groups": [
        {"server_group": {"name": "fuzz", "policies": ["affinity"]}},
        {"server_group": {"name": "fuzz", "policy": "anti-affinity", "rules": {"max_server_per_host": 2}}},
    ],
    "/os-quota-sets/{}": [{"quota_set": {"instances": 5, "cores": -1, "force": True}}],
    "/os-aggregates": [{"aggregate": {"name": "fuzz", "availability_zone": "nova"}}],
    "/os-aggregates/{}": [{"aggregate": {"name": "fuzz"}}],
    "/os-aggregates/{}/action": [
        {"add_host": {"host": "hv1"}},
        {"remove_host": {"host": "hv1"}},
        {"set_metadata": {"metadata": {"a": "b"}}},
    ],
    "/os-services/{}": [{"status": "disabled", "disabled_reason": "x", "forced_down": False}],
    "/os-security-groups": [{"security_group": {"name": "fuzz", "description": "x"}}],
    "/os-security-group-rules": [
        {
            "security_group_rule": {
                "parent_group_id": SOMETHING,
                "ip_protocol": "tcp",
                "from_port": 1,
                "to_port": 2,
                "cidr": "0.0.0.0/0",
            }
        }
    ],
    "/os-floating-ips": [{"pool": "public"}],
    "/os-volumes": [{"volume": {"size": 1, "display_name": "fuzz", "metadata": {"a": "b"}}}],
    "/os-snapshots": [{"snapshot": {"volume_id": SOMETHING, "display_name": "fuzz", "force": True}}],
    "/images": [
        {
            "name": "fuzz",
            "disk_format": "qcow2",
            "container_format": "bare",
            "visibility": "private",
            "min_disk": 0,
            "min_ram": 0,
            "tags": ["a"],
        }
    ],
    "/images/{}": [
        [{"op": "replace", "path": "/name", "value": "x"}],
        [{"op": "add", "path": "/a", "value": "x"}],
        [{"op": "remove", "path": "/a"}],
    ],
    "/images/{}/members": [{"member": "0" * 32}],
    "/images/{}/members/{}": [{"status": "accepted"}],
    "/images/{}/import": [{"method": {"name": "glance-direct"}, "all_stores": True, "stores": ["file"]}],
    "/volumes": [
        {"volume": {"name": "fuzz", "size": 1, "metadata": {"a": "b"}, "availability_zone": "nova"}},
        {"volume": {"imageRef": seeds.IMAGE_ID, "size": 1}},
        {"volume": {"source_volid": SOMETHING}},
    ],
    "/volumes/{}": [{"volume": {"name": "x", "description": "y"}}],
    "/volumes/{}/metadata": [{"metadata": {"a": "b"}}],
    "/volumes/{}/metadata/{}": [{"meta": {"key": "b"}}],
    "/volumes/{}/action": [
        {"os-extend": {"new_size": 2}},
        {"os-reserve": None},
        {"os-unreserve": {}},
        {"os-begin_detaching": {}},
        {"os-attach": {"instance_uuid": SOMETHING, "mountpoint": "/dev/vdc"}},
        {"os-detach": {}},
        {"os-roll_detaching": {}},
        {"os-set_bootable": {"bootable": True}},
        {"os-retype": {"new_type": "x"}},
        {"os-update_readonly_flag": {"readonly": True}},
        {"os-reset_status": {"status": "error"}},
        {"os-force_delete": {}},
        {"os-force_detach": {}},
        {"os-show_image_metadata": {}},
        {"os-volume_upload_image": {"image_name": "x"}},
    ],
    "/snapshots": [{"snapshot": {"volume_id": SOMETHING, "name": "fuzz", "force": True}}],
    "/snapshots/{}": [{"snapshot": {"name": "x"}}],
    "/snapshots/{}/metadata": [{"metadata": {"a": "b"}}],
    "/snapshots/{}/action": [{"os-reset_status": {"status": "error"}}, {"os-force_delete": {}}],
    "/types": [{"volume_type": {"name": "fuzz", "extra_specs": {"a": "b"}, "os-volume-type-access:is_public": False}}],
    "/types/{}": [{"volume_type": {"name": "x", "is_public": True}}],
    "/types/{}/extra_specs": [{"extra_specs": {"a": "b"}}],
    "/types/{}/action": [{"addProjectAccess": {"project": "0" * 32}}],
    "/attachments": [{"attachment": {"volume_uuid": SOMETHING, "instance_uuid": SOMETHING, "connector": None}}],
    "/networks": [{"network": {"name": "fuzz", "admin_state_up": True, "mtu": 1450}}],
    "/networks/{}": [{"network": {"name": "fuzz"}}],
    "/subnets": [
        {
            "subnet": {
                "network_id": SOMETHING,
                "ip_version": 4,
                "cidr": "10.99.0.0/24",
                "allocation_pools": [{"start": "10.99.0.2", "end": "10.99.0.9"}],
            }
        }
    ],
    "/ports": [{"port": {"network_id": SOMETHING, "fixed_ips": [{"ip_address": "10.20.0.9"}]}}],
    "/ports/{}": [{"port": {"security_groups": [SOMETHING], "allowed_address_pairs": [{"ip_address": "10.20.0.9"}]}}],
    "/security-groups": [{"security_group": {"name": "fuzz", "description": "x"}}],
    "/security-groups/{}": [{"security_group": {"name": "fuzz"}}],
    "/security-group-rules": [
        {
            "security_group_rule": {
                "security_group_id": SOMETHING,
                "direction": "ingress",
                "ethertype": "IPv4",
                "protocol": "tcp",
                "port_range_min": 1,
                "port_range_max": 2,
                "remote_ip_prefix": "0.0.0.0/0",
            }
        }
    ],
    "/floatingips": [{"floatingip": {"floating_network_id": SOMETHING, "port_id": None}}],
    "/floatingips/{}": [{"floatingip": {"port_id": SOMETHING}}],
    "/quotas/{}": [{"quota": {"network": 5}}],
    "/v1/jobs": [
        {"kind": "launch", "variables": {"servers": [{"name": "web", "count": 2, "networks": ["private"]}]}},
        {"kind": "stop", "instances": [SOMETHING], "timeout_seconds": 9},
        {"kind": "security_groups", "variables": {"security_groups": [{"name": "x", "rules": [{}]}]}},
    ],
    "/v1/plan": [
        {
            "servers": [
                {
                    "name": "web",
                    "flavor": "m1.tiny",
                    "image": "ami-tiny",
                    "hints": {"same_host": "x"},
                    "networks": [{"name": "private", "fixed_ip": "10.20.0.9"}],
                    "metadata": {"a": "b"},
                }
            ]
        }
    ],
}
FORMS: tuple[dict[str, str], ...] = (
    {"user": "demo", "password": "x", "project": "demo", "next": "/"},
    {"csrf": "x"},
    {},
)


NOT_READY = ("/readyz",)  # 503 is what it says while no worker runs


class Fault(t.NamedTuple):
    """An answer of 5xx: what was sent, and where it went wrong."""

    route: str
    status: int
    where: str
    sent: str


class Faults(logging.Handler):
    """A handler that keeps where in our files the last logged exception came from."""

    def __init__(self) -> None:
        super().__init__()
        self.where = "no exception was logged"

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1]:
            error = record.exc_info[1]
            ours = [frame for frame in traceback.extract_tb(error.__traceback__) if ".venv" not in frame.filename]
            frames = [f"{os.path.relpath(frame.filename)}:{frame.lineno}" for frame in ours[-3:]]
            self.where = f"{type(error).__name__}: {str(error)[:200]} at {' > '.join(frames)}"
        elif record.levelno >= logging.ERROR:
            self.where = record.getMessage()[:300]


@pytest.fixture(scope="module")
def api(seeded: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[seeds.Api]:
    with conftest.application(seeded, tmp_path_factory.mktemp("fuzz") / "cloud") as opened:
        yield opened


class Fuzz:
    """Draws requests, sends them, and keeps what came back as 5xx."""

    def __init__(self, api: seeds.Api) -> None:
        self.api = api
        self.random = random.Random(SEED)
        self.objects = foreign.make(api)
        self.scene = scenes.build(api)
        self.faults: list[Fault] = []
        self.statuses: collections.Counter[int] = collections.Counter()
        self.log = Faults()
        self.tokens = {user: api.token(user) for user in USERS}

    def begin(self, service: str) -> None:
        """The same requests for a service, whatever was asked of others before."""
        self.random = random.Random(f"{SEED} {service}")
        self.faults, self.statuses = [], collections.Counter()

    def path(self, rule: str, wild: bool) -> str:
        """A path of that rule: with objects that there are or, if `wild`, mostly with others."""
        parts = rule.split("/")[1:]
        made: list[str] = []
        for position, part in enumerate(parts):
            variable = VARIABLE.search(part)
            if variable is None:
                made.append(part)
                continue
            where = (parts[0], made[position - 1] if position else parts[0])
            kind = foreign.OWNED.get(where)
            known = self.objects.id(kind) if kind is not None else foreign.SHARED.get(where, "stop")
            if wild and self.random.random() < 0.7:
                known = self.random.choice(SEGMENTS)
            elif kind in ("server", "job") and self.random.random() < 0.5:
                known = self.random.choice([self.scene.web, self.scene.stopped, self.scene.launched, self.scene.going])
            made.append(VARIABLE.sub(lambda _match, known=known: known, part))  # type: ignore[misc]
        return "/" + "/".join(made)

    def query(self) -> str:
        count = self.random.choice([0, 0, 1, 2, 4])
        pairs = [(self.random.choice(QUERIES), self.random.choice([*TEXTS, "1", "asc"])) for _ in range(count)]
        pairs = [(name, value[:2000]) for name, value in pairs]
        if pairs and self.random.random() < 0.2:
            pairs.append(pairs[0])
        text = urllib.parse.urlencode(pairs, errors="surrogatepass")
        return self.random.choice([text, text, text, text + "&%ff=%ff", "&&==", "a" * 9000]) if pairs else ""

    def body(self, rule: str) -> bytes:
        """A raw one, or a right one with one value or two replaced."""
        right = next((BODIES[end] for end in _ends(VARIABLE.sub("{}", rule)) if end in BODIES), None)
        if right is None or self.random.random() < 0.3:
            return self.random.choice(RAW) if self.random.random() < 0.5 else _dumped({"x": self.value()})
        body = self.filled(self.random.choice(right))
        for _ in range(self.random.choice([0, 0, 1, 1, 2])):
            body = self.spoiled(body)
        return _dumped(body)

    def filled(self, value: t.Any, name: str = "") -> t.Any:
        """A copy with the ids of objects that there are."""
        if isinstance(value, dict):
            return {key: self.filled(item, key) for key, item in value.items()}
        if isinstance(value, list):
            return [self.filled(item, name) for item in value]
        if value != SOMETHING:
            return value
        known = [self.objects.id(KINDS.get(name, "nothing"))]
        if KINDS.get(name) == "network":
            known.append(self.scene.network)
        if KINDS.get(name) == "server":
            known += [self.scene.web, self.scene.stopped]
        return self.random.choice(known)

    def value(self) -> t.Any:
        return copy.deepcopy(self.random.choice(VALUES))

    def spoiled(self, value: t.Any) -> t.Any:
        """The same with one value in it replaced, taken away, or beside a new one."""
        if isinstance(value, dict) and value and self.random.random() < 0.85:
            key = self.random.choice(list(value))
            how = self.random.random()
            if how < 0.08:
                value.pop(key)
            elif how < 0.16:
                value[self.random.choice(TEXTS)] = self.value()
            else:
                value[key] = self.spoiled(value[key])
            return value
        if isinstance(value, list) and value and self.random.random() < 0.7:
            position = self.random.randrange(len(value))
            value[position] = self.spoiled(value[position])
            return value
        return self.value()

    def headers(self) -> dict[str, str]:
        chosen = self.random.sample(HEADERS, self.random.choice([0, 0, 1, 2, 3]))
        return {name: self.random.choice(values) for name, values in chosen}

    def send(self, method: str, rule: str, user: str, wild: bool = True) -> None:
        client = self.client(user, rule)
        path, query, headers = self.path(rule, wild), "", {}
        if wild or self.random.random() < 0.3:
            query, headers = self.query(), self.headers()
        options: dict[str, t.Any] = {"method": method, "query_string": query, "headers": headers}
        if method in ("POST", "PUT", "PATCH") or self.random.random() < 0.1:
            if _is_page(rule):
                options["data"] = {**self.random.choice(FORMS), self.random.choice(["user", "csrf", "x"]): "\u202e\0"}
                if self.random.random() < 0.6:
                    options["data"] = {"csrf": self.csrf(user)}
            else:
                options["data"] = self.body(rule)
        self.log.where = "no exception was logged"
        answer = client.open(path, **options)
        status = answer.status_code
        for _ in zip(answer.response, range(3)):  # what is streamed fails only when it is read
            pass
        answer.close()
        self.statuses[status] += 1
        if status >= 500:
            body = repr(options.get("data"))[:600]
            sent = json.dumps({"path": path[:300], "query": query[:300], "headers": headers, "body": body})
            self.faults.append(Fault(f"{method} {rule} as {user}", status, self.log.where, sent))

    def client(self, user: str, rule: str) -> FlaskClient:
        client = self.api.app.test_client()
        token = self.tokens[user]
        if _is_page(rule):
            client.set_cookie(session.COOKIE, token)
        else:
            client.environ_base["HTTP_X_AUTH_TOKEN"] = token
        return client

    def csrf(self, user: str) -> str:
        client = self.client(user, "/quotas")
        found = re.search(r'name="csrf" value="([0-9a-f]+)"', client.get("/quotas").get_data(as_text=True))
        return found[1] if found else "x"

    def keep(self, path: pathlib.Path) -> None:
        """Remember the ledger as it is now."""
        self.kept = path
        with contextlib.closing(sqlite3.connect(path)) as kept:
            self._copy(kept, restore=False)

    def restore(self) -> None:
        """Bring back what was deleted, users and tokens among it."""
        with contextlib.closing(sqlite3.connect(self.kept)) as kept:
            self._copy(kept, restore=True)

    def _copy(self, kept: sqlite3.Connection, restore: bool) -> None:
        raw = self.api.engine.raw_connection()
        ledger = t.cast(sqlite3.Connection, raw.driver_connection)
        source, target = (kept, ledger) if restore else (ledger, kept)
        source.backup(target)
        raw.close()


@pytest.fixture(scope="module")
def fuzz(api: seeds.Api, tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[Fuzz]:
    made = Fuzz(api)
    made.keep(tmp_path_factory.mktemp("kept") / "ledger.sqlite")
    api.app.logger.addHandler(made.log)
    yield made
    api.app.logger.removeHandler(made.log)


@pytest.mark.parametrize("service", SERVICES)
def test_whatever_is_sent_to_any_route_is_not_our_fault(
    fuzz: Fuzz, service: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "LONGEST", 0.0)
    monkeypatch.setattr(console, "WAIT", 0.0)
    fuzz.begin(service)
    for rule in sorted(fuzz.api.app.url_map.iter_rules(), key=lambda rule: rule.rule):
        if _service(rule.rule) != service or rule.rule in NOT_READY:
            continue
        fuzz.restore()
        allowed = rule.methods or set()
        fuzz.send(fuzz.random.choice([method for method in METHODS if method not in allowed]), rule.rule, "demo")
        for method in sorted(allowed):
            for user in USERS:
                fuzz.send(method, rule.rule, user, wild=False)
                for _ in range(EXAMPLES):
                    fuzz.send(method, rule.rule, user, wild=fuzz.random.random() < 0.5)
    sent = sum(fuzz.statuses.values())
    print(f"{service}: {sent} requests: {dict(sorted(fuzz.statuses.items()))}")
    assert fuzz.statuses[400] and fuzz.statuses[404]
    assert any(200 <= status < 300 for status in fuzz.statuses)  # it got somewhere
    assert fuzz.statuses[401] < sent / 4
    by_cause: dict[str, list[Fault]] = {}
    for fault in fuzz.faults:
        by_cause.setdefault(f"{fault.status} {fault.where}", []).append(fault)
    told = [f"{len(faults)} x {cause}\n    {faults[0].route} {faults[0].sent}" for cause, faults in by_cause.items()]
    assert not told, f"with NOVALITE_FUZZ_SEED={SEED} NOVALITE_FUZZ_EXAMPLES={EXAMPLES}:\n" + "\n".join(told)


def _dumped(value: t.Any) -> bytes:
    return json.dumps(value).encode()


def _ends(rule: str) -> t.Iterator[str]:
    """The ends of a path that begin with a slash, longest first."""
    parts = rule.split("/")
    for position in range(1, len(parts)):
        yield "/" + "/".join(parts[position:])


def _is_page(rule: str) -> bool:
    return _service(rule) == "pages"


def _service(rule: str) -> str:
    first = rule.split("/")[1]
    return first if first in SERVICES else "pages"
