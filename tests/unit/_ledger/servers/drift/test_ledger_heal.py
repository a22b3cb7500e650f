# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Repair: each kind of damage, alone and all at once; reported, put right once, and nothing else touched."""

from __future__ import annotations

import re
import time
import types
import typing as t
import unittest.mock

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute import migrations, server_actions
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import clock, tables, tables_volumes
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import reading, transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_migrations import (
    OPEN,
    departure,
    migration,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.instances import actions
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute.instance_rows import instance_rows
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.steps.ledger_heal import (
    ledger_heal,
    prepare_ledger_heal,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.fixed_ip import fixed_ip
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.scheduler import scheduler
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.volumes import volume_heal, volume_uploads, volumes
from ansible_collections.novalite.cloud.plugins.plugin_utils._ledger_step_actions import ACTIONS
from tests.support.leaving import WatchedCloud
from tests.support.rows import DEMO
from tests.unit._ledger.marked_machines import marks_at

pytestmark = pytest.mark.both_databases

Result = dict[str, t.Any]


def repair(cloud: t.Any, check_mode: bool = False, **params: t.Any) -> Result:
    with transaction(cloud.engine, check_mode) as connection:
        return ledger_heal(connection, params)


def launched(cloud: t.Any, name: str, state: str | None = "active", **more: t.Any) -> Result:
    """A server that went through every step of a launch up to the report."""
    asked = {"name": name, "flavor": "m1.tiny", "image": "ami-tiny", **more}
    (instance,) = cloud.server(asked)["to_build"]
    with transaction(cloud.engine) as connection:
        placed = scheduler(connection, {"instances": [instance], "service_down_time": 10**10})["instances"]
    with transaction(cloud.engine) as connection:
        (ready,) = fixed_ip(connection, {"instances": placed})["instances"]
    if state is not None:
        cloud.state({"uuids": [instance["uuid"]], "state": state})
    return t.cast(Result, ready)


def delete(cloud: t.Any, name: str) -> None:
    to_delete = cloud.server({"name": name}, state="absent")["to_delete"]
    cloud.state({"uuids": [instance["uuid"] for instance in to_delete], "state": "deleted"})


def used(cloud: t.Any, host: str) -> tuple[int, int, int]:
    c = tables.compute_host.c
    (row,) = cloud.rows(sa.select(c.vcpus_used, c.memory_mb_used, c.disk_gb_used).where(c.name == host))
    return t.cast("tuple[int, int, int]", tuple(row))


def host_id(cloud: t.Any, name: str) -> int:
    return t.cast(int, cloud.rows(sa.select(tables.compute_host.c.id).where(tables.compute_host.c.name == name))[0][0])


def claim(cloud: t.Any, instance_uuid: str, host: str) -> None:
    row = {"vcpus": 2, "memory_mb": 100, "disk_gb": 3, "created_at": 1}
    cloud.write(
        sa.insert(tables.allocation).values(instance_uuid=instance_uuid, compute_host_id=host_id(cloud, host), **row)
    )


def kinds(result: Result) -> list[str]:
    return [correction["kind"] for correction in result["corrections"]]


def silent(cloud: t.Any, seconds: int, instance_uuid: str) -> None:
    table = tables.instance
    cloud.write(sa.update(table).where(table.c.uuid == instance_uuid).values(updated_at=int(time.time()) - seconds))


def test_a_ledger_in_order_is_left_alone(cloud: t.Any) -> None:
    launched(cloud, "one")
    launched(cloud, "two", state=None)  # being built
    launched(cloud, "gone")
    delete(cloud, "gone")
    before = cloud.dump()
    result = repair(cloud)
    assert (result["changed"], result["corrections"], result["msg"]) == (False, [], "nothing to repair")
    assert "diff" not in result
    assert cloud.dump() == before


def test_a_build_that_nobody_goes_on_with_becomes_an_error_and_gives_everything_back(cloud: t.Any) -> None:
    instance = launched(cloud, "one", state=None)
    silent(cloud, 700, instance["uuid"])
    assert repair(cloud, build_timeout=800)["corrections"] == []
    result = repair(cloud)
    (correction,) = result["corrections"]
    assert (correction["kind"], correction["name"]) == ("instance", f"one ({instance['uuid']})")
    assert correction["before"] == {"vm_state": "building", "task_state": "networking", "host": instance["host"]}
    assert correction["after"] == {"vm_state": "error", "task_state": None, "host": None}
    (now,) = cloud.info(actions=True)
    assert re.match(r"its build was abandoned: no sign of life for 7\d\d s ", now["fault"]["message"])
    assert f"(networking on {instance['host']})" in now["fault"]["message"]
    assert now["attempts"] == [instance["host"]]  # where something of it may be left
    assert now["actions"][0]["finished_at"] is not None
    assert used(cloud, instance["host"]) == (0, 0, 0)
    assert now["nics"][0]["ip"] is None
    assert repair(cloud)["corrections"] == []
    assert len(cloud.server({"name": "one"})["to_build"]) == 1  # and it can be launched again


def test_a_look_that_follows_a_repair_may_judge_what_was_repaired(cloud: t.Any) -> None:
    """A guest whose move was killed is started again by the run that found it, and not by the next one.

    A look judges no instance that was changed in the second in which it began: the ledger keeps whole ones.
    """
    uuid = launched(cloud, "one")["uuid"]
    table = tables.instance
    cloud.write(sa.update(table).where(table.c.uuid == uuid).values(task_state="resize_migrating"))
    silent(cloud, 700, uuid)
    time.sleep(1 - time.time() % 1)  # the repair has all of a second
    task = types.SimpleNamespace(args={"ledger_url": cloud.url}, check_mode=False, diff=False, async_val=0)
    action = ACTIONS["ledger_heal"](task, *[unittest.mock.MagicMock() for _ in range(5)])
    assert action.run(task_vars={})["changed"]
    began = time.monotonic()
    with reading(cloud.engine) as connection:
        (row,) = instance_rows(connection, table.c.uuid == uuid)
        assert row.task_state is None and row.updated_at < int(clock.at(connection, began))


def test_a_build_without_a_host_and_one_to_be_deleted(cloud: t.Any) -> None:
    (waiting,) = cloud.server({"name": "waiting", "flavor": "m1.tiny", "image": "ami-tiny"})["to_build"]
    to_delete = launched(cloud, "doomed", state=None)
    cloud.server({"name": "doomed"}, state="absent")
    for instance in (waiting, to_delete):
        silent(cloud, 10000, instance["uuid"])
    # a deletion is not given up: nobody knows whether the guest runs
    (correction,) = repair(cloud)["corrections"]
    assert correction["name"] == f"waiting ({waiting['uuid']})" and "(scheduling)" in correction["reason"]


@pytest.fixture
def nothing_concluded(cloud: t.Any) -> t.Iterator[None]:
    """A claim of nobody's is no proof that its instance left that host: nothing is written down as if it had."""
    yield
    assert cloud.rows(sa.select(departure)) == []
    if isinstance(cloud, WatchedCloud):
        cloud.forget()


@pytest.mark.usefixtures("nothing_concluded")
@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        ({"uuid": "moved-away"}, "there is no such instance"),
        ({"deleted": 77}, "'one' is deleted"),
        ({"vm_state": "error", "host": None}, "'one' is error, on no host"),
        ({"host": None}, "'one' is active, on no host"),
        ({"host": "hv3"}, "'one' is on hv3"),
    ],
)
def test_a_claim_without_an_owner_is_released(cloud: t.Any, damage: dict[str, t.Any], reason: str) -> None:
    instance, other = launched(cloud, "one"), launched(cloud, "other")
    for table in (tables.vif, tables.dns_name):
        cloud.write(sa.delete(table).where(table.c.instance_uuid == instance["uuid"]))
    cloud.write(sa.update(tables.instance).where(tables.instance.c.uuid == instance["uuid"]).values(**damage))
    result = repair(cloud)
    assert kinds(result) == ["allocation", "compute_host", "fixed_ip"]
    assert result["corrections"][0]["reason"] == reason
    assert result["corrections"][0]["before"] == {"vcpus": 1, "memory_mb": 512, "disk_gb": 1}
    assert result["diff"]["before"][f"compute_host {instance['host']}"]["memory_mb_used"] == 512
    assert result["diff"]["after"][f"compute_host {instance['host']}"]["memory_mb_used"] == 0
    assert (used(cloud, instance["host"]), used(cloud, other["host"])) == ((0, 0, 0), (1, 512, 1))
    assert repair(cloud)["corrections"] == []


@pytest.mark.usefixtures("nothing_concluded")
def test_of_two_claims_the_one_where_the_instance_is_stays(cloud: t.Any) -> None:
    instance = launched(cloud, "one")
    elsewhere = "hv3" if instance["host"] != "hv3" else "hv1"
    claim(cloud, instance["uuid"], elsewhere)
    result = repair(cloud)
    assert kinds(result) == ["allocation"]  # its sums were never raised
    assert result["corrections"][0]["name"] == f"of {instance['uuid']} on {elsewhere}"
    assert (used(cloud, instance["host"]), used(cloud, elsewhere)) == ((1, 512, 1), (0, 0, 0))


@pytest.mark.parametrize("status", [*OPEN, "confirmed", "error"])
def test_a_claim_of_a_move_is_its_instances_until_the_move_is_over(cloud: t.Any, status: str) -> None:
    instance = launched(cloud, "one")
    elsewhere = "hv3" if instance["host"] != "hv3" else "hv1"
    claim(cloud, instance["uuid"], elsewhere)
    with transaction(cloud.engine) as connection:
        (row,) = instance_rows(connection, tables.instance.c.uuid == instance["uuid"])
        migrations.insert(connection, "migrate", row, host=elsewhere)
    cloud.write(sa.update(migration).values(status=status))
    claims = [row for row in repair(cloud, check_mode=True)["corrections"] if row["kind"] == "allocation"]
    assert [row["name"] for row in claims] == ([] if status in OPEN else [f"of {instance['uuid']} on {elsewhere}"])


def test_sums_are_made_those_of_the_claims(cloud: t.Any) -> None:
    instance = launched(cloud, "one")
    table = tables.compute_host
    cloud.write(sa.update(table).values(vcpus_used=7, memory_mb_used=-5, disk_gb_used=1, num_instances=9))
    generations = dict(cloud.rows(sa.select(table.c.name, table.c.generation)))
    result = repair(cloud)
    assert kinds(result) == ["compute_host"] * 3
    assert result["diff"]["before"][f"compute_host {instance['host']}"]["vcpus_used"] == 7
    assert {number for (number,) in cloud.rows(sa.select(table.c.num_instances))} == {0, 1}
    assert {host: used(cloud, host) for host in generations} == {
        host: (1, 512, 1) if host == instance["host"] else (0, 0, 0) for host in generations
    }
    # who chose by the old sums has to choose again
    assert dict(cloud.rows(sa.select(table.c.name, table.c.generation))) == {
        host: generation + 1 for host, generation in generations.items()
    }


def test_addresses_and_interfaces_of_what_is_gone_are_given_back(cloud: t.Any) -> None:
    kept, deleted, lost = (launched(cloud, name) for name in ("kept", "deleted", "lost"))
    table = tables.instance
    cloud.write(
        sa.update(table).where(table.c.uuid == deleted["uuid"]).values(deleted=5, vm_state="deleted"),
        sa.delete(tables.vif).where(tables.vif.c.instance_uuid == lost["uuid"]),
    )
    result = repair(cloud)
    assert kinds(result) == ["allocation", "compute_host", "fixed_ip", "fixed_ip", "vif"]
    addresses = {correction["name"] for correction in result["corrections"] if correction["kind"] == "fixed_ip"}
    assert addresses == {f"{instance['nics'][0]['ip']} in private" for instance in (deleted, lost)}
    pool = tables.fixed_ip
    owners = set(cloud.rows(sa.select(pool.c.owner).where(pool.c.owner.like("vif:%"))))
    assert owners == {(f"vif:{kept['nics'][0]['id']}",)}
    released = cloud.rows(sa.select(pool.c.released_at).where(pool.c.released_at > 0))
    assert len(released) == 2  # into quarantine
    # what the hosts themselves have stays, as long as nobody takes it off the bridge
    assert len(cloud.rows(sa.select(pool.c.owner).where(pool.c.owner.like("dhcp:%")))) == 3


def test_check_mode_reports_the_same_and_changes_nothing(cloud: t.Any) -> None:
    instance = launched(cloud, "one", state=None)
    silent(cloud, 700, instance["uuid"])
    claim(cloud, "nobody", "hv3")
    cloud.write(sa.update(tables.compute_host).values(vcpus_used=1))
    before = cloud.dump()
    planned = repair(cloud, check_mode=True)
    assert planned["changed"] and cloud.dump() == before
    assert kinds(planned) == kinds(repair(cloud))
    assert cloud.dump() != before


def test_the_message_is_one_line(cloud: t.Any) -> None:
    for number in range(7):
        claim(cloud, f"nobody-{number}", "hv1")
    message = repair(cloud)["msg"]
    assert message.startswith("7 corrections: allocation of nobody-0 on hv1: there is no such instance; ")
    assert message.endswith("; and 2 more")


def test_what_was_put_right_since_it_was_read_is_left_alone(cloud: t.Any) -> None:
    """Everything is read before the lock is taken: a claim whose instance comes to that host in between stays, and so
    does an address whose interface is there again."""
    web, gone = launched(cloud, "web"), launched(cloud, "gone")
    one_host, table = tables.instance.c.uuid == web["uuid"], tables.instance
    delete(cloud, "gone")
    pool = tables.fixed_ip
    lost = (
        (pool.c.network_id == gone["nics"][0]["network"]["id"]) & (pool.c.owner.is_(None)) & (pool.c.reserved.is_(None))
    )
    (free,) = cloud.rows(sa.select(pool.c.ip).where(lost).limit(1))
    taken = sa.update(pool).where(lost, pool.c.ip == free.ip)
    cloud.write(sa.update(table).where(one_host).values(host=None), taken.values(owner="vif:nobody"))
    suspects = prepare_ledger_heal(cloud.engine, {})["suspects"]
    assert suspects["claims"] and suspects["addresses"]
    cloud.write(
        sa.update(table).where(one_host).values(host=web["host"]),
        sa.update(pool).where(pool.c.owner == "vif:nobody").values(owner=None),
    )
    assert repair(cloud, suspects=suspects)["corrections"] == []
    assert repair(cloud)["corrections"] == []


def all_silent(cloud: t.Any, *tables_of: sa.Table) -> None:
    for table in (tables.instance, *tables_of):
        cloud.write(sa.update(table).values(updated_at=1))


def sign(cloud: t.Any, *ids: str) -> None:
    marks = marks_at(cloud.url)
    marks.give_sign_of_life(ids)
    marks.close()


def test_what_a_run_works_on_is_not_abandoned_with_all_that_it_was_asked_for(cloud: t.Any) -> None:
    """Those of its request that wait for their turn, too; not another run's, nor what nobody works on."""
    uuids = {name: launched(cloud, name)["uuid"] for name in ("a", "b", "dead", "rests")}
    for names in (["a", "b"], ["dead"]):
        with transaction(cloud.engine) as connection:
            of_run = [uuids[name] for name in names]
            server_actions.begin(connection, "reboot", of_run, request_id=actions.new_request_id())
    building = launched(cloud, "new", None)["uuid"]
    all_silent(cloud)
    sign(cloud, *(uuids[name] for name in ("a", "rests")), building)
    at = {row.uuid: row.updated_at for row in cloud.rows(sa.select(tables.instance))}
    assert {name for name, uuid in uuids.items() if at[uuid] > 1} == {"a", "b"} and at[building] > 1
    assert [finding["name"] for finding in repair(cloud)["corrections"]] == [f"dead ({uuids['dead']})"]
    all_silent(cloud)  # it was killed
    assert {finding["name"].partition(" ")[0] for finding in repair(cloud)["corrections"]} == {"a", "b", "new"}


STATUSES = [*volume_heal._MOVING, *volume_heal._BACKED_UP, *volumes.ERRORS, volume_uploads.UPLOADING]


@pytest.mark.parametrize("status", [*STATUSES, "available", "in-use", "error", "error_deleting"])
def test_a_volume_that_a_run_works_on_is_not_abandoned(cloud: t.Any, status: str) -> None:
    with transaction(cloud.engine) as connection:
        made = [volumes.create_volume(connection, DEMO, {"size_gb": 1, "name": name}).id for name in "ab"]
    cloud.write(sa.update(tables_volumes.volume).values(status=status))
    all_silent(cloud, tables_volumes.volume)
    sign(cloud, made[0])
    at = {row.id: row.updated_at for row in cloud.rows(sa.select(tables_volumes.volume))}
    assert (at[made[0]] > 1, at[made[1]]) == (status in STATUSES, 1)
