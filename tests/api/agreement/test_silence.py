# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Servers whose run died: shown with the age of its last sign of life, at every place, by reconcile.yml's own rule."""

from __future__ import annotations

import itertools
import json
import os
import time

import click.testing
import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._rules.build_states import BUILD_TIMEOUT
from api import cli
from tests.api import scenes
from tests.api.dashboard.visitor import Visitor
from tests.api.seeds import Api

STATES = [
    *(("building", None), ("building", "scheduling"), ("building", "networking"), ("building", "deleting")),
    *(("active", None), ("active", "powering-off"), ("stopped", "rebuilding"), ("active", "deleting")),
    *(("error", None), ("shelved_offloaded", "spawning"), ("shelved_offloaded", None)),
]
AGES = (5, BUILD_TIMEOUT - 60, BUILD_TIMEOUT + 310)  # seconds
JOBS = (None, "queued", "running", "failed")


def looked(api: Api, monkeypatch: pytest.MonkeyPatch, *words: str) -> str:
    monkeypatch.setenv("NOVALITE_HOME", os.path.dirname(str(api.engine.url.database)))
    monkeypatch.delenv("NOVALITE_LEDGER_URL", raising=False)
    done = click.testing.CliRunner().invoke(cli.main, list(words))
    assert done.exit_code == 0, done.output
    return done.output


def test_who_is_silent_is_who_would_be_corrected(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    now, table = int(time.time()), list(itertools.product(STATES, AGES, JOBS))
    for number, ((vm_state, task_state), age, job) in enumerate(table):
        uuid = api.instance("demo", f"s{number}", vm_state=vm_state, task_state=task_state, updated_at=now - age)
        if job is not None:
            scenes.add_job(api, "demo", "launch", job, [uuid])
    records = json.loads(looked(api, monkeypatch, "list", "-o", "json"))
    silent = {record["name"]: record["silent_for"] for record in records if record["silent_for"] is not None}
    expected = {
        f"s{number}"
        for number, ((vm_state, task_state), age, job) in enumerate(table)
        if age > BUILD_TIMEOUT and job in (None, "failed") and (task_state or vm_state == "building")
    }
    assert silent.keys() == expected
    assert all(AGES[-1] <= seconds < AGES[-1] + 300 for seconds in silent.values())
    healed = api.operate("ledger_heal")
    ended = {row["name"].split()[0] for row in (*healed["corrections"], *healed["deletions"])}
    assert ended >= expected and not ended & {f"s{number}" for number in range(len(table))} - expected


def test_every_place_shows_the_age_of_the_last_sign_of_life(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    updated_at = int(time.time()) - 930
    dead = api.instance("demo", "dead", vm_state="building", task_state="networking", updated_at=updated_at)
    alive = api.instance("demo", "alive", vm_state="building", task_state="networking")
    words = "no sign of life for 15 min"
    lines = looked(api, monkeypatch, "list").splitlines()
    assert "SILENCE" in lines[0] and [line.split()[0] for line in lines if words in line] == ["dead"]
    assert words in looked(api, monkeypatch, "show", "dead") and words not in looked(api, monkeypatch, "show", "alive")
    visitor = Visitor(api, "demo")
    assert visitor.get("/instances").words.count(words) == 1
    for uuid, is_silent in ((dead, True), (alive, False)):
        page = visitor.get(f"/instances/{uuid}")
        assert (words in page.words) == is_silent
        # it stands still
        assert any("data-refresh" in attributes for attributes in page.all("div")) != is_silent
        placement = api.client_as("admin").get(f"/v1/instances/{uuid}/placement").get_json()["placement"]
        assert (placement["silent_for"] is not None) == is_silent
