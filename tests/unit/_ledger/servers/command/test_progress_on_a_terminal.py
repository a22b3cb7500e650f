# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The callbacks `progress` and `explain`, as ansible-playbook runs them on a terminal and into a pipe."""

from __future__ import annotations

import fcntl
import os
import pathlib
import pty
import re
import struct
import subprocess
import sys
import termios
import typing as t

import pytest
import yaml

ROOT = pathlib.Path(__file__).parents[5]
SERVERS = {"name": "web", "count": 2, "flavor": "m1.nano", "image": "ami-tiny"}
OUTCOME = {"uuids": "{{ asked.to_build | map(attribute='uuid') }}", "state": "error", "reason": "broken"}
PLAYBOOK: list[dict[str, t.Any]] = [
    {
        "name": "Decide",
        "hosts": "localhost",
        "tasks": [
            {"name": "Ask for them", "novalite.cloud.server": {"servers": [SERVERS]}, "register": "asked"},
            {
                "name": "Choose a host",
                "novalite.cloud.scheduler": {"instances": "{{ asked.to_build }}", "compute_hosts": "{{ seen }}"},
                "register": "placed",
            },
        ],
        "vars": {
            "seen": [
                {"name": name, "up": True, "vcpus": 8, "memory_mb": 16384, "disk_gb": 100} for name in ("hv1", "hv2")
            ]
        },
    },
    {
        "name": "Build",
        "hosts": "hv1,hv2",
        "tasks": [
            {"name": "Make the disks", "ansible.builtin.command": "sleep 0.7", "changed_when": True},
            {"name": "Say", "ansible.builtin.debug": {"msg": "a message"}, "run_once": True},
            {
                "name": "Stumble",
                "ansible.builtin.command": "false",
                "ignore_errors": True,
                "when": "inventory_hostname == 'hv1'",
            },
        ],
    },
    {
        "name": "Record",
        "hosts": "localhost",
        "tasks": [
            {
                "name": "Record how it went",
                "novalite.cloud.ledger_step": {"step": "server_state", "args": {"outcomes": [OUTCOME]}},
            }
        ],
    },
]

pytestmark = pytest.mark.parametrize("cloud", ["sqlite"], indirect=True)


@pytest.fixture
def command(cloud: t.Any, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    for name in [name for name in os.environ if name.startswith(("ANSIBLE_", "NOVALITE_"))]:
        monkeypatch.delenv(name)
    for name, value in {
        "NOVALITE_HOME": str(tmp_path),
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "collections"),
        "TERM": "xterm",
        "ANSIBLE_STDOUT_CALLBACK": "novalite.cloud.progress",
        "ANSIBLE_LOCAL_TEMP": str(tmp_path / "tmp"),
        "ANSIBLE_LOCALHOST_WARNING": "False",
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_FORCE_COLOR": "0",
    }.items():
        monkeypatch.setenv(name, value)
    common = {"gather_facts": False, "connection": "local"}
    (tmp_path / "play.yml").write_text(yaml.safe_dump([{**common, **play} for play in PLAYBOOK]))
    ansible = str(pathlib.Path(sys.executable).with_name("ansible-playbook"))
    variables = f"ansible_python_interpreter={sys.executable}"
    return [ansible, "-i", "hv1,hv2,", "-e", variables, str(tmp_path / "play.yml")]


def on_a_terminal(command: list[str], rows: int, columns: int) -> tuple[int, str]:
    """The return code and all that was written."""
    process, descriptor = pty.fork()
    if not process:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        os.execv(command[0], command)
    written = b""
    while True:
        try:
            data = os.read(descriptor, 65536)
        except OSError:  # how Linux tells that the other end is closed
            break
        if not data:
            break
        written += data
    os.close(descriptor)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), written.decode()


def seen(written: str, columns: int) -> list[str]:
    """Lines that a high enough terminal shows in the end, with the few controls that the table is drawn with."""
    lines = [""]
    row = column = 0
    for word in re.findall(r"\x1b\[\??[0-9]*[A-Za-z]|\r|\n|[^\x1b\r\n]+", written):
        if word == "\r":
            column = 0
        elif word == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif word == "\x1b[J":
            lines[row:] = [lines[row][:column]]
        elif word.endswith("A"):
            row -= int(word[2:-1])
            assert row >= 0
        elif word in ("\x1b[?7l", "\x1b[?7h"):
            pass
        else:
            assert not word.startswith("\x1b"), word
            lines[row] = lines[row][:column].ljust(column) + word + lines[row][column + len(word) :]
            column += len(word)
    return lines


def test_a_table_is_drawn_in_place_and_leaves_nothing_behind(command: list[str]) -> None:
    code, written = on_a_terminal(command, 40, 100)
    assert code == 0, written
    drawn = re.findall(r"web-1 +hv\d +Make the disks +([\d.]+)", written)
    assert len(set(drawn)) > 1, "the seconds go on while a step lasts"
    screen = seen(written, 100)
    assert sum("INSTANCE" in line for line in screen) == 1
    assert sum(line.startswith("  web-1 ") for line in screen) == 1
    assert [line for line in screen if line.startswith("  web-2 ") and "error" in line]
    assert not [line for line in screen if line.endswith("s  Build")]
    for text in ("a message", "failed, which is ignored", "PLAY RECAP"):
        assert sum(text in line for line in screen) == 1
    assert [line for line in screen if re.match(r"Make the disks +\d+\.\d\d +2  hv", line)]


def test_a_small_terminal_will_do(command: list[str]) -> None:
    code, written = on_a_terminal(command, 5, 20)
    assert code == 0
    assert "PLAY RECAP" in written


def test_elsewhere_there_is_a_line_for_each_step(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "\x1b" not in done.stdout
    assert re.search(r"^\[ +[\d.]+\] BUILD$", done.stdout, re.MULTILINE)
    assert re.search(r"^\[ +[\d.]+\] hv1: Make the disks \(web-\d\), [\d.]+ s, changed$", done.stdout, re.MULTILINE)
    assert "a message" in done.stdout
    assert re.search(r"^In all +[\d.]+$", done.stdout, re.MULTILINE)


@pytest.mark.parametrize("asked_for", [True, False])
def test_explain_tells_the_steps_between_what_others_write(
    command: list[str], asked_for: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANSIBLE_CALLBACKS_ENABLED", "novalite.cloud.explain")
    done = subprocess.run(
        [*command, *(["-e", "explain=true"] if asked_for else [])], capture_output=True, text=True, check=True
    )
    steps = re.findall(r"^\[ (\d)\] (\S+)", done.stdout, re.MULTILINE)
    assert steps == ([("1", "nova-api"), ("2", "nova-api"), ("3", "database"), ("4", "queue")] if asked_for else [])
    assert "WARNING" not in done.stderr
