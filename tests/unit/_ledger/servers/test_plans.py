# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plans of hosts' networks: who floods to whom, what goes with the last guest, which address stays."""

from __future__ import annotations

import ipaddress
import typing as t
import uuid

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute import network_plans, plans
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute.views import instances_by
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.steps.server_plan import server_plan

ENDS = {"hv1": "192.0.2.11", "hv2": "192.0.2.12"}


@pytest.fixture(autouse=True)
def no_domains(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "guest_of", lambda instance, facts, **_where: instance)
    monkeypatch.setattr(plans, "render", lambda guest: "<domain/>")


def plan(cloud: t.Any, **params: t.Any) -> dict[str, t.Any]:
    plan_params = {"instances": [], "existing": [], "leaving": [], "compute_hosts": [], "state_dir": "/s", **params}
    with transaction(cloud.engine) as connection:
        return t.cast("dict[str, t.Any]", server_plan(connection, plan_params)["hosts"])


def instances(cloud: t.Any, *names: str) -> list[t.Any]:
    with transaction(cloud.engine) as connection:
        return instances_by(connection, names=names)


def remotes(of_host: dict[str, t.Any]) -> list[str]:
    (bridge,) = of_host["bridges"]
    return t.cast("list[str]", bridge["vxlan"]["remotes"])


@pytest.fixture
def tenant(cloud: t.Any) -> t.Any:
    """The cloud's network as an isolated VXLAN, and hosts with tunnel ends."""
    cloud.write(
        sa.update(tables.network).values(manager="vxlan", vni=10000, isolated=True, bridge="br10000", mtu=1450),
        *(
            sa.update(tables.compute_host).where(tables.compute_host.c.name == host).values(facts={"address": end})
            for host, end in ENDS.items()
        ),
    )
    return cloud


def launched(cloud: t.Any, name: str, host: str) -> dict[str, t.Any]:
    (instance,) = cloud.server({"name": name, "flavor": "m1.nano", "image": "ami-tiny"})["to_build"]
    cloud.place(instance["uuid"], host)
    return instances(cloud, name)[0]


def float_to(cloud: t.Any, instance: dict[str, t.Any], address: str) -> None:
    cloud.write(
        sa.insert(tables.floating_ip).values(
            id=str(uuid.uuid4()),
            pool="public",
            address=int(ipaddress.IPv4Address(address)),
            project_id=instance["project"]["id"],
            vif_id=instance["nics"][0]["id"],
        )
    )


def test_hosts_flood_to_each_other_as_they_join_and_leave(tenant: t.Any) -> None:
    first = launched(tenant, "a", "hv1")
    hosts = plan(tenant, instances=[first])
    assert set(hosts) == {"hv1"} and remotes(hosts["hv1"]["build"]) == []
    second = launched(tenant, "b", "hv2")
    hosts = plan(tenant, instances=[second])
    assert remotes(hosts["hv2"]["build"]) == [ENDS["hv1"]]
    assert set(hosts["hv1"]) == {"peers"} and remotes(hosts["hv1"]["peers"]) == [ENDS["hv2"]]
    assert hosts["hv1"]["peers"]["bridges"][0]["namespace"] == "nova-br10000"
    third = launched(tenant, "c", "hv2")
    assert plan(tenant, instances=[third])["hv1"]["peers"]["bridges"] == [], "nobody new"
    assert plan(tenant, leaving=[second])["hv1"]["peers"]["bridges"] == [], "the third is still there"
    hosts = plan(tenant, leaving=[second, third])
    assert [bridge["name"] for bridge in hosts["hv2"]["remove"]["last_bridges"]] == ["br10000"]
    assert remotes(hosts["hv1"]["peers"]) == []
    refreshed = plan(tenant, network_hosts=["hv1"])["hv1"]["network"]
    assert remotes(refreshed) == [ENDS["hv2"]]


@pytest.mark.both_databases
def test_two_deletions_at_the_same_time_do_not_leave_the_bridge_to_each_other(tenant: t.Any) -> None:
    first, second = launched(tenant, "a", "hv2"), launched(tenant, "b", "hv2")
    assert plan(tenant, leaving=[first])["hv2"]["remove"]["last_bridges"] == [], "the second needs it"
    uuids = [first["uuid"], second["uuid"]]
    tenant.write(sa.update(tables.instance).where(tables.instance.c.uuid.in_(uuids)).values(task_state="deleting"))
    for leaver in (first, second):
        assert [of["name"] for of in plan(tenant, leaving=[leaver])["hv2"]["remove"]["last_bridges"]] == ["br10000"]


def test_what_a_host_has_to_translate_stands_on_bridges_that_stay(tenant: t.Any) -> None:
    """A floating IP for another server meets one that is being launched, and one that is being deleted."""
    instance = launched(tenant, "a", "hv1")
    network = plan(tenant, network_hosts=["hv1"])["hv1"]["network"]
    assert [of["name"] for of in network["bridges"]] == [of["bridge"] for of in network["routers"]] == ["br10000"]
    tenant.write(
        sa.update(tables.instance).where(tables.instance.c.uuid == instance["uuid"]).values(task_state="deleting")
    )
    network = plan(tenant, network_hosts=["hv1"])["hv1"]["network"]
    assert network == {"bridges": [], "routers": [], "dhcp_networks": [], "ledger": network["ledger"]}


def test_an_attempt_that_failed_is_taken_out_of_the_others_lists(tenant: t.Any) -> None:
    launched(tenant, "a", "hv1")
    second = launched(tenant, "b", "hv1")
    assert plan(tenant, instances=[second]).keys() == {"hv1"}
    third = {**launched(tenant, "c", "hv2"), "attempts": ["hv3"]}
    launched(tenant, "d", "hv2")
    assert remotes(plan(tenant, instances=[third])["hv1"]["peers"]) == [ENDS["hv2"]]


def test_a_host_without_a_tunnel_end_is_named(tenant: t.Any) -> None:
    tenant.write(sa.update(tables.compute_host).where(tables.compute_host.c.name == "hv2").values(facts={}))
    launched(tenant, "a", "hv2")
    with pytest.raises(NovaliteError, match="hv2 has no tunnel address"):
        plan(tenant, instances=[launched(tenant, "b", "hv1")])
    hosts = plan(tenant, leaving=instances(tenant, "a"))
    assert hosts["hv2"]["remove"]["last_bridges"][0]["vxlan"]["local"] is None


def test_floating_ips_of_those_who_stay(cloud: t.Any) -> None:
    cloud.write(sa.insert(tables.floating_pool).values(name="public", cidr="203.0.113.0/24", interface="eth0"))
    here, there = launched(cloud, "a", "hv1"), launched(cloud, "b", "hv1")
    assert plan(cloud, instances=[here])["hv1"]["build"]["routers"] == [], "nothing to translate"
    float_to(cloud, here, "203.0.113.1")
    float_to(cloud, there, "203.0.113.2")
    first, second = (
        {"fixed": each["nics"][0]["ip"], "floating": f"203.0.113.{number}", "interface": "eth0"}
        for number, each in ((1, here), (2, there))
    )
    here, there = instances(cloud, "a", "b")
    (router,) = plan(cloud, instances=[here])["hv1"]["build"]["routers"]
    assert router["floating"] == [first, second], "what is given for a network is all of it"
    (router,) = plan(cloud, existing=[there])["hv1"]["keep"]["routers"]
    assert router["floating"] == [first, second], "also where it is only started again"
    (router,) = plan(cloud, instances=[here], existing=[there])["hv1"]["build"]["routers"]
    assert router["floating"] == [first, second]
    removal = plan(cloud, leaving=[here])["hv1"]["remove"]
    assert [router["floating"] for router in removal["staying_routers"]] == [[first]], "and nobody else's"
    assert removal["last_routers"] == []
    removal = plan(cloud, leaving=[here, there])["hv1"]["remove"]
    assert removal["staying_routers"] == []
    assert [router["bridge"] for router in removal["last_routers"]] == [router["bridge"]]
    (router,) = plan(cloud, network_hosts=["hv1"])["hv1"]["network"]["routers"]
    assert router["floating"] == [first, second]


def test_names_of_guests_on_other_hosts(cloud: t.Any) -> None:
    first = launched(cloud, "a", "hv1")
    assert set(plan(cloud, instances=[first])) == {"hv1"}, "nobody else to tell"
    second, third = launched(cloud, "b", "hv2"), launched(cloud, "c", "hv1")

    def names(of_host: dict[str, t.Any]) -> dict[str, list[str]]:
        (server,) = of_host["dhcp_networks"]
        return {name["hostname"]: name["addresses"] for name in server["names"]}

    hosts = plan(cloud, instances=[second])
    assert names(hosts["hv2"]["build"]) == {"a": [first["nics"][0]["ip"]], "c": [third["nics"][0]["ip"]]}
    assert names(hosts["hv1"]["peers"]) == {"b": [second["nics"][0]["ip"]]}
    assert hosts["hv1"]["peers"]["dhcp_networks"][0]["hosts"] == []
    assert hosts["hv1"]["peers"]["dhcp_networks"][0]["listen"] == first["nics"][0]["dhcp_server"]
    assert "names" not in plan(cloud, leaving=[second])["hv2"]["remove"]["dhcp_networks"][0]
    assert names(plan(cloud, leaving=[second])["hv1"]["peers"]) == {}
    assert names(plan(cloud, leaving=[first])["hv2"]["peers"]) == {"c": [third["nics"][0]["ip"]]}
    # what runs already needs to be told nothing
    assert set(plan(cloud, existing=[first, second, third])) == {"hv1", "hv2"}
    assert all(set(plans) == {"keep"} for plans in plan(cloud, existing=[first, second, third]).values())


def test_a_network_of_many_hosts_calls_at_none_of_them(cloud: t.Any, monkeypatch: pytest.MonkeyPatch) -> None:
    launched(cloud, "a", "hv1")
    monkeypatch.setattr(network_plans, "NAMED_HOSTS", 1)
    hosts = plan(cloud, instances=[launched(cloud, "b", "hv2")])
    assert set(hosts) == {"hv2"} and "names" not in hosts["hv2"]["build"]["dhcp_networks"][0]


def test_each_host_has_its_own_state_directory(cloud: t.Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "guest_of", lambda _instance, _facts, state_dir, **_marks: state_dir)
    monkeypatch.setattr(plans, "render", str)
    cloud.write(sa.update(tables.compute_host).where(tables.compute_host.c.name == "hv2").values(state_dir="/srv/nv"))
    servers = [launched(cloud, "a", "hv1"), launched(cloud, "b", "hv2")]
    new = {**servers[0], "host": "hv9"}  # the ledger does not know it yet
    hosts = plan(cloud, instances=[*servers, new])
    directories = {host: of_host["build"]["state_dir"] for host, of_host in hosts.items()}
    assert directories == {"hv1": "/var/lib/novalite", "hv2": "/srv/nv", "hv9": "/s"}
    assert {host: of_host["build"]["domains"][0]["xml"] for host, of_host in hosts.items()} == directories
