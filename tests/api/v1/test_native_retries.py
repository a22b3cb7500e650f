# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""/v1/jobs/<id>/retry: nobody has by trying a job again what they would not have by asking for it."""

from __future__ import annotations

import typing as t

import pytest
import sqlalchemy as sa
from flask.testing import FlaskClient

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables, tables_jobs
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_migrations import migration
from api.jobs import queue
from api.jobs.kinds import HOST, KINDS, SERVER
from api.web.operations import OPERATIONS
from tests.api import scenes, seeds
from tests.api.v1.test_native_jobs import ask, refused, states

ADDRESS = "198.51.100.5"
FIXED_IP = {"networks": [{"name": "private", "fixed_ip": "10.20.0.77"}]}
_HOSTS: dict[str, t.Any] = {"limit": "hv1", "everywhere": True, "network_hosts": ["hv1"], "holders": ["hv1"]}


def choices() -> t.Iterator[t.Any]:
    """Yield each kind with variables that administrators alone choose."""
    for kind in KINDS.values():
        if kind.instances == "required":
            continue
        taken = kind.schema["properties"]
        for name in sorted({"limit", *kind.hosts} & set(taken)):
            yield pytest.param(kind.name, {name: _HOSTS[name]}, id=f"{kind.name}-{name}")
        if taken.get("servers", {}).get("items") == SERVER:
            for name, choice in (
                ("host", {"availability_zone": "nova:hv2"}),
                ("address", FIXED_IP),
                ("attribute", {"requirements": 'hypervisor_hostname = "hv1"'}),
            ):
                server = {"name": "w", "flavor": "m1.nano", "image": "ami-tiny", **choice}
                yield pytest.param(kind.name, {"servers": [server]}, id=f"{kind.name}-{name}")
        if "floating_ips" in taken:
            for variables in ({"address": ADDRESS}, {"floating_ips": [{"address": ADDRESS}]}):
                yield pytest.param(kind.name, variables, id=f"{kind.name}-{next(iter(variables))}")
        if OPERATIONS[kind.operation] == "admin":
            yield pytest.param(kind.name, {}, id=kind.name)


def cancelled(client: FlaskClient, body: t.Any) -> str:
    """Return the id of a job that this user asked for and ended."""
    answer = ask(client, body)
    assert answer.status_code == 202, answer.get_json()
    number = str(answer.get_json()["job"]["id"])
    assert client.post(f"/v1/jobs/{number}/cancel").get_json()["job"]["state"] == "cancelled"
    return number


@pytest.mark.parametrize(("kind", "variables"), list(choices()))
def test_choices_of_administrators_are_not_retried_by_members(
    api: seeds.Api, kind: str, variables: dict[str, t.Any]
) -> None:
    api.task("floating_pool", floating_pools=[{"name": "public", "cidr": "198.51.100.0/29", "interface": "eth0"}])
    member, admin, body = api.client_as("demo"), api.client_as("admin"), {"kind": kind, "variables": variables}
    refusal = ask(member, body)
    assert refusal.status_code in (403, 404), refusal.get_json()
    number = cancelled(admin, body)
    again = member.post(f"/v1/jobs/{number}/retry")
    if variables:
        assert refused(again, refusal.status_code) == refusal.get_json()["detail"]
    assert again.status_code == refusal.status_code
    assert admin.post(f"/v1/jobs/{number}/retry").status_code == 202


def test_every_variable_that_names_hosts_is_tried_here() -> None:
    names = {
        name
        for kind in KINDS.values()
        for name, schema in kind.schema["properties"].items()
        if name in kind.hosts or schema.get("items") == HOST
    }
    assert names | {"limit"} == set(_HOSTS)


def test_a_job_for_a_change_of_ones_own_is_retried(api: seeds.Api) -> None:
    with transaction(api.engine) as connection:
        made = queue.enqueue(
            connection,
            "floating_ips",
            variables={"network_hosts": ["hv1"]},
            project_id=api.projects["demo"],
            user_id=api.users["demo"],
        )
    member = api.client_as("demo")
    member.post(f"/v1/jobs/{made['id']}/cancel")
    assert member.post(f"/v1/jobs/{made['id']}/retry").status_code == 202


@pytest.mark.parametrize(
    "body",
    [
        {"kind": "stop", "instances": True},
        {"kind": "cdrom", "instances": True, "variables": {"eject": True}},
        {"kind": "terminate", "variables": {"servers": [{"name": "web-1"}]}},
    ],
    ids=lambda body: body["kind"],
)
def test_a_lock_that_came_later_counts(api: seeds.Api, scene: scenes.Scene, body: dict[str, t.Any]) -> None:
    if "instances" in body:
        body = {**body, "instances": [scene.web]}
    member, mine = api.client_as("demo"), tables.instance.c.uuid == scene.web
    number = cancelled(member, body)
    at_rest = {"vm_state": "active", "task_state": None}
    api.write(sa.update(tables.instance).where(mine).values(locked=True, **at_rest))
    assert "locked" in refused(member.post(f"/v1/jobs/{number}/retry"), 409)
    assert states(api, scene.web) == ("active", None)
    assert api.client_as("admin").post(f"/v1/jobs/{number}/retry").status_code == 202


def test_a_deletion_by_name_that_is_retried_marks_its_servers(api: seeds.Api, scene: scenes.Scene) -> None:
    member = api.client_as("demo")
    number = cancelled(member, {"kind": "terminate", "variables": {"servers": [{"name": "web-1"}]}})
    api.write(sa.update(tables.instance).values(task_state=None))
    assert member.post(f"/v1/jobs/{number}/retry").status_code == 202
    assert states(api, scene.web) == ("active", "deleting")


def test_anothers_instance_is_not_reached_by_a_retry(api: seeds.Api, scene: scenes.Scene) -> None:
    number = cancelled(api.client_as("admin"), {"kind": "stop", "instances": [scene.foreign]})
    assert scene.foreign in refused(api.client_as("demo").post(f"/v1/jobs/{number}/retry"), 404)
    assert states(api, scene.foreign) == ("active", None)


@pytest.mark.parametrize("kind", ["resize", "live-resize"])
def test_a_flavor_that_the_project_does_not_see_is_not_retried(api: seeds.Api, scene: scenes.Scene, kind: str) -> None:
    """One that it sees is, with a record of the move where it is one, and within the quota."""
    member, admin, small = api.client_as("demo"), api.client_as("admin"), tables.flavor.c.name == "m1.small"
    specs, of_web = {"novalite:max_vcpus": "8", "novalite:max_ram": "8192"}, tables.instance.c.uuid == scene.web
    (web,) = api.rows(sa.select(tables.instance.c.flavor).where(of_web))
    grown = {**web.flavor, "root_gb": 1, "extra_specs": specs}  # no restart between flavors of the same maxima
    api.write(sa.update(tables.instance).where(of_web).values(flavor=grown))
    api.write(sa.update(tables.flavor).where(small).values(root_gb=1, memory_mb=1024, extra_specs=specs))
    body = {"kind": kind, "instances": [scene.web], "variables": {"flavor": "m1.small"}}
    number = cancelled(admin, body)
    api.write(sa.update(tables.flavor).where(small).values(is_public=False))
    assert "m1.small" in refused(member.post(f"/v1/jobs/{number}/retry"), 404)
    api.write(sa.update(tables.flavor).where(small).values(is_public=True))
    api.insert(tables.quota, project_id=api.projects["demo"], resource="ram", hard_limit=512)
    assert "quota" in refused(member.post(f"/v1/jobs/{number}/retry"), 403).lower()
    api.write(sa.delete(tables.quota).where(tables.quota.c.resource == "ram"))
    assert member.post(f"/v1/jobs/{number}/retry").status_code == 202
    moves = api.rows(sa.select(migration.c.status).order_by(migration.c.id))
    assert len(moves) == (2 if kind == "resize" else 0)


def test_what_the_ledger_refuses_is_said(api: seeds.Api, scene: scenes.Scene) -> None:
    admin = api.client_as("admin")
    number = cancelled(admin, {"kind": "resize", "instances": [scene.web], "variables": {"flavor": "m1.small"}})
    of_small = tables.flavor.c.name == "m1.small"
    api.write(sa.update(tables.flavor).where(of_small).values(root_gb=0))
    assert "disk" in refused(admin.post(f"/v1/jobs/{number}/retry"), 400)


def test_a_password_is_asked_for_anew(api: seeds.Api, scene: scenes.Scene) -> None:
    """Its hash is not among the details of the action, which people see."""
    of_web = tables.instance.c.uuid == scene.web
    (web,) = api.rows(sa.select(tables.instance.c.image).where(of_web))
    image = {**web.image, "properties": {**web.image["properties"], "hw_qemu_guest_agent": "yes"}}
    api.write(sa.update(tables.instance).where(of_web).values(image=image))
    member = api.client_as("demo")
    asked = member.post(
        f"/compute/v2.1/servers/{scene.web}/action", json={"changePassword": {"adminPass": "a long one"}}
    )
    assert asked.status_code == 202, asked.get_json()
    (job,) = api.rows(sa.select(tables_jobs.job.c.id).where(tables_jobs.job.c.kind == "changePassword"))
    number = job.id
    assert member.post(f"/v1/jobs/{number}/cancel").status_code == 202
    assert "ask for the change anew" in refused(member.post(f"/v1/jobs/{number}/retry"), 409)
