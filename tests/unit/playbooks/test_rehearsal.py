# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rehearsal of a launch: what it compiles serves the tasks of another ledger, and nothing of it stays."""

from __future__ import annotations

import pathlib
import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.sqlite_engine import STATEMENTS
from api import rehearsal
from tests.api import seeds
from tests.support.cloud import Cloud, sqlite


@pytest.fixture
def clouds(tmp_path: pathlib.Path) -> t.Iterator[list[Cloud]]:
    made = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        made.append(Cloud(sqlite(tmp_path / name)))
    yield made
    for cloud in made:
        cloud.close()


def test_a_launch_compiles_nothing_that_was_rehearsed(clouds: list[Cloud]) -> None:
    cloud = clouds[0]
    seeds.seed(cloud)
    STATEMENTS.clear()
    rehearsal.rehearse()
    compiled = len(STATEMENTS)
    assert compiled > 100
    server = {"name": "web", "flavor": "m1.nano", "image": "ami-tiny", "key": "test"}
    asked = cloud.run("server", servers=[server], project="demo")
    facts = {**rehearsal.FACTS, "name": "hv1"}
    plan = cloud.run(
        "launch_plan", instances=asked["to_build"], compute_hosts=[facts], limit_to=["hv1"], seen_hosts=["hv1"]
    )
    assert plan["launch"]["failures"] == []
    outcome = {"uuids": plan["hosts"]["hv1"]["build"]["uuids"], "host": "hv1", "state": "active", "facts": facts}
    done = cloud.run("launch_record", launch=plan["launch"], outcomes=[outcome], seen_hosts=["hv1"])
    assert [built["vm_state"] for built in done["launch"]["built"]] == ["active"]
    assert len(STATEMENTS) <= compiled + 5  # what another host and narrower choices ask besides


def test_each_ledger_answers_a_shared_statement_by_itself(clouds: list[Cloud]) -> None:
    for number, cloud in enumerate(clouds):
        cloud.project(f"of-{number}")
    names = sa.select(tables.project.c.name).where(tables.project.c.name.in_(["of-0", "of-1"]))
    assert [cloud.rows(names) for cloud in clouds] == [[("of-0",)], [("of-1",)]]


def test_nothing_of_it_stays(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    monkeypatch.setenv("NOVALITE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("NOVALITE_LEDGER_URL", f"sqlite:///{tmp_path}/url.sqlite")
    rehearsal.rehearse()
    assert list(tmp_path.rglob("*")) == [temporary]
