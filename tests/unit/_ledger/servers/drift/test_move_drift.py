# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Differences between a host and the ledger that moves leave which were killed, or wait for their owner's word."""

from __future__ import annotations

import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute import migrations, server_actions
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_migrations import migration
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.steps.server_migration import server_migration
from tests.unit._ledger.servers.drift.test_host_drift import Result, compare, now, repair_rows, running


def waiting(cloud: t.Any, web: Result, was: str = "active", power_state: int = server_actions.NO_STATE) -> None:
    """A migration to hv2 that was killed after its commit: it waits for its owner's word."""
    (row,) = cloud.rows(sa.select(tables.instance).where(tables.instance.c.uuid == web["uuid"]))
    larger: t.Any = {**row.flavor, "name": "larger", "ephemeral_gb": 1, "swap_mb": 64}
    with transaction(cloud.engine) as connection:
        migrations.insert(connection, "resize", row, flavor=larger)
    cloud.write(
        sa.update(migration).values(status="finished", source_host="hv1", dest_host="hv2", old_vm_state=was),
        sa.update(tables.instance).values(vm_state="resized", power_state=power_state, flavor=larger),
    )


@pytest.mark.parametrize("state", [("missing", ""), ("shutoff", "shutdown")])
def test_a_guest_whose_move_was_killed_before_it_started_is_started(
    cloud: t.Any, web: Result, state: tuple[str, str]
) -> None:
    """And gets what its new size has; it goes on waiting to be confirmed."""
    waiting(cloud, web)
    look = running(web, state=state[0], reason=state[1], taps=[])
    if state[0] == "missing":
        look["domains"] = []
    check = compare(cloud, look, check_mode=True)
    assert now(cloud) == ("resized", None)
    result = compare(cloud, look)
    assert (
        repair_rows(result)
        == repair_rows(check)
        == [
            ("disk.eph0, disk.swap of web", "missing", "made again"),
            (
                f"domain {web['domain_name']} (web)",
                "missing" if state[0] == "missing" else "shutoff (shutdown)",
                "defined and started" if state[0] == "missing" else "started",
            ),
        ]
    )
    assert (
        [instance["uuid"] for instance in result["restart"]]
        == [web["uuid"]]
        == [instance["uuid"] for instance in result["grow"]]
    )
    assert [disk["ephemeral_gb"] for disk in result["disks"]] == [1] and result["images"] == []
    assert now(cloud) == ("resized", "rebooting_hard")
    with transaction(cloud.engine) as connection:
        server_actions.finish(connection, "reboot", [web["uuid"]], power_state=server_actions.RUNNING)
    assert now(cloud) == ("resized", None)
    whole = {**running(web), "files": {web["uuid"]: ["disk", "disk.eph0", "disk.swap", "kernel", "ramdisk"]}}
    again = compare(cloud, whole)
    assert (again["rows"], again["changed"], again["grow"]) == ([], False, [])


KEPT = ["disk", "disk.info", "disk.info.resize", "disk.resize", "kernel", "ramdisk"]


@pytest.mark.parametrize("state", ["running", "shutoff"])
@pytest.mark.parametrize("status", [None, "error", "confirmed", "reverted"])
def test_copies_that_a_resize_left_go_or_are_the_disks(
    cloud: t.Any, web: Result, state: str, status: str | None
) -> None:
    if status is not None:
        waiting(cloud, web)
        active = sa.update(tables.instance).values(vm_state="active", flavor=web["flavor"])
        cloud.write(sa.update(migration).values(status=status), active)
    look = {**running(web, state=state, taps=[]), "files": {web["uuid"]: KEPT}}
    result = compare(cloud, look)
    back = status == "reverted" and state == "shutoff"
    there = [{"uuid": web["uuid"], "id": web["uuid"]}]
    assert (result["restore"], result["forget"]) == ((there, []) if back else ([], there))
    assert repair_rows(result)[0] == (
        ("disks of web", "of the other size", "brought back")
        if back
        else ("copies of the disks of web", "there", "removed")
    )
    assert [instance["uuid"] for instance in result["restart"]] == ([web["uuid"]] if state == "shutoff" else [])


def test_copies_that_a_resize_waits_with_stay(cloud: t.Any, web: Result) -> None:
    waiting(cloud, web)
    result = compare(cloud, {**running(web), "files": {web["uuid"]: [*KEPT, "disk.eph0", "disk.swap"]}})
    assert (result["rows"], result["restore"], result["forget"]) == ([], [], [])


def test_a_guest_that_was_off_before_its_move_stays_off(cloud: t.Any, web: Result) -> None:
    waiting(cloud, web, was="stopped")
    whole = {**running(web), "files": {web["uuid"]: ["disk", "disk.eph0", "disk.swap", "kernel", "ramdisk"]}}
    result = compare(cloud, {**whole, "domains": []})
    assert [instance["uuid"] for instance in result["define"]] == [web["uuid"]] and result["restart"] == []
    off = {**whole, "domains": running(web, state="shutoff", taps=[])["domains"]}
    again = compare(cloud, off)
    assert (again["rows"], again["changed"]) == ([], False)


@pytest.mark.parametrize(("was", "vm_state"), [("active", "active"), ("stopped", "stopped")])
def test_a_confirmed_server_is_what_it_was_though_nobody_looked(
    cloud: t.Any, web: Result, was: str, vm_state: str
) -> None:
    waiting(cloud, web, was=was)
    params = {"action": "confirmResize", "uuids": None, "state_dir": "/var/lib/novalite"}
    with transaction(cloud.engine) as connection:
        begun = server_migration(connection, {**params, "state": "begin", "servers": ["web"]})
        done = {"state": "end", "moves": begun["moves"], "parts": ["from_host"], "outcomes": [{"host": "hv1"}]}
        assert server_migration(connection, {**params, **done})["errors"] == []
    assert now(cloud) == (vm_state, None)


def test_a_guest_that_shut_itself_down_while_it_waited_is_not_started(cloud: t.Any, web: Result) -> None:
    waiting(cloud, web, power_state=server_actions.RUNNING)
    files = {web["uuid"]: ["disk", "disk.eph0", "disk.swap", "kernel", "ramdisk"]}
    off = {**running(web, state="shutoff", reason="shutdown", taps=[]), "files": files}
    result = compare(cloud, off)
    assert [row["repair"] for row in result["rows"]] == ["recorded as shutoff"] and result["restart"] == []
    assert now(cloud) == ("resized", None)
    assert compare(cloud, off)["rows"] == []


def test_a_disk_that_a_moved_guest_lost_is_still_on_its_source(cloud: t.Any, web: Result) -> None:
    waiting(cloud, web)
    result = compare(cloud, {**running(web), "files": {}})
    assert [row["repair"] for row in result["rows"]] == ["none: revert the resize"]
    assert now(cloud) == ("resized", None) and result["restart"] == []


STATUSES = (
    "queued preparing migrating post-migrating finished confirming confirmed reverting reverted running completed"
)
# A confirmation needs no way
UNDER_WAY = {"queued", "preparing", "migrating", "post-migrating", "reverting", "running"}


@pytest.mark.parametrize("status", [*STATUSES.split(), "done", "error", "cancelled"])
def test_ways_of_moves_that_are_not_under_way_are_closed(cloud: t.Any, web: Result, status: str) -> None:
    """Those of another ledger's moves are not, until they let nobody in any more."""
    waiting(cloud, web)
    cloud.write(sa.update(migration).values(status=status))
    ((move,),) = cloud.rows(sa.select(migration.c.uuid))
    unknown = "0d2f9a3e-7a39-4f57-9a43-00000000000f"

    def way(move: str, uuid: str, expired: bool = False) -> dict[str, t.Any]:
        return {"id": move, "uuid": uuid, "what": ["key"], "expired": expired}

    ways = [way(move, ""), way("", web["uuid"]), way(unknown, ""), way("", unknown), way(unknown, "", expired=True)]
    result = compare(cloud, {**running(web), "move_ways": ways})
    expected = [] if status in UNDER_WAY else [{"id": move, "uuid": web["uuid"]}, {"id": "", "uuid": web["uuid"]}]
    assert result["cut_off_moves"] == [*expected, {"id": unknown, "uuid": ""}]
    move_rows = [row for row in repair_rows(result) if row[0].startswith("way of a move")]
    assert [row[0].rpartition(" ")[2] for row in move_rows] == ["web"] * len(expected) + [unknown]
    # an older move of an instance that is on its way again: what arrives is the new one's
    older = {**way(move, web["uuid"]), "what": ["incoming", "key"]}
    (row,) = cloud.rows(sa.select(tables.instance).where(tables.instance.c.uuid == web["uuid"]))
    with transaction(cloud.engine) as connection:
        migrations.insert(connection, "migrate", row)
    again = compare(cloud, {**running(web), "move_ways": [older]})
    assert again["cut_off_moves"] == ([] if status in UNDER_WAY else [{"id": move, "uuid": ""}])
