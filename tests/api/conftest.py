# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A ledger with guests in it, and the application over it."""

from __future__ import annotations

import contextlib
import pathlib
import shutil
import typing as t
import warnings

import pytest
import sqlalchemy as sa
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.routing import Rule
from werkzeug.test import TestResponse

from ansible_collections.novalite.cloud.plugins.module_utils._guest import signature
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._rules import passwords
from ansible_collections.novalite.cloud.plugins.module_utils._secret_file import ensure_secret
from api import create_app
from api.settings import Settings
from api.work import waiting
from tests.api import applications, ec2_door, scenes, seeds
from tests.api.doors import Doors
from tests.support.cloud import Cloud as AnyCloud
from tests.support.cloud import Network, sqlite

BASES = {"compute": "/compute/v2.1", "image": "/image/v2", "network": "/network/v2.0"}


@contextlib.contextmanager
def cheap() -> t.Iterator[None]:
    """Passwords that cost little to try. The real ones (tests/unit/_rules/test_passwords.py) took two thirds of the
    time of Identity's tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passwords, "METHOD", "scrypt:512:8:1")
        yield


@pytest.fixture(autouse=True)
def cheap_passwords() -> t.Iterator[None]:
    with cheap():
        yield


class Cloud(AnyCloud):
    """A ledger with guests in it, whose metadata a proxy asks for."""

    def __init__(self, home: pathlib.Path) -> None:
        super().__init__(sqlite(home))
        self.home = home
        self.secret = ensure_secret(str(home / "metadata.secret"))

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
        documents: dict[str, str] = {}
        todo = ["/", "/openstack/"]
        while todo:
            path = todo.pop()
            documents[path] = self.text(path)
            if not path.endswith("/"):
                continue
            lines = documents[path].splitlines()
            for line in (lines[0], lines[-1]) if path in ("/", "/openstack/") else lines:
                name = line.partition("=")[0]
                directory = line.endswith("/") or "=" in line or path in ("/", "/openstack/")
                todo.append(path + name.rstrip("/") + ("/" if directory else ""))
        return documents


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


@pytest.fixture(scope="session", autouse=True)
def _answers_wait_for_no_job() -> t.Iterator[None]:
    """Most tests have no worker that would end one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(waiting, "WAIT", 0.0)
        yield


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests that end a job themselves."""
    monkeypatch.setattr(waiting, "WAIT", 20.0)


@pytest.fixture
def cloud(migrated: pathlib.Path, tmp_path: pathlib.Path) -> t.Iterator[Cloud]:
    made = Cloud(pathlib.Path(shutil.copytree(migrated, tmp_path / "home")))
    yield made
    made.close()


@pytest.fixture
def doors(cloud: Cloud, request: pytest.FixtureRequest) -> t.Iterator[Doors]:
    """The doors of the service that the test's folder is named after."""
    with applications.application(cloud.home) as app:
        yield Doors(cloud, BASES[request.path.parent.name], app)


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
    made = AnyCloud(sqlite(home))
    with cheap():
        seeds.seed(made)
    made.close()
    return home


@contextlib.contextmanager
def application(seeded: pathlib.Path, home: pathlib.Path, **settings: t.Any) -> t.Iterator[seeds.Api]:
    """The whole application over a copy in `home` of the ledger in `seeded`."""
    with applications.application(pathlib.Path(shutil.copytree(seeded, home)), **settings) as app:
        yield seeds.Api(app)


@pytest.fixture
def api(seeded: pathlib.Path, tmp_path: pathlib.Path) -> t.Iterator[seeds.Api]:
    """The whole application over a copy of that cloud: projects, users, flavors, an image, a network, hosts."""
    with application(seeded, tmp_path / "cloud") as opened:
        yield opened


@pytest.fixture
def scene(api: seeds.Api) -> scenes.Scene:
    return scenes.build(api)


@pytest.fixture
def client_as(api: seeds.Api) -> t.Callable[..., FlaskClient]:
    """client_as("demo"): a test client with a token of that user (demo, alt, reader, admin; None: without one)."""
    return api.client_as


@pytest.fixture
def sdk(api: seeds.Api) -> t.Iterator[t.Callable[[str], t.Any]]:
    """sdk("demo"): openstacksdk's connection as that user, to the application on a socket."""
    import openstack

    warnings.simplefilter("ignore")  # its own, of its own; until the test ends, whose filters pytest puts back

    def connect(name: str) -> t.Any:
        place = {"auth_url": f"{url}/identity/v3", "project_name": seeds.USERS[name][0]}
        who = {"username": name, "password": seeds.password(name)}
        domains = dict.fromkeys(("user_domain_id", "project_domain_id"), "default")
        login = {**place, **who, **domains}
        return openstack.connect(load_yaml_config=False, load_envvars=False, auth=login, region_name="RegionOne")

    with ec2_door.served(api) as url:
        yield connect


@pytest.fixture
def own_network(api: seeds.Api) -> None:
    """The network is demo's own: on another's, a project chooses no addresses."""
    api.write(sa.update(tables.network).values(owner=api.projects["demo"]))
