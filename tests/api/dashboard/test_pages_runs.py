# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs of playbooks among the jobs of the status page: what nobody asked the API for leaves actions alone."""

from __future__ import annotations

import time
import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.jobs import playbook_runs
from ansible_collections.novalite.cloud.plugins.module_utils._rules.build_states import BUILD_TIMEOUT
from api.dashboard import routes_jobs
from tests.api import scenes, seeds
from tests.api.dashboard.visitor import Visitor

ACTION, EVENT, INSTANCE = tables.instance_action, tables.instance_action_event, tables.instance
SERVER = {"flavor": "m1.nano", "image": "ami-tiny", "networks": ["private"]}


def launch(api: seeds.Api, *names: str) -> int:
    """Begin a launch as launch.yml does; returns the run's number."""
    api.task("server", project="demo", servers=[{"name": name, **SERVER} for name in names])
    return min(row.id for row in api.rows(sa.select(ACTION.c.id).order_by(ACTION.c.id.desc()).limit(len(names))))


def end(api: seeds.Api, name: str, message: str | None = None) -> None:
    """Let the launch of a server end."""
    now = int(time.time())
    (row,) = api.rows(
        sa.select(ACTION.c.id).join(INSTANCE, INSTANCE.c.uuid == ACTION.c.instance_uuid).where(INSTANCE.c.name == name)
    )
    result = "Success" if message is None else "Error"
    api.insert(
        EVENT, action_id=row.id, event="create_on_host", host="hv1", started_at=now, finished_at=now, result=result
    )
    calls = [{"operation": "domain", "at": now + 1.0, "seconds": 2.5, "host": "hv1"}]
    api.write(
        sa.update(ACTION)
        .where(ACTION.c.id == row.id)
        .values(finished_at=now, message=message, details={"calls": calls})
    )


def test_a_run_is_one_row_among_the_jobs(api: seeds.Api, scene: scenes.Scene) -> None:
    member = Visitor(api, "demo")
    number = launch(api, "one", "two")
    page = member.get("/jobs")
    assert page.words.count("create playbook 2 instances") == 1
    assert "create playbook 2 instances running" in page.words
    assert f"/runs/{number}" in {link["href"] for link in page.all("a")}
    assert "create playbook" in member.get("/").words
    run = member.get(f"/runs/{number}")
    assert "one, two" in run.words and "create_on_host" not in run.words
    for name in ("one", "two"):
        end(api, name)
    run = member.get(f"/runs/{number}")
    assert "succeeded" in run.words and "create_on_host" in run.words
    assert "domain" in run.words and "2.5 s" in run.words
    assert "hv1" not in run.words and "hv1" in Visitor(api, "admin").get(f"/runs/{number}").words


def test_a_run_says_what_failed(api: seeds.Api) -> None:
    number = launch(api, "one", "two")
    end(api, "one", "hv1: the disk is full")
    end(api, "two")
    words = Visitor(api, "admin").get(f"/runs/{number}").words
    assert "failed" in words and "hv1: the disk is full (1 of 2 instances)" in words
    assert "the disk is full" in Visitor(api, "demo").get("/jobs").words
    assert "hv1" not in Visitor(api, "demo").get("/jobs").text


def test_a_run_that_died_says_for_how_long_nothing_was_heard(api: seeds.Api) -> None:
    number = launch(api, "one", "two")
    end(api, "two")
    api.write(sa.update(INSTANCE).values(updated_at=INSTANCE.c.updated_at - BUILD_TIMEOUT - 60))
    member = Visitor(api, "demo")
    assert "silent no sign of life for" in member.get("/jobs").words
    assert "the run died" in member.get(f"/runs/{number}").words
    assert member.get(f"/runs/{number}").all("noscript") == []  # nothing will come


@pytest.mark.parametrize("state", ["queued", "running"])
def test_what_a_job_does_is_no_run(api: seeds.Api, state: str) -> None:
    launch(api, "one")
    assert runs_of(api) == 1
    (action,) = api.rows(sa.select(ACTION))
    asked_for = {"request_id": action.request_id} if state == "queued" else {}
    scenes.add_job(api, "demo", "launch", state, [action.instance_uuid], **asked_for)
    assert runs_of(api) == 0


def runs_of(api: seeds.Api, project: str = "demo") -> int:
    with api.engine.connect() as connection:
        return len(playbook_runs.list_runs(connection, api.projects[project], 10))


def test_runs_are_their_projects_alone(api: seeds.Api) -> None:
    number = launch(api, "one")
    Visitor(api, "alt").get(f"/runs/{number}", 404)
    assert "/runs/" not in str(Visitor(api, "alt").get("/jobs").elements)
    Visitor(api, "admin").get(f"/runs/{number}")
    Visitor(api, "demo").get("/jobs?after_run=x", 400)


def test_pages_of_jobs_and_runs_show_each_once(
    api: seeds.Api, scene: scenes.Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes_jobs, "PAGE", 2)
    for name in ("one", "two", "three"):
        launch(api, name)
    path: str | None = "/jobs"
    seen: list[str] = []
    while path is not None:
        page = Visitor(api, "demo").get(path)
        links: list[t.Any] = [link["href"] for link in page.all("a")]
        seen += [link for link in links if link.startswith(("/jobs/", "/runs/"))]
        path = next((link for link in links if "after" in link), None)
        assert len(seen) < 20
    assert len(seen) == len(set(seen)) == 4 + runs_of(api) and runs_of(api) >= 3
