# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Orphans, and what is none: placed instances, foreign guests and what they stand on are never touched."""

from __future__ import annotations

import json
import pathlib
import typing as t

import pytest
import sqlalchemy as sa
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute import migrations
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.ledger_identity import ledger_id
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_images import replica
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_migrations import migration
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.placement import departures
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.steps.orphans import orphans
from ansible_collections.novalite.cloud.plugins.module_utils._network.ownership import Mark
from ansible_collections.novalite.cloud.plugins.plugin_utils._texts import as_bool

ROLES = pathlib.Path(__file__).parents[5] / "collections/ansible_collections/novalite/cloud/roles"

NOTHING: dict[str, list[t.Any]] = {
    "domains": [],
    "disks": [],
    "filters": [],
    "chains": [],
    "dhcp_networks": [],
    "bridges": [],
}


def compare(
    cloud: t.Any, host: str, look: dict[str, t.Any], sights: t.Mapping[str, t.Any] | None = None
) -> dict[str, t.Any]:
    """`sights`: what was seen on other hosts, all of which were asked."""
    with transaction(cloud.engine) as connection:
        marks = {"bridge_owners": {"br-private": [Mark(ledger_id(connection)).text]}}
        elsewhere = {"sights": sights or {}, "volumes": {}, "silent": []}
        return orphans(connection, {"host": host, "found": {**NOTHING, **marks, **look}, "elsewhere": elsewhere})


def test_a_filter_of_another_ledger_is_no_leftover(cloud: t.Any, web: dict[str, t.Any]) -> None:
    (name,) = traces(web)["filters"]
    with transaction(cloud.engine) as connection:
        own = Mark(ledger_id(connection)).uuid_of(name, web["uuid"])
    strange = Mark("a04f99fc-9dcc-47f0-9dcd-d9b4f0a12128").uuid_of(name, web["uuid"])
    look = {"filters": [name]}
    assert compare(cloud, "hv1", {**look, "filter_uuids": {name: own}})["plan"]["filters"]
    assert not compare(cloud, "hv1", {**look, "filter_uuids": {name: strange}})["plan"]["filters"]


def leave(cloud: t.Any, uuid: str, host: str) -> None:
    with transaction(cloud.engine) as connection:
        departures.leave(connection, [uuid], host, departures.MOVED, 1)


def running_on(uuid: str, host: str) -> dict[str, t.Any]:
    return {uuid: {host: {"runs": True, "defined": True, "disk": True}}}


def traces(instance: dict[str, t.Any], number: int | None = None, mac: str | None = None) -> dict[str, t.Any]:
    """Everything that a build of the instance leaves on a host."""
    number = instance["id"] if number is None else number
    mac = mac or instance["nics"][0]["mac"]
    name = f"instance-{number:08x}"
    hosts = [{"mac": mac, "ip": "10.20.0.5", "hostname": instance["name"]}]
    return {
        "domains": [{"uuid": instance["uuid"], "name": name, "macs": [mac]}],
        "disks": [instance["uuid"]],
        "filters": [f"nova-instance-{name}"],
        "chains": [{"id": number, "addresses": ["10.20.0.5"]}],
        "dhcp_networks": [
            {"name": "b", "bridge": "br-private", "listen": "10.20.0.2", "cidr": "10.20.0.0/28", "hosts": hosts}
        ],
        "bridges": ["br-private", "docker0"],
    }


@pytest.fixture
def web(cloud: t.Any) -> dict[str, t.Any]:
    (instance,) = cloud.server({"name": "web", "flavor": "m1.nano", "image": "ami-tiny"})["to_build"]
    cloud.place(instance["uuid"], "hv2")
    return t.cast("dict[str, t.Any]", instance)


def test_nothing_of_a_placed_instance_is_left_over(cloud: t.Any, web: dict[str, t.Any]) -> None:
    result = compare(cloud, "hv2", traces(web))
    assert (
        not result["left"]
        and not result["changed"]
        and not any(value for key, value in result["plan"].items() if key != "ledger")
    )


def test_all_of_an_instance_that_is_elsewhere_is_left_over(cloud: t.Any, web: dict[str, t.Any]) -> None:
    leave(cloud, web["uuid"], "hv1")
    result = compare(cloud, "hv1", traces(web), running_on(web["uuid"], "hv2"))
    plan = result["plan"]
    assert plan["domains"] == [{"uuid": web["uuid"], "name": web["domain_name"]}]
    assert plan["disks"] == [{"uuid": web["uuid"], "to_bin": True}]
    assert plan["only_off"] == []
    why = "web left hv1 (moved) and runs on hv2"
    assert result["proofs"] == {web["uuid"]: {"proof": "left_and_is_elsewhere", "why": why}}
    assert plan["filters"] == [{"name": f"nova-instance-{web['domain_name']}", "uuid": web["uuid"]}]
    assert plan["firewall_instances"] == [{"id": web["id"], "addresses": ["10.20.0.5"]}]
    assert [network["hosts"][0]["mac"] for network in plan["dhcp_networks"]] == [web["nics"][0]["mac"]]
    assert [bridge["name"] for bridge in plan["last_bridges"]] == ["br-private"]


def test_chains_that_another_instance_of_its_number_marked_stay(cloud: t.Any, web: dict[str, t.Any]) -> None:
    leave(cloud, web["uuid"], "hv1")
    for uuid, ours in ((web["uuid"], True), ("6f1b6a2c-3f0e-4b1d-9a57-000000000009", False)):
        look = {**traces(web), "chains": [{"id": web["id"], "uuid": uuid, "addresses": []}]}
        plan = compare(cloud, "hv1", look, running_on(web["uuid"], "hv2"))["plan"]
        assert bool(plan["firewall_instances"]) == ours


def test_of_an_instance_that_waits_to_be_confirmed_its_source_keeps_the_disks(
    cloud: t.Any, web: dict[str, t.Any]
) -> None:
    (row,) = cloud.rows(sa.select(tables.instance))
    with transaction(cloud.engine) as connection:
        migrations.insert(connection, "migrate", row)
    cloud.write(sa.update(migration).values(source_host="hv1", dest_host="hv2", status="reverting"))
    claim = cloud.rows(sa.select(tables.allocation))[0]._mapping
    (hv1,) = cloud.rows(sa.select(tables.compute_host.c.id).where(tables.compute_host.c.name == "hv1"))
    cloud.write(sa.insert(tables.allocation).values({**claim, "compute_host_id": hv1.id}))
    assert not compare(cloud, "hv1", traces(web))["left"]  # on its way back
    # on hv2 it is being started just now
    cloud.write(
        sa.update(migration).values(status="finished"),
        sa.update(tables.instance).values(vm_state="resized", task_state="rebooting_hard"),
    )
    leave(cloud, web["uuid"], "hv1")
    plan = compare(cloud, "hv1", traces(web), running_on(web["uuid"], "hv2"))["plan"]
    assert [domain["uuid"] for domain in plan["domains"]] == [web["uuid"]] and plan["disks"] == []
    assert plan["filters"] and plan["firewall_instances"] and plan["dhcp_networks"] and plan["last_bridges"]
    assert not compare(cloud, "hv2", traces(web))["left"]


def test_the_address_of_a_host_that_an_instance_is_on_its_way_to_stays(cloud: t.Any, web: dict[str, t.Any]) -> None:
    cloud.write(sa.update(tables.instance).values(host="hv1", task_state="resize_migrating"))
    assert not compare(cloud, "hv2", NOTHING)["changed"]


@pytest.mark.parametrize(("state", "may_not_run"), [("shutoff", True), ("crashed", False), (None, True)])
def test_what_was_seen_off_goes_only_as_long_as_it_is(
    cloud: t.Any, web: dict[str, t.Any], state: str | None, may_not_run: bool
) -> None:
    leave(cloud, web["uuid"], "hv1")
    look = traces(web)
    look["domains"] = [{**look["domains"][0], "state": state}] if state else []
    plan = compare(cloud, "hv1", look, running_on(web["uuid"], "hv2"))["plan"]
    assert plan["disks"] and plan["only_off"] == [web["uuid"]] * may_not_run


def test_an_adopted_guest_that_is_elsewhere_stays_with_all_it_stands_on(cloud: t.Any, web: dict[str, t.Any]) -> None:
    """Somebody brought it here: it is its owner's, whatever else the ledger knows."""
    cloud.write(sa.update(tables.instance).values(adopted={"domain": "db", "at": 1, "disks": [], "reserved": []}))
    leave(cloud, web["uuid"], "hv1")
    result = compare(cloud, "hv1", traces(web), running_on(web["uuid"], "hv2"))
    assert not result["left"] and result["contested"] == result["unknown"] == []


def test_a_guest_of_another_ledger_keeps_what_it_stands_on(cloud: t.Any, web: dict[str, t.Any]) -> None:
    # the other ledger counts from 1, too: the same number, chain and filter
    foreign = traces({"uuid": "f" * 8 + "-0000-4000-8000-000000000000", "name": "x"}, web["id"], "fa:16:3e:00:00:01")
    result = compare(cloud, "hv1", foreign)
    assert not result["left"] and [instance["uuid"] for instance in result["unknown"]] == [foreign["disks"][0]]


def test_what_others_made_is_not_left_over(cloud: t.Any, web: dict[str, t.Any]) -> None:
    """A bridge of the operator's that a network uses, and another ledger's bridge and DHCP server of the same name."""
    look = {"dhcp_networks": traces(web)["dhcp_networks"], "bridges": ["br-private"]}
    other = Mark("7b0f6a52-9d2e-4a53-8c53-9a1d3c2b7e22").text
    for owners in ([], [other]):
        plan = compare(cloud, "hv1", {**look, "bridge_owners": {"br-private": owners}})["plan"]
        assert plan["last_bridges"] == plan["last_routers"] == plan["last_metadata_networks"] == []
    assert plan["dhcp_networks"]  # without a mark: made before there were any
    assert not compare(cloud, "hv1", {**look, "bridge_owners": {}, "dhcp_owners": {"br-private": other}})["left"]


def test_an_address_of_the_hosts_own_goes_with_its_last_instance(cloud: t.Any, web: dict[str, t.Any]) -> None:
    owner = tables.fixed_ip.c.owner
    held = sa.select(owner).where(owner.like("dhcp:%"))
    assert not compare(cloud, "hv2", NOTHING)["changed"]
    assert [row.owner for row in cloud.rows(held)] == ["dhcp:hv2"]
    further = sa.select(sa.func.max(tables.fixed_ip.c.ip)).where(tables.fixed_ip.c.reserved.is_(None)).scalar_subquery()
    cloud.write(sa.update(tables.fixed_ip).where(tables.fixed_ip.c.ip == further).values(owner="dhcp:hv2/1"))
    # built elsewhere in the end
    cloud.write(sa.delete(tables.allocation), sa.update(tables.instance).values(host="hv1"))
    result = compare(cloud, "hv2", NOTHING)
    assert result["changed"] and result["diff"]["before"] == {"host_addresses": ["private"]}
    assert cloud.rows(held) == []


def test_the_role_takes_the_plan(cloud: t.Any, web: dict[str, t.Any]) -> None:
    """All steps of a trip have their arguments worked out, those that are left out, too."""
    loader = DataLoader()
    (task,) = loader.load_from_file(str(ROLES / "reclaim/tasks/main.yml"), trusted_as_template=True)
    variables = {
        **loader.load_from_file(str(ROLES / "reclaim/defaults/main.yml"), trusted_as_template=True),
        "reclaim_plan": compare(cloud, "hv1", traces(web))["plan"],
    }
    templar = Templar(loader, variables=variables)
    # outside of ansible-playbook there is no collection to find it in
    templar.environment.filters["novalite.cloud.as_bool"] = as_bool
    steps = templar.template(task["novalite.cloud.host_steps"]["steps"])
    taken = json.loads(json.dumps(steps))  # which works out all of it
    assert "disk" in [step["module"] for step in taken if step.get("when", True)]


def test_copies_of_disks_that_a_restored_ledger_does_not_know_stay_unless_their_server_is_deleted(
    cloud: t.Any, web: dict[str, t.Any]
) -> None:
    uuid, strange = web["uuid"], "a04f99fc-9dcc-47f0-9dcd-d9b4f0a12128"
    look = {"copies": [uuid, strange]}
    result = compare(cloud, "hv2", look)
    assert (result["unrecorded_copies"], result["plan"]["copies"], result["left"]) == ([uuid], [], False)
    cloud.write(sa.update(tables.instance).where(tables.instance.c.uuid == uuid).values(deleted=tables.instance.c.id))
    result = compare(cloud, "hv2", look)
    assert (result["unrecorded_copies"], result["plan"]["copies"], result["left"]) == ([], [{"uuid": uuid}], True)


@pytest.mark.parametrize("field", ["host", "next_host", "former"])
def test_copies_that_the_ledger_knows_are_no_leftovers(cloud: t.Any, web: dict[str, t.Any], field: str) -> None:
    values = {"instance_uuid": web["uuid"], "every": 300, "former": [], "created_at": 1, "updated_at": 1}
    cloud.write(sa.insert(replica).values({**values, field: ["hv2"] if field == "former" else "hv2"}))
    assert compare(cloud, "hv2", {"copies": [web["uuid"]]})["unrecorded_copies"] == []
    assert compare(cloud, "hv1", {"copies": [web["uuid"]]})["unrecorded_copies"] == [web["uuid"]]
