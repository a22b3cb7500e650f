# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A value can be an operation of its own: a zone that names a host, an expression that asks about hosts, an address
that was another project's. A member is refused at every door that takes such a value, and nothing is recorded."""

from __future__ import annotations

import typing as t

import botocore.exceptions
import pytest
import sqlalchemy as sa
from flask.testing import FlaskClient

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.network import dns_names
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling import attributes, expressions
from tests.api import ec2_door
from tests.api.seeds import IMAGE_ID, Api

SERVER = {"name": "web", "flavor": "m1.tiny", "image": "ami-tiny", "networks": ["private"]}
# With some of the facts that hosts report besides
ALL = sorted({*attributes._NOVA, *attributes._OURS, "state_dir", "booted_at", "disk_cache", "missing_commands"})
PRIVATE = [name for name in ALL if name not in attributes.FOR_TENANTS]
ZONES = ["nova:hv1", "nova:nosuch", ":hv1", "nova:hv1:hv1", "nova::hv1", "other:hv2"]

Door = t.Callable[[FlaskClient, t.Mapping[str, t.Any]], int]


def compute(client: FlaskClient, values: t.Mapping[str, t.Any]) -> int:
    hints = {**values.get("hints", {}), **{key: values[key] for key in ("requirements", "rank") if key in values}}
    flavors = client.get("/compute/v2.1/flavors").get_json()["flavors"]
    server = {
        "name": "web",
        "imageRef": IMAGE_ID,
        "flavorRef": next(flavor["id"] for flavor in flavors if flavor["name"] == "m1.tiny"),
        "networks": "auto",
        **({"availability_zone": values["availability_zone"]} if "availability_zone" in values else {}),
    }
    return client.post(
        "/compute/v2.1/servers",
        json={"server": server, "os:scheduler_hints": hints},
        headers={"OpenStack-API-Version": "compute 2.37"},
    ).status_code


def launch_job(client: FlaskClient, values: t.Mapping[str, t.Any]) -> int:
    body = {"kind": "launch", "variables": {"servers": [SERVER, {**SERVER, "name": "web-2", **values}]}}
    return client.post("/v1/jobs", json=body).status_code


def plan_job(client: FlaskClient, values: t.Mapping[str, t.Any]) -> int:
    return client.post("/v1/jobs", json={"kind": "plan", "variables": {"servers": [{**SERVER, **values}]}}).status_code


def plan(client: FlaskClient, values: t.Mapping[str, t.Any]) -> int:
    return client.post("/v1/plan", json={"servers": [{**SERVER, **values}]}).status_code


@pytest.fixture
def ec2(api: Api) -> t.Iterator[ec2_door.Door]:
    with ec2_door.open_door(api) as door:
        yield door


DOORS: dict[str, Door] = {"compute": compute, "launch job": launch_job, "plan job": plan_job, "plan": plan}


def asking(name: str) -> list[dict[str, t.Any]]:
    """Every way to ask about the attribute `name` of hosts."""
    return [
        {"requirements": f'{name} = "hv1"'},
        {"requirements": f'zone = "nova" and not ({name}.inside in "hv1 hv2")'},
        {"rank": f"0 - {name} * 2"},
        {"hints": {"query": ["=", f"${name}", "hv1"]}},
        {"hints": {"query": f'["or", ["=", "$zone", "x"], [">", "${name}.inside", 2]]'}},
    ]


def refused_at(api: Api, values: t.Mapping[str, t.Any], door: Door) -> bool:
    """Tell whether a member is refused; what is refused leaves nothing, and an administrator is not."""
    before = recorded(api)
    status = door(api.client_as("demo"), values)
    if status in (400, 403):
        assert recorded(api) == before
        assert door(api.client_as("admin"), values) in (200, 202, 400, 409)
        return True
    assert status in (200, 202), status
    return False


def recorded(api: Api) -> tuple[int, int]:
    with api.engine.connect() as connection:
        count = sa.select(sa.func.count())
        return (
            connection.execute(count.select_from(tables.instance)).scalar_one(),
            connection.execute(count.select_from(tables.tables_jobs.job)).scalar_one(),
        )


@pytest.mark.parametrize("name", PRIVATE)
def test_no_member_asks_hosts_what_tenants_do_not_see(api: Api, name: str) -> None:
    doors = list(DOORS.values())
    for number, values in enumerate(asking(name)):
        door = doors[(number + PRIVATE.index(name)) % len(doors)]  # each value at each door, over all names
        assert refused_at(api, values, door), (values, door)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("zone", ZONES)
def test_no_member_chooses_the_host_by_the_zone(api: Api, door: str, zone: str) -> None:
    assert refused_at(api, {"availability_zone": zone}, DOORS[door])


@pytest.mark.parametrize("door", DOORS)
def test_no_member_chooses_a_host_by_its_address(api: Api, door: str) -> None:
    assert refused_at(api, {"hints": {"build_near_host_ip": "192.0.2.1", "cidr": "/32"}}, DOORS[door])


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    "values",
    [
        {"availability_zone": "nova"},
        *({"requirements": f'{name} != "x"'} for name in sorted(attributes.FOR_TENANTS)),
        {"rank": "1"},
        {"hints": {"query": ["!=", "$cpu_info.arch", "x"]}},
    ],
)
def test_what_tenants_see_may_be_asked_for(api: Api, door: str, values: dict[str, t.Any]) -> None:
    assert not refused_at(api, values, DOORS[door])


def test_an_administrator_may_ask_for_anything(api: Api) -> None:
    for name in ALL:
        assert plan(api.client_as("admin"), {"requirements": f'{name} != "x"'}) == 200


def test_the_names_in_an_expression_are_those_that_it_looks_up() -> None:
    text = 'a > 1 and (b.c in "d" or not e.f.g) && -h * 2 = i | "j k" != \'l\''
    assert expressions.names_in(text) == frozenset("abehi")


@pytest.mark.parametrize("zone", ["nova:hv1", "nova:nosuch"])
def test_ec2_chooses_no_host_either(ec2: ec2_door.Door, zone: str) -> None:
    image = ec2.client().describe_images()["Images"][0]["ImageId"]
    run = {"ImageId": image, "MinCount": 1, "MaxCount": 1, "Placement": {"AvailabilityZone": zone}}
    with pytest.raises(botocore.exceptions.ClientError) as refused:
        ec2.client().run_instances(**run)
    assert refused.value.response["Error"]["Code"] == "UnauthorizedOperation"


# --- Host names -----------------------------------------------------------------------------------------------------


LATEST = {"OpenStack-API-Version": "compute 2.96"}


def made(client: FlaskClient, hostname: str) -> t.Any:
    flavors = client.get("/compute/v2.1/flavors").get_json()["flavors"]
    flavor = next(flavor["id"] for flavor in flavors if flavor["name"] == "m1.tiny")
    server = {"name": "x", "hostname": hostname, "imageRef": IMAGE_ID, "flavorRef": flavor, "networks": "auto"}
    return client.post("/compute/v2.1/servers", json={"server": server}, headers=LATEST)


def named_at_creation(client: FlaskClient, _server_id: str, hostname: str) -> int:
    return int(made(client, hostname).status_code)


def named_later(client: FlaskClient, server_id: str, hostname: str) -> int:
    body = {"server": {"hostname": hostname}}
    return client.put(f"/compute/v2.1/servers/{server_id}", json=body, headers=LATEST).status_code


@pytest.mark.parametrize("names", [named_at_creation, named_later])
def test_no_member_takes_a_name_that_others_look_for(api: Api, names: t.Callable[[FlaskClient, str, str], int]) -> None:
    """A name that is nobody's, in any case, is the asker's mistake, and one that another project has is a conflict."""
    client = api.client_as("demo")
    server_id = made(client, "mine").get_json()["server"]["id"]
    for name in sorted(dns_names.NOBODYS | {"host-10-20-0-3"}):
        assert [names(client, server_id, spelling) for spelling in (name, name.upper())] == [400, 400], name
    assert made(api.client_as("alt"), "theirs").status_code == 202
    assert names(client, server_id, "theirs") == 409


# --- Floating IPs ---------------------------------------------------------------------------------------------------


LAST = "203.0.113.6"


def neutron_takes(door: ec2_door.Door, pool: str, user: str, address: str) -> bool:
    body = {"floatingip": {"floating_network_id": pool, "floating_ip_address": address}}
    answer = door.api.client_as(user).post("/network/v2.0/floatingips", json=body)
    assert answer.status_code in (201, 403), answer.get_data(as_text=True)
    return answer.status_code == 201


def ec2_takes(door: ec2_door.Door, _pool: str, user: str, address: str) -> bool:
    try:
        door.client(user).allocate_address(Address=address)
    except botocore.exceptions.ClientError as error:
        assert error.response["Error"]["Code"] == "UnauthorizedOperation", error
        return False
    return True


def job_takes(door: ec2_door.Door, _pool: str, user: str, address: str) -> bool:
    answer = door.api.client_as(user).post(
        "/v1/jobs", json={"kind": "floating_ips", "variables": {"address": address, "pool": "public"}}
    )
    assert answer.status_code in (202, 403), answer.get_data(as_text=True)
    return answer.status_code == 202


def list_job_takes(door: ec2_door.Door, _pool: str, user: str, address: str) -> bool:
    variables = {"floating_ips": [{"address": address, "pool": "public"}]}
    answer = door.api.client_as(user).post("/v1/jobs", json={"kind": "floating_ips", "variables": variables})
    assert answer.status_code in (202, 403), answer.get_data(as_text=True)
    return answer.status_code == 202


@pytest.mark.parametrize("takes", [neutron_takes, ec2_takes, job_takes, list_job_takes])
def test_a_member_takes_back_its_own_address_and_chooses_no_other(
    ec2: ec2_door.Door, pool: str, takes: t.Callable[[ec2_door.Door, str, str, str], bool]
) -> None:
    """What others' names and allow lists lead to is nobody's to pick: neither an address that another project gave
    back a moment ago, nor one that nobody had."""
    client = ec2.api.client_as("demo")
    body = {"floatingip": {"floating_network_id": pool}}
    made = client.post("/network/v2.0/floatingips", json=body).get_json()["floatingip"]
    address = made["floating_ip_address"]
    assert client.delete(f"/network/v2.0/floatingips/{made['id']}").status_code == 204
    assert not takes(ec2, pool, "alt", address)
    assert not takes(ec2, pool, "alt", LAST)
    assert not takes(ec2, pool, "demo", LAST)
    assert takes(ec2, pool, "demo", address)
    assert takes(ec2, pool, "admin", LAST)
