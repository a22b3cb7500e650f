# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""tests/support/bin/ansible-playbook does what ansible-playbook does, several at a time."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import typing as t

import pytest

from tests.support.patience import GENEROUS

ROOT = pathlib.Path(__file__).resolve().parents[3]
PLAY = """
- hosts: localhost
  connection: local
  gather_facts: false
  vars: {ansible_python_interpreter: "{{ ansible_playbook_python }}"}
  tasks:
    - ansible.builtin.command: pwd
      register: ran
    - ansible.builtin.debug: {msg: "{{ of_file }} {{ lookup('ansible.builtin.env', 'MARK') }} {{ ran.stdout }}"}
    - ansible.builtin.fail:
      when: lookup('ansible.builtin.env', 'MARK') == 'fails'
"""


@pytest.fixture
def start(tmp_path: pathlib.Path) -> t.Iterator[t.Callable[..., subprocess.Popen[str]]]:
    """start(playbook, MARK=...): the command, begun in a directory that has variables of its own."""
    path = tmp_path / "socket"
    (tmp_path / "group_vars").mkdir()
    (tmp_path / "group_vars/all.yml").write_text("of_file: kept\n")
    (tmp_path / "play.yml").write_text(PLAY)
    server = subprocess.Popen(
        [sys.executable, "-P", "-m", "tests.support.playbooks", str(path)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert server.stdout is not None
    assert server.stdout.readline() == b"listens\n"

    def begin(playbook: str, **environment: str) -> subprocess.Popen[str]:
        command = [str(ROOT / "tests/support/bin/ansible-playbook"), "-i", "localhost,", playbook]
        return subprocess.Popen(
            command,
            cwd=tmp_path,
            env={**os.environ, "NOVALITE_WARM": str(path), "ANSIBLE_FORCE_COLOR": "0", **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    with server:
        yield begin
        os.killpg(server.pid, signal.SIGTERM)


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    said, _ = process.communicate(timeout=GENEROUS)
    return process.returncode, said


def test_commands_are_played_beside_each_other(
    start: t.Callable[..., subprocess.Popen[str]], tmp_path: pathlib.Path
) -> None:
    begun = {mark: start("play.yml", MARK=mark) for mark in ("first", "second", "fails")}
    for mark, process in begun.items():
        code, said = ended(process)
        assert code == (2 if mark == "fails" else 0), said
        assert f"kept {mark} {tmp_path}" in said and "PLAY RECAP" in said
    code, said = ended(start("none.yml"))
    assert code == 1 and "none.yml could not be found" in said
