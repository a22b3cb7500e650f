# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""POST /servers and DELETE: what is recorded, what is refused, in whose words."""

from __future__ import annotations

import base64
import tracemalloc
import typing as t

import pytest
import sqlalchemy as sa
from flask.testing import FlaskClient

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute import new_servers
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables, tables_jobs
from tests.api import seeds

SERVERS = "/compute/v2.1/servers"
LATEST = {"OpenStack-API-Version": "compute 2.96"}
ClientAs = t.Callable[..., FlaskClient]


def flavor_id(api: seeds.Api, name: str = "m1.tiny") -> str:
    return str(api.rows(sa.select(tables.flavor.c.id).where(tables.flavor.c.name == name))[0].id)


def body(api: seeds.Api, **more: t.Any) -> dict[str, t.Any]:
    return {"server": {"name": "web", "flavorRef": flavor_id(api), "imageRef": seeds.IMAGE_ID, **more}}


def posted(api: seeds.Api, client: FlaskClient, **more: t.Any) -> dict[str, t.Any]:
    answer = client.post(SERVERS, json=body(api, **more))
    assert answer.status_code == 202, answer.get_json()
    return t.cast("dict[str, t.Any]", answer.get_json()["server"])


def test_what_the_command_line_sends_is_recorded_with_its_job(api: seeds.Api, client_as: ClientAs) -> None:
    image = {
        "uuid": seeds.IMAGE_ID,
        "boot_index": 0,
        "source_type": "image",
        "destination_type": "local",
        "delete_on_termination": True,
    }
    asked = body(
        api,
        min_count=1,
        max_count=1,
        key_name="test",
        networks="auto",
        block_device_mapping_v2=[image],
        metadata={"a": "b"},
        availability_zone="nova",
        tags=["x", "a"],
        description="mine",
        user_data=base64.b64encode(b"#!/bin/sh\n").decode(),
        config_drive=True,
    )
    answer = client_as("demo").post(SERVERS, json=asked, headers=LATEST)
    assert answer.status_code == 202, answer.get_json()
    server = answer.get_json()["server"]
    uuid = server["id"]
    assert answer.headers["Location"] == f"http://localhost/compute/v2.1/servers/{uuid}"
    assert set(server) == {"id", "links", "OS-DCF:diskConfig", "security_groups", "adminPass"}
    assert server["security_groups"] == [{"name": "default"}]
    assert [link["rel"] for link in server["links"]] == ["self", "bookmark"]
    (row,) = api.rows(sa.select(tables.instance))
    assert (row.uuid, row.name, row.display_name, row.hostname) == (uuid, "web", "web", "web")
    assert (row.vm_state, row.task_state, row.key_name) == ("building", "scheduling", "test")
    assert (row.public_key, row.metadata, row.tags) == (seeds.PUBLIC_KEY, {"a": "b"}, ["a", "x"])
    assert (row.description, row.availability_zone, row.config_drive) == ("mine", "nova", True)
    assert (row.user_id, row.project_id) == (api.users["demo"], api.projects["demo"])
    assert base64.b64decode(row.user_data) == b"#!/bin/sh\n"
    rules = api.rows(sa.select(tables.security_group_rule))
    assert sorted((rule.ethertype, rule.remote_group_id == rule.group_id) for rule in rules) == [
        ("IPv4", True),
        ("IPv6", True),
    ], "the default group, as Neutron makes it"
    assert row.password_hash.startswith("$6$") and server["adminPass"] not in row.password_hash
    (job,) = api.rows(sa.select(tables_jobs.job, tables_jobs.job_instance).join(tables_jobs.job_instance))
    assert (job.kind, job.state, job.instance_uuid) == ("launch", "queued", uuid)
    assert job.request_id == answer.headers["X-Compute-Request-Id"]
    assert server["adminPass"] not in str(job.variables)
    (action,) = api.rows(sa.select(tables.instance_action))
    assert (action.action, action.user_id, action.request_id) == ("create", api.users["demo"], job.request_id)


def test_the_password_that_is_answered_is_the_one_that_is_hashed(api: seeds.Api, client_as: ClientAs) -> None:
    import subprocess

    for more in ({}, {"adminPass": "s3cret word"}):
        password = posted(api, client_as("demo"), **more)["adminPass"]
        assert more.get("adminPass", password) == password and len(password) >= 11
        kept = api.rows(sa.select(tables.instance.c.password_hash).order_by(tables.instance.c.id.desc()))[0][0]
        scheme, rounds_or_salt, *rest = kept.split("$")[1:]
        salt = f"{rounds_or_salt}${rest[0]}" if rounds_or_salt.startswith("rounds=") else rounds_or_salt
        again = subprocess.run(
            ["openssl", "passwd", f"-{scheme}", "-salt", salt, "-stdin"],
            input=password,
            capture_output=True,
            text=True,
            check=True,
        )
        assert again.stdout.strip() == kept


def test_several_servers_are_numbered_and_share_a_reservation(api: seeds.Api, client_as: ClientAs) -> None:
    answer = client_as("demo").post(SERVERS, json=body(api, max_count="3", return_reservation_id=True))
    assert answer.status_code == 202
    reservation = answer.get_json()["reservation_id"]
    made = api.rows(sa.select(tables.instance).order_by(tables.instance.c.id))
    assert [(row.display_name, row.name) for row in made] == [(f"web-{n}", f"web-{n}") for n in (1, 2, 3)]
    assert {row.reservation_id for row in made} == {reservation}
    assert len(api.rows(sa.select(tables_jobs.job))) == 1


def test_as_many_as_the_quota_allows_are_made(api: seeds.Api, client_as: ClientAs) -> None:
    client = client_as("demo")
    assert client.post(SERVERS, json=body(api, max_count=8)).status_code == 202
    assert client.post(SERVERS, json=body(api, min_count=1, max_count=5)).status_code == 202
    assert len(api.rows(sa.select(tables.instance))) == 10
    answer = client.post(SERVERS, json=body(api, min_count=1, max_count=5))
    assert answer.status_code == 403
    assert answer.get_json()["forbidden"]["message"] == (
        "Quota exceeded for instances: Requested 1, but already used 10 of 10 instances"
    )
    assert len(api.rows(sa.select(tables.instance))) == 10


def test_servers_may_have_the_same_name_and_each_has_its_own_handle(api: seeds.Api, client_as: ClientAs) -> None:
    client = client_as("demo")
    for name in ("Web Server_1 ä", "web server-1 a", "Web Server_1 ä", "日本", "日本", "-._", "x" * 255):
        posted(api, client, name=name)
    made = api.rows(sa.select(tables.instance).order_by(tables.instance.c.id))
    assert [row.display_name for row in made][:3] == ["Web Server_1 ä", "web server-1 a", "Web Server_1 ä"]
    handles = [row.name for row in made]
    assert handles[0] == "web-server-1-a" and handles[1].startswith("web-server-1-a-")
    assert handles[3].startswith("server-")
    assert len(set(handles)) == len(handles)
    assert [row.hostname for row in made] == handles
    assert all(len(handle) <= 63 and new_servers.label(handle) == handle for handle in handles)


@pytest.mark.parametrize(
    ("more", "status", "message"),
    [
        ({"flavorRef": "nosuch"}, 400, "Flavor nosuch could not be found."),
        ({"imageRef": "11111111-1111-1111-1111-111111111111"}, 400, "Can not find requested image"),
        ({"imageRef": ""}, 400, "Invalid imageRef provided."),
        ({"key_name": "nosuch"}, 400, "Invalid key_name provided."),
        (
            {"networks": [{"uuid": "11111111-1111-1111-1111-111111111111"}]},
            400,
            "Network 11111111-1111-1111-1111-111111111111 could not be found.",
        ),
        (
            {"networks": [{"port": "11111111-1111-1111-1111-111111111111"}]},
            400,
            "Port id 11111111-1111-1111-1111-111111111111 could not be found.",
        ),
        ({"security_groups": [{"name": "nosuch"}]}, 400, "Security group nosuch not found for project"),
        ({"availability_zone": "mars"}, 400, "The requested availability zone is not available"),
        ({"availability_zone": "nova:hv1"}, 403, "forced_host"),
        ({"min_count": 2, "max_count": 1}, 400, "min_count must be <= max_count"),
        ({"max_count": 0}, 400, "max_count"),
        ({"min_count": 10**9}, 403, "Quota exceeded for instances, cores, ram"),
        ({"name": " "}, 400, "name"),
        ({"name": "a\x07b"}, 400, "name"),
        ({"name": "a" * 256}, 400, "name"),
        ({"flavorRef": ""}, 400, "flavorRef"),
        ({"metadata": {"k" * 256: "v"}}, 400, "metadata"),
        ({"metadata": {"k": 1}}, 400, "metadata/k"),
        ({"user_data": "not base64!"}, 400, "user_data"),
        ({"user_data": "A" * 65540}, 400, "user_data"),
        ({"personality": [{"path": "../etc/passwd", "contents": ""}]}, 400, "path must be absolute"),
        ({"nosuch": 1}, 400, "nosuch"),
        ({"tags": ["x"]}, 400, "tags"),  # 2.52
        ({"description": "x"}, 400, "description"),  # 2.19
        ({"networks": "auto"}, 400, "networks"),  # 2.37
        (
            {"block_device_mapping_v2": [{"source_type": "blank", "destination_type": "local", "boot_index": -1}]},
            400,
            "Block Device Mapping is Invalid",
        ),
        (
            {"block_device_mapping_v2": [{"source_type": "volume", "uuid": seeds.IMAGE_ID, "boot_index": 0}]},
            400,
            "unknown volume",
        ),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_left(
    api: seeds.Api, client_as: ClientAs, more: dict[str, t.Any], status: int, message: str
) -> None:
    answer = client_as("demo").post(SERVERS, json=body(api, **more))
    assert answer.status_code == status, answer.get_json()
    ((key, fault),) = answer.get_json().items()
    assert (key, fault["code"]) == ({400: "badRequest", 403: "forbidden"}[status], status)
    assert message in fault["message"]
    assert not api.rows(sa.select(tables.instance)) and not api.rows(sa.select(tables_jobs.job))


def test_a_count_beyond_any_quota_takes_no_memory(api: seeds.Api, client_as: ClientAs) -> None:
    client = client_as("demo")
    tracemalloc.start()
    try:
        assert client.post(SERVERS, json=body(api, min_count=10**7)).status_code == 403
        _now, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 16 << 20


def test_networks_are_required_where_they_can_be_automatic(api: seeds.Api, client_as: ClientAs) -> None:
    client = client_as("demo")
    headers = {"OpenStack-API-Version": "compute 2.37"}
    assert client.post(SERVERS, json=body(api), headers=headers).status_code == 400
    assert client.post(SERVERS, json=body(api, networks="none"), headers=headers).status_code == 202
    assert not api.rows(sa.select(tables.vif))


def test_a_network_of_several_is_not_guessed(api: seeds.Api, client_as: ClientAs) -> None:
    api.run("network", networks=[{"name": "second", "cidr": "10.30.0.0/24", "bridge": "br30"}], project="demo")
    (second,) = api.rows(sa.select(tables.network).where(tables.network.c.name == "second"))
    client = client_as("demo")
    answer = client.post(SERVERS, json=body(api))
    assert answer.status_code == 409
    assert answer.get_json()["conflictingRequest"]["message"].startswith("Multiple possible networks found")
    fixed = [{"uuid": second.uuid, "fixed_ip": "10.30.0.9"}]
    uuid = posted(api, client, networks=fixed)["id"]
    taken = client.post(SERVERS, json=body(api, networks=fixed))
    assert taken.status_code == 400 and "10.30.0.9" in taken.get_json()["badRequest"]["message"]
    outside = client.post(SERVERS, json=body(api, networks=[{"uuid": second.uuid, "fixed_ip": "10.31.0.9"}]))
    assert outside.status_code == 400
    shown = client.get(f"{SERVERS}/{uuid}").get_json()["server"]
    assert [address["addr"] for address in shown["addresses"]["second"]] == ["10.30.0.9"]


def test_groups_are_named_or_given_by_id(api: seeds.Api, client_as: ClientAs) -> None:
    db = "22222222-2222-2222-2222-222222222222"
    ids = {
        name: api.insert(tables.security_group, uuid=uuid, project_id=api.projects["demo"], name=name)
        for name, uuid in (("web", "11111111-1111-1111-1111-111111111111"), ("db", db))
    }
    foreign = api.insert(tables.security_group, uuid="f" * 36, project_id=api.projects["alt"], name="theirs")
    groups = [{"name": "web"}, {"name": db}, {"name": "web"}]
    server = posted(api, client_as("demo"), security_groups=groups)
    assert server["security_groups"] == groups
    links = api.rows(sa.select(tables.instance_security_group.c.group_id))
    assert sorted(link.group_id for link in links) == sorted(ids.values()) and foreign not in ids.values()
    assert client_as("demo").post(SERVERS, json=body(api, security_groups=[{"name": "f" * 36}])).status_code == 400


@pytest.mark.parametrize("key", ["os:scheduler_hints", "OS-SCH-HNT:scheduler_hints"])
def test_hints_are_kept_under_both_names(api: seeds.Api, client_as: ClientAs, key: str) -> None:
    client = client_as("demo")
    first = posted(api, client)["id"]
    foreign = api.instance("alt", "theirs")
    asked = {**body(api), key: {"different_host": [first, foreign], "mine": "x", "host": "hv2"}}
    assert client.post(SERVERS, json=asked).status_code == 202
    details = api.rows(sa.select(tables.instance_action.c.details).order_by(tables.instance_action.c.id.desc()))[0][0]
    assert details["hints"] == {"different_host": [first], "mine": "x"}
    unknown = {**body(api), key: {"group": "11111111-1111-1111-1111-111111111111"}}
    assert client.post(SERVERS, json=unknown).status_code == 400


def test_an_administrator_names_the_host(api: seeds.Api, client_as: ClientAs) -> None:
    client = client_as("admin")
    for more, headers in (
        ({"availability_zone": "nova:hv2"}, {}),
        ({"availability_zone": "nova::hv2"}, {}),
        ({"host": "hv2", "networks": "auto"}, LATEST),
        ({"hypervisor_hostname": "hv2", "networks": "auto"}, LATEST),
    ):
        assert client.post(SERVERS, json=body(api, **more), headers=headers).status_code == 202
    kept = api.rows(sa.select(tables.instance_action.c.details))
    assert [action.details["hints"] for action in kept] == [{"host": "hv2"}] * 4
    assert client.post(SERVERS, json=body(api, availability_zone="nova:nosuch")).status_code == 400
    wrong = body(api, host="hv1", hypervisor_hostname="hv2", networks="auto")
    assert client.post(SERVERS, json=wrong, headers=LATEST).status_code == 400


def test_a_host_name_of_ones_own(api: seeds.Api, client_as: ClientAs) -> None:
    asked = body(api, name="x y", hostname="Mail", networks="auto")
    assert client_as("demo").post(SERVERS, json=asked, headers=LATEST).status_code == 202
    (row,) = api.rows(sa.select(tables.instance))
    assert (row.name, row.hostname) == ("x-y", "mail")


def test_readers_make_and_delete_nothing(api: seeds.Api, client_as: ClientAs) -> None:
    uuid = posted(api, client_as("demo"))["id"]
    reader = client_as("reader")
    assert reader.post(SERVERS, json=body(api)).status_code == 403
    assert reader.delete(f"{SERVERS}/{uuid}").status_code == 403
    assert reader.get(f"{SERVERS}/{uuid}").status_code == 200


# --- delete


def test_a_server_that_is_being_built_is_deleted(api: seeds.Api, client_as: ClientAs) -> None:
    client = client_as("demo")
    uuid = posted(api, client)["id"]
    answer = client.delete(f"{SERVERS}/{uuid}")
    assert (answer.status_code, answer.get_data()) == (204, b"")
    server = client.get(f"{SERVERS}/{uuid}").get_json()["server"]
    assert (server["status"], server["OS-EXT-STS:task_state"]) == ("BUILD", "deleting")
    assert client.delete(f"{SERVERS}/{uuid}").status_code == 204
    jobs = api.rows(sa.select(tables_jobs.job.c.kind).order_by(tables_jobs.job.c.created_at))
    assert [job.kind for job in jobs] == ["launch", "terminate"]  # asked for twice, done once
    actions = api.rows(sa.select(tables.instance_action).order_by(tables.instance_action.c.id))
    assert [(action.action, action.finished_at is None) for action in actions] == [("create", False), ("delete", True)]


def test_a_deletion_that_failed_is_tried_again(api: seeds.Api, client_as: ClientAs) -> None:
    uuid = api.instance("demo", "web", host="hv1", task_state="deleting")
    assert client_as("demo").delete(f"{SERVERS}/{uuid}").status_code == 204
    assert [job.kind for job in api.rows(sa.select(tables_jobs.job.c.kind))] == ["terminate"]


def test_what_is_gone_or_foreign_is_not_found(api: seeds.Api, client_as: ClientAs) -> None:
    gone = api.instance("demo", "gone", vm_state="deleted", deleted=7)
    mine = api.instance("demo", "mine")
    for name, uuid in (("demo", gone), ("alt", mine), ("demo", "nosuch"), ("demo", "x" * 300)):
        for verb in ("get", "delete"):
            answer = getattr(client_as(name), verb)(f"{SERVERS}/{uuid}")
            assert answer.status_code == 404
            assert answer.get_json()["itemNotFound"]["message"] == f"Instance {uuid} could not be found."
    assert client_as("admin").get(f"{SERVERS}/{mine}").status_code == 200


def test_a_locked_server_is_deleted_by_administrators_only(api: seeds.Api, client_as: ClientAs) -> None:
    uuid = api.instance("demo", "web", locked=True)
    answer = client_as("demo").delete(f"{SERVERS}/{uuid}")
    assert answer.status_code == 409
    assert answer.get_json()["conflictingRequest"]["message"] == f"Instance {uuid} is locked"
    assert client_as("admin").delete(f"{SERVERS}/{uuid}").status_code == 204
