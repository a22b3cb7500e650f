# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""/v1: hosts and capacity, plans, the reasons for a placement."""

from __future__ import annotations

import typing as t

import pytest
import sqlalchemy as sa
from flask.testing import FlaskClient

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from api.web import policy
from api.web.host_names import HostNameMask, host_id
from tests.api import scenes, seeds
from tests.api.dashboard.visitor import Visitor

FACTS = {"hypervisor_type": "QEMU", "hypervisor_version": 7002000, "arch": "x86_64"}
SERVER = {"name": "web", "flavor": "m1.tiny", "image": "ami-tiny"}


def plan(client: FlaskClient, *servers: dict[str, t.Any], status: int = 200, **more: t.Any) -> t.Any:
    answer = client.post("/v1/plan", json={"servers": list(servers), **more})
    assert answer.status_code == status, answer.get_data(as_text=True)
    return answer.get_json()["plan"] if status == 200 else answer.get_json()["detail"]


def everything(api: seeds.Api) -> dict[str, list[t.Any]]:
    """All rows of the ledger, but for tokens."""
    with api.engine.connect() as connection:
        return {
            table.name: [tuple(row) for row in connection.execute(sa.select(table).order_by(*table.primary_key))]
            for table in tables.metadata.sorted_tables
            if table.name != "token"
        }


def test_hosts_tell_what_they_have_and_their_insides_to_administrators(
    api: seeds.Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(policy.POLICY, "compute:hypervisors:read", "reader")
    scenes.build(api)
    reader, project = api.client_as("reader"), api.projects["demo"]
    host_by_id = {host["name"]: host for host in reader.get("/v1/hosts").get_json()["hosts"]}
    # by the ids that the project's servers have
    assert set(host_by_id) == {host_id(project, "hv1"), host_id(project, "hv2")}
    hosts = {name: host_by_id[host_id(project, name)] for name in ("hv1", "hv2")}
    assert reader.get(f"/v1/hosts/{host_id(project, 'hv1')}").get_json()["host"] == hosts["hv1"]
    assert reader.get("/v1/hosts/hv1").status_code == 404
    assert hosts["hv1"]["capacity"]["memory_mb"] == {
        "total": 4096,
        "reserved": 0,
        "ratio": 1.5,
        "limit": 6144,
        "used": 5000,
        "others": 0,
    }
    assert (hosts["hv1"]["up"], hosts["hv2"]["up"]) == (True, False)
    assert (hosts["hv2"]["down_reason"], hosts["hv2"]["facts"], hosts["hv2"]["failed_builds"]) == (None, None, None)
    client = api.client_as("admin")
    record = client.get("/v1/hosts/hv2").get_json()["host"]
    assert (record["down_reason"].split(" <")[0], record["facts"]["arch"]) == ("no answer over ssh", "x86_64")
    assert client.get("/v1/hosts/hv3").status_code == 404


def test_only_whole_names_of_hosts_are_veiled() -> None:
    hidden = HostNameMask(["hv1", "hv1.example.org", "hv-1"], "p")
    short, long, dashed = (host_id("p", name) for name in ("hv1", "hv1.example.org", "hv-1"))
    assert hidden.over("hv1: 'hv1', on hv1.") == f"{short}: '{short}', on {short}."
    assert hidden.over({"hv1.example.org": ["hv-1", 1, None]}) == {long: [dashed, 1, None]}
    for text in ("hv10", "my-hv1", "hv1-2", "hv1.example", "xhv1"):
        assert hidden.over(text) == text
    assert (hidden.lift(short), hidden.lift("hv1")) == ("hv1", "")
    assert HostNameMask([], "p").over("hv1") == "hv1"


def test_a_plan_says_where_and_why_and_changes_nothing(api: seeds.Api) -> None:
    before = everything(api)
    launch_plan = plan(api.client_as("demo"), {**SERVER, "count": 3})
    assert [placement["name"] for placement in launch_plan["placed"]] == ["web-1", "web-2", "web-3"]
    hosts = {host_id(api.projects["demo"], name) for name in ("hv1", "hv2")}
    assert {placement["host"] for placement in launch_plan["placed"]} == hosts
    why = launch_plan["explanations"]["web-1"]
    assert any(line.endswith("chosen") for line in why["lines"])
    assert {weight["host"] for weight in why["weights"]} == hosts
    assert everything(api) == before


def test_a_plan_that_cannot_be_says_which_filter_and_why(api: seeds.Api) -> None:
    launch_plan = plan(api.client_as("demo"), {**SERVER, "flavor": "m1.huge"})
    (refusal,) = launch_plan["unplaced"]
    assert "No valid host" in refusal["message"] and "disk removed 2" in refusal["message"]
    removed = [step for step in launch_plan["explanations"]["web"]["filters"] if step["removed"]]
    hosts = [host_id(api.projects["demo"], name) for name in ("hv1", "hv2")]
    assert [(step["filter"], sorted(step["removed"])) for step in removed] == [("disk", sorted(hosts))]


def test_how_large_hosts_are_is_told_to_administrators(api: seeds.Api) -> None:
    server = {**SERVER, "flavor": "m1.huge"}
    asked = plan(api.client_as("demo"), server), plan(api.client_as("admin"), server)
    assert ["GiB" in str(answer) for answer in asked] == [False, True]
    placed = plan(api.client_as("demo"), SERVER), plan(api.client_as("admin"), SERVER)
    weights = [[weight["details"] for weight in answer["explanations"]["web"]["weights"]] for answer in placed]
    assert weights[0] == [{}, {}] and all(weights[1])


@pytest.mark.parametrize(
    ("server", "host"),
    [
        ({"requirements": "free_ram_mb < 2000"}, "hv1"),
        ({"rank": "free_ram_mb"}, "hv2"),
        ({"rank": "-free_ram_mb"}, "hv1"),
        ({"hints": {"query": [">", "$free_ram_mb", 2000]}}, "hv2"),
        ({"hints": {"query": '[">", "$free_ram_mb", 2000]'}}, "hv2"),
        ({"hints": {"build_near_host_ip": "192.0.2.2", "cidr": "/32"}}, "hv2"),
        ({"volumes": [{"size": 1, "delete_on_termination": True}]}, None),
    ],
)
def test_what_a_playbook_may_ask_for_may_be_asked_for_here(
    api: seeds.Api, server: dict[str, t.Any], host: str | None
) -> None:
    with transaction(api.engine) as connection:
        table = tables.compute_host
        for number, name in ((1, "hv1"), (2, "hv2")):
            connection.execute(
                sa.update(table)
                .where(table.c.name == name)
                .values(memory_mb_used=5000 if name == "hv1" else 0, facts={"address": f"192.0.2.{number}", **FACTS})
            )
    (placed,) = plan(api.client_as("admin"), {**SERVER, **server})["placed"]
    assert host is None or placed["host"] == host
    job = {"kind": "launch", "variables": {"servers": [{**SERVER, **server}]}}
    assert api.client_as("admin").post("/v1/jobs", json=job).status_code == 202


def test_a_fault_names_no_host_to_tenants(api: seeds.Api) -> None:
    said = "No valid host was found for 'web': ram removed 1 (hv1: 0 of 512 MiB free); 0 of 1 hosts remain"
    faults = {
        said: "hosts available",
        f"no room for it. {said}": "no room for it. No valid host was found. There are not enough hosts available.",
        "hv1: the image does not have its checksum": "the image does not have its checksum",
    }
    for number, (message, kept) in enumerate(faults.items()):
        fault = {"code": 500, "message": message, "created": 1_600_000_000}
        uuid = api.instance("demo", f"web-{number}", vm_state="error", power_state=0, fault=fault)
        path = f"/compute/v2.1/servers/{uuid}"
        shown = api.client_as("demo").get(path).get_json()["server"]["fault"]["message"]
        assert kept in shown and "hv1" not in shown and "MiB" not in shown
        listed = api.client_as("demo").get("/compute/v2.1/servers/detail").get_json()["servers"]
        assert shown in [instance["fault"]["message"] for instance in listed]
        assert api.client_as("admin").get(path).get_json()["server"]["fault"]["message"] == message


def test_all_or_nothing_is_the_askers_choice(api: seeds.Api) -> None:
    pair = ({**SERVER, "name": "small"}, {**SERVER, "name": "huge", "flavor": "m1.huge"})
    small, huge = plan(api.client_as("demo"), *pair)["unplaced"]
    assert "was not launched, for another of its request found no host" in small["message"]
    assert huge["message"] == "No valid host was found: disk removed 2"
    launch_plan = plan(api.client_as("demo"), *pair, all_or_nothing=False)
    assert ([placement["name"] for placement in launch_plan["placed"]], len(launch_plan["unplaced"])) == (["small"], 1)


def test_what_runs_already_is_in_the_plan_as_such(api: seeds.Api) -> None:
    scene = scenes.build(api)
    launch_plan = plan(api.client_as("demo"), {**SERVER, "name": "web-1"})
    assert launch_plan["existing"] == [
        {"name": "web-1", "uuid": scene.web, "host": host_id(api.projects["demo"], "hv1")}
    ]
    assert launch_plan["placed"] == []


@pytest.mark.parametrize(
    ("server", "status", "message_part"),
    [
        ({"name": "a b"}, 400, "a b"),
        ({"flavor": "m1.tin"}, 404, "m1.tin"),
        ({"image": "nope"}, 404, "nope"),
        ({"key": "nope"}, 404, "nope"),
        ({"networks": ["nope"]}, 404, "nope"),
        ({"count": 11}, 403, "Quota exceeded for instances"),
        ({"count": 201}, 400, "200"),
        ({"count": 0}, 400, "count"),
        ({"admin_password": "x"}, 400, "admin_password"),
        ({"hints": {"group": "nope"}}, 404, "nope"),
        ({"networks": [{"name": "private", "fixed_ip": "10.20.0.9"}]}, 403, "not the project's own"),
    ],
)
def test_what_a_launch_would_refuse_a_plan_refuses(
    api: seeds.Api, server: dict[str, t.Any], status: int, message_part: str
) -> None:
    assert message_part in plan(api.client_as("demo"), {**SERVER, **server}, status=status)


def test_a_plan_is_a_members(api: seeds.Api) -> None:
    plan(api.client_as("reader"), SERVER, status=403)


def test_why_an_instance_is_where_it_is(api: seeds.Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(policy.POLICY, "compute:servers:placement", "reader")
    scene = scenes.build(api)
    placement = api.client_as("admin").get(f"/v1/instances/{scene.web}/placement").get_json()["placement"]
    assert (placement["host"], placement["explanation"]["message"]) == ("hv1", scenes.EXPLANATION["message"])
    assert placement["explanation"]["lines"] == scenes.EXPLANATION["lines"]
    client = api.client_as("reader")
    shown = client.get(f"/v1/instances/{scene.web}/placement").get_json()["placement"]
    first, second = (host_id(api.projects["demo"], name) for name in ("hv1", "hv2"))
    assert (shown["host"], list(shown["explanation"]["filters"][1]["removed"])) == (first, [second])
    assert shown["explanation"]["message"].startswith(f"{first} was chosen") and "hv1" not in str(shown)
    assert client.get(f"/v1/instances/{scene.stopped}/placement").get_json()["placement"]["explanation"] is None
    assert client.get(f"/v1/instances/{scene.foreign}/placement").status_code == 404
    assert api.client_as("admin").get(f"/v1/instances/{scene.foreign}/placement").status_code == 200


def test_an_unscoped_token_sees_nothing(api: seeds.Api) -> None:
    client = api.client_as("demo", None)
    for path in ("/v1/jobs", "/v1/hosts", "/v1/jobs/kinds"):
        assert client.get(path).status_code in (401, 403)


def test_a_ledger_that_is_out_of_order_is_not_the_askers_fault(api: seeds.Api) -> None:
    client = api.client_as("admin")
    api.write(sa.text("ALTER TABLE compute_host RENAME TO elsewhere"))
    answer = client.get("/v1/hosts")
    assert (answer.status_code, answer.content_type) == (503, "application/problem+json")
    assert "compute_host" not in answer.get_data(as_text=True)


def test_the_reserve_is_told_to_administrators(api: seeds.Api) -> None:
    scene = scenes.build(api)
    client = api.client_as("admin")
    losses = {loss["host"]: loss for loss in client.get("/v1/reserve").get_json()["reserve"]}
    assert set(losses) == {"hv1", "hv2"}
    # hv2 is down, and takes nobody
    assert (losses["hv1"]["takers"], len(losses["hv1"]["stranded"])) == ({}, losses["hv1"]["instances"])
    assert scene.web in {instance["uuid"] for instance in losses["hv1"]["stranded"]}
    assert api.client_as("demo").get("/v1/reserve").status_code == 403
    page = Visitor(api, "admin").get("/hosts/hv1")
    assert "If this host died now" in page.words
    assert f"/instances/{scene.web}" in {link.get("href") for link in page.all("a")}
