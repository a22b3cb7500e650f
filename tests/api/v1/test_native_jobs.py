# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""/v1/jobs: what can be asked for, by whom, once; what becomes of it, live."""

from __future__ import annotations

import time
import types
import typing as t
import uuid

import pytest
import sqlalchemy as sa
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_jobs import job as job_table
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_migrations import migration
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.jobs import claiming
from api.jobs import kinds, runs
from api.v1 import streams
from api.web.operations import OPERATIONS
from tests.api import scenes, seeds

LAUNCH = {"kind": "launch", "variables": {"servers": [{"name": "web", "flavor": "m1.tiny", "image": "ami-tiny"}]}}


def refused(answer: TestResponse, status: int) -> str:
    """The detail of a problem, which has to be one."""
    assert answer.status_code == status, answer.get_data(as_text=True)
    assert answer.content_type == "application/problem+json"
    body = answer.get_json()
    assert body["status"] == status
    assert body["request_id"] == answer.headers["X-OpenStack-Request-Id"]
    return str(body["detail"])


def ask(client: FlaskClient, body: t.Any, key: str | None = None) -> TestResponse:
    return client.post("/v1/jobs", json=body, headers={} if key is None else {"Idempotency-Key": key})


def states(api: seeds.Api, instance_uuid: str) -> tuple[str, str | None]:
    table = tables.instance
    with api.engine.connect() as connection:
        row = connection.execute(
            sa.select(table.c.vm_state, table.c.task_state).where(table.c.uuid == instance_uuid)
        ).one()
    return row.vm_state, row.task_state


def jobs_in(api: seeds.Api) -> int:
    with api.engine.connect() as connection:
        return int(connection.execute(sa.select(sa.func.count()).select_from(job_table)).scalar_one())


def test_a_launch_is_recorded_for_the_callers_project_whatever_it_names(api: seeds.Api) -> None:
    asked = {"kind": "launch", "variables": {**LAUNCH["variables"], "project": "alt"}}  # type: ignore[dict-item]  # its variables are a dictionary
    answer = ask(api.client_as("demo"), asked)
    assert answer.status_code == 202
    job = answer.get_json()["job"]
    assert answer.headers["Location"] == f"/v1/jobs/{job['id']}"
    assert (job["state"], job["project_id"]) == ("queued", api.projects["demo"])
    assert job["variables"]["project"] == "demo"
    assert job["request_id"] == answer.headers["X-OpenStack-Request-Id"]
    assert api.client_as("demo").get(answer.headers["Location"]).get_json()["job"] == job


def test_the_same_key_is_the_same_job_and_another_body_is_refused(api: seeds.Api, scene: scenes.Scene) -> None:
    client = api.client_as("demo")
    stop = {"kind": "stop", "instances": [scene.web]}
    first = ask(client, stop, "one")
    again = ask(client, stop, "one")
    assert (first.status_code, again.status_code) == (202, 202)
    assert again.get_json() == first.get_json()
    assert states(api, scene.web) == ("active", "powering-off")
    assert "one" in refused(ask(client, LAUNCH, "one"), 409)
    # without the key, the instance says why not
    assert "powering-off" in refused(ask(client, stop), 409)
    # a key is a project's own
    assert ask(api.client_as("alt"), LAUNCH, "one").status_code == 202
    for key in ("", "two words", "x" * 256, "ä"):
        assert "Idempotency-Key" in refused(ask(client, LAUNCH, key), 400)


def test_an_action_marks_its_instances_with_the_job_or_neither(api: seeds.Api, scene: scenes.Scene) -> None:
    client, before = api.client_as("demo"), jobs_in(api)
    # one of two cannot be started
    refused(ask(client, {"kind": "start", "instances": [scene.stopped, scene.web]}), 409)
    assert (states(api, scene.stopped), jobs_in(api)) == (("stopped", None), before)
    assert ask(client, {"kind": "start", "instances": [scene.stopped]}).status_code == 202
    assert states(api, scene.stopped) == ("stopped", "powering-on")
    hard = {"kind": "reboot", "instances": [scene.web], "variables": {"type": "hard"}}
    assert ask(client, hard).status_code == 202
    assert states(api, scene.web) == ("active", "rebooting_hard")


def test_a_locked_instance_is_for_administrators(api: seeds.Api, scene: scenes.Scene) -> None:
    api.write(sa.update(tables.instance).where(tables.instance.c.uuid == scene.web).values(locked=True))
    stop = {"kind": "stop", "instances": [scene.web]}
    assert "locked" in refused(ask(api.client_as("demo"), stop), 409)
    assert ask(api.client_as("admin"), stop).status_code == 202


def test_a_locked_instance_is_not_deleted_by_a_member(api: seeds.Api, scene: scenes.Scene) -> None:
    """A terminate by name, too, which its playbook begins only later: as at Compute's door."""
    locked = tables.instance.c.uuid == scene.web
    api.write(sa.update(tables.instance).where(locked).values(locked=True))
    before = jobs_in(api)
    terminate = {"kind": "terminate", "variables": {"servers": [{"name": "web-1"}]}}
    assert api.client_as("demo").delete(f"/compute/v2.1/servers/{scene.web}").status_code == 409
    assert "locked" in refused(ask(api.client_as("demo"), terminate), 409)
    assert (jobs_in(api), states(api, scene.web)) == (before, ("active", None))
    api.write(sa.update(tables.instance).where(locked).values(locked=False))
    assert ask(api.client_as("demo"), {**terminate, "check_mode": True}).status_code == 202
    assert states(api, scene.web) == ("active", None)
    assert ask(api.client_as("demo"), terminate).status_code == 202
    assert states(api, scene.web) == ("active", "deleting")


def test_a_deletion_by_name_is_of_the_servers_that_have_the_names_now(api: seeds.Api, scene: scenes.Scene) -> None:
    """Not of one that gets such a name before the job begins; nor may it run beside another job of theirs."""
    client = api.client_as("demo")
    terminate = {"kind": "terminate", "variables": {"servers": [{"name": "web-1"}, {"name": "nosuch"}]}}
    made = ask(client, terminate, "key").get_json()["job"]
    assert made["instances"] == [scene.web]
    assert client.delete(f"/compute/v2.1/servers/{scene.web}").status_code == 204
    assert len(client.get(f"/v1/jobs?instance={scene.web}&state=queued").get_json()["jobs"]) == 1
    with transaction(api.engine) as connection:
        run_id = claiming.claim(connection, "w", kinds.KINDS, types.SimpleNamespace(runs=4, runs_per_host=4))
        assert run_id is not None
        assert runs.plan_of(connection, run_id).variables["uuids"] == [scene.web]
    api.operate("server_state", outcomes=[{"uuids": [scene.web], "state": "deleted"}], max_attempts=3)
    api.instance("demo", "web-1", host="hv1")  # another one
    assert ask(client, terminate, "key").get_json()["job"]["id"] == made["id"]
    other = {"kind": "terminate", "variables": {"servers": [{"name": "batch"}]}}
    assert "key" in refused(ask(client, other, "key"), 409)
    api.write(sa.update(job_table).values(state="failed", finished_at=time.time()))
    assert "nothing left" in refused(client.post(f"/v1/jobs/{made['id']}/retry"), 409)
    rows = api.rows(sa.select(tables.instance).where(tables.instance.c.name == "web-1", tables.instance.c.deleted == 0))
    assert [(row.vm_state, row.task_state) for row in rows] == [("active", None)]


def test_a_worker_goes_on_beside_a_run_of_a_kind_that_it_does_not_know(api: seeds.Api, scene: scenes.Scene) -> None:
    """Of a newer version's worker, while the controllers are upgraded one after the other."""
    client = api.client_as("demo")
    scenes.add_job(api, "demo", "kind_of_tomorrow", "running", [scene.web])
    busy = ask(client, {"kind": "stop", "instances": [scene.web]}).get_json()["job"]["id"]
    free = ask(client, {"kind": "start", "instances": [scene.stopped]}).get_json()["job"]["id"]
    limits = types.SimpleNamespace(runs=9, runs_per_host=9)
    with transaction(api.engine) as connection:
        runs_begun = [claiming.claim(connection, "w", kinds.KINDS, limits) for _look in range(2)]
        assert runs_begun[0] is not None and runs_begun[1] is None
    states_of = {number: client.get(f"/v1/jobs/{number}").get_json()["job"]["state"] for number in (busy, free)}
    assert states_of == {busy: "queued", free: "running"}


def test_a_deletion_of_names_that_nothing_has_is_refused(api: seeds.Api) -> None:
    """It would delete what gets such a name before it begins. To ask what it would do is no harm."""
    terminate = {"kind": "terminate", "variables": {"servers": [{"name": "nosuch"}]}}
    assert "nosuch" in refused(ask(api.client_as("demo"), terminate), 404)
    assert ask(api.client_as("demo"), {**terminate, "check_mode": True}).status_code == 202


@pytest.mark.parametrize(
    ("user", "kind", "variables", "move"),
    [
        ("demo", "resize", {"flavor": "m1.small"}, ("resize", "m1.small")),
        ("admin", "migrate", {}, ("migration", "m1.tiny")),
        ("admin", "live-migration", {}, ("live-migration", "m1.tiny")),
    ],
)
def test_a_move_is_recorded_as_at_computes_door(
    api: seeds.Api, scene: scenes.Scene, user: str, kind: str, variables: dict[str, str], move: tuple[str, str]
) -> None:
    """Its record is what the hosts are asked by, and what os-migrations shows."""
    body = {"kind": kind, "instances": [scene.web], "variables": variables}
    assert ask(api.client_as(user), body).status_code == 202
    with api.engine.connect() as connection:
        row = connection.execute(sa.select(migration)).one()
    assert (row.instance_uuid, row.type, row.new_flavor["name"]) == (scene.web, *move)
    assert "is in task_state" in refused(ask(api.client_as(user), body), 409)


def test_a_flavor_that_the_project_does_not_see_is_not_there(api: seeds.Api, scene: scenes.Scene) -> None:
    api.write(sa.update(tables.flavor).where(tables.flavor.c.name == "m1.small").values(is_public=False))
    body = {"kind": "resize", "instances": [scene.web], "variables": {"flavor": "m1.small"}}
    assert "m1.small" in refused(ask(api.client_as("demo"), body), 404)
    assert ask(api.client_as("admin"), body).status_code == 202


def test_anothers_instance_is_not_there(api: seeds.Api, scene: scenes.Scene) -> None:
    before = jobs_in(api)
    for instances in ([scene.foreign], [scene.web, scene.foreign], [str(uuid.uuid4())]):
        for kind in ("stop", "console"):
            detail = refused(ask(api.client_as("demo"), {"kind": kind, "instances": instances}), 404)
            assert instances[-1] in detail
    assert (jobs_in(api), states(api, scene.web)) == (before, ("active", None))


@pytest.mark.parametrize("kind", sorted(kinds.KINDS))
def test_who_may_ask_for_which_kind(api: seeds.Api, scene: scenes.Scene, kind: str) -> None:
    body: dict[str, t.Any] = {"kind": kind}
    if kinds.KINDS[kind].instances == "required":
        body["instances"] = [scene.stopped if kind == "start" else scene.web]
    refused(ask(api.client_as(None), body), 401)
    refused(ask(api.client_as("reader"), body), 403)
    if OPERATIONS[kinds.KINDS[kind].operation] in ("manager", "admin"):
        assert kinds.KINDS[kind].operation in refused(ask(api.client_as("demo"), body), 403)
        # a host that answers is not evacuated, nor a server offloaded that is not shelved, or copied to no second host
        api.write(sa.update(tables.compute_host).values(up=True, last_seen_at=int(time.time())))
        expected = {"shelveOffload": 409, "replicate": 409, "evacuate": 400}.get(kind, 202)
        assert ask(api.client_as("admin"), body).status_code == expected
    elif (
        kind in ("createImage", "resize", "live-resize", "changePassword", "restoreBackup", "deleteBackup")
        or "Snapshot" in kind
    ):
        missing = {
            "createImage": "image_name",
            "resize": "flavor",
            "live-resize": "flavor",
            "changePassword": "admin_password",
        }.get(kind, "snapshot" if "Snapshot" in kind else "backup")
        assert missing in refused(ask(api.client_as("demo"), body), 400)
    elif kind in ("unpause", "resume", "unrescue", "unshelve", "confirmResize", "revertResize"):
        refused(ask(api.client_as("demo"), body), 409)
    elif kind == "verifyBackup":
        assert "take one first" in refused(ask(api.client_as("demo"), body), 404)
    else:
        assert ask(api.client_as("demo"), body).status_code == 202


@pytest.mark.parametrize(
    ("body", "message_part"),
    [
        ({}, "kind"),
        ({"kind": "nosuch"}, "nosuch"),
        ({"kind": "launch", "extra": 1}, "extra"),
        ({"kind": "launch", "variables": {"ansible_connection": "local"}}, "ansible_connection"),
        ({"kind": "launch", "variables": {"servers": [{"name": "{{ lookup('file', '/etc/shadow') }}"}]}}, "template"),
        ({"kind": "stop"}, "instances"),
        ({"kind": "stop", "instances": []}, "instances"),
        ({"kind": "stop", "instances": ["nope"]}, "instances"),
        ({"kind": "launch", "instances": [str(uuid.uuid4())]}, "instances"),
        ({"kind": "stop", "instances": [str(uuid.uuid4())], "check_mode": True}, "check_mode"),
        ({"kind": "launch", "timeout_seconds": 0}, "timeout_seconds"),
        ({"kind": "launch", "variables": {"servers": [{"name": "a\0b"}]}}, "stored"),
    ],
)
def test_what_cannot_be_is_refused_by_its_name(api: seeds.Api, body: dict[str, t.Any], message_part: str) -> None:
    assert message_part in refused(ask(api.client_as("demo"), body), 400)
    assert jobs_in(api) == 0


def test_only_administrators_choose_hosts(api: seeds.Api) -> None:
    variables: tuple[dict[str, t.Any], ...] = (
        {"everywhere": True},
        {"network_hosts": ["hv1"]},
        {"holders": ["localhost"]},
    )
    body: dict[str, t.Any]
    for floating in variables:
        body = {"kind": "floating_ips", "variables": floating}
        assert "jobs:choose_hosts" in refused(ask(api.client_as("demo"), body), 403)
        assert ask(api.client_as("admin"), body).status_code == 202
    body = {"kind": "security_groups", "variables": {"limit": "hv1"}}
    assert "jobs:choose_hosts" in refused(ask(api.client_as("demo"), body), 403)
    assert ask(api.client_as("admin"), body).status_code == 202


def test_members_shorten_a_jobs_time_and_administrators_lengthen_it(api: seeds.Api) -> None:
    member, admin = api.client_as("demo"), api.client_as("admin")
    own = kinds.KINDS["plan"].timeout
    assert ask(member, {"kind": "plan", "timeout_seconds": own - 1}).get_json()["job"]["timeout_seconds"] == own - 1
    assert "timeout_seconds" in refused(ask(member, {"kind": "plan", "timeout_seconds": own + 1}), 403)
    long = ask(admin, {"kind": "plan", "timeout_seconds": 86400}).get_json()["job"]
    assert long["timeout_seconds"] == 86400
    admin.post(f"/v1/jobs/{long['id']}/cancel")
    again = member.post(f"/v1/jobs/{long['id']}/retry").get_json()["job"]  # of the same project
    assert again["timeout_seconds"] == own


def test_too_many_open_jobs_are_refused(api: seeds.Api) -> None:
    api.insert(tables.quota, project_id=api.projects["demo"], resource="jobs", hard_limit=1)
    assert ask(api.client_as("demo"), {"kind": "plan"}).status_code == 202
    assert "quota exceeded for jobs" in refused(ask(api.client_as("demo"), {"kind": "plan"}), 403)
    assert ask(api.client_as("alt"), {"kind": "plan"}).status_code == 202


def test_jobs_are_listed_by_page_and_by_what_they_are(api: seeds.Api, scene: scenes.Scene) -> None:
    client = api.client_as("demo")
    everything = [job["id"] for job in client.get("/v1/jobs").get_json()["jobs"]]
    assert len(everything) == 4
    paged, path = [], "/v1/jobs?limit=1"
    while path:
        page = client.get(path).get_json()
        paged += [job["id"] for job in page["jobs"]]
        path = page["next"]
    assert paged == everything

    def job_ids(query: str, client: FlaskClient = client) -> set[str]:
        return {job["id"] for job in client.get(f"/v1/jobs?{query}").get_json()["jobs"]}

    assert job_ids("kind=launch") == {scene.launched, scene.going}
    assert job_ids("state=failed") == {scene.broken}
    assert job_ids(f"instance={scene.stopped}") == {scene.broken}
    assert job_ids(f"instance={scene.foreign}") == set()
    assert job_ids("kind=launch&state=running") == {scene.going}
    assert scene.foreign_job in job_ids("all_projects=true", api.client_as("admin"))
    refused(client.get("/v1/jobs?all_projects=true"), 403)
    refused(client.get(f"/v1/jobs?marker={scene.foreign_job}"), 404)
    for query in ("limit=0", "limit=x", "limit=1&limit=2", "kind=nosuch", "all_projects=maybe", "nosuch=1"):
        refused(client.get(f"/v1/jobs?{query}"), 400)


def test_anothers_job_is_not_there(api: seeds.Api, scene: scenes.Scene) -> None:
    client = api.client_as("demo")
    for method, path in (("GET", ""), ("GET", "/events"), ("POST", "/cancel"), ("POST", "/retry")):
        for job_id in (scene.foreign_job, str(uuid.uuid4()), "x" * 500):
            refused(client.open(f"/v1/jobs/{job_id}{path}", method=method), 404)
    stream = client.get(f"/v1/jobs/{scene.foreign_job}/events", headers={"Accept": "text/event-stream"})
    refused(stream, 404)


def test_cancel_and_retry(api: seeds.Api, scene: scenes.Scene) -> None:
    client = api.client_as("demo")
    waiting = ask(client, LAUNCH).get_json()["job"]["id"]
    answer = client.post(f"/v1/jobs/{waiting}/cancel")
    assert (answer.status_code, answer.get_json()["job"]["state"]) == (202, "cancelled")
    refused(client.post(f"/v1/jobs/{waiting}/cancel"), 409)
    running = client.post(f"/v1/jobs/{scene.going}/cancel").get_json()["job"]
    assert (running["state"], running["cancel_requested"]) == ("running", True)

    again = client.post(f"/v1/jobs/{waiting}/retry")
    assert again.status_code == 202
    assert again.get_json()["job"]["retry_of"] == waiting
    assert again.headers["Location"] == f"/v1/jobs/{again.get_json()['job']['id']}"
    refused(client.post(f"/v1/jobs/{scene.launched}/retry"), 409)
    for action in ("cancel", "retry"):
        refused(api.client_as("reader").post(f"/v1/jobs/{waiting}/{action}"), 403)


def test_what_members_may_not_ask_for_they_may_not_end(api: seeds.Api) -> None:
    made = ask(api.client_as("admin"), {"kind": "reconcile"}).get_json()["job"]["id"]
    for action in ("cancel", "retry"):
        assert "reconcile" in refused(api.client_as("demo").post(f"/v1/jobs/{made}/{action}"), 403)
    assert api.client_as("admin").post(f"/v1/jobs/{made}/cancel").status_code == 202


def test_events_by_page(api: seeds.Api, scene: scenes.Scene) -> None:
    client, path = api.client_as("demo"), f"/v1/jobs/{scene.launched}/events"
    both = client.get(path).get_json()
    assert [event["status"] for event in both["events"]] == ["ok", "changed"]
    assert both["next"] is None
    first = client.get(f"{path}?limit=1").get_json()
    second = client.get(first["next"]).get_json()
    assert first["events"] + second["events"] == both["events"]
    resumed = client.get(path, headers={"Last-Event-ID": str(both["events"][0]["seq"])}).get_json()
    assert resumed["events"] == both["events"][1:]
    # of a job that goes on there may be more
    assert client.get(f"/v1/jobs/{scene.going}/events").get_json()["next"] is not None
    refused(client.get(path, headers={"Last-Event-ID": "x"}), 400)
    # which hosts there are, administrators are told
    assert {event["host"] for event in both["events"]} == {None}
    assert {event["host"] for event in api.client_as("admin").get(path).get_json()["events"]} == {"localhost", "hv1"}


def stream(client: FlaskClient, job_id: str, **headers: str) -> TestResponse:
    return client.get(f"/v1/jobs/{job_id}/events", headers={"Accept": streams.CONTENT_TYPE, **headers})
