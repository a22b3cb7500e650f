# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""One operation, many doors: whoever asks for it gets the same verdict at each of them.

Which operations have several doors, the application itself says: one without a row in OPERATIONS_BY_DOOR fails.
"""

from __future__ import annotations

import collections
import dataclasses
import pathlib
import typing as t

import botocore.exceptions
import pytest
import sqlalchemy as sa
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.catalog import volume_types
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity import credentials, users
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity.tokens import issue_token
from ansible_collections.novalite.cloud.plugins.module_utils._ledger_module import operation_of
from api.dashboard import session
from api.ec2 import ids
from api.ec2.blueprint import ACTIONS as EC2_ACTIONS
from api.jobs import kinds
from api.openstack.compute.servers.routes_actions import ACTIONS
from api.web.context import ROLES
from api.web.operations import OPERATIONS
from tests.api import conftest, ec2_door, foreign, scenes
from tests.api.agreement.operations import OPERATIONS_BY_DOOR, Ec2, Http, Page, Request, action
from tests.api.seeds import Api

SERVICES = ("identity", "compute", "image", "network", "volume", "v1", "ec2")
Ids = t.Mapping[str, str]

# caller -> (project, role). The objects are alt's.
CALLERS: dict[str, tuple[str, str] | None] = {
    "nobody": None,
    "reader": ("alt", "reader"),
    "member": ("alt", "member"),
    "manager": ("alt", "manager"),
    "administrator": ("alt", "admin"),
    "another project's reader": ("demo", "reader"),
    "another project's member": ("demo", "member"),
    "another project's manager": ("demo", "manager"),
    "another project's administrator": ("demo", "admin"),
}


def doors() -> dict[str, set[str]]:
    """The doors of each operation, as the application declares them."""
    from api import create_app
    from api.settings import Settings

    app = create_app(Settings())
    doors_by_operation: dict[str, set[str]] = collections.defaultdict(set)
    for rule in app.url_map.iter_rules():
        operation = getattr(app.view_functions[rule.endpoint], "policy_operation", None)
        service = rule.rule.split("/")[1]
        if operation is not None and OPERATIONS[operation] != "public":
            doors_by_operation[operation].add(service if service in SERVICES else "pages")
    for declared in EC2_ACTIONS.values():
        doors_by_operation[declared.operation].add("ec2")
    for operation in (*(done.operation for done in ACTIONS.values()), "compute:servers:console_output"):
        doors_by_operation[operation].add("compute")
    for kind in kinds.KINDS.values():
        doors_by_operation[kind.operation].add("v1")
    return doors_by_operation


def door_of(request: Request) -> str:
    if isinstance(request, Ec2):
        return "ec2"
    return "pages" if isinstance(request, Page) else request.path.split("/")[1]


def test_every_operation_with_several_doors_has_a_row() -> None:
    several = {operation: names for operation, names in doors().items() if len(names) > 1}
    assert {
        operation: {door_of(request) for request in row}
        for operation, row in OPERATIONS_BY_DOOR.items()
        if operation in several
    } == several
    assert set(OPERATIONS) >= set(doors())


@dataclasses.dataclass(frozen=True)
class Answer:
    """Answer of a door. Of EC2, `text` is the error's code; of the rest it is the body."""

    status: int
    text: str = ""

    @classmethod
    def of(cls, response: TestResponse) -> Answer:
        text = response.get_data(as_text=True)
        assert response.status_code < 500, (response.request.path, text)
        return cls(401 if "/login" in response.headers.get("Location", "") else response.status_code, text)

    @property
    def verdict(self) -> str:
        """Tell whether the caller is `unknown`, `refused`, sees no such thing (`hidden`), or `may`."""
        if self.status == 401 or self.text in ("AuthFailure", "InvalidClientTokenId"):
            return "unknown"
        if self.status == 403 or self.text == "UnauthorizedOperation":
            return "refused"
        return "hidden" if self.status == 404 or self.text.endswith((".NotFound", ".Unknown")) else "may"


@dataclasses.dataclass(frozen=True)
class Cloud:
    api: Api
    tokens: t.Mapping[str, str]
    clients: t.Mapping[str, t.Any]  # boto3's
    ids: Ids

    def ask(self, caller: str, request: Request) -> Answer:
        project_and_role = CALLERS[caller]
        own = {**self.ids, "own_project": self.api.projects[project_and_role[0] if project_and_role else "demo"]}
        if isinstance(request, Ec2):
            try:
                getattr(self.clients[caller], request.action)(**filled(dict(request.parameters), own))
            except botocore.exceptions.ClientError as error:
                return Answer(error.response["ResponseMetadata"]["HTTPStatusCode"], error.response["Error"]["Code"])
            return Answer(200)
        client = self.api.app.test_client()
        if isinstance(request, Page):
            return self._open_page(client, caller, request.method, filled(request.path, own))
        # os-... and images are there in old versions of Compute only
        old = "os-" in request.path or "/images" in request.path
        headers = {} if old else {"OpenStack-API-Version": "compute 2.37"}
        if project_and_role is not None:
            headers["X-Auth-Token"] = self.tokens[caller]
        if request.method == "PATCH":
            headers["Content-Type"] = "application/openstack-images-v2.1-json-patch"
        path, body = filled(request.path, own), filled(request.body, own)
        return Answer.of(client.open(path, method=request.method, json=body, headers=headers))

    def _open_page(self, client: FlaskClient, caller: str, method: str, path: str) -> Answer:
        form = None
        if caller in self.tokens:
            client.set_cookie(session.COOKIE, self.tokens[caller])
            with self.api.app.test_request_context(headers={"Cookie": f"{session.COOKIE}={self.tokens[caller]}"}):
                form = {"csrf": session.csrf()}
        return Answer.of(client.open(path, method=method, data=form if method == "POST" else None))


def filled(value: t.Any, own: Ids) -> t.Any:
    if isinstance(value, dict):
        return {key: filled(item, own) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item, own) for item in value]
    if isinstance(value, str):
        for kind, number in own.items():
            value = value.replace(f"{{{kind}}}", number)
    return value


@pytest.fixture(scope="module")
def cloud(seeded: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[Cloud]:
    with conftest.application(seeded, tmp_path_factory.mktemp("doors") / "cloud") as api:
        scenes.build(api)
        objects = foreign.make(api)
        with transaction(api.engine) as connection:
            unlimited = dict.fromkeys(("instances", "cores", "ram", "fixed_ips", "ports", "volumes", "gigabytes"), -1)
            operation_of("project")(
                connection, {"state": "present", "projects": [{"name": "alt", "quotas": unlimited}]}
            )
        tokens, keys = {}, {}
        seal = api.seal
        for caller, membership in CALLERS.items():
            if membership is None:
                continue
            project = api.projects[membership[0]]
            with transaction(api.engine) as connection:
                user = {"name": f"the {caller}", "password_hash": "x", "default_project_id": project}
                row = users.insert_user(connection, user)
                users.grant_role(connection, row["id"], project, membership[1])
                tokens[caller] = issue_token(connection, row["id"], project).text
                key = credentials.create_ec2_credential(connection, seal, row["id"], project)
                keys[caller] = (key["access"], key["secret"])
        kinds_of_ec2 = {
            "server": "i",
            "volume": "vol",
            "image": "ami",
            "floating_ip": "eipalloc",
            "port": "eni",
            "security_group": "sg",
            "network": "subnet",
        }
        idle, steady = api.instance("alt", "idle"), api.instance("alt", "steady", host="hv1")
        numbers = {f"ec2_{kind}": ids.of(prefix, objects.id(kind)) for kind, prefix in kinds_of_ec2.items()}
        numbers["ec2_idle"] = ids.of("i", idle)
        with ec2_door.open_door(api) as door:
            clients = {name: ec2_door.client(door.url, *key) for name, key in keys.items()}
            clients["nobody"] = ec2_door.client(door.url, "nosuch", "nosuch")
            yield Cloud(api, tokens, clients, {**objects.ids, **numbers, "steady": steady})


def expected(operation: str, caller: str, hidden: bool, door: str) -> tuple[str, ...]:
    """Return what the one rule says. `hidden`: the request is about an object of alt's."""
    project_and_role = CALLERS[caller]
    if project_and_role is None:
        return ("unknown",)
    project, role = project_and_role
    if ROLES.index(role) < ROLES.index(OPERATIONS[operation]):
        # who may not, on what is not there: OpenStack's services differ in which they say first
        return ("refused", "hidden") if hidden and project != "alt" else ("refused",)
    if not hidden or project == "alt":
        return ("may",)
    # An account of EC2 is a project, also for who administers the cloud; and so are security groups, whose names mean
    # something in their project only.
    everywhere = role == "admin" and door != "ec2" and ":security_groups:" not in operation
    return ("may",) if everywhere else ("hidden",)


@pytest.mark.parametrize("operation", sorted(OPERATIONS_BY_DOOR))
def test_every_door_gives_the_same_verdict(cloud: Cloud, operation: str) -> None:
    wrong = {}
    for caller in CALLERS:
        for request in OPERATIONS_BY_DOOR[operation]:
            text = repr(request)
            about = any(f"{{{kind}}}" in text for kind in cloud.ids)
            verdict = cloud.ask(caller, request).verdict
            right = expected(operation, caller, about, door_of(request))
            if verdict not in right:
                wrong[caller, text] = (verdict, right)
    assert wrong == {}


# --- What a project may name ------------------------------------------------------------------------------------------

FLAVOR, TYPE, SHOWN = "gpu.private", "nvme-private", "12345678-1234-4234-8234-123456789abc"
NEW = {"name": "new", "imageRef": "6a6f9a8a-5f43-4f4e-9d0e-0d0c6a1f7a11", "networks": "none"}
ON_TYPE = {
    "boot_index": -1,
    "source_type": "blank",
    "destination_type": "volume",
    "volume_size": 1,
    "volume_type": TYPE,
}
SERVER = {"name": "new", "flavor": FLAVOR, "image": "ami-tiny"}
WITH_VOLUME = {**SERVER, "flavor": "m1.nano", "volumes": [{"size": 1, "type": TYPE}]}
LAUNCHES_ON_TYPE = (
    ("/v1/plan", {"servers": [WITH_VOLUME]}),
    ("/v1/jobs", {"kind": "launch", "variables": {"servers": [WITH_VOLUME]}}),
    ("/v1/jobs", {"kind": "plan", "variables": {"servers": [WITH_VOLUME]}}),
)
PRIVATE_THINGS: dict[str, tuple[Request, ...]] = {
    "flavor": (
        Http("POST", "/compute/v2.1/servers", {"server": {**NEW, "flavorRef": SHOWN}}),
        Http("GET", f"/compute/v2.1/flavors/{SHOWN}"),
        action("resize", {"flavorRef": SHOWN}),
        Ec2(
            "run_instances", {"ImageId": "ami-6a6f9a8a5f434f4e9", "MinCount": 1, "MaxCount": 1, "InstanceType": FLAVOR}
        ),
        Http("POST", "/v1/plan", {"servers": [SERVER]}),
        Http("POST", "/v1/jobs", {"kind": "launch", "variables": {"servers": [SERVER]}}),
        Http("POST", "/v1/jobs", {"kind": "plan", "variables": {"servers": [SERVER]}}),
    ),
    "volume type": (
        Http("POST", "/volume/v3/{own_project}/volumes", {"volume": {"size": 1, "volume_type": TYPE}}),
        Http(
            "POST",
            "/compute/v2.1/servers",
            {
                "server": {
                    **NEW,
                    "flavorRef": "1",
                    "block_device_mapping_v2": [
                        {"boot_index": 0, "source_type": "image", "destination_type": "local", "uuid": NEW["imageRef"]},
                        ON_TYPE,
                    ],
                }
            },
        ),
        *(Http("POST", path, body) for path, body in LAUNCHES_ON_TYPE),
        Ec2("create_volume", {"AvailabilityZone": "nova", "Size": 1, "VolumeType": TYPE}),
        Ec2(
            "run_instances",
            {
                "ImageId": "ami-6a6f9a8a5f434f4e9",
                "MinCount": 1,
                "MaxCount": 1,
                "BlockDeviceMappings": [{"DeviceName": "/dev/vdb", "Ebs": {"VolumeSize": 1, "VolumeType": TYPE}}],
            },
        ),
    ),
}


@pytest.fixture(scope="module")
def private(cloud: Cloud) -> Cloud:
    """The cloud with a flavor and a volume type that nobody was given."""
    cloud.api.insert(
        tables.flavor, name=FLAVOR, flavorid=SHOWN, vcpus=1, memory_mb=512, root_gb=1, extra_specs={}, is_public=False
    )
    with transaction(cloud.api.engine) as connection:
        volume_types.create_type(connection, {"name": TYPE, "is_public": False, "backend": "file"})
    return cloud


@pytest.mark.parametrize("thing", sorted(PRIVATE_THINGS))
def test_what_is_not_the_projects_can_be_named_at_no_door(private: Cloud, thing: str) -> None:
    for request in PRIVATE_THINGS[thing]:
        answer = private.ask("member", request)
        assert answer.status in (400, 404), (request, answer)
        assert answer.text.count(FLAVOR) <= 1, "it is not among those that are offered"


@pytest.mark.parametrize("thing", sorted(PRIVATE_THINGS))
def test_an_administrator_names_it_at_every_door(private: Cloud, thing: str) -> None:
    for request in PRIVATE_THINGS[thing]:
        answer = private.ask("administrator", request)
        assert answer.status < 300 or answer.status == 409, (request, answer)


# --- What a project may choose on a network that is not its own -----------------------------------------------------

ON_SHARED = {"name": "new", "imageRef": "6a6f9a8a-5f43-4f4e-9d0e-0d0c6a1f7a11", "flavorRef": "1"}
ADDRESS = "10.20.0.77"
SHARED_SERVER = {
    "name": "new",
    "flavor": "m1.nano",
    "image": "ami-tiny",
    "networks": [{"name": "private", "fixed_ip": ADDRESS}],
}
CHOICES: tuple[Request, ...] = (
    Http(
        "POST",
        "/network/v2.0/ports",
        {"port": {"network_id": "{shared}", "allowed_address_pairs": [{"ip_address": "10.20.0.5"}]}},
    ),
    Http("POST", "/network/v2.0/ports", {"port": {"network_id": "{shared}", "mac_address": "52:54:00:12:34:56"}}),
    Http(
        "POST", "/network/v2.0/ports", {"port": {"network_id": "{shared}", "fixed_ips": [{"ip_address": "10.20.0.78"}]}}
    ),
    Http(
        "POST",
        "/compute/v2.1/servers",
        {"server": {**ON_SHARED, "networks": [{"uuid": "{shared}", "fixed_ip": ADDRESS}]}},
    ),
    Http(
        "POST",
        "/compute/v2.1/servers/{steady}/os-interface",
        {"interfaceAttachment": {"net_id": "{shared}", "fixed_ips": [{"ip_address": ADDRESS}]}},
    ),
    Ec2(
        "run_instances",
        {
            "ImageId": "ami-6a6f9a8a5f434f4e9",
            "MinCount": 1,
            "MaxCount": 1,
            "SubnetId": "{ec2_shared}",
            "PrivateIpAddress": ADDRESS,
        },
    ),
    Http("POST", "/v1/plan", {"servers": [SHARED_SERVER]}),
    Http("POST", "/v1/jobs", {"kind": "launch", "variables": {"servers": [SHARED_SERVER]}}),
)


@pytest.mark.parametrize("request_", CHOICES, ids=lambda request: repr(request)[:60])
def test_nobody_chooses_addresses_on_anothers_network(cloud: Cloud, request_: Request) -> None:
    with transaction(cloud.api.engine) as connection:
        query = sa.select(tables.network.c.uuid).where(tables.network.c.name == "private")
        shared = connection.execute(query).scalar_one()
    with_network = dataclasses.replace(
        cloud, ids={**cloud.ids, "shared": shared, "ec2_shared": ids.of("subnet", shared)}
    )
    assert with_network.ask("member", request_).verdict == "refused"
    assert with_network.ask("manager", request_).verdict == "refused"
    assert with_network.ask("administrator", request_).verdict == "may"
