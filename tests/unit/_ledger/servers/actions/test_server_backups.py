# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Backups of servers in the ledger: who may have which, what hosts are given, what is recorded."""

from __future__ import annotations

import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import (
    ConflictError,
    NotFoundError,
    NovaliteError,
    QuotaError,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute import plans, server_actions
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_images import server_backup as table
from tests.unit._ledger.servers.actions.test_reimage import ask, record, row, server

DISK = {"name": "vda", "size": 1 << 30, "kind": "full", "reason": "it is the first backup"}


@pytest.fixture(autouse=True)
def no_domains(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "guest_of", lambda instance, facts, **_where: instance)
    monkeypatch.setattr(plans, "render", lambda guest: guest["image"]["name"])


def backups(cloud: t.Any) -> dict[str, t.Any]:
    rows = cloud.rows(sa.select(table).order_by(table.c.created_at, table.c.name))
    return {backup.name: backup for backup in rows}


def begin(cloud: t.Any, action: str, name: str | None = None, whose: str = "web", **request: t.Any) -> t.Any:
    return ask(cloud, action, whose, request={"backup": name, **request})


def said(begun: t.Any, **record: t.Any) -> dict[str, t.Any]:
    """Return what a host says of a backup that it took."""
    (plan,) = begun["hosts"].values()
    of_backup = {"id": plan["server_backups"][0]["backup_id"], "kind": "full", "parent_id": None, "reason": "first"}
    return {"record": {**of_backup, "consistency": "crash", "disks": [DISK], "moved": 9, "size": 8, **record}}


def take(cloud: t.Any, name: str, whose: str = "web", **outcome: t.Any) -> str:
    begun = begin(cloud, "createBackup", name, whose)
    record(cloud, "createBackup", begun, **said(begun, **outcome))
    return str(backups(cloud)[name].id)


def test_a_backup_is_taken_and_deleted(cloud: t.Any) -> None:
    uuid = server(cloud)
    dump = cloud.dump()
    planned = ask(cloud, "createBackup", "web", check_mode=True, request={"backup": "friday"})
    assert planned["hosts"]["hv1"]["server_backups"][0]["uuid"] == uuid and cloud.dump() == dump
    begun = begin(cloud, "createBackup", "friday", full_backup=True)
    (entry,) = begun["hosts"]["hv1"]["server_backups"]
    assert entry["full"] and entry["volumes"] == []
    assert row(cloud, uuid).task_state == "backing_up" and backups(cloud)["friday"].status == "creating"
    record(cloud, "createBackup", begun, **said(begun))
    kept = backups(cloud)["friday"]
    assert (kept.id, kept.instance_uuid, kept.server, kept.host) == (entry["backup_id"], uuid, "web", "hv1")
    assert (kept.status, kept.kind, kept.moved, kept.size, kept.disks) == ("available", "full", 9, 8, [DISK])
    assert (row(cloud, uuid).task_state, row(cloud, uuid).vm_state) == (None, "active")
    again = begin(cloud, "createBackup", "friday")
    assert not again["changed"] and again["settled"] and again["hosts"] == {}
    record(cloud, "deleteBackup", begin(cloud, "deleteBackup", "friday"))
    assert backups(cloud) == {}
    again = begin(cloud, "deleteBackup", "friday")
    assert not again["changed"] and again["settled"]


def test_one_without_a_name_is_named_by_the_time(cloud: t.Any) -> None:
    server(cloud)
    begun = begin(cloud, "createBackup")
    record(cloud, "createBackup", begun, **said(begun))
    (name,) = backups(cloud)
    assert name.endswith("Z") and len(name) == len("2026-11-28T00:00:00Z")


def test_those_that_changed_a_deleted_one_stand_for_themselves(cloud: t.Any) -> None:
    server(cloud)
    first = take(cloud, "first")
    second = take(cloud, "second", kind="incremental", parent_id=first, reason=None)
    begun = begin(cloud, "deleteBackup", "first")
    left = {"id": second, "kind": "full", "parent_id": None, "reason": "put together", "disks": [DISK], "size": 16}
    record(cloud, "deleteBackup", begun, records=[left])
    (kept,) = backups(cloud).values()
    assert (kept.id, kept.kind, kept.parent_id, kept.size, kept.moved) == (second, "full", None, 16, 9)


@pytest.mark.parametrize(("vm_state", "running"), [("active", ["web"]), ("stopped", [])])
def test_a_server_is_restored_and_runs_if_it_ran(cloud: t.Any, vm_state: str, running: list[str]) -> None:
    uuid = server(cloud, vm_state=vm_state)
    backup = take(cloud, "friday")
    begun = begin(cloud, "restoreBackup", "friday")
    plan = begun["hosts"]["hv1"]
    (entry,) = plan["server_backups"]
    assert entry == {"uuid": uuid, "backup_id": backup, "volumes": [], "run": entry["run"]}
    assert [guest["name"] for guest in plan["running"]["guests"]] == running and len(plan["domains"]) == 1
    assert backups(cloud)["friday"].status == "restoring"
    record(cloud, "restoreBackup", begun)
    assert (row(cloud, uuid).vm_state, row(cloud, uuid).task_state) == (vm_state, None)
    assert backups(cloud)["friday"].status == "available"


@pytest.mark.parametrize(
    ("outcome", "vm_state"), [({"untouched": True}, "active"), ({"undone": True}, "stopped"), ({}, "error")]
)
def test_a_restore_that_failed_says_what_the_server_is(cloud: t.Any, outcome: dict[str, bool], vm_state: str) -> None:
    uuid = server(cloud)
    take(cloud, "friday")
    record(cloud, "restoreBackup", begin(cloud, "restoreBackup", "friday"), "no room", **outcome)
    assert row(cloud, uuid).vm_state == vm_state
    kept = backups(cloud)["friday"]
    assert (kept.status, kept.fault["message"]) == ("available", "no room")
    if vm_state == "error":
        record(cloud, "restoreBackup", begin(cloud, "restoreBackup", "friday"))
        assert row(cloud, uuid).vm_state == "active"


def test_another_server_gets_the_disks_of_one_that_is_gone(cloud: t.Any) -> None:
    uuid = server(cloud)
    backup = take(cloud, "friday")
    cloud.server({"name": "web"}, state="absent")
    cloud.state({"uuids": [uuid], "state": "deleted"})
    other = server(cloud, "new")
    with pytest.raises(NotFoundError, match="no backup 'friday'"):  # names are those of one server's
        begin(cloud, "restoreBackup", "friday", "new")
    begun = begin(cloud, "restoreBackup", backup, "new")
    (entry,) = begun["hosts"]["hv1"]["server_backups"]
    assert (entry["uuid"], entry["source"], entry["backup_id"]) == (other, uuid, backup)


def test_a_server_needs_the_volumes_that_its_backup_has(cloud: t.Any) -> None:
    """Another volume in that place would be written over; on another server, the user chose what lies there."""
    server(cloud)
    volume = "3f0e4b1d-9a57-4d6c-8f5f-7c110b9c2f8a"
    backup = take(cloud, "friday", disks=[DISK, {**DISK, "name": "vdb", "volume": volume}])
    with pytest.raises(ConflictError, match=f"it has volume {volume}; attach that first"):
        begin(cloud, "restoreBackup", "friday")
    assert backups(cloud)["friday"].status == "available"
    server(cloud, "new")
    assert begin(cloud, "restoreBackup", backup, "new")["hosts"]


def test_what_is_verified_is_the_newest_and_the_verdict_is_kept(cloud: t.Any) -> None:
    server(cloud)
    with pytest.raises(NotFoundError, match="take one first"):
        begin(cloud, "verifyBackup")
    take(cloud, "first")
    cloud.write(sa.update(table).values(created_at=1))
    take(cloud, "second")
    record(cloud, "verifyBackup", begin(cloud, "verifyBackup"))
    kept = backups(cloud)
    assert kept["first"].verified_at is None and kept["second"].verified_at and kept["second"].complaint is None
    record(cloud, "verifyBackup", begin(cloud, "verifyBackup", "first"), "damaged", complaints=["block 7", "block 8"])
    assert backups(cloud)["first"].complaint == "block 7; block 8"
    before = backups(cloud)["first"].verified_at
    record(cloud, "verifyBackup", begin(cloud, "verifyBackup", "first"), "its host does not answer")
    kept = backups(cloud)["first"]
    assert (kept.verified_at, kept.complaint, kept.status) == (before, "block 7; block 8", "available")


def test_one_that_failed_goes_when_the_next_is_there(cloud: t.Any) -> None:
    server(cloud)
    record(cloud, "createBackup", begin(cloud, "createBackup", "friday"), "no room")
    failed = backups(cloud)["friday"]
    assert (failed.status, failed.fault["message"]) == ("error", "no room")
    with pytest.raises(ConflictError, match="is error"):
        begin(cloud, "restoreBackup", "friday")
    begun = begin(cloud, "createBackup", "friday")
    (entry,) = begun["hosts"]["hv1"]["server_backups"]
    assert entry["replaced"] == [failed.id]  # the store may have it all the same
    record(cloud, "createBackup", begun, **said(begun))
    assert [(kept.id, kept.status) for kept in backups(cloud).values()] == [(entry["backup_id"], "available")]


def test_older_ones_go_when_the_next_is_there(cloud: t.Any) -> None:
    server(cloud)
    cloud.run("project", projects=[{"name": "demo", "quotas": {"backups": 3}}])
    ids = {}
    for day, name in enumerate(("first", "second", "third")):
        ids[name] = take(cloud, name)
        cloud.write(sa.update(table).where(table.c.name == name).values(created_at=day * 86400))
    begun = begin(cloud, "createBackup", "fourth", keep_daily=2)
    (entry,) = begun["hosts"]["hv1"]["server_backups"]
    assert entry["replaced"] == [ids["first"], ids["second"]] and len(backups(cloud)) == 4
    changed = {"id": ids["third"], "kind": "full", "parent_id": None, "reason": "put together"}
    record(cloud, "createBackup", begun, **said(begun), removed=[ids["first"]], records=[changed])
    assert set(backups(cloud)) == {"second", "third", "fourth"}  # the host did not come to the second one
    assert backups(cloud)["third"].reason == "put together"
    with pytest.raises(NovaliteError, match="keep_daily=0: give how many"):
        begin(cloud, "createBackup", keep_daily=0)


def test_only_one_is_taken_at_a_time_until_its_run_is_dead(cloud: t.Any) -> None:
    uuid = server(cloud)
    begin(cloud, "createBackup", "friday")
    with pytest.raises(ConflictError, match="takeover=true"):
        begin(cloud, "createBackup", "monday")
    with transaction(cloud.engine) as connection:
        server_actions.interrupt(connection, "createBackup", [uuid], "its run was killed")
    assert backups(cloud)["friday"].status == "error" and row(cloud, uuid).vm_state == "active"
    take(cloud, "monday")


def test_backups_of_a_project_are_bounded(cloud: t.Any) -> None:
    uuid = server(cloud)
    cloud.run("project", projects=[{"name": "demo", "quotas": {"backups": 2, "backup_gigabytes": 100}}])
    take(cloud, "first")
    take(cloud, "second")
    with pytest.raises(QuotaError, match="backups: 3 wanted"):
        begin(cloud, "createBackup", "third")
    gigabytes = backups(cloud)["first"].gigabytes
    cloud.write(sa.update(table).values(gigabytes=100))
    cloud.run("project", projects=[{"name": "demo", "quotas": {"backups": -1}}])
    with pytest.raises(QuotaError, match=f"backup_gigabytes: {200 + gigabytes} wanted"):
        begin(cloud, "createBackup", "third")
    assert len(backups(cloud)) == 2 and row(cloud, uuid).task_state is None
    for name in (" x", "a\nb"):
        with pytest.raises(NovaliteError):
            begin(cloud, "createBackup", name)


def test_a_project_with_backups_stays(cloud: t.Any) -> None:
    uuid = server(cloud)
    take(cloud, "friday")
    cloud.server({"name": "web"}, state="absent")
    cloud.state({"uuids": [uuid], "state": "deleted"})
    assert list(backups(cloud)) == ["friday"]
    with pytest.raises(ConflictError, match="still has the backup 'friday'"):
        cloud.run("project", projects=[{"name": "demo"}], state="absent")
