# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Volumes that one project gives to another; and lists of what there never is."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables_volumes
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity import quotas
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volumes.volume_views import snapshots_by
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.volumes import volume_snapshots, volume_transfers
from api.openstack.volume.routes_absent import ABSENT
from tests.api.conftest import Cloud
from tests.api.doors import Body, Doors, User
from tests.support.rows import add_project

NOWHERE = "11111111-1111-1111-1111-111111111111"
THIRD = "f" * 32
LATEST = {"OpenStack-API-Version": "volume 3.71"}


def make(user: User, **more: str) -> str:
    return str(user.post("/volumes", {"volume": {"size": 1, **more}}, 202)["volume"]["id"])


def offer(user: User, volume: str, **more: object) -> Body:
    return dict(user.post("/os-volume-transfer", {"transfer": {"volume_id": volume, **more}}, 202)["transfer"])


def accept(user: User, transfer: Body, status: int = 202, **more: str) -> None:
    key = {"auth_key": transfer["auth_key"], **more}
    user.post(f"/os-volume-transfer/{transfer['id']}/accept", {"accept": key}, status)


def test_a_volume_goes_to_whoever_knows_the_key(doors: Doors) -> None:
    volume, own = make(doors.member, name="data"), make(doors.stranger, name="data")
    taken = doors.member.post("/snapshots", {"snapshot": {"volume_id": volume}}, 202)["snapshot"]["id"]
    doors.member.post("/os-volume-transfer", {"transfer": {"volume_id": volume}}, 400)  # the snapshot is being taken
    assert doors.member.get(f"/volumes/{volume}")["volume"]["status"] == "available"
    with transaction(doors.cloud.engine) as connection:
        volume_snapshots.finish_snapshot(connection, taken)

    transfer = offer(doors.member, volume, name=" gift ")
    assert (transfer["name"], transfer["volume_id"], len(transfer["auth_key"])) == ("gift", volume, 16)
    assert doors.member.get(f"/volumes/{volume}")["volume"]["status"] == "awaiting-transfer"
    (row,) = doors.rows(tables_volumes.volume_transfer)
    assert transfer["auth_key"] not in row.values()
    for path in ("/os-volume-transfer", "/os-volume-transfer/detail"):
        (shown,) = doors.reader.get(path)["transfers"]
        assert (shown["id"], "auth_key" in shown) == (transfer["id"], False)
        assert doors.stranger.get(path)["transfers"] == []
    assert doors.reader.get(f"/os-volume-transfer/{transfer['id']}")["transfer"]["name"] == "gift"
    doors.stranger.get(f"/os-volume-transfer/{transfer['id']}", 404)
    doors.stranger.delete(f"/os-volume-transfer/{transfer['id']}", 404)
    doors.member.delete(f"/volumes/{volume}", 400)

    accept(doors.stranger, transfer, 400, auth_key="0" * 16)
    doors.reader.post(f"/os-volume-transfer/{transfer['id']}/accept", {"accept": {"auth_key": "x"}}, 403)
    accept(doors.stranger, transfer)
    doors.member.get(f"/volumes/{volume}", 404)
    body = doors.stranger.get(f"/volumes/{volume}")["volume"]
    assert (body["status"], body["name"], body["user_id"]) == ("available", "data", doors.stranger.id)
    assert doors.stranger.get(f"/snapshots/{taken}")["snapshot"]["volume_id"] == volume
    assert {row["id"] for row in doors.stranger.get("/volumes")["volumes"]} == {volume, own}
    accept(doors.stranger, transfer, 404)


def test_a_transfer_is_taken_back(doors: Doors) -> None:
    volume = make(doors.member)
    transfer = offer(doors.member, volume)
    doors.member.post("/os-volume-transfer", {"transfer": {"volume_id": volume}}, 400)
    doors.member.delete(f"/os-volume-transfer/{transfer['id']}", 202)
    assert doors.member.get(f"/volumes/{volume}")["volume"]["status"] == "available"
    accept(doors.stranger, transfer, 404)
    doors.member.delete(f"/os-volume-transfer/{transfer['id']}", 404)
    doors.stranger.post("/os-volume-transfer", {"transfer": {"volume_id": volume}}, 404)
    offer(doors.admin, volume)
    doors.admin.post(f"/volumes/{volume}/action", {"os-force_delete": None}, 202)
    assert doors.reader.get("/os-volume-transfer")["transfers"] == []


def test_a_transfer_stays_within_the_quota_of_who_accepts(cloud: Cloud, doors: Doors) -> None:
    with transaction(cloud.engine) as connection:
        quotas.write_quotas(connection, doors.other, {"volumes": 0})
    volume = make(doors.member)
    transfer = offer(doors.member, volume)
    accept(doors.stranger, transfer, 413)
    assert doors.member.get(f"/volumes/{volume}")["volume"]["status"] == "awaiting-transfer"
    with transaction(cloud.engine) as connection:
        connection.execute(sa.update(tables_volumes.volume).values(status="error"))
        quotas.write_quotas(connection, doors.other, {"volumes": 1})
    accept(doors.stranger, transfer, 400)


def test_volume_transfers_are_the_same_from_3_55_on(doors: Doors) -> None:
    volume = make(doors.member)
    snapshot = doors.member.post("/snapshots", {"snapshot": {"volume_id": volume}}, 202)["snapshot"]["id"]
    doors.member.get("/volume-transfers", 404)
    for user in (doors.member, doors.stranger):
        user.headers = {**user.headers, **LATEST}
    body = {"transfer": {"volume_id": volume, "no_snapshots": True}}
    transfer = doors.member.post("/volume-transfers", body, 202)["transfer"]
    assert (transfer["no_snapshots"], transfer["source_project_id"]) == (True, doors.project)
    (shown,) = doors.member.get("/volume-transfers/detail")["transfers"]
    assert (shown["accepted"], shown["destination_project_id"]) == (False, None)
    doors.stranger.post(
        f"/volume-transfers/{transfer['id']}/accept", {"accept": {"auth_key": transfer["auth_key"]}}, 202
    )
    doors.stranger.get(f"/volumes/{volume}")
    doors.member.get(f"/snapshots/{snapshot}")


@pytest.mark.parametrize("kind", ABSENT, ids=lambda kind: kind.path)
def test_of_these_there_is_none(doors: Doors, kind: tuple[str, str, int]) -> None:
    path, missing, minor = kind[:3]
    if minor:
        doors.admin.get(f"/{path}", 404)
    doors.admin.headers = {**doors.admin.headers, **LATEST}
    assert list(doors.admin.get(f"/{path}").values()) == [[]]
    assert doors.admin.get(f"/{path}/{NOWHERE}", 404)["itemNotFound"]["message"] == missing.format(NOWHERE)


def test_what_administrators_look_at(doors: Doors) -> None:
    admin = doors.admin
    admin.headers = {**admin.headers, **LATEST}
    for path, plural in (("volumes", "manageable-volumes"), ("snapshots/detail", "manageable-snapshots")):
        assert admin.get(f"/manageable_{path}?host=hv1@file")[plural] == []
    (filters,) = admin.get("/resource_filters?resource=volume")["resource_filters"]
    assert "status" in filters["filters"]
    assert admin.put("/os-services/get-log", {"binary": "*"}) == {"log_levels": []}
    (of_type,) = admin.get("/types")["volume_types"]
    assert admin.get(f"/types/{of_type['id']}/encryption") == {}
    luks = {"encryption": {"provider": "luks", "control_location": "front-end"}}
    assert "not encrypted" in str(admin.post(f"/types/{of_type['id']}/encryption", luks, 400))
    admin.post(f"/types/{NOWHERE}/encryption", luks, 404)
    doors.member.post(f"/types/{of_type['id']}/encryption", luks, 403)
    assert admin.get("/os-quota-class-sets/gold")["quota_class_set"]["id"] == "gold"


@pytest.mark.parametrize("named", ["", None])
def test_no_type_is_the_default_type(doors: Doors, named: str | None) -> None:
    body = doors.member.post("/volumes", {"volume": {"size": 1, "volume_type": named}}, 202)["volume"]
    assert body["volume_type"] == doors.member.get("/types/default")["volume_type"]["name"]


def test_snapshots_that_stayed_are_not_the_new_owners(doors: Doors) -> None:
    volume = make(doors.member)
    kept = doors.member.post("/snapshots", {"snapshot": {"volume_id": volume}}, 202)["snapshot"]["id"]
    with transaction(doors.cloud.engine) as connection:
        volume_snapshots.finish_snapshot(connection, kept)
    for user in (doors.member, doors.stranger):
        user.headers.update(LATEST)
    accept(doors.stranger, offer(doors.member, volume, no_snapshots=True))
    refusal = doors.stranger.ask("DELETE", f"/volumes/{volume}?cascade=true")
    assert refusal.status_code == 400 and "stayed with the project that gave it away" in refusal.text
    doors.stranger.post(f"/volumes/{volume}/action", {"revert": {"snapshot_id": kept}}, 400)
    with transaction(doors.cloud.engine) as connection:
        # neither are they the new owner's to give
        mine = volume_snapshots.create_snapshot(connection, doors.stranger.project, {"volume_id": volume})
        volume_snapshots.finish_snapshot(connection, mine.id)
    offered = offer(doors.stranger, volume)
    with transaction(doors.cloud.engine) as connection:
        add_project(connection, "third", THIRD)
        volume_transfers.accept(connection, offered["id"], offered["auth_key"], THIRD, None)
        owners = {row.id: row.project_id for row in snapshots_by(connection, volumes=[volume])}
    assert owners == {kept: doors.member.project, mine.id: THIRD}


def test_an_administrator_deletes_snapshots_of_any_project_with_their_volume(doors: Doors) -> None:
    volume = make(doors.member)
    doors.member.post("/snapshots", {"snapshot": {"volume_id": volume}}, 202)
    doors.member.headers.update(LATEST)
    with transaction(doors.cloud.engine) as connection:
        (taken,) = snapshots_by(connection)
        volume_snapshots.finish_snapshot(connection, taken.id)
    accept(doors.stranger, offer(doors.member, volume, no_snapshots=True))
    doors.admin.delete(f"/volumes/{volume}?cascade=true", 202)
    assert doors.member.get(f"/snapshots/{taken.id}")["snapshot"]["status"] == "deleting"
