# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The user's ansible.cfg, which is made for other playbooks: ours do the same with it, and end with the same code.

A story of playbooks on two hosts, one of which does not answer, is played without an ansible.cfg, and with some that
turn round every setting of Ansible that is on or off, or is a choice.
"""

from __future__ import annotations

import json
import pathlib
import shutil
import sys
import typing as t

import pytest
import sqlalchemy as sa
from ansible import constants as C

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import open_ledger, reading, transaction
from tests.support.rows import add_image
from tests.unit.playbooks.controller import CATALOGUE, Controller

STORY = (
    ("launch.yml", "server=web count=2 flavor=m1.nano image=tiny"),
    ("stop.yml", "server=web-1"),
    ("migrate.yml", "server=web-1"),  # there is no other host that lives
    ("reconcile.yml", "build_timeout=60"),
    ("terminate.yml", "server=web count=2"),
)
CODES = [0, 0, 2, 4, 0]
# Settings that ask the user, need a program, or say too much
LEFT_ALONE = {
    "DEFAULT_ASK_PASS",
    "DEFAULT_ASK_VAULT_PASS",
    "DEFAULT_BECOME",
    "DEFAULT_BECOME_ASK_PASS",
    "DEFAULT_DEBUG",
    "DEFAULT_SU",
    "DEFAULT_KEEP_REMOTE_FILES",  # programs, which the stand-in does not run
    "ENABLE_TASK_DEBUGGER",
}
DEADLY = {"DEFAULT_STRATEGY": "linear", "TASK_TIMEOUT": 0, "ANY_ERRORS_FATAL": False}


def turned_round(last: bool) -> dict[str, t.Any]:
    """Each setting of Ansible that is on or off, or a choice, with another value than its own, the first or last."""
    settings = {}
    for name, definition in C.config.get_configuration_definitions().items():
        if name in LEFT_ALONE or name in DEADLY or not definition.get("ini") or name.startswith("GALAXY"):
            continue
        if str(definition.get("type")).startswith("bool"):
            settings[name] = not definition["default"]
        elif others := [choice for choice in definition.get("choices") or () if choice != definition["default"]]:
            settings[name] = others[-1 if last else 0]
    return settings


CONFIGURATIONS: dict[str, dict[str, t.Any]] = {
    "first to fail ends all": {**turned_round(False), "ANY_ERRORS_FATAL": True},
    "each host for itself": {**turned_round(True), "ANY_ERRORS_FATAL": True, "DEFAULT_STRATEGY": "free"},
    "one second for a task": {"TASK_TIMEOUT": 1, "DEFAULT_STRATEGY": "host_pinned"},
}


class Hosts(Controller):
    """A controller with two hosts: hv1 does everything, hv2 is dead."""

    def __init__(self, path: pathlib.Path) -> None:
        super().__init__(path)
        self.stand_in = path / "stand_in_ssh.py"
        shutil.copy(pathlib.Path(__file__).with_name("stand_in_ssh.py"), self.stand_in)
        (path / "ssh").write_text(f'#!/bin/sh\nexec {sys.executable} -I {self.stand_in} "$@"\n')
        (path / "dead").write_text("hv2")
        self.taken = path / "taken"
        inventory = self.elsewhere / "hosts.ini"
        inventory.write_text(inventory.read_text() + "ansible_python_interpreter=/usr/bin/python3\n")
        (self.elsewhere / "group_vars/all.yml").write_text("novalite_facts_max_age: 0\n")
        self.environment["ANSIBLE_PIPELINING"] = "1"

    def configure(self, settings: dict[str, t.Any]) -> None:
        """Write the user's ansible.cfg."""
        sections: dict[str, list[str]] = {}
        for name, value in settings.items():
            entry = C.config.get_configuration_definitions()[name]["ini"][0]
            sections.setdefault(entry["section"], []).append(f"{entry['key']} = {value}")
        text = "".join(f"[{section}]\n" + "\n".join(lines) + "\n" for section, lines in sections.items())
        (self.elsewhere / "ansible.cfg").write_text(text)

    def trips(self) -> list[tuple[str, list[str]]]:
        """The steps that hosts took since this was asked before, in any order."""
        lines = self.taken.read_text().splitlines() if self.taken.exists() else []
        self.taken.unlink(missing_ok=True)
        return sorted((host, [step["module"] for step in steps]) for host, _check, steps in map(json.loads, lines))

    def servers(self) -> list[tuple[t.Any, ...]]:
        engine, columns = open_ledger(str(self.home)), tables.instance.c
        query = sa.select(columns.name, columns.vm_state, columns.task_state, columns.host).order_by(columns.id)
        with reading(engine) as connection:
            rows = [tuple(row) for row in connection.execute(query)]
        engine.dispose()
        return rows


@pytest.fixture(scope="module")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A ledger with a catalogue."""
    controller = Controller(tmp_path_factory.mktemp("seeded"))
    (controller.elsewhere / "catalogue.yml").write_text(CATALOGUE)
    done = controller.play("seed.yml", "-e", "@catalogue.yml")
    assert done.returncode == 0, done.stdout + done.stderr
    engine = open_ledger(str(controller.home))
    with transaction(engine) as connection:
        add_image(connection, "tiny")
    engine.dispose()
    return controller.home


def story(path: pathlib.Path, home: pathlib.Path, settings: dict[str, t.Any], **environment: str) -> list[t.Any]:
    """Play the story; return each playbook's code, the servers after it and the steps of hosts, and what it said."""
    path.mkdir()
    hosts = Hosts(path)
    shutil.copytree(home, hosts.home, dirs_exist_ok=True)
    hosts.configure(settings)
    told = []
    for playbook, options in STORY:
        done = hosts.play(playbook, "-e", options, **environment)
        told.append((playbook, done.returncode, hosts.servers(), hosts.trips()))
        assert "Traceback" not in done.stderr, done.stderr
    return told


@pytest.fixture(scope="module")
def usual(seeded: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> list[t.Any]:
    told = story(tmp_path_factory.mktemp("usual") / "it", seeded, {})
    assert [code for _playbook, code, _servers, _trips in told] == CODES, told
    return told


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_the_same_is_done(usual: list[t.Any], seeded: pathlib.Path, tmp_path: pathlib.Path, name: str) -> None:
    slow = {"STAND_IN_SECONDS": "1.5"} if "TASK_TIMEOUT" in CONFIGURATIONS[name] else {}
    assert story(tmp_path / "it", seeded, CONFIGURATIONS[name], **slow) == usual
