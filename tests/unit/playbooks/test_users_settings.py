# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The user's ansible.cfg, which is made for other playbooks: ours do the same with it, and end with the same code.

A story of playbooks on two hosts, one of which does not answer, is played without an ansible.cfg, and with some that
turn round every setting of Ansible that is on or off, or is a choice.
"""

from __future__ import annotations

import pathlib
import shutil
import typing as t

import pytest
from ansible import constants as C

from tests.unit.playbooks.answering import Hosts

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
CONFIGURATIONS["each host for itself, for one second"] = {**CONFIGURATIONS["each host for itself"], "TASK_TIMEOUT": 1}
# in the last one are both of these
APART = ("each host for itself", "one second for a task")


def configure(directory: pathlib.Path, settings: dict[str, t.Any]) -> None:
    """Write the user's ansible.cfg."""
    sections: dict[str, list[str]] = {}
    # files of what failed are written beside the playbook otherwise, which is the checkout
    for name, value in {"RETRY_FILES_SAVE_PATH": str(directory), **settings}.items():
        entry = C.config.get_configuration_definitions()[name]["ini"][0]
        sections.setdefault(entry["section"], []).append(f"{entry['key']} = {value}")
    text = "".join(f"[{section}]\n" + "\n".join(lines) + "\n" for section, lines in sections.items())
    (directory / "ansible.cfg").write_text(text)


def story(path: pathlib.Path, home: pathlib.Path, settings: dict[str, t.Any], **environment: str) -> list[t.Any]:
    """Play the story; return each playbook's code, the servers after it and the steps of hosts, and what it said."""
    path.mkdir()
    hosts = Hosts(path)
    shutil.copytree(home, hosts.home, dirs_exist_ok=True)
    configure(hosts.elsewhere, settings)
    outcomes = []
    for playbook, options in STORY:
        done = hosts.play(playbook, "-e", options, **environment)
        outcomes.append((playbook, done.returncode, hosts.servers(), hosts.trips()))
        assert "Traceback" not in done.stderr, done.stderr
    return outcomes


@pytest.fixture(scope="module")
def usual(seeded: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> list[t.Any]:
    outcomes = story(tmp_path_factory.mktemp("usual") / "it", seeded, {})
    assert [code for _playbook, code, _servers, _trips in outcomes] == CODES, outcomes
    return outcomes


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.thorough] if name in APART else []) for name in CONFIGURATIONS]
)
def test_the_same_is_done(usual: list[t.Any], seeded: pathlib.Path, tmp_path: pathlib.Path, name: str) -> None:
    slow = {"STAND_IN_SECONDS": "1.5"} if "TASK_TIMEOUT" in CONFIGURATIONS[name] else {}
    assert story(tmp_path / "it", seeded, CONFIGURATIONS[name], **slow) == usual
