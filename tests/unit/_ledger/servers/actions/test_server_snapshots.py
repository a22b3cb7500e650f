# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Snapshots of servers in the ledger: who may have which, what hosts are given, what is recorded."""

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
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_images import server_snapshot as table
from tests.unit._ledger.servers.actions.test_reimage import ask, record, row, server

TAKEN: dict[str, t.Any] = {"consistency": "frozen", "size": 4096}


@pytest.fixture(autouse=True)
def no_domains(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "guest_of", lambda instance, facts, **_where: instance)
    monkeypatch.setattr(plans, "render", lambda guest: guest["image"]["name"])


def do(cloud: t.Any, action: str, name: str = "before", error: str | None = None, **said: t.Any) -> t.Any:
    begun = ask(cloud, action, "web", request={"snapshot": name})
    return record(cloud, action, begun, error, **said)


def snapshots(cloud: t.Any) -> list[t.Any]:
    return t.cast("list[t.Any]", cloud.rows(sa.select(table).order_by(table.c.created_at, table.c.name)))


def test_a_snapshot_is_taken_once_and_deleted_once(cloud: t.Any) -> None:
    uuid = server(cloud)
    dump = cloud.dump()
    asked = {"snapshot": "before", "snapshot_description": "an upgrade"}
    planned = ask(cloud, "createSnapshot", "web", check_mode=True, request=asked)
    assert planned["hosts"]["hv1"]["server_snapshots"][0]["uuid"] == uuid and cloud.dump() == dump
    begun = ask(cloud, "createSnapshot", "web", request=asked)
    (entry,) = begun["hosts"]["hv1"]["server_snapshots"]
    assert row(cloud, uuid).task_state == "snapshotting" and snapshots(cloud)[0].status == "creating"
    record(cloud, "createSnapshot", begun, **TAKEN)
    (kept,) = snapshots(cloud)
    assert (kept.id, kept.name, kept.description) == (entry["snapshot_id"], "before", "an upgrade")
    assert (kept.status, kept.consistency, kept.size, kept.host) == ("available", "frozen", 4096, "hv1")
    assert (row(cloud, uuid).task_state, row(cloud, uuid).vm_state) == (None, "active")
    again = ask(cloud, "createSnapshot", "web", request=asked)
    assert not again["changed"] and again["settled"] and again["hosts"] == {}
    do(cloud, "deleteSnapshot")
    assert snapshots(cloud) == []
    again = ask(cloud, "deleteSnapshot", "web", request=asked)
    assert not again["changed"] and again["settled"]


@pytest.mark.parametrize(("vm_state", "running"), [("active", ["web"]), ("stopped", [])])
def test_a_server_is_rolled_back_and_runs_if_it_ran(cloud: t.Any, vm_state: str, running: list[str]) -> None:
    uuid = server(cloud, vm_state=vm_state)
    do(cloud, "createSnapshot", **TAKEN)
    for _time in range(2):  # the snapshot stays
        begun = ask(cloud, "revertSnapshot", "web", request={"snapshot": "before"})
        plan = begun["hosts"]["hv1"]
        assert plan["server_snapshots"] == [{"uuid": uuid, "snapshot_id": snapshots(cloud)[0].id, "volumes": []}]
        assert [guest["name"] for guest in plan["running"]["guests"]] == running
        assert len(plan["running"]["domains"]) == len(running) and len(plan["domains"]) == 1
        assert snapshots(cloud)[0].status == "reverting"
        record(cloud, "revertSnapshot", begun)
        assert (row(cloud, uuid).vm_state, row(cloud, uuid).task_state) == (vm_state, None)
        assert snapshots(cloud)[0].status == "available"


def test_a_rollback_that_failed_is_done_again(cloud: t.Any) -> None:
    uuid = server(cloud)
    do(cloud, "createSnapshot", **TAKEN)
    do(cloud, "revertSnapshot", error="no answer", untouched=True)
    assert row(cloud, uuid).vm_state == "active"
    do(cloud, "revertSnapshot", error="half of it")
    assert row(cloud, uuid).vm_state == "error" and snapshots(cloud)[0].fault["message"] == "half of it"
    do(cloud, "revertSnapshot")
    assert row(cloud, uuid).vm_state == "active"


def test_a_snapshot_that_failed_is_taken_anew_under_its_id(cloud: t.Any) -> None:
    server(cloud)
    do(cloud, "createSnapshot", error="no room")
    (failed,) = snapshots(cloud)
    assert (failed.status, failed.fault["message"]) == ("error", "no room")
    with pytest.raises(ConflictError, match="it is error"):
        do(cloud, "revertSnapshot")
    do(cloud, "createSnapshot", **TAKEN)
    assert [(kept.id, kept.status, kept.fault) for kept in snapshots(cloud)] == [(failed.id, "available", None)]


def test_the_action_of_a_killed_run_ends(cloud: t.Any) -> None:
    uuid = server(cloud)
    ask(cloud, "createSnapshot", "web", request={"snapshot": "before"})
    with pytest.raises(ConflictError, match="takeover=true"):
        ask(cloud, "createSnapshot", "web", request={"snapshot": "before"})
    begun = ask(cloud, "createSnapshot", "web", request={"snapshot": "before"}, takeover=True)
    record(cloud, "createSnapshot", begun, **TAKEN)
    ask(cloud, "revertSnapshot", "web", request={"snapshot": "before"})
    with transaction(cloud.engine) as connection:
        server_actions.interrupt(connection, "revertSnapshot", [uuid], "its run was killed")
    assert snapshots(cloud)[0].status == "available" and row(cloud, uuid).vm_state == "error"


@pytest.mark.parametrize("action", ["migrate", "live-migration", "shelve"])
def test_a_server_is_not_parted_from_its_snapshots(cloud: t.Any, action: str) -> None:
    uuid = server(cloud)
    do(cloud, "createSnapshot", **TAKEN)
    with transaction(cloud.engine) as connection:
        with pytest.raises(ConflictError, match=r"its snapshot 'before' lies on hv1 .* delete its snapshots first"):
            server_actions.begin(connection, action, [uuid], request_id="req-1")
        connection.rollback()
    do(cloud, "deleteSnapshot")
    with transaction(cloud.engine) as connection:
        server_actions.begin(connection, action, [uuid], request_id="req-1")


def test_what_the_server_is_no_more_cannot_come_back(cloud: t.Any) -> None:
    uuid = server(cloud)
    do(cloud, "createSnapshot", **TAKEN)
    for values, message in (
        ({"image_id": "0" * 36}, "the instance has another image now"),
        ({"host": "hv2"}, "it lies on hv2, and the instance is on hv1"),
        ({"volumes": ["1" * 36]}, "it had volume 1{36}; attach that first"),
    ):
        (before,) = snapshots(cloud)
        cloud.write(sa.update(table).values(**values))
        with pytest.raises(ConflictError, match=message):
            do(cloud, "revertSnapshot")
        cloud.write(sa.update(table).values(**{name: getattr(before, name) for name in values}))
    with pytest.raises(NotFoundError, match="no snapshot 'other'"):
        do(cloud, "revertSnapshot", "other")
    cloud.write(sa.update(tables.instance).where(tables.instance.c.uuid == uuid).values(vm_state="paused"))
    with pytest.raises(ConflictError, match="vm_state paused"):
        do(cloud, "revertSnapshot")


def test_snapshots_of_a_server_are_bounded(cloud: t.Any) -> None:
    server(cloud)
    for number in range(5):
        do(cloud, "createSnapshot", f"number {number}", **TAKEN)
    with pytest.raises(QuotaError, match="server_snapshots"):
        do(cloud, "createSnapshot", "one more")
    assert len(snapshots(cloud)) == 5
    for name in ("", " x", "a\nb"):
        with pytest.raises(NovaliteError):
            do(cloud, "createSnapshot", name)


def test_snapshots_go_with_their_server(cloud: t.Any) -> None:
    uuid = server(cloud)
    do(cloud, "createSnapshot", **TAKEN)
    cloud.server({"name": "web"}, state="absent")
    assert len(snapshots(cloud)) == 1
    cloud.state({"uuids": [uuid], "state": "deleted"})
    assert snapshots(cloud) == []
