# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""One operation, many doors: whoever asks for it gets the same verdict at each of them.

Which operations have several doors, the application itself says: one without a row in OPERATIONS_BY_DOOR fails.
"""

from __future__ import annotations

import collections
import dataclasses

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.catalog import volume_types
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from api.ec2 import ids
from api.ec2.blueprint import ACTIONS as EC2_ACTIONS
from api.jobs import kinds
from api.openstack.compute.servers.routes_actions import ACTIONS
from api.web.context import ROLES
from api.web.operations import OPERATIONS
from tests.api.agreement.doors import CALLERS, Cloud
from tests.api.agreement.operations import OPERATIONS_BY_DOOR, Ec2, Http, Page, Request, action

SERVICES = ("identity", "compute", "image", "network", "volume", "v1", "ec2")


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
