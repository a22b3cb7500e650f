# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The callback console_text, in a run of its own that hands out a console's text as the playbook `console` does."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

from tests.support.patience import GENEROUS

ROOT = pathlib.Path(__file__).parents[3]


def run(directory: pathlib.Path, task: dict[str, object]) -> subprocess.CompletedProcess[str]:
    """Run a playbook of this task."""
    play = {"hosts": "localhost", "connection": "local", "gather_facts": False, "tasks": [task]}
    (directory / "play.yml").write_text(json.dumps([play]))
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "NOVALITE_"))}
    environment = {**kept, "ANSIBLE_STDOUT_CALLBACK": "novalite.cloud.console_text"}
    environment["ANSIBLE_COLLECTIONS_PATH"] = str(ROOT / "collections")
    environment |= {"ANSIBLE_LOCALHOST_WARNING": "False", "ANSIBLE_INVENTORY_UNPARSED_WARNING": "False"}
    command = [sys.executable, "-m", "ansible", "playbook", str(directory / "play.yml")]
    return subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, check=False, timeout=GENEROUS
    )


def test_nothing_is_shown_but_the_text(tmp_path: pathlib.Path) -> None:
    text = "boot\r\n\x1b[31mlogin:\r\n"
    done = run(tmp_path, {"ansible.builtin.set_stats": {"data": {"console": {"1f": text}}}})
    assert (done.returncode, done.stdout) == (0, "boot\n?[31mlogin:\n"), done.stderr


def test_a_failure_is_told_apart_from_the_text(tmp_path: pathlib.Path) -> None:
    done = run(tmp_path, {"ansible.builtin.fail": {"msg": "no such guest"}})
    assert done.returncode and not done.stdout and "localhost: no such guest" in done.stderr
