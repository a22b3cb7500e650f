# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Shelving by name: what hosts are given, what stays the server's, and how it comes back."""

from __future__ import annotations

import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute import plans
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables, tables_volumes
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute.views import instances_by
from tests.unit._ledger.servers.actions.test_reimage import FILE, ask, record, row, server

ACTIONS = sa.select(tables.instance_action).order_by(tables.instance_action.c.id)


@pytest.fixture(autouse=True)
def no_domains(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "guest_of", lambda instance, facts, **_where: instance)
    monkeypatch.setattr(plans, "render", lambda guest: str(guest["image"]["name"]))


def shelve(cloud: t.Any, uuid: str) -> None:
    record(cloud, "shelve", ask(cloud, "shelve", "web"), **FILE)
    offload = ask(cloud, "shelveOffload", uuids=[uuid])
    record(cloud, "shelveOffload", offload)


def images(cloud: t.Any) -> dict[str, t.Any]:
    return {image.name: image for image in cloud.rows(sa.select(tables.image)) if not image.name.startswith("ami-")}


def claims(cloud: t.Any) -> list[int]:
    assert not cloud.run("ledger_heal")["changed"]
    return [claim.compute_host_id for claim in cloud.rows(sa.select(tables.allocation))]


def launched(cloud: t.Any, uuid: str) -> dict[str, t.Any]:
    asked = cloud.run("server", uuids=[uuid])
    return t.cast(
        "dict[str, t.Any]",
        cloud.run(
            "launch_plan",
            instances=asked["to_build"],
            existing=[],
            all_or_nothing=False,
            seen_hosts=["hv1", "hv2", "hv3"],
        ),
    )


def addresses(cloud: t.Any) -> list[t.Any]:
    held = sa.select(tables.fixed_ip.c.ip, tables.fixed_ip.c.owner).where(tables.fixed_ip.c.owner.like("vif:%"))
    return [tuple(address) for address in cloud.rows(held)]


@pytest.fixture(autouse=True)
def two_hosts(cloud: t.Any) -> None:
    cloud.change_host("hv3", enabled=False)


def test_a_server_is_shelved_and_comes_back_on_another_host(cloud: t.Any) -> None:
    uuid = server(cloud)
    before = addresses(cloud)
    begun = ask(cloud, "shelve", "web")
    (snapshot,) = begun["hosts"]["hv1"]["snapshots"]
    assert row(cloud, uuid).task_state == "shelving" and images(cloud)["web-shelved"].id == snapshot["image_id"]
    assert [domain["uuid"] for domain in begun["hosts"]["hv1"]["domains"]] == [uuid]
    record(cloud, "shelve", begun, **FILE)
    instance = row(cloud, uuid)
    assert (instance.vm_state, instance.task_state, instance.power_state, instance.host) == (
        *("shelved", "shelving_offloading", 4, "hv1"),
    )
    offload = ask(cloud, "shelveOffload", uuids=[uuid])
    plan = offload["hosts"]["hv1"]
    assert plan["volumes_gone"] == [] and [disk["uuid"] for disk in plan["disks"]] == [uuid]
    assert offload["targets"]["hosts"] == ["hv1"] and plan["results"] == [{"uuid": uuid}]
    record(cloud, "shelveOffload", offload)
    instance = row(cloud, uuid)
    assert (instance.vm_state, instance.task_state, instance.host) == ("shelved_offloaded", None, None)
    assert claims(cloud) == [] and addresses(cloud) == before
    assert ask(cloud, "shelve", "web")["settled"]

    cloud.change_host("hv1", enabled=False)
    begun = ask(cloud, "unshelve", "web")
    assert begun["hosts"] == {} and row(cloud, uuid).task_state == "unshelving"
    planned = launched(cloud, uuid)
    build = planned["hosts"]["hv2"]["build"]
    assert [disk["base"] for disk in build["disks"]] == [FILE["checksum"]] and build["injections"] == []
    assert [image["source"] for image in build["images"] if image["kind"] == "disk"] == [FILE["source"]]
    instance = row(cloud, uuid)
    assert (instance.vm_state, instance.task_state, instance.host) == ("shelved_offloaded", "spawning", "hv2")
    cloud.state({"uuids": [uuid], "state": "active", "host": "hv2"})
    instance = row(cloud, uuid)
    assert (instance.vm_state, instance.task_state, instance.host, instance.power_state) == ("active", None, "hv2", 1)
    # what its disk stands on is needed where it moves to
    assert instance.image["name"] == "ami-tiny" and instance.disk_image["source"] == FILE["source"]
    assert images(cloud) == {} and addresses(cloud) == before and len(claims(cloud)) == 1
    log = [done.action for done in cloud.rows(ACTIONS) if done.finished_at is not None]
    assert log == ["create", "shelve", "shelveOffload", "unshelve"]


def test_a_server_that_finds_no_host_or_cannot_be_built_stays_shelved(cloud: t.Any) -> None:
    uuid = server(cloud)
    before = addresses(cloud)
    shelve(cloud, uuid)
    for name in ("hv1", "hv2"):
        cloud.change_host(name, enabled=False)
    ask(cloud, "unshelve", "web")
    assert "No valid host" in launched(cloud, uuid)["launch"]["failures"][0]
    instance = row(cloud, uuid)
    assert (instance.vm_state, instance.task_state, instance.host, instance.fault) == (
        "shelved_offloaded",
        None,
        None,
        None,
    )

    cloud.change_host("hv1", enabled=True)
    ask(cloud, "unshelve", "web")
    launched(cloud, uuid)
    cloud.state({"uuids": [uuid], "state": "retry", "host": "hv1", "reason": "no room"})
    instance = row(cloud, uuid)
    assert (instance.vm_state, instance.task_state, instance.host) == ("shelved_offloaded", "unshelving", None)
    cloud.state({"uuids": [uuid], "state": "error", "host": "hv1", "reason": "no room"})
    instance = row(cloud, uuid)
    assert (instance.vm_state, instance.task_state, instance.power_state) == ("shelved_offloaded", None, 4)
    assert claims(cloud) == [] and addresses(cloud) == before and "web-shelved" in images(cloud)
    assert ask(cloud, "unshelve", "web")["instances"][0]["attempts"] == []


def test_a_run_that_was_killed_leaves_a_shelved_server(cloud: t.Any) -> None:
    uuid = server(cloud)
    shelve(cloud, uuid)
    ask(cloud, "unshelve", "web")
    launched(cloud, uuid)
    healed = cloud.run("ledger_heal", build_timeout=0)
    assert [(change["kind"], change["after"]["vm_state"]) for change in healed["corrections"]] == [
        ("instance", "shelved_offloaded")
    ]
    assert row(cloud, uuid).task_state is None and claims(cloud) == []


def test_what_a_host_did_not_do_leaves_the_server_where_it_was(cloud: t.Any) -> None:
    uuid = server(cloud)
    record(cloud, "shelve", ask(cloud, "shelve", "web"), error="its host does not answer", untouched=True)
    assert (row(cloud, uuid).vm_state, images(cloud)) == ("active", {})
    record(cloud, "shelve", ask(cloud, "shelve", "web"), error="no space left")
    assert (row(cloud, uuid).vm_state, images(cloud)) == ("stopped", {})
    record(cloud, "shelve", ask(cloud, "shelve", "web"), **FILE)
    record(cloud, "shelveOffload", ask(cloud, "shelveOffload", uuids=[uuid]), error="its host does not answer")
    instance = row(cloud, uuid)
    assert (instance.vm_state, instance.task_state, instance.host) == ("shelved", None, "hv1")
    # what is on its host still is launched there again
    ask(cloud, "unshelve", "web")
    assert list(launched(cloud, uuid)["hosts"]) == ["hv1"]
    cloud.state({"uuids": [uuid], "state": "active", "host": "hv1"})
    assert row(cloud, uuid).vm_state == "active" and images(cloud) == {}


def test_a_server_that_starts_from_a_volume_needs_no_image(cloud: t.Any) -> None:
    cloud.server({"name": "web", "flavor": "m1.nano", "image": "ami-tiny", "volumes": [{"boot": True, "size": 1}]})
    (uuid,) = [instance.uuid for instance in cloud.rows(sa.select(tables.instance))]
    cloud.place(uuid, "hv1")
    cloud.state({"uuids": [uuid], "state": "active", "host": "hv1"})
    begun = ask(cloud, "shelve", "web")
    assert begun["hosts"]["hv1"]["snapshots"] == [] and images(cloud) == {}
    record(cloud, "shelve", begun)
    offload = ask(cloud, "shelveOffload", uuids=[uuid])
    assert offload["hosts"]["hv1"]["volumes_gone"] == []
    record(cloud, "shelveOffload", offload)
    (volume,) = cloud.rows(sa.select(tables_volumes.volume))
    assert (volume.status, volume.host) == ("in-use", "hv1")
    cloud.change_host("hv2", vcpus=64, memory_mb=65536, disk_gb=1000)
    ask(cloud, "unshelve", "web")
    # its data is there, and there alone
    assert list(launched(cloud, uuid)["hosts"]) == ["hv1"]


def test_a_deleted_server_takes_its_image_along(cloud: t.Any) -> None:
    uuid = server(cloud)
    shelve(cloud, uuid)
    assert "web-shelved" in images(cloud)
    cloud.server({"name": "web"}, state="absent")
    cloud.state({"uuids": [uuid], "state": "deleted"})
    assert images(cloud) == {} and addresses(cloud) == []


@pytest.mark.parametrize("by_aggregate", [False, True])
def test_a_server_is_unshelved_where_it_was_asked_for(cloud: t.Any, by_aggregate: bool) -> None:
    uuid = server(cloud)
    shelve(cloud, uuid)
    if by_aggregate:
        cloud.run("aggregate", aggregates=[{"name": "racks", "zone": "west", "hosts": ["hv2"]}])
    else:
        cloud.change_host("hv2", zone="west")
    cloud.change_host("hv3", enabled=True)
    with pytest.raises(NotFoundError, match="zone is not available: east"):
        ask(cloud, "unshelve", "web", request={"availability_zone": "east"})
    with pytest.raises(NotFoundError, match="hv9 could not be found"):
        ask(cloud, "unshelve", "web", request={"host": "hv9"})
    ask(cloud, "unshelve", "web", request={"availability_zone": "west"})
    assert row(cloud, uuid).availability_zone == "west" and "hv2" in launched(cloud, uuid)["hosts"]
    cloud.state({"uuids": [uuid], "state": "active", "host": "hv2"})
    shelve_on_hv2 = ask(cloud, "shelve", "web")
    results = [{"uuid": uuid, **FILE}]
    ask(cloud, "shelve", plans=shelve_on_hv2["hosts"], outcomes=[{"host": "hv2", "results": results}])
    with pytest.raises(ConflictError, match="is shelving_offloading since"):
        ask(cloud, "unshelve", "web", request={"host": "hv3"})
    offload = ask(cloud, "shelveOffload", uuids=[uuid])
    ask(cloud, "shelveOffload", plans=offload["hosts"], outcomes=[{"host": "hv2", "results": [{"uuid": uuid}]}])
    cloud.write(sa.update(tables.instance).values(availability_zone=None))
    ask(cloud, "unshelve", "web", request={"host": "hv3"})
    assert "hv3" in launched(cloud, uuid)["hosts"]


def test_its_disk_stands_on_its_own_image_until_it_is_rebuilt(cloud: t.Any) -> None:
    uuid = server(cloud)
    shelve(cloud, uuid)
    ask(cloud, "unshelve", "web")
    host = next(iter(launched(cloud, uuid)["hosts"]))
    cloud.state({"uuids": [uuid], "state": "active", "host": host})
    with transaction(cloud.engine) as connection:
        existing = instances_by(connection, uuids=[uuid])
    (there,) = cloud.run("server_plan", existing=existing)["hosts"][host]["keep"]["disks"]
    assert there["base"] == FILE["checksum"]
    begun = ask(cloud, "rebuild", "web")
    (disk,) = begun["hosts"][host]["disks"]
    (injection,) = begun["hosts"][host]["injections"]
    assert (injection["uuid"], disk["base"] == FILE["checksum"]) == (uuid, False)
    results = [{"uuid": uuid, "error": "no room", "untouched": True}]
    ask(cloud, "rebuild", plans=begun["hosts"], outcomes=[{"host": host, "results": results, "error": "no room"}])
    assert row(cloud, uuid).disk_image["checksum"] == FILE["checksum"]
