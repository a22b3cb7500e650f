# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A launch that no host can build says why at its end, in the words of the fault; the rest is in files."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys
import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import open_ledger, reading, transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity import users
from ansible_collections.novalite.cloud.plugins.plugin_utils import _failure_files
from tests.api import applications, seeds
from tests.api.dashboard.visitor import Visitor
from tests.support.patience import GENEROUS
from tests.unit.playbooks.answering import Hosts
from tests.unit.playbooks.controller import ROOT

CAUSE = "the network filter nova-instance-x on this host is another ledger's"
SCREEN = {
    "ANSIBLE_STDOUT_CALLBACK": "novalite.cloud.progress",
    "ANSIBLE_CALLBACKS_ENABLED": "novalite.cloud.launch_summary",
    "COLUMNS": "80",
}
LONGEST = 500  # characters of a line


def failing(path: pathlib.Path, seeded: pathlib.Path) -> Hosts:
    hosts = Hosts(path)
    shutil.rmtree(hosts.home)
    shutil.copytree(seeded, hosts.home)
    (path / "dead").write_text("")
    refused = {"nwfilter": {"failed": True, "msg": CAUSE}}
    (path / "failing").write_text(json.dumps(dict.fromkeys(("hv1", "hv2"), refused)))
    return hosts


def launch(hosts: Hosts, screen: dict[str, str], **server: t.Any) -> list[str]:
    servers = [{"name": "web", "flavor": "m1.nano", "image": "tiny", **server}]
    done = hosts.play("launch.yml", "-e", json.dumps({"servers": servers}), **screen)
    assert done.returncode == 2, done.stdout + done.stderr
    return (done.stdout + done.stderr).splitlines()


def fault(hosts: Hosts) -> str:
    engine = open_ledger(str(hosts.home))
    with reading(engine) as connection:
        kept = connection.execute(sa.select(tables.instance.c.fault)).scalar_one()
    engine.dispose()
    return str(kept["message"])


@pytest.fixture(scope="module")
def failed(seeded: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Hosts, list[str]]:
    """Hosts on which a launch has failed, and the lines about it."""
    hosts = failing(tmp_path_factory.mktemp("failed"), seeded)
    return hosts, launch(hosts, SCREEN)


def test_the_last_line_is_the_fault_and_begins_with_the_cause(failed: tuple[Hosts, list[str]]) -> None:
    hosts, lines = failed
    said = fault(hosts)
    assert said.startswith(f"Ensure the network filters: {CAUSE}") and "No valid host was found for 'web'" in said
    assert lines[-1] == f"FAILED localhost: {said}"
    assert [line for line in lines if line.startswith("FAILED hv")] == [
        f"FAILED {host}: Ensure the network filters: {CAUSE}" for host in ("hv1", "hv2")
    ]
    assert len(lines) < 60 and max(map(len, lines)) < LONGEST
    assert not [line for line in lines if "{" in line]
    named = [pathlib.Path(line.split(": ", 1)[1]) for line in lines if line.startswith("  all that it said: ")]
    assert {path.parent for path in named} == {hosts.home / _failure_files.DIRECTORY} and len(named) == 4
    assert {path.stat().st_mode & 0o777 for path in named} == {0o600}
    details = json.loads(named[0].read_text())
    assert details["steps"][-1]["name"] == "Ensure the network filters" and CAUSE in details["msg"]


def shown(hosts: Hosts, *words: str) -> t.Any:
    """Return what the command `novalite` says, as JSON."""
    program = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from api.cli import main; main()"
    command = [sys.executable, "-c", program, *words, "-o", "json"]
    return json.loads(subprocess.check_output(command, env=hosts.environment, text=True, timeout=GENEROUS))


def test_the_command_shows_the_words_of_the_last_line(failed: tuple[Hosts, list[str]]) -> None:
    hosts, (*_lines, last) = failed
    assert last == f"FAILED localhost: {shown(hosts, 'show', 'web')['fault']['message']}"


def test_the_page_shows_the_words_of_the_last_line(failed: tuple[Hosts, list[str]]) -> None:
    hosts, (*_lines, last) = failed
    pages = {}
    with applications.application(hosts.home) as app:
        api = seeds.Api(app)
        ((project, uuid),) = api.rows(sa.select(tables.instance.c.project_id, tables.instance.c.uuid))
        for name, role in (("admin", "admin"), ("demo", "member"), ("reader", "reader")):
            with transaction(api.engine) as connection:
                user = users.insert_user(connection, {"name": name, "default_project_id": project})
                users.grant_role(connection, user["id"], project, role)
            api.users[name] = user["id"]
            pages[role] = Visitor(api, name).get(f"/instances/{uuid}").words
    assert last.removeprefix("FAILED localhost: ") in pages["admin"]
    for role in ("member", "reader"):  # who is not told of hosts
        assert f"error Ensure the network filters: {CAUSE}" in pages[role] and "hv" not in pages[role]


def test_an_action_that_one_step_failed_is_told_in_the_words_of_that_step(
    seeded: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    hosts = failing(tmp_path, seeded)
    (tmp_path / "failing").write_text("{}")
    servers = json.dumps({"servers": [{"name": "web", "flavor": "m1.nano", "image": "tiny"}]})
    launched = hosts.play("launch.yml", "-e", servers, **SCREEN)
    assert launched.returncode == 0, launched.stdout
    trips = [steps for _host, _check, steps in map(json.loads, hosts.taken.read_text().splitlines())]
    domains = [step["args"]["domains"] for steps in trips for step in steps if step["module"] == "domain"][-1]
    rows = [{**domain, "action": "none", "state": "running", "error": CAUSE} for domain in domains]
    refused = {"domain_power": {"failed": True, "msg": CAUSE, "domains": rows}}
    (tmp_path / "failing").write_text(json.dumps({"hv1": refused, "hv2": refused}))
    done = hosts.play("stop.yml", "-e", "server=web", **SCREEN)
    last = (done.stdout + done.stderr).splitlines()[-1]
    newest = shown(hosts, "events", "web")[-1]
    assert (newest["action"], newest["message"]) == ("stop", CAUSE)
    assert last == f"FAILED localhost: 'web': {CAUSE}"


def test_lines_are_short_on_ansibles_own_screen_and_what_was_built_is_taken_back(
    seeded: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    hosts = failing(tmp_path, seeded)
    lines = launch(hosts, {})
    assert max(map(len, lines)) < LONGEST and '"steps"' not in "".join(lines)
    trips = [steps for _host, _check, steps in map(json.loads, hosts.taken.read_text().splitlines())]
    undone = [
        {step["module"]: step["args"] for step in steps} for steps in trips if steps and steps[-1]["module"] == "disk"
    ]
    # made before the step that failed; and what comes after it, which was not
    counts = [(len(steps["dhcp"]["networks"]), len(steps["firewall"]["instances"])) for steps in undone]
    assert counts == [(1, 0), (1, 0)]


def test_what_is_secret_is_in_no_file(seeded: pathlib.Path, tmp_path: pathlib.Path) -> None:
    hosts = failing(tmp_path, seeded)
    lines = launch(hosts, SCREEN, admin_password="Zx9-unheard-of")
    assert fault(hosts) in lines[-1]
    kept = hosts.home / _failure_files.DIRECTORY
    texts = [path.read_text() for path in kept.iterdir()] if kept.exists() else []
    assert "Zx9-unheard-of" not in "".join([*lines, *texts]) and not [
        text for text in texts if "Make the disks" in text
    ]


def test_a_slow_guest_fails_the_run_of_who_asked_for_an_answer_alone(
    seeded: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    hosts = failing(tmp_path, seeded)
    slow = {
        "server_wait": {"failed": True, "msg": "one is silent", "silent": [{"name": "web", "message": "web: slow"}]}
    }
    (tmp_path / "failing").write_text(json.dumps({"hv1": slow, "hv2": slow}))
    (hosts.elsewhere / "group_vars/compute.yml").write_text("novalite_wait_for: ssh\n")
    servers = [{"name": "web", "flavor": "m1.nano", "image": "tiny"}]
    done = hosts.play("launch.yml", "-e", json.dumps({"servers": servers}))
    assert (done.returncode, "running, but without an answer yet: web: slow" in done.stdout) == (0, True), done.stdout
    servers = [{"name": "other", "flavor": "m1.nano", "image": "tiny"}]
    done = hosts.play("launch.yml", "-e", json.dumps({"servers": servers, "wait_for": "ssh"}))
    output = done.stdout + done.stderr
    assert (done.returncode, "left running, but without an answer: web: slow" in output) == (2, True), output
    assert [server[1] for server in hosts.servers()] == ["active", "active"]


def test_old_files_go(tmp_path: pathlib.Path) -> None:
    paths = [_failure_files.keep(str(tmp_path), f"../hv{number}", {}) for number in range(_failure_files.KEPT + 3)]
    kept = sorted(os.listdir(tmp_path / _failure_files.DIRECTORY))
    assert kept == [os.path.basename(path or "") for path in paths[3:]]


def test_a_home_that_takes_no_file_is_no_second_failure(tmp_path: pathlib.Path) -> None:
    (tmp_path / "home").write_text("")
    assert _failure_files.keep(str(tmp_path / "home"), "hv1", {}) is None
