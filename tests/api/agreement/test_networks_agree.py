# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Changes of networks, security groups and floating IPs are decided alike at every door, each in its own words."""

from __future__ import annotations

import dataclasses
import typing as t

import botocore.exceptions
import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from api.ec2 import ids
from api.web import policy
from tests.api import ec2_door
from tests.api.agreement.doors import Answer, Cloud
from tests.api.agreement.operations import Http, Request
from tests.api.agreement.test_doors_agree import CHOICES
from tests.api.seeds import Api


@pytest.fixture
def ec2(api: Api) -> t.Iterator[ec2_door.Door]:
    with ec2_door.open_door(api) as door:
        yield door


def code_of(act: t.Callable[[], object]) -> str:
    """The code with which EC2 refuses."""
    with pytest.raises(botocore.exceptions.ClientError) as refused:
        act()
    return str(refused.value.response["Error"]["Code"])


def by_neutron(api: Api, name: str) -> tuple[int, str]:
    answer = api.client_as("demo").post("/network/v2.0/security-groups", json={"security_group": {"name": name}})
    return answer.status_code, answer.get_json()["NeutronError"]["type"]


def by_compute(api: Api, name: str) -> int:
    body = {"security_group": {"name": name, "description": "x"}}
    return Answer.of(api.client_as("demo").post("/compute/v2.1/os-security-groups", json=body)).status


@pytest.mark.parametrize(
    ("name", "neutron"), [("default", (409, "SecurityGroupDefaultAlreadyExists")), ("{{ x }}", (400, "HTTPBadRequest"))]
)
def test_no_door_makes_a_group_of_a_name_that_is_kept(ec2: ec2_door.Door, name: str, neutron: tuple[int, str]) -> None:
    """Not even for a project whose default group nobody has looked for yet."""
    assert by_neutron(ec2.api, name) == neutron
    assert by_compute(ec2.api, name) == 400
    make = ec2.client().create_security_group
    assert code_of(lambda: make(GroupName=name, Description="x")) == "InvalidParameterValue"


# --- Floating IPs ---------------------------------------------------------------------------------------------------


def test_no_door_gives_an_address_that_the_project_has_as_if_it_were_new(ec2: ec2_door.Door, pool: str) -> None:
    client = ec2.api.client_as("demo")
    body = {"floatingip": {"floating_network_id": pool}}
    address = client.post("/network/v2.0/floatingips", json=body).get_json()["floatingip"]["floating_ip_address"]
    body["floatingip"]["floating_ip_address"] = address
    answer = client.post("/network/v2.0/floatingips", json=body)
    assert (answer.status_code, answer.get_json()["NeutronError"]["type"]) == (409, "FloatingIpAddressInUse")
    assert code_of(lambda: ec2.client().allocate_address(Address=address)) == "InvalidIPAddress.InUse"
    listed = client.get("/network/v2.0/floatingips").get_json()["floatingips"]
    assert [row["floating_ip_address"] for row in listed] == [address]


# --- What a project may choose on a network that is not its own -----------------------------------------------------


# a launch has an entry of its own, of all that is kept from a project
OF_PORTS = [each for each in CHOICES if isinstance(each, Http) and each.path.endswith(("/ports", "/os-interface"))]


@pytest.mark.parametrize("request_", OF_PORTS, ids=lambda request: repr(request)[:60])
def test_whom_the_policy_lets_choose_may_at_every_door(
    cloud: Cloud, request_: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not the role decides, but the entry that the site gave it."""
    (shared,) = cloud.api.rows(sa.select(tables.network.c.uuid).where(tables.network.c.name == "private"))
    numbers = {**cloud.ids, "shared": shared.uuid, "ec2_shared": ids.of("subnet", shared.uuid)}
    asked = dataclasses.replace(cloud, ids=numbers)
    monkeypatch.setitem(policy.POLICY, "network:ports:choose", "manager")
    assert asked.ask("member", request_).verdict == "refused"
    assert asked.ask("manager", request_).verdict == "may"
