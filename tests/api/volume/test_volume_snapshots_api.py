# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Snapshots of volumes, asked for as Cinder's clients do."""

from __future__ import annotations

import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.steps.volume_action import volume_action
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.volumes import (
    volume_attachments,
    volume_snapshots,
    volumes,
)
from tests.api.conftest import Cloud
from tests.api.doors import Doors, User
from tests.api.volume.test_volumes_api import NOWHERE, hung, made, shown


def test_a_volume_goes_back_to_its_newest_snapshot(cloud: Cloud, doors: Doors) -> None:
    number = made(doors.member)

    def take(**changes: t.Any) -> str:
        taken = str(doors.member.post("/snapshots", {"snapshot": {"volume_id": number}}, 202)["snapshot"]["id"])
        with transaction(cloud.engine) as connection:
            volume_snapshots.finish_snapshot(connection, taken)
            if changes:
                volumes.write(connection, "snapshot", taken, changes)
        return taken

    def revert(snapshot: str | None, status: int, version: str = "3.40", user: User = doors.member) -> str:
        headers = {**user.headers, "OpenStack-API-Version": f"volume {version}"}
        path, body = f"{user.base}/volumes/{number}/action", {"revert": {"snapshot_id": snapshot}}
        answer = doors.client.post(path, json=body, headers=headers)
        assert answer.status_code == status, answer.data
        return answer.get_data(as_text=True)

    assert f"Volume {number} doesn't have any snapshots." in revert(NOWHERE, 400)
    first, last = take(created_at=1), take()
    revert(last, 404, version="3.39")
    revert(last, 404, user=doors.stranger)
    revert(last, 403, user=doors.reader)
    for other in (first, None, "first"):
        text = f"Specified snapshot {other} is None or not the latest one of volume {number}."
        assert text in revert(other, 400)
    holder = hung(cloud, doors, number)
    assert "Volume's status must be 'available'." in revert(last, 409)
    with transaction(cloud.engine) as connection:
        volume_attachments.begin_detach(connection, number, holder[0])
        volume_attachments.finish_detach(connection, holder[1])
        volumes.write(connection, "snapshot", last, {"size_gb": 2})
    assert "The volume size must be equal to the snapshot size." in revert(last, 400)
    with transaction(cloud.engine) as connection:
        volumes.write(connection, "snapshot", last, {"size_gb": 1, "status": "error"})
    assert "Snapshot's status must be 'available'." in revert(last, 409)
    assert shown(doors.member, number)["status"] == "available"  # what was refused changed nothing
    with transaction(cloud.engine) as connection:
        volumes.write(connection, "snapshot", last, {"status": "available"})
    revert(last, 202)
    assert shown(doors.member, number)["status"] == "reverting"
    assert doors.reader.get(f"/snapshots/{last}")["snapshot"]["status"] == "restoring"
    revert(last, 409)
    doors.member.delete(f"/snapshots/{last}", 400)
    job = doors.jobs()[-1]
    assert (job["kind"], job["variables"]) == ("volume_revert", {"volumes": [number]})
    carry_out(cloud, number, None)
    assert (shown(doors.member, number)["status"], states(doors, last)) == ("available", "available")
    revert(last, 202)
    carry_out(cloud, number, "the disk is full")
    assert (shown(doors.member, number)["status"], states(doors, last)) == ("error", "available")
    with transaction(cloud.engine) as connection:
        volumes.write(connection, "volume", number, {"status": "available"})
        # by names, as a playbook begins it, twice: the second one goes on with it
        named = {"project": "demo", "reverts": [{"volume": number, "snapshot": last}]}
        for _run in range(2):
            assert [done["does"] for done in volume_action(connection, named)["touched"]] == ["revert"]
        assert volumes.settle(connection, [number], "its job is dead") == [number]
    assert (shown(doors.member, number)["status"], states(doors, last)) == ("error", "available")


def states(doors: Doors, snapshot: str) -> str:
    return str(doors.reader.get(f"/snapshots/{snapshot}")["snapshot"]["status"])


def carry_out(cloud: Cloud, number: str, error: str | None) -> None:
    """Do as the playbook does: the host is told to restore the volume of its snapshot, and says how it went."""
    with transaction(cloud.engine) as connection:
        begun = volume_action(connection, {"volumes": [number], "project": "demo"})
        ((host, plan),) = begun["hosts"].items()
        (volume_plan,) = plan["volumes"]
        assert (volume_plan["restore"], volume_plan["create"], volume_plan["source"]["kind"]) == (
            True,
            False,
            "snapshot",
        )
        outcomes = [{"host": host, "results": [{"id": number, "error": error}]}]
        ended = volume_action(connection, {"plans": begun["hosts"], "outcomes": outcomes})
    assert [failed["id"] for failed in ended["errors"]] == ([] if error is None else [number])


def test_snapshots(cloud: Cloud, doors: Doors) -> None:
    number = made(doors.member)
    hung(cloud, doors, number)
    doors.member.post("/snapshots", {"snapshot": {"volume_id": number}}, 400)
    for nothing in (NOWHERE, None):
        doors.member.post("/snapshots", {"snapshot": {"volume_id": nothing}}, 404)
    asked = {"snapshot": {"volume_id": number, "name": "s", "force": True}}
    body = doors.member.post("/snapshots", asked, 202)["snapshot"]
    taken = body["id"]
    assert (body["name"], body["status"], body["size"]) == ("s", "creating", 1)
    (job,) = doors.jobs()
    assert (job["kind"], job["variables"]) == ("volume_snapshot_create", {"snapshots": [taken]})
    with transaction(cloud.engine) as connection:
        volume_snapshots.finish_snapshot(connection, taken)
    assert doors.reader.get("/snapshots/detail?name=s")["snapshots"][0]["os-extended-snapshot-attributes:progress"] == (
        "100%"
    )
    assert doors.member.put(f"/snapshots/{taken}", {"snapshot": {"name": "n"}})["snapshot"]["name"] == "n"
    doors.stranger.get(f"/snapshots/{taken}", 404)
    doors.member.post(f"/snapshots/{taken}/action", {"os-reset_status": {"status": "error"}}, 403)
    doors.admin.post(f"/snapshots/{taken}/action", {"os-reset_status": {"status": "error"}}, 202)
    doors.member.delete(f"/snapshots/{taken}", 202)
    assert [job["kind"] for job in doors.jobs()][-1] == "volume_snapshot_delete"
    assert doors.reader.get("/limits")["limits"]["absolute"]["totalSnapshotsUsed"] == 1


def test_a_volume_goes_with_its_snapshots(cloud: Cloud, doors: Doors) -> None:
    number = made(doors.member)
    taken = []
    for name in ("a", "b"):
        asked = {"snapshot": {"volume_id": number, "name": name}}
        taken.append(doors.member.post("/snapshots", asked, 202)["snapshot"]["id"])
    with transaction(cloud.engine) as connection:
        volume_snapshots.finish_snapshot(connection, taken[0])
    doors.member.delete(f"/volumes/{number}", 400)
    doors.member.delete(f"/volumes/{number}?cascade=True", 400)  # one is being taken
    with transaction(cloud.engine) as connection:
        volume_snapshots.finish_snapshot(connection, taken[1])
    doors.stranger.delete(f"/volumes/{number}?cascade=True", 404)
    doors.member.delete(f"/volumes/{number}?cascade=True", 202)
    job = doors.jobs()[-1]
    assert (job["kind"], job["variables"]) == ("volume_delete", {"volumes": [number]})
    with transaction(cloud.engine) as connection:
        plans = volume_action(connection, {"volumes": [number]})["hosts"]
        gone = plans["hv1"]["gone"]
        assert [deletion["kind"] for deletion in gone] == ["snapshot", "snapshot", "volume"]
        failed = [
            {"id": deletion["id"], "error": "disk on fire" if deletion["id"] == taken[1] else None} for deletion in gone
        ]
        parameters = {"plans": plans, "outcomes": [{"host": "hv1", "results": failed}]}
        volume_action(connection, parameters)
    assert shown(doors.member, number)["status"] == "error_deleting"
    assert [snapshot["id"] for snapshot in doors.member.get("/snapshots")["snapshots"]] == [taken[1]]
    doors.member.delete(f"/volumes/{number}?cascade=True", 202)
    with transaction(cloud.engine) as connection:
        plans = volume_action(connection, {"volumes": [number]})["hosts"]
        done = [{"id": deletion["id"], "error": None} for deletion in plans["hv1"]["gone"]]
        volume_action(connection, {"plans": plans, "outcomes": [{"host": "hv1", "results": done}]})
    doors.member.get(f"/volumes/{number}", 404)
    assert doors.member.get("/snapshots")["snapshots"] == []
