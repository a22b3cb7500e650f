# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Policies of backups in the ledger, and what is begun by them."""

from __future__ import annotations

import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NotFoundError, NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables import instance
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_images import server_backup as table
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volumes import (
    backup_ages,
    server_backup_rows,
)
from tests.unit._ledger.servers.actions.test_server_backups import (
    backups,
    begin,
    no_domains,
    record,
    row,
    said,
    server,
    take,
)

__all__ = ["no_domains"]


def have(cloud: t.Any, name: str, **values: t.Any) -> dict[str, t.Any]:
    return t.cast("dict[str, t.Any]", cloud.task("backup_policy", policies=[{"name": name, **values}]))


def due(cloud: t.Any) -> tuple[list[str], list[str], list[str]]:
    begun = cloud.task("backup_policy", state="due")
    return begun["taken"], begun["proven"], [left["uuid"] for left in begun["left"]]


def test_policies_are_kept(cloud: t.Any) -> None:
    server(cloud)
    assert have(cloud, "nightly", every="daily", keep_daily=7, verify_every="weekly")["changed"]
    assert not have(cloud, "nightly", every="24h", keep_daily=7, verify_every="7d")["changed"]
    have(cloud, "own", server="web", every="2h")
    have(cloud, "small", flavor="m1.tiny")
    listed = have(cloud, "ours", project="demo")["policies"]
    assert [(each["name"], each["scope"], each["target"]) for each in listed if each["scope"] != "flavor"] == [
        ("nightly", "all", None),
        ("ours", "project", "demo"),
        ("own", "server", "web"),
    ]
    assert listed[0] == {
        **{"name": "nightly", "scope": "all", "target": None, "every": 86400},
        **{"keep": {"daily": 7}, "verify_every": 7 * 86400, "boot_every": 7 * 86400},
    }
    with pytest.raises(ConflictError, match="another policy is for the same servers"):
        have(cloud, "also", every="hourly")
    with pytest.raises(NotFoundError):
        have(cloud, "gone", server="nosuch")
    gone = cloud.task("backup_policy", policies=[{"name": "nightly"}], state="absent")
    assert gone["changed"] and "nightly" not in {each["name"] for each in gone["policies"]}
    assert not cloud.task("backup_policy", policies=[{"name": "nightly"}], state="absent")["changed"]


def test_what_is_due_is_begun_once(cloud: t.Any) -> None:
    uuid = server(cloud)
    assert due(cloud) == ([], [], [])
    have(cloud, "own", server="web", every="2h", keep_last=2, verify_every="daily")
    assert due(cloud) == ([uuid], [], [])
    assert due(cloud) == ([], [], [])  # it is under way
    begun = cloud.task("server_action", action="createBackup", uuids=[uuid], state_dir="/x")
    record(cloud, "createBackup", begun, **said(begun))
    assert due(cloud) == ([], [uuid], [])  # the first one was never proven
    assert row(cloud, uuid).task_state == "backup_verifying"


def test_a_policy_says_what_is_kept(cloud: t.Any) -> None:
    uuid = server(cloud)
    take(cloud, "first")
    cloud.write(sa.update(table).values(created_at=table.c.created_at - 10 * 86400))
    have(cloud, "own", server="web", keep_last=1)
    first = backups(cloud)["first"].id
    assert due(cloud) == ([uuid], [], [])
    begun = cloud.task("server_action", action="createBackup", uuids=[uuid], state_dir="/x")
    assert begun["hosts"]["hv1"]["server_backups"][0]["replaced"] == [first]


def test_a_quota_that_is_reached_is_said_and_stops_nobody(cloud: t.Any) -> None:
    first, second = server(cloud), server(cloud, "db")
    cloud.run("project", projects=[{"name": "demo", "quotas": {"backups": 1}}])
    have(cloud, "nightly")
    taken, _proven, left = due(cloud)
    assert (taken, left) == ([first], [second])
    assert row(cloud, second).task_state is None


def test_backups_of_a_server_that_is_gone_are_deleted_by_any_host(cloud: t.Any) -> None:
    uuid = server(cloud)
    first = take(cloud, "first")
    second = take(cloud, "second", kind="incremental", parent_id=first, reason=None)

    def begin() -> t.Any:
        return cloud.task("volume_action", backups=[{"backup": first, "of_server": True}])

    with pytest.raises(ConflictError, match="delete it as a backup of that server"):
        begin()
    cloud.write(sa.update(instance).where(instance.c.uuid == uuid).values(deleted=1))
    begun = begin()
    assert begun["hosts"]["hv1"]["absent"] == [{"backup_id": first, "chain": uuid}]
    changed: dict[str, t.Any] = {
        "id": second,
        "kind": "full",
        "parent_id": None,
        "reason": "put together",
        "disks": [],
        "size": 9,
    }
    outcomes = [{"host": "hv1", "results": [{"id": first, "error": "the store is not there"}]}]
    cloud.task("volume_action", plans=begun["hosts"], outcomes=outcomes)
    assert backups(cloud)["first"].status == "error"
    begun = begin()
    outcomes = [{"host": "hv1", "results": [{"id": first, "error": None, "records": [changed]}]}]
    assert cloud.task("volume_action", plans=begun["hosts"], outcomes=outcomes)["errors"] == []
    (left,) = backups(cloud).values()
    assert (left.id, left.kind, left.parent_id) == (second, "full", None)
    with pytest.raises(NotFoundError, match="there is no backup with the id"):
        begin()


def test_ages_of_backups(cloud: t.Any) -> None:
    uuid = server(cloud)
    other = server(cloud, "db")
    take(cloud, "first")
    take(cloud, "second")
    cloud.write(sa.update(table).where(table.c.name == "first").values(created_at=5, verified_at=9))
    cloud.write(sa.update(table).where(table.c.name == "second").values(created_at=7, verified_at=9, complaint="a bit"))
    with cloud.engine.connect() as connection:
        (aged,) = backup_ages.ages(connection)
        both = backup_ages.ages(connection, everyone=True)
    assert aged == (uuid, "web", 7, 5, 0, None, None) and both == [aged, (other, "db", 0, 0, 0, None, None)]
    cloud.write(sa.update(table).where(table.c.name == "first").values(booted_at=9, proven_at=9))
    with cloud.engine.connect() as connection:
        assert [aged.proven for aged in backup_ages.ages(connection, everyone=True)] == [5, 0]
    have(cloud, "nightly", every="daily")
    with cloud.engine.connect() as connection:
        ages = {aged.uuid: (aged.newest, aged.policy and aged.policy.every) for aged in backup_ages.ages(connection)}
    assert ages == {uuid: (7, 86400), other: (0, 86400)}


def test_the_newest_full_one_is_booted_once_a_week(cloud: t.Any) -> None:
    uuid = server(cloud)
    first = take(cloud, "first")
    second = take(cloud, "second", kind="incremental", parent_id=first, reason=None)
    have(cloud, "own", server="web", every="monthly")
    assert due(cloud) == ([], [uuid], [])
    assert backups(cloud)["first"].status == "verifying" and backups(cloud)["second"].status == "available"
    boot = {"by": "login", "seconds": 4.5, "error": None, "console": "web login: ", "picture": "UE5H"}
    begun = cloud.task("server_action", action="verifyBackup", uuids=[uuid], state_dir="/x")
    assert begun["hosts"]["hv1"]["server_backups"][0]["boot_timeout"] == 300
    record(cloud, "verifyBackup", begun, boot=boot)
    kept = backups(cloud)["first"]
    assert kept.boot == {"by": "login", "seconds": 4.5, "error": None}
    assert kept.verified_at == kept.proven_at == kept.booted_at
    with cloud.engine.connect() as connection:
        assert server_backup_rows.proof_of(connection, first) == ("web login: ", "UE5H")
        assert server_backup_rows.proof_of(connection, second) is None
    assert due(cloud) == ([], [], [])
    have(cloud, "own", server="web", every="monthly", boot_every="never")
    cloud.write(sa.update(table).values(booted_at=None))
    assert due(cloud) == ([], [], [])


def test_a_guest_that_was_not_up_is_told(cloud: t.Any) -> None:
    server(cloud)
    take(cloud, "first")
    failed = {"by": None, "seconds": 300.0, "error": "it was not up", "console": "panic\0", "picture": None}
    begun = begin(cloud, "verifyBackup", boot=True)
    record(cloud, "verifyBackup", begun, "the guest was not up", boot=failed)
    kept = backups(cloud)["first"]
    assert (kept.verified_at, kept.complaint, kept.proven_at) == (kept.booted_at, None, None) and kept.verified_at
    assert kept.boot and kept.boot["error"] == "it was not up"
    record(cloud, "verifyBackup", begin(cloud, "verifyBackup", boot=True), "no room")
    assert (kept.boot, kept.fault and kept.fault["message"]) == (backups(cloud)["first"].boot, "the guest was not up")
    with pytest.raises(NovaliteError, match="give 10 to 3600 seconds"):
        begin(cloud, "verifyBackup", boot=True, boot_timeout=9)
