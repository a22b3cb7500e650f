# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A launch in check mode ends with its plan, whose UUIDs and MACs stand for others."""

from __future__ import annotations

import json
import pathlib
import shutil

import pytest

from tests.unit.playbooks.answering import Hosts

SUMMARY = {"ANSIBLE_CALLBACKS_ENABLED": "novalite.cloud.launch_summary"}


@pytest.fixture
def hosts(seeded: pathlib.Path, tmp_path: pathlib.Path) -> Hosts:
    hosts = Hosts(tmp_path)
    shutil.rmtree(hosts.home)
    shutil.copytree(seeded, hosts.home)
    return hosts


def check(hosts: Hosts, *words: str, playbook: str = "launch.yml", **server: str) -> list[str]:
    servers = json.dumps({"servers": [{"name": "web", "flavor": "m1.nano", "image": "tiny", **server}]})
    mode = () if playbook == "plan.yml" else ("--check",)
    done = hosts.play(playbook, "-e", servers, *mode, *words, **SUMMARY)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def test_the_plan_is_the_last_thing_on_the_screen(hosts: Hosts) -> None:
    lines = check(hosts)
    plan = lines[lines.index("Launch, project demo:") :]
    assert plan[1].startswith("  +    server  web  on hv1: by filter_scheduler from 1 of 2 hosts, weight ")
    assert plan[-1] == "Plan: 1 to launch, 0 already run."
    assert [line for line in plan if line.startswith("  +    host    hv1  ")]
    assert hosts.servers() == []


def test_what_will_be_chosen_later_is_shown_as_such(hosts: Hosts) -> None:
    check(hosts)
    steps = {
        step["module"]: step["args"] for line in hosts.taken.read_text().splitlines() for step in json.loads(line)[2]
    }
    (domain,) = steps["domain"]["domains"]
    assert domain["uuid"] == "00000001-0000-0000-0000-000000000000"
    assert '<mac address="02:00:00:' in domain["xml"] and "tap00000001-00" in domain["xml"]


def test_a_secret_plan_names_the_host_all_the_same(hosts: Hosts) -> None:
    lines = check(hosts, "-v", admin_password="Zx9-unheard-of")
    plan = lines[lines.index("Launch, project demo:") :]
    assert plan[1].startswith("  +    server  web  on hv1: ") and "Zx9-unheard-of" not in "".join(lines)


def test_the_playbook_of_plans_shows_that_plan_and_touches_nothing(hosts: Hosts) -> None:
    def plan(lines: list[str]) -> list[str]:
        return lines[lines.index("Launch, project demo:") :]

    assert plan(check(hosts, playbook="plan.yml")) == plan(check(hosts))
    checked = [check for _host, check, _steps in map(json.loads, hosts.taken.read_text().splitlines())]
    assert checked and all(checked) and hosts.servers() == []


def test_a_plan_without_that_callback_says_where_and_why(hosts: Hosts) -> None:
    servers = json.dumps({"servers": [{"name": "web", "flavor": "m1.nano", "image": "tiny"}]})
    done = hosts.play("plan.yml", "-e", servers)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert [line for line in lines if line.startswith('"NAME HOST MESSAGE"')]
    assert [line for line in lines if line.startswith('"web hv1 ')], done.stdout
