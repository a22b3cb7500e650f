# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Attachments without a server, by which a client keeps a volume and connects it itself, as Cinder has them from
microversion 3.27 on."""

from __future__ import annotations

import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables_volumes
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.volumes import volume_attachments
from tests.api.conftest import Cloud
from tests.api.doors import Doors, User
from tests.api.seeds import Api

CONNECTOR = {"host": "ironic-1", "ip": "192.0.2.7", "initiator": "iqn.x", "mountpoint": "/dev/sdb", "multipath": False}


def asked(user: User, method: str, path: str, body: t.Any = None, minor: int = 71) -> t.Any:
    headers = {**user.headers, "OpenStack-API-Version": f"volume 3.{minor}"}
    return user.client.open(user.base + path, method=method, json=body, headers=headers)


def a_volume(user: User, **said: t.Any) -> str:
    return t.cast(str, user.post("/volumes", {"volume": {"size": 1, **said}}, 202)["volume"]["id"])


def shown(user: User, number: str) -> dict[str, t.Any]:
    return t.cast("dict[str, t.Any]", asked(user, "GET", f"/volumes/{number}").get_json()["volume"])


def reserve(user: User, number: str, **said: t.Any) -> dict[str, t.Any]:
    answer = asked(user, "POST", "/attachments", {"attachment": {"volume_uuid": number, **said}})
    assert answer.status_code == 200, answer.get_data(as_text=True)
    return t.cast("dict[str, t.Any]", answer.get_json()["attachment"])


def test_a_volume_is_kept_connected_completed_and_free_again(doors: Doors) -> None:
    member, number = doors.member, a_volume(doors.member)
    made = reserve(member, number, connector={})
    kept = {"id": made["id"], "instance": None, "volume_id": number}
    nothing = {"attached_at": "", "detached_at": "", "connection_info": {}}
    assert made == {**kept, **nothing, "status": "reserved", "attach_mode": "null"}
    assert (shown(member, number)["status"], shown(member, number)["attachments"]) == ("reserved", [])
    path = f"/attachments/{made['id']}"
    connected = asked(member, "PUT", path, {"attachment": {"connector": CONNECTOR}}).get_json()["attachment"]
    assert connected["attached_at"] and {**connected, "attached_at": ""} == (
        {**kept, **nothing, "status": "attaching", "attach_mode": "rw"}
    )
    assert shown(member, number)["status"] == "attaching"
    assert asked(member, "POST", f"{path}/action", {"os-complete": made["id"]}).status_code == 204
    assert asked(member, "GET", path).get_json()["attachment"] == {**connected, "status": "attached"}
    seen = shown(doors.admin, number)
    assert seen["status"] == "in-use"
    ((attachment,),) = (seen["attachments"],)
    names = ("attachment_id", "server_id", "device", "host_name")
    assert [attachment[name] for name in names] == [made["id"], None, "/dev/sdb", "ironic-1"]
    listed = asked(member, "GET", "/attachments?status=attached").get_json()["attachments"]
    assert listed == [{**kept, "status": "attached"}]
    assert member.delete(f"/volumes/{number}", 400)
    assert asked(member, "DELETE", path).get_json() == {"attachments": []}
    assert (shown(member, number)["status"], shown(member, number)["attachments"]) == ("available", [])
    assert asked(member, "GET", path).status_code == 404
    assert doors.jobs() == []


@pytest.mark.parametrize(
    ("said", "mode", "readonly"),
    [({}, "rw", False), ({"mode": "ro"}, "ro", False), ({"mode": "rw"}, "rw", False), ({"mode": "rw"}, "ro", True)],
)
def test_the_mode_is_the_volumes_then_what_was_said(
    doors: Doors, said: dict[str, str], mode: str, readonly: bool
) -> None:
    number = a_volume(doors.member)
    doors.member.post(f"/volumes/{number}/action", {"os-update_readonly_flag": {"readonly": readonly}}, 202)
    made = reserve(doors.member, number, **said, connector=CONNECTOR)
    assert (made["status"], made["attach_mode"]) == ("attaching", mode)


@pytest.mark.parametrize(
    "connector", [{"ip": "192.0.2.7"}, {"host": ""}, {"host": "x" * 256}, {"host": "h", "mode": "x"}, {"host": 5}, {}]
)
def test_a_connector_that_cannot_be_noted_changes_nothing(doors: Doors, connector: dict[str, t.Any]) -> None:
    number = a_volume(doors.member)
    if connector:
        body = {"attachment": {"volume_uuid": number, "connector": connector}}
        assert asked(doors.member, "POST", "/attachments", body).status_code == 400
        assert (shown(doors.member, number)["status"], doors.rows(tables_volumes.volume_reservation)) == (
            "available",
            [],
        )
    before = reserve(doors.member, number)
    body = {"attachment": {"connector": connector}}
    assert asked(doors.member, "PUT", f"/attachments/{before['id']}", body).status_code == 400
    assert asked(doors.member, "GET", f"/attachments/{before['id']}").get_json()["attachment"] == before


def test_it_is_of_its_project_and_of_newer_clients(doors: Doors) -> None:
    number = a_volume(doors.member)
    body = {"attachment": {"volume_uuid": number}}
    assert asked(doors.member, "POST", "/attachments", body, minor=26).status_code == 404
    assert asked(doors.stranger, "POST", "/attachments", body).status_code == 404
    assert asked(doors.reader, "POST", "/attachments", body).status_code == 403
    path = f"/attachments/{reserve(doors.member, number)['id']}"
    change = {"attachment": {"connector": CONNECTOR}}
    for user, status in ((doors.stranger, 404), (doors.reader, 403)):
        assert asked(user, "PUT", path, change).status_code == status
        assert asked(user, "POST", f"{path}/action", {"os-complete": None}).status_code == status
        assert asked(user, "DELETE", path).status_code == status
    assert asked(doors.stranger, "GET", path).status_code == 404
    assert asked(doors.member, "POST", f"{path}/action", {"os-complete": None}, minor=43).status_code == 404
    assert shown(doors.member, number)["status"] == "reserved"


# --- Each state, each verb ------------------------------------------------------------------------------------------

STATUSES = (
    *("available", "creating", "downloading", "reserved", "attaching", "in-use", "detaching", "extending", "uploading"),
    *("deleting", "error", "error_deleting", "error_extending", "error_attaching", "error_detaching", "maintenance"),
)
GOES_ON = ("reserved", "attaching", "in-use")
HOLDERS = ("nobody", "reserved", "attaching", "attached", "a server")


class Verb(t.NamedTuple):
    method: str
    path: str
    body: t.Any
    status: t.Callable[[str, str], int]  # by holder and status of the volume


def reserving(_holder: str, status: str) -> int:
    return 200 if status == "available" else 400


def connecting(holder: str, status: str) -> int:
    if holder in ("nobody", "a server"):
        return 404 if holder == "nobody" else 400
    return 200 if status in GOES_ON else 409


def completing(holder: str, status: str) -> int:
    if holder in ("nobody", "a server"):
        return 404 if holder == "nobody" else 204
    return 204 if status in GOES_ON else 400


def deleting(holder: str, status: str) -> int:
    if holder == "a server":
        return 200 if status in ("in-use", "error_attaching", "error_detaching") else 400
    return 404 if holder == "nobody" else 200


def detaching(holder: str, status: str) -> int:
    if holder == "nobody":
        return 202 if status == "available" else 400
    return {200: 202}.get(deleting(holder, status), 400)


VERBS = {
    "reserve": Verb("POST", "/attachments", {"attachment": {"volume_uuid": "{volume}"}}, reserving),
    "reserve and connect": Verb(
        "POST", "/attachments", {"attachment": {"volume_uuid": "{volume}", "connector": CONNECTOR}}, reserving
    ),
    "connect": Verb("PUT", "/attachments/{held}", {"attachment": {"connector": CONNECTOR}}, connecting),
    "complete": Verb("POST", "/attachments/{held}/action", {"os-complete": {}}, completing),
    "delete": Verb("DELETE", "/attachments/{held}", None, deleting),
    "os-detach": Verb("POST", "/volumes/{volume}/action", {"os-detach": {}}, detaching),
}


def held_by(cloud: Cloud, doors: Doors, holder: str, number: str) -> str:
    """Bring the volume to its holder; returns the attachment's id."""
    if holder == "nobody":
        return number  # there is no attachment of such an id
    if holder == "a server":
        server = cloud.instance(doors.project, f"s{number[:8]}", "hv1", vm_state="active")
        with transaction(cloud.engine) as connection:
            made = volume_attachments.begin_attach(connection, number, server)
            volume_attachments.finish_attach(connection, made.id)
        return made.id
    held = t.cast(str, reserve(doors.member, number)["id"])
    for name in ("connect", "complete")[: HOLDERS.index(holder) - 1]:
        path, body = VERBS[name].path.format(held=held), VERBS[name].body
        assert asked(doors.member, VERBS[name].method, path, body).status_code in (200, 204)
    return held


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("holder", HOLDERS)
def test_each_verb_in_each_state(cloud: Cloud, doors: Doors, holder: str, verb: str) -> None:
    """A verb is done, or refused with a reason and without a trace; whatever was kept is free in the end."""
    table, reservation = tables_volumes.volume, tables_volumes.volume_reservation
    doors.admin.put(f"/os-quota-sets/{doors.project}", {"quota_set": {"volumes": -1}})
    for status in STATUSES:
        if status == "available" and holder != "nobody":
            continue  # no way leads there: see the next test
        number = a_volume(doors.member)
        held = held_by(cloud, doors, holder, number)
        with transaction(cloud.engine) as connection:
            connection.execute(sa.update(table).where(table.c.id == number).values(status=status))
        before = [doors.rows(table), doors.rows(reservation)]
        method, path, body, expected = VERBS[verb]
        body = (
            {"attachment": {**body["attachment"], "volume_uuid": number}}
            if method == "POST" and body.get("attachment")
            else body
        )
        answer = asked(doors.member, method, path.format(held=held, volume=number), body)
        assert answer.status_code == expected(holder, status), (status, answer.get_data(as_text=True))
        if answer.status_code >= 400:
            assert [doors.rows(table), doors.rows(reservation)] == before, status
        elif verb in ("delete", "os-detach") and holder not in ("nobody", "a server"):
            assert [row for row in doors.rows(reservation) if row["volume_id"] == number] == []
            free = status in (*GOES_ON, "detaching")
            assert shown(doors.member, number)["status"] == ("available" if free else status)


@pytest.mark.parametrize("holder", HOLDERS[1:4])
def test_what_an_administrator_makes_available_is_kept_for_nobody(cloud: Cloud, doors: Doors, holder: str) -> None:
    number = a_volume(doors.member)
    held_by(cloud, doors, holder, number)
    doors.member.post(f"/volumes/{number}/action", {"os-unreserve": None}, 202)
    assert shown(doors.member, number)["status"] != "available"
    doors.admin.post(f"/volumes/{number}/action", {"os-reset_status": {"status": "available"}}, 202)
    assert doors.rows(tables_volumes.volume_reservation) == []
    assert reserve(doors.member, number)["status"] == "reserved"


def test_a_kept_volume_is_extended_where_it_is_kept(cloud: Cloud, doors: Doors) -> None:
    number = a_volume(doors.member)
    held_by(cloud, doors, "attached", number)
    answer = asked(doors.member, "POST", f"/volumes/{number}/action", {"os-extend": {"new_size": 2}})
    assert answer.status_code == 202
    seen = shown(doors.member, number)
    assert (seen["size"], seen["status"]) == (2, "in-use")


def test_a_server_does_not_get_a_kept_volume(cloud: Cloud, doors: Doors) -> None:
    number = a_volume(doors.member)
    server = cloud.instance(doors.project, "web", "hv1", vm_state="active")
    kept = reserve(doors.member, number)
    body = {"attachment": {"volume_uuid": number, "instance_uuid": server}}
    assert asked(doors.member, "POST", "/attachments", body).status_code == 400
    assert asked(doors.member, "DELETE", f"/attachments/{kept['id']}").status_code == 200
    assert asked(doors.member, "POST", "/attachments", body).status_code == 200


# --- Real clients ---------------------------------------------------------------------------------------------------


def test_openstacksdk_and_cinderclient_go_the_whole_way(api: Api, sdk: t.Callable[[str], t.Any]) -> None:
    from cinderclient import client as cinder

    cloud = sdk("demo")
    storage = cloud.block_storage
    volume = storage.create_volume(size=1, name="kept")
    made = storage.create_attachment(volume.id, connector={})
    assert (made.status, made.instance, made.volume_id) == ("reserved", None, volume.id)
    assert storage.update_attachment(made.id, connector=CONNECTOR).status == "attaching"
    storage.complete_attachment(made.id)
    assert [(row.id, row.status) for row in storage.attachments()] == [(made.id, "attached")]
    assert storage.get_volume(volume.id).status == "in-use"
    storage.delete_attachment(made.id, ignore_missing=False)
    assert storage.get_volume(volume.id).status == "available"

    attachments = cinder.Client("3.71", session=cloud.session, region_name="RegionOne").attachments
    kept = attachments.create(volume.id, {}, mode="ro")
    assert (kept["status"], kept["attach_mode"]) == ("reserved", "ro")
    assert attachments.update(kept["id"], CONNECTOR).attach_mode == "ro"
    attachments.complete(kept["id"])
    assert attachments.show(kept["id"]).status == "attached"
    assert [row.id for row in attachments.list(search_opts={"volume_id": volume.id})] == [kept["id"]]
    attachments.delete(kept["id"])
    assert storage.get_volume(volume.id).status == "available"
