# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host that falls silent in the middle of a trip: an sshd in a namespace of its own, whose cable is pulled.

ssh's keep-alive and the deadlines are shortened here; that what is shipped is 15 s x 4 says _ssh/test_keep_alive.py.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._host.waiting import wait_until
from tests.support.patience import GENEROUS
from tests.unit.conftest import Lan, ip

ROOT = pathlib.Path(__file__).parents[3]
SSHD = "/usr/sbin/sshd"
WAIT = """
- hosts: all
  gather_facts: false
  ignore_unreachable: true
  tasks:
    - name: Wait
      ACTION:
        steps:
          - name: Wait
            module: server_wait
            may_fail: true
            args: {guests: [{name: g, address: 198.51.100.9}], timeout: SECONDS}
      register: waited

    - name: Wait again
      ACTION:
        steps: [{name: Look, module: host_files, args: {files: []}}]

- hosts: localhost
  connection: local
  gather_facts: false
  tasks:
    - ansible.builtin.debug:
        msg: "lost: {{ lost | map(attribute='inventory_hostname') | join(' ') }}"
      vars:
        lost: "{{ groups.all | map('extract', hostvars) | selectattr('waited.unreachable', 'defined') }}"
"""
# Deadlines that a test can wait for, by an action plug-in that is host_steps otherwise
BRIEFLY = """
from ansible_collections.novalite.cloud.plugins.action.host_steps import ActionModule as HostSteps
from ansible_collections.novalite.cloud.plugins.module_utils._host import deadlines

class ActionModule(HostSteps):
    def run(self, tmp=None, task_vars=None):
        deadlines.of_trip = lambda steps: 15.0
        return super().run(tmp, task_vars)
"""


class Hosts:
    """The hosts of a LAN with sshds, and the hypervisor's namespace as their controller."""

    def __init__(self, lan: Lan, path: pathlib.Path) -> None:
        self.lan, self.path = lan, path
        self.daemons: list[subprocess.Popen[bytes]] = []
        for name in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path / name], check=True)
        os.makedirs("/run/sshd", exist_ok=True)
        words = {"HostKey": path / "host", "AuthorizedKeysFile": path / "user.pub", "StrictModes": "no", "UsePAM": "no"}
        options = [f"-o{name}={value}" for name, value in words.items()]
        for host in lan.hosts:
            argv = ["ip", "netns", "exec", host, SSHD, "-D", "-e", "-f/dev/null", "-oPidFile=none", *options]
            self.daemons.append(subprocess.Popen(argv, stderr=subprocess.DEVNULL))
        lines = [f"{host} ansible_host=10.99.0.{number}" for number, host in enumerate(lan.hosts, 5)]
        known = (path / "host.pub").read_text()
        (path / "known").write_text("".join(f"10.99.0.{number} {known}" for number in range(5, 5 + len(lan.hosts))))
        variables = {
            "ansible_user": "root",
            "ansible_ssh_private_key_file": path / "user",
            "ansible_ssh_common_args": f"'-oUserKnownHostsFile={path}/known'",
            "ansible_python_interpreter": "/usr/bin/python3",
            "ansible_pipelining": True,
            "compute_node_state_dir": path / "state",
        }
        lines += ["[all:vars]", *(f"{name}={value}" for name, value in variables.items())]
        (path / "hosts.ini").write_text("\n".join(lines) + "\n")
        (path / "action_plugins").mkdir()
        (path / "action_plugins/briefly.py").write_text(BRIEFLY)

    @contextlib.contextmanager
    def playing(self, text: str, **environment: str) -> t.Iterator[subprocess.Popen[str]]:
        (self.path / "play.yml").write_text(text)
        environment = {
            "HOME": str(self.path),
            "ANSIBLE_COLLECTIONS_PATH": f"{ROOT}/collections:{ROOT}/.cache/collections",
            "ANSIBLE_LOCALHOST_WARNING": "False",
            "ANSIBLE_TIMEOUT": "2",
            "ANSIBLE_SSH_CONTROL_PATH_DIR": str(self.path / "cp"),
            "COLUMNS": "1000",
            **environment,
        }
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "NOVALITE_"))}
        with subprocess.Popen(
            [
                "ip",
                "netns",
                "exec",
                self.lan.hypervisor,
                sys.executable,
                "-m",
                "ansible",
                "playbook",
                "-i",
                "hosts.ini",
                "play.yml",
            ],
            cwd=self.path,
            env={**kept, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    def processes(self, words: str) -> list[int]:
        """The processes with these words in their command, in any namespace of the LAN."""
        pids = []
        for name in [self.lan.hypervisor, *self.lan.hosts]:
            done = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True, check=True)
            for pid in map(int, done.stdout.split()):
                with contextlib.suppress(OSError):
                    if words in pathlib.Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " "):
                        pids.append(pid)
        return pids

    def end(self) -> None:
        for daemon in self.daemons:
            daemon.kill()
            daemon.wait()
        for name in [self.lan.hypervisor, *self.lan.hosts]:  # ssh's masters, and what serves them
            done = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True, check=True)
            for pid in map(int, done.stdout.split()):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, 9)


@pytest.fixture
def hosts(lan: Lan, tmp_path: pathlib.Path) -> t.Iterator[Hosts]:
    if not os.path.exists(SSHD):
        pytest.skip("needs sshd")
    made = Hosts(lan, tmp_path)
    try:
        yield made
    finally:
        made.end()


def silenced(hosts: Hosts, process: subprocess.Popen[str]) -> tuple[float, str]:
    """Pull the second host's cable once both are at work; return the seconds until the run's end, and its output."""
    deadline = time.monotonic() + 60
    while len(hosts.processes("NOVALITE-TRIP")) < 4 and process.poll() is None:  # `timeout` and Python, on each
        assert time.monotonic() < deadline, process.stdout and process.stdout.read()
        time.sleep(0.1)
    ip("-n", hosts.lan.hypervisor, "link", "set", "tap6", "down")
    began = time.monotonic()
    output, _none = process.communicate(timeout=120)
    return time.monotonic() - began, output


KEPT_ALIVE = "-o ControlMaster=auto -o ControlPersist=30m -o ServerAliveInterval=1 -o ServerAliveCountMax=2"
NOT_AT_ALL = "-o ControlMaster=auto -o ControlPersist=30m -o ServerAliveInterval=0"


@pytest.mark.parametrize(
    ("action", "arguments", "message"),
    [
        ("novalite.cloud.host_steps", KEPT_ALIVE, "Make sure this host can be reached over ssh"),
        ("briefly", NOT_AT_ALL, "the host was lost during the task: no answer within 15 s"),
    ],
)
def test_the_others_go_on_and_the_run_ends(hosts: Hosts, action: str, arguments: str, message: str) -> None:
    silent = hosts.lan.hosts[1]
    text = WAIT.replace("ACTION", action).replace("SECONDS", "5")
    with hosts.playing(text, ANSIBLE_SSH_ARGS=arguments) as process:
        seconds, output = silenced(hosts, process)
    assert f"lost: {silent}" in output, output
    assert f"[{silent}]: UNREACHABLE! =>" in output and message in output, output
    assert f"ok: [{hosts.lan.hosts[0]}]" in output
    assert seconds < 25, output
    assert not hosts.processes("ssh -C") and not hosts.processes("10.99.0.6 "), "an ssh outlived the run"


@pytest.mark.parametrize("become", [pytest.param(False, marks=pytest.mark.thorough), True])
def test_steps_are_heard_of_over_ssh_while_they_happen(hosts: Hosts, become: bool) -> None:
    """By root, and through sudo; and nothing stays that asked for it."""
    if become and not shutil.which("sudo"):
        pytest.skip("needs sudo")
    text = WAIT.replace("ACTION", "novalite.cloud.host_steps").replace("SECONDS", "4")
    environment = {
        "ANSIBLE_BECOME": str(become),
        "ANSIBLE_CALLBACK_PLUGINS": str(ROOT / "tests/support/callbacks"),
        "ANSIBLE_CALLBACKS_ENABLED": "record_events",
        "RECORD_EVENTS": str(hosts.path / "events"),
    }
    with hosts.playing(text, **environment) as process:
        output, _none = process.communicate(timeout=GENEROUS)
    assert process.returncode == 0, output
    heard = [json.loads(line) for line in (hosts.path / "events").read_text().splitlines()]
    assert {(event["host"], event["step"]) for event in heard if event["kind"] == "begin"} == {
        (host, "Wait") for host in hosts.lan.hosts
    }
    ended = sorted((event["host"], event["step"]) for event in heard if event["kind"] == "end")
    assert ended == sorted((host, step) for host in hosts.lan.hosts for step in ("Look", "Wait"))  # each once
    wait_until(lambda: not hosts.processes("/run/novalite-trips"), GENEROUS, "a question outlived its trip")
