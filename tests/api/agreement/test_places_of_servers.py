# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A new server's zone, networks and default group: the same decision at every door that makes servers."""

from __future__ import annotations

import typing as t
from unittest import mock

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from tests.api.seeds import IMAGE_ID, Api

Answer = tuple[bool, str]  # whether it was refused, and the words
Ask = t.Callable[[Api, str, t.Mapping[str, t.Any]], Answer]


def compute(api: Api, name: str, wishes: t.Mapping[str, t.Any]) -> Answer:
    uuids = {row.name: row.uuid for row in api.rows(sa.select(tables.network.c.name, tables.network.c.uuid))}
    body = {"name": name, "flavorRef": "1", "imageRef": IMAGE_ID, **wishes}
    if "networks" in body:
        body["networks"] = [{"uuid": uuids[network]} for network in body["networks"]]
    answer = api.client_as("demo").post("/compute/v2.1/servers", json={"server": body})
    return answer.status_code != 202, answer.get_data(as_text=True)


def playbook(api: Api, name: str, wishes: t.Mapping[str, t.Any]) -> Answer:
    try:
        api.task("server", servers=[{"name": name, "flavor": "m1.nano", "image": "ami-tiny", **wishes}])
    except NovaliteError as error:
        return True, str(error)
    return False, ""


def plan(api: Api, name: str, wishes: t.Mapping[str, t.Any]) -> Answer:
    """Ask /v1 what a launch would do: a job of the kind `launch` says the same later."""
    servers = [{"name": name, "flavor": "m1.nano", "image": "ami-tiny", **wishes}]
    answer = api.client_as("demo").post("/v1/plan", json={"servers": servers})
    return answer.status_code != 200, answer.get_data(as_text=True)


DOORS: tuple[Ask, ...] = (compute, playbook, plan)


@pytest.mark.parametrize("ask", DOORS)
def test_a_network_without_a_subnet_is_refused(api: Api, ask: Ask) -> None:
    network = api.client_as("demo").post("/network/v2.0/networks", json={"network": {"name": "bare"}})
    assert network.status_code == 201
    refused, words = ask(api, "web", {"networks": ["bare"]})
    assert refused and "bare requires a subnet" in words
    assert not api.rows(sa.select(tables.instance).where(tables.instance.c.name == "web"))
    # it is none of those to choose from either: one is left that has addresses
    assert not ask(api, "web", {})[0]


@pytest.mark.parametrize("ask", DOORS)
def test_of_several_networks_one_has_to_be_named(api: Api, ask: Ask) -> None:
    api.run("network", networks=[{"name": "second", "cidr": "10.40.0.0/24", "bridge": "br140"}])
    refused, words = ask(api, "web", {})
    assert refused and ("Multiple possible networks" in words or "sees 2 (private, second)" in words)
    assert not ask(api, "web", {"networks": ["second"]})[0]


@pytest.mark.parametrize("ask", DOORS)
def test_an_unknown_zone_is_refused_at_once(api: Api, ask: Ask) -> None:
    refused, words = ask(api, "web", {"availability_zone": "mars"})
    assert refused and "The requested availability zone is not available" in words
    assert not api.rows(sa.select(tables.instance).where(tables.instance.c.name == "web"))
    assert not ask(api, "web", {"availability_zone": "nova"})[0]


def _by_inventory(api: Api) -> None:
    for host in HOSTS:
        api.change_host(host, zone="east")


def _by_aggregate(api: Api) -> None:
    api.run("aggregate", aggregates=[{"name": "racks", "zone": "east", "hosts": list(HOSTS)}])


def _by_aggregate_of_inventory(api: Api) -> None:
    api.run("aggregate", aggregates=[{"name": "racks", "zone": "east"}, {"name": "a", "metadata": {"x": "y"}}])
    for host in HOSTS:
        api.change_host(host, aggregates=["a", "racks"])


HOSTS = ("hv1", "hv2")
ZONES = (_by_inventory, _by_aggregate, _by_aggregate_of_inventory)


@pytest.mark.parametrize("make_zone", ZONES)
@pytest.mark.parametrize("ask", DOORS)
def test_a_zone_is_the_same_whoever_says_which_hosts_it_has(
    api: Api, ask: Ask, make_zone: t.Callable[..., None]
) -> None:
    make_zone(api)
    assert ask(api, "web", {"availability_zone": "east"}) == (False, mock.ANY)
    refused, words = ask(api, "other", {"availability_zone": "nova"})  # which they have left
    assert refused and "The requested availability zone is not available" in words


@pytest.mark.parametrize("make_zone", ZONES)
def test_servers_and_volumes_are_shown_and_made_in_the_zone_of_their_host(
    api: Api, make_zone: t.Callable[..., None]
) -> None:
    make_zone(api)
    api.instance("demo", "web", host="hv1")
    servers = "/compute/v2.1/servers/detail"
    client = api.client_as("admin")
    (shown,) = client.get(f"{servers}?all_tenants=1&availability_zone=east").get_json()["servers"]
    assert shown["OS-EXT-AZ:availability_zone"] == "east"
    assert client.get(f"{servers}?all_tenants=1&availability_zone=nova").get_json()["servers"] == []
    volume = {"name": "data", "size": 1, "availability_zone": "east"}
    api.task("volume", volumes=[volume], project="demo")


@pytest.mark.parametrize("ask", [playbook, plan])
def test_an_administrator_names_a_host_with_its_zone(api: Api, ask: Ask) -> None:
    refused, words = ask(api, "web", {"availability_zone": "nova:hv1"})
    assert not refused or "forced_host" in words  # at /v1 the member is not an administrator
    refused, words = ask(api, "db", {"availability_zone": "mars:hv1"})
    assert refused and ("The requested availability zone is not available" in words or "forced_host" in words)


def test_the_default_group_of_a_playbook_and_of_v1_is_the_same(api: Api) -> None:
    """A job of /v1 is the playbook: asking for it makes no group; the APIs of OpenStack and EC2 make it open."""
    servers = [{"name": "web", "flavor": "m1.nano", "image": "ami-tiny"}]
    group, rules = tables.security_group, tables.security_group_rule
    demand = {"kind": "launch", "variables": {"servers": servers}}
    assert api.client_as("demo").post("/v1/jobs", json=demand).status_code == 202
    assert not api.rows(sa.select(group))
    for project in ("demo", "alt"):
        api.task("server", project=project, servers=servers)
    assert [row.name for row in api.rows(sa.select(group))] == ["default", "default"]
    assert not api.rows(sa.select(rules))
