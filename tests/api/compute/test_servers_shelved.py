# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Shelve, shelveOffload and unshelve, as Nova's API has them."""

from __future__ import annotations

import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.volumes import server_volumes, volumes
from tests.api import seeds
from tests.api.compute.test_server_volumes import LATEST, a_volume, status
from tests.api.compute.test_servers_anew import SERVERS, ClientAs, Does, change, does, finish, jobs, row, server

__all__ = ["does", "server"]
FILE = {"source": "/nonexistent/shelved", "checksum": "sha256:" + "7" * 64, "size": 9, "virtual_size": 64 << 20}


def offload(api: seeds.Api, does: Does, server: str) -> None:
    assert does({"shelve": None}).status_code == 202
    finish(api, "shelve", server, host_results={server: FILE})
    finish(api, "shelveOffload", server)


def test_a_server_is_shelved(api: seeds.Api, does: Does, server: str, client_as: ClientAs) -> None:
    assert does({"shelve": None}).status_code == 202
    shown = client_as("demo").get(f"{SERVERS}/{server}").get_json()["server"]
    assert (shown["status"], shown["OS-EXT-STS:task_state"]) == ("ACTIVE", "shelving")
    (image,) = client_as("demo").get("/image/v2/images?name=web-shelved").get_json()["images"]
    assert (image["status"], image["image_type"], image["instance_uuid"]) == ("saving", "snapshot", server)
    assert does({"shelve": None}).status_code == 409
    finish(api, "shelve", server, host_results={server: FILE})
    shown = client_as("demo").get(f"{SERVERS}/{server}").get_json()["server"]
    assert (shown["status"], shown["OS-EXT-STS:task_state"]) == ("SHELVED", "shelving_offloading")
    finish(api, "shelveOffload", server)
    shown = client_as("admin").get(f"{SERVERS}/{server}").get_json()["server"]
    assert (shown["status"], shown["OS-EXT-STS:vm_state"]) == ("SHELVED_OFFLOADED", "shelved_offloaded")
    assert (shown["OS-EXT-STS:power_state"], shown["OS-EXT-SRV-ATTR:host"], shown["hostId"]) == (4, None, "")
    assert shown["image"]["id"] == seeds.IMAGE_ID
    listed = client_as("demo").get(f"{SERVERS}?status=SHELVED_OFFLOADED").get_json()["servers"]
    assert [entry["id"] for entry in listed] == [server]
    assert [job.kind for job in jobs(api)] == ["shelve"]
    for body in ({"os-start": None}, {"os-stop": None}, {"reboot": {"type": "HARD"}}, {"rebuild": {"imageRef": "x"}}):
        assert does(body).status_code in (400, 409)
    assert does({"unshelve": None}).status_code == 202
    assert row(api, server).task_state == "unshelving" and [job.kind for job in jobs(api)] == ["shelve", "unshelve"]
    assert does({"unshelve": None}).status_code == 409


@pytest.mark.parametrize("before", ["active", "stopped", "paused", "suspended"])
def test_shelving_begins_in_these_states(api: seeds.Api, does: Does, server: str, before: str) -> None:
    change(api, server, vm_state=before)
    assert does({"shelve": None}).status_code == 202


@pytest.mark.parametrize("action", ["shelve", "unshelve", "shelveOffload"])
def test_they_begin_in_no_other_state(api: seeds.Api, does: Does, server: str, action: str) -> None:
    change(api, server, vm_state="error")
    assert does({action: None}, user="admin").status_code == 409
    assert does({action: None}, user="reader").status_code == 403
    assert does({action: None}, user="alt").status_code == 404
    change(api, server, vm_state="active", locked=True)
    assert does({action: None}).status_code in (403, 409)
    assert jobs(api) == []


def test_what_stayed_on_its_host_is_offloaded_by_administrators(api: seeds.Api, does: Does, server: str) -> None:
    assert does({"shelve": None}).status_code == 202
    finish(api, "shelve", server, host_results={server: FILE})
    finish(api, "shelveOffload", server, error="its host does not answer")
    assert (row(api, server).vm_state, row(api, server).host) == ("shelved", "hv1")
    assert does({"shelveOffload": None}).status_code == 403
    assert does({"unshelve": {"availability_zone": "nova"}}, "2.77").status_code == 409
    assert does({"shelveOffload": None}, user="admin").status_code == 202
    assert [job.kind for job in jobs(api)] == ["shelve", "shelveOffload"]


@pytest.mark.parametrize(
    ("asked", "version", "user", "status"),
    [
        ({"availability_zone": "nova"}, "2.77", "demo", 202),
        ({"availability_zone": "mars"}, "2.77", "demo", 400),
        ({"availability_zone": None}, "2.77", "demo", 400),
        ({"host": "hv1"}, "2.77", "admin", 400),
        ({"availability_zone": None}, "2.91", "demo", 202),
        ({"host": "hv1"}, "2.91", "demo", 403),
        ({"host": "hv1"}, "2.91", "admin", 202),
        ({"host": "hv99"}, "2.91", "admin", 400),
        ({}, "2.91", "demo", 400),
        ({"anything": 1}, "2.76", "demo", 202),
        (None, "2.91", "demo", 202),
    ],
)
def test_where_a_server_is_unshelved(
    api: seeds.Api, does: Does, server: str, asked: t.Any, version: str, user: str, status: int
) -> None:
    offload(api, does, server)
    api.write(sa.update(tables.compute_host).values(zone="nova"))
    change(api, server, availability_zone="west")
    assert does({"unshelve": asked}, version, user).status_code == status
    if status == 202 and "availability_zone" in (asked or {}):
        assert row(api, server).availability_zone == asked["availability_zone"]
    assert row(api, server).task_state == ("unshelving" if status == 202 else None)


def test_a_job_that_is_dead_leaves_a_shelved_server(api: seeds.Api, does: Does, server: str) -> None:
    from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
    from ansible_collections.novalite.cloud.plugins.module_utils._ledger.jobs import job_outcomes

    offload(api, does, server)
    does({"unshelve": None})
    change(api, server, task_state="spawning", host="hv1")
    with transaction(api.engine) as connection:
        job_outcomes.settle(connection, "unshelve", [server], "its worker is gone")
    instance_row = row(api, server)
    assert (instance_row.vm_state, instance_row.task_state, instance_row.host) == ("shelved_offloaded", None, None)


def test_volumes_come_to_and_go_from_a_shelved_server(
    api: seeds.Api, does: Does, server: str, client_as: ClientAs
) -> None:
    offload(api, does, server)
    url, volume_id, before = f"{SERVERS}/{server}/os-volume_attachments", a_volume(api), len(jobs(api))
    client = client_as("demo")
    body = {"volumeAttachment": {"volumeId": volume_id}}
    tagged = client.post(url, json={"volumeAttachment": {"volumeId": volume_id, "tag": "x"}}, headers=LATEST)
    assert (tagged.status_code, status(api, volume_id)) == (400, "available")
    assert client.post(url, json=body).status_code == 200
    assert status(api, volume_id) == "reserved"
    seen = client.get(f"/volume/v3/{api.projects['demo']}/volumes/{volume_id}").get_json()["volume"]
    assert (seen["status"], [each["server_id"] for each in seen["attachments"]]) == ("in-use", [server])  # as in Nova
    assert [each["volumeId"] for each in client.get(url).get_json()["volumeAttachments"]] == [volume_id]
    assert client.post(url, json=body).status_code in (400, 409)
    assert client.delete(f"{url}/{volume_id}").status_code == 202
    assert (status(api, volume_id), client.get(url).get_json()) == ("available", {"volumeAttachments": []})
    assert client.post(url, json=body).status_code == 200
    assert len(jobs(api)) == before  # no host has anything to do
    assert does({"unshelve": None}).status_code == 202
    assert client.delete(f"{url}/{volume_id}").status_code == 409
    with transaction(api.engine) as connection:
        server_volumes.running(connection, [server])
    assert status(api, volume_id) == "in-use"


def test_volumes_in_the_storage_of_two_hosts_are_not_one_shelved_servers(
    api: seeds.Api, does: Does, server: str, client_as: ClientAs
) -> None:
    offload(api, does, server)
    url, client = f"{SERVERS}/{server}/os-volume_attachments", client_as("demo")
    first, second = a_volume(api, host="hv1"), a_volume(api, host="hv2")
    with transaction(api.engine) as connection:
        for volume_id in (first, second):
            volumes.finish_create(connection, volume_id)
    assert client.post(url, json={"volumeAttachment": {"volumeId": first}}).status_code == 200
    assert client.post(url, json={"volumeAttachment": {"volumeId": second}}).status_code == 400
    assert (status(api, first), status(api, second)) == ("reserved", "available")
    assert client.delete(f"{SERVERS}/{server}").status_code == 204
