# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A ledger with guests in it, and the application over it."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import ipaddress
import pathlib
import shutil
import typing as t
import uuid

import pytest
import sqlalchemy as sa
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.routing import Rule
from werkzeug.test import TestResponse

from ansible_collections.novalite.cloud.plugins.module_utils._guest import signature
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import open_ledger, transaction
from ansible_collections.novalite.cloud.plugins.module_utils._secret_file import ensure_secret
from api import create_app
from api.settings import Settings
from tests.api import seeds


@dataclasses.dataclass(frozen=True)
class Network:
    id: int
    uuid: str
    cidr: str
    cidr_v6: str | None


class Cloud:
    """Records in a ledger, written as they are: what the playbooks would have made of them is not this test's."""

    def __init__(self, home: pathlib.Path) -> None:
        self.home = home
        self.engine = open_ledger(str(home))
        self.secret = ensure_secret(str(home / "metadata.secret"))

    def _insert(self, table: sa.Table, **values: t.Any) -> t.Any:
        with transaction(self.engine) as connection:
            done = connection.execute(sa.insert(table).values(**values)).inserted_primary_key
        assert done is not None
        return done[0]

    def host(self, name: str, zone: str = "nova") -> str:
        self._insert(
            tables.compute_host,
            name=name,
            enabled=True,
            up=True,
            last_seen_at=0,
            zone=zone,
            aggregates=[],
            traits=[],
            vcpus=4,
            memory_mb=4096,
            disk_gb=40,
            reserved_vcpus=0,
            reserved_memory_mb=0,
            reserved_disk_gb=0,
            cpu_ratio=1.0,
            ram_ratio=1.0,
            disk_ratio=1.0,
            facts={},
        )
        return name

    def project(self, name: str) -> str:
        number = uuid.uuid4().hex
        self._insert(tables.project, id=number, name=name, created_at=0)
        return number

    def network(self, name: str, cidr: str = "10.9.0.0/24", cidr_v6: str | None = None, **values: t.Any) -> Network:
        network_uuid = str(uuid.uuid4())
        values = {"owner": "", "dhcp": True, "dns": [], "isolated": True, "ntp": [], **values}
        number = self._insert(
            tables.network, uuid=network_uuid, name=name, cidr=cidr, cidr_v6=cidr_v6, bridge=f"br{name}"[:15], **values
        )
        return Network(number, network_uuid, cidr, cidr_v6)

    def instance(
        self,
        project: str,
        name: str,
        host: str | None,
        nics: t.Sequence[tuple[Network, str] | tuple[Network, str, str]] = (),
        user_data: bytes | None = None,
        files: t.Mapping[str, bytes] | None = None,
        groups: t.Sequence[int] = (),
        **values: t.Any,
    ) -> str:
        """`nics` are (network, IPv4) or (network, IPv4, IPv6). Returns the UUID."""
        instance_uuid = str(uuid.uuid4())
        row = {
            "flavor": {
                "name": "m1.tiny",
                "vcpus": 1,
                "memory_mb": 512,
                "root_gb": 1,
                "ephemeral_gb": 0,
                "swap_mb": 0,
                "extra_specs": {},
            },
            "image": {"id": str(uuid.uuid4()), "name": "ami-tiny", "kernel": None, "ramdisk": None, "properties": {}},
            "metadata": {},
            "attempts": [],
            "vm_state": "active",
            "hostname": name,
            "created_at": 0,
            "updated_at": 0,
            **values,
        }
        number = self._insert(
            tables.instance,
            uuid=instance_uuid,
            project_id=project,
            name=name,
            host=host,
            user_data=None if user_data is None else base64.b64encode(user_data).decode(),
            files=None
            if files is None
            else [{"path": path, "content": base64.b64encode(text).decode()} for path, text in files.items()],
            **row,
        )
        for position, (network, address, *ipv6) in enumerate(nics):
            vif = str(uuid.uuid4())
            self._insert(
                tables.vif,
                id=vif,
                instance_uuid=instance_uuid,
                network_id=network.id,
                position=position,
                mac="fa:16:3e:" + ":".join(vif[i : i + 2] for i in (0, 2, 4)),
                ipv6=ipv6[0] if ipv6 else None,
            )
            number_of_ip = int(ipaddress.IPv4Address(address))
            self._insert(tables.fixed_ip, network_id=network.id, ip=number_of_ip, owner=f"vif:{vif}")
        for group in groups:
            self._insert(tables.instance_security_group, instance_id=number, group_id=group)
        return instance_uuid

    def delete(self, uuid_: str) -> None:
        table = tables.instance
        with transaction(self.engine) as connection:
            connection.execute(sa.update(table).where(table.c.uuid == uuid_).values(deleted=table.c.id))

    def headers(self, host: str, network: Network | str, address: str) -> dict[str, str]:
        """Headers that the proxy on `host` sends for a guest."""
        network_uuid = network if isinstance(network, str) else network.uuid
        return {
            signature.HOST_HEADER: host,
            signature.NETWORK_HEADER: network_uuid,
            signature.ADDRESS_HEADER: address,
            signature.SIGNATURE_HEADER: signature.sign(
                signature.host_key(self.secret, host), host, network_uuid, address
            ),
        }


class Guest:
    """Asks as a guest whose proxy is on `host`."""

    def __init__(self, client: FlaskClient, headers: dict[str, str]) -> None:
        self.client = client
        self.headers = headers

    def ask(self, path: str) -> TestResponse:
        return self.client.get(path, headers=self.headers)

    def text(self, path: str) -> str:
        answer = self.ask(path)
        assert answer.status_code == 200, (path, answer.status)
        return answer.get_data(as_text=True)

    def crawl(self) -> dict[str, str]:
        """Every document that listings lead to, by its path; of the versions, which are alike, first and last."""
        found: dict[str, str] = {}
        todo = ["/", "/openstack/"]
        while todo:
            path = todo.pop()
            found[path] = self.text(path)
            if not path.endswith("/"):
                continue
            lines = found[path].splitlines()
            for line in (lines[0], lines[-1]) if path in ("/", "/openstack/") else lines:
                name = line.partition("=")[0]
                directory = line.endswith("/") or "=" in line or path in ("/", "/openstack/")
                todo.append(path + name.rstrip("/") + ("/" if directory else ""))
        return found


@pytest.fixture(scope="session", autouse=True)
def _url_builders_are_compiled_once() -> t.Iterator[None]:
    """Each test has an application of its own, with a thousand routes. Werkzeug compiles two functions for each of
    them, which took a quarter of these tests' time; they are bound to a rule only afterwards, and so can be shared."""
    compiled: dict[t.Hashable, t.Any] = {}
    compile_builder = Rule._compile_builder

    def once(rule: Rule, append_unknown: bool = True) -> t.Any:
        key = (rule.rule, tuple(rule._trace), tuple(sorted((rule.defaults or {}).items())), append_unknown)
        if key not in compiled:
            compiled[key] = compile_builder(rule, append_unknown)
        return compiled[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Rule, "_compile_builder", once)
        yield


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """An empty ledger's home; to copy it is ten times quicker than to migrate anew."""
    home = tmp_path_factory.mktemp("migrated")
    open_ledger(str(home)).dispose()
    return home


@pytest.fixture
def cloud(migrated: pathlib.Path, tmp_path: pathlib.Path) -> t.Iterator[Cloud]:
    made = Cloud(pathlib.Path(shutil.copytree(migrated, tmp_path / "home")))
    yield made
    made.engine.dispose()


@pytest.fixture
def app(cloud: Cloud) -> t.Iterator[Flask]:
    made = create_app(Settings(home=str(cloud.home)), ["metadata"])
    yield made
    made.extensions["ledger"].close()


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return app.test_client()


@pytest.fixture(scope="session")
def seeded(migrated: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The home of a ledger with seeds.py's cloud in it."""
    home = pathlib.Path(shutil.copytree(migrated, tmp_path_factory.mktemp("seeded") / "home"))
    engine = open_ledger(str(home))
    seeds.seed(engine)
    engine.dispose()
    return home


@contextlib.contextmanager
def application(seeded: pathlib.Path, home: pathlib.Path, **settings: t.Any) -> t.Iterator[seeds.Api]:
    """The whole application over a copy in `home` of the ledger in `seeded`. Tests ask quicker than callers may."""
    settings = {"api_burst": 10**6, "api_anonymous_burst": 10**6, **settings}
    app = create_app(Settings(home=str(shutil.copytree(seeded, home)), **settings))
    engine = app.extensions["ledger"].engine
    with engine.connect() as connection:
        projects = {row.name: row.id for row in connection.execute(sa.select(tables.project))}
        users = {row.name: row.id for row in connection.execute(sa.select(tables.tables_identity.user))}
    yield seeds.Api(app, engine, projects, users)
    app.extensions["ledger"].close()


@pytest.fixture
def api(seeded: pathlib.Path, tmp_path: pathlib.Path) -> t.Iterator[seeds.Api]:
    """The whole application over a copy of that cloud: projects, users, flavors, an image, a network, hosts."""
    with application(seeded, tmp_path / "cloud") as opened:
        yield opened


@pytest.fixture
def client_as(api: seeds.Api) -> t.Callable[..., FlaskClient]:
    """client_as("demo"): a test client with a token of that user (demo, alt, reader, admin; None: without one)."""
    return api.client_as


@pytest.fixture
def own_network(api: seeds.Api) -> None:
    """The network is demo's own: on another's, a project chooses no addresses."""
    with transaction(api.engine) as connection:
        connection.execute(sa.update(tables.network).values(owner=api.projects["demo"]))
