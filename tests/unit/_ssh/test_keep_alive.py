# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""No way in, to a host or a guest, by which a machine that fell silent is waited for as long as the kernel likes."""

from __future__ import annotations

import os
import pathlib
import re
import shlex
import subprocess
import sys
import typing as t
from unittest import mock

import jinja2
import pytest
from novalite_api import keep_alive
from novalite_api.cli import playbooks
from novalite_api.jobs.options import Options

from ansible_collections.novalite.cloud.plugins.module_utils import _keepalive
from ansible_collections.novalite.cloud.plugins.module_utils._ssh.way_in import WayIn, way_in
from ansible_collections.novalite.cloud.plugins.module_utils._transfer import channel
from tests.support.ways_in import write_ways

ROOT = pathlib.Path(__file__).parents[3]
COLLECTION = ROOT / "collections/ansible_collections/novalite/cloud"
CONFIGURATIONS = {
    "the checkout's": (ROOT / "ansible.cfg").read_text(),
    "a service's": jinja2.Template((COLLECTION / "roles/controller/templates/ansible.cfg.j2").read_text()).render(
        controller_current="/x", controller_etc="/x"
    ),
    "the documented one": "".join(re.findall(r"```ini\n(.*?)```", (ROOT / "docs/install.md").read_text(), re.DOTALL)),
}
FOREIGN = {
    "none": None,
    "one with arguments": "[ssh_connection]\nssh_args = -o ControlMaster=no\nssh_common_args = -o User=deploy\n",
    "one with extra arguments": "[ssh_connection]\nssh_extra_args = -o Compression=no\n",
    "a broken one": "[ssh_connection\n",
}


def effective(argv: t.Sequence[str]) -> dict[str, str]:
    """What ssh makes of its arguments: the host's, without what follows it."""
    done = subprocess.run(["ssh", "-G", "-F", "/dev/null", *argv], capture_output=True, text=True, check=True)
    return dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)


def assert_kept_alive(options: t.Mapping[str, str]) -> None:
    assert options["serveraliveinterval"] == "15"
    assert options["serveralivecountmax"] == "4"
    assert 1 <= int(options["connecttimeout"]) <= 30


def without_ansible() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "NOVALITE_"))}


def ssh_of_ansible(path: pathlib.Path, playbook: str, **environment: str) -> list[str]:
    """The arguments that Ansible gives ssh for a task, up to the host."""
    ssh = path / "ssh"
    ssh.write_text(f'#!/bin/sh\nprintf "%s\\0" "$@" >{path}/argv\nexit 255\n')
    ssh.chmod(0o755)
    (path / "play.yml").write_text(playbook)
    subprocess.run(
        [sys.executable, "-m", "ansible", "playbook", "-i", "hv1,", "play.yml"],
        cwd=path,
        env={
            **without_ansible(),
            "HOME": str(path),
            "ANSIBLE_SSH_EXECUTABLE": str(ssh),
            "ANSIBLE_COLLECTIONS_PATH": f"{ROOT}/collections:{ROOT}/.cache/collections",
            **environment,
        },
        check=False,
        capture_output=True,
        timeout=60,
    )
    argv = (path / "argv").read_text().split("\0")
    return argv[: argv.index("hv1") + 1]


ANY = "[{hosts: all, gather_facts: false, tasks: [{ansible.builtin.raw: 'true'}]}]"
OURS = "[{hosts: all, gather_facts: false, tasks: [{novalite.cloud.domain_info: {domains: []}}]}]"


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_by_our_own_configuration(tmp_path: pathlib.Path, name: str) -> None:
    (tmp_path / "ansible.cfg").write_text(CONFIGURATIONS[name])
    assert_kept_alive(effective(ssh_of_ansible(tmp_path, ANY)))


@pytest.mark.parametrize("name", ["none", "one with arguments", "one with extra arguments"])
def test_by_the_users_configuration_in_each_trip(tmp_path: pathlib.Path, name: str) -> None:
    (tmp_path / "ansible.cfg").write_text("[connection]\npipelining = True\n" + (FOREIGN[name] or ""))
    options = effective(ssh_of_ansible(tmp_path, OURS, ANSIBLE_PIPELINING="True"))
    assert_kept_alive(options)
    if name == "one with arguments":
        assert options["user"] == "deploy"


@pytest.mark.parametrize("name", FOREIGN)
def test_by_the_command_and_by_jobs(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The variable that they set leaves the user's own arguments alone."""
    if (text := FOREIGN[name]) is not None:
        (tmp_path / "ansible.cfg").write_text(text)
    monkeypatch.chdir(tmp_path)
    passed: dict[str, str] = {}
    monkeypatch.setattr(playbooks, "replace_process", lambda _command, environment: passed.update(environment))
    with mock.patch.dict(os.environ, {**without_ansible(), "HOME": str(tmp_path)}, clear=True):
        environment = Options(str(tmp_path)).environment()
        playbooks.run("launch", {}, playbooks.Options((), None, (), False, False, 0))
        of_command = passed.get(keep_alive.VARIABLE)
        assert keep_alive.VARIABLE not in os.environ  # it is the playbook's
    expected = _keepalive.ARGUMENTS if name in ("none", "one with arguments") else None
    assert [environment.get(keep_alive.VARIABLE), of_command] == [expected] * 2
    if expected:
        assert_kept_alive(effective([*shlex.split(expected), "-o", "ConnectTimeout=10", "hv1"]))


def test_arguments_of_the_environment_stay(tmp_path: pathlib.Path) -> None:
    assert keep_alive.variables({keep_alive.VARIABLE: ""}, str(tmp_path)) == {}


@pytest.mark.parametrize("name", ["hv1", "hv2", "web"])
def test_of_users_and_their_consoles(tmp_path: pathlib.Path, name: str) -> None:
    nic = {"ip": "10.20.0.5", "network": {"bridge": "br100", "isolated": False}}
    about: t.Any = {"id": 1, "project": {"name": "demo"}, "image": {"properties": {}}, "nics": [nic]}
    instances: list[t.Any] = [
        {"name": f"web{host[2:].replace('1', '')}", "uuid": host, "host": host, **about} for host in ("hv1", "hv2")
    ]
    ways = {
        "hv1": WayIn(),
        "hv2": way_in({"ansible_host": "192.0.2.12", "ansible_ssh_common_args": "-oConnectTimeout=5"}),
    }
    path = tmp_path / "ssh_config"
    write_ways(path, instances, ways)
    done = subprocess.run(["ssh", "-G", "-F", str(path), name], capture_output=True, text=True, check=True)
    options = dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)
    assert_kept_alive(options)
    assert options["connecttimeout"] == ("5" if name == "hv2" else "30")


@pytest.mark.parametrize("login", ["root", "deploy"])
def test_of_moves(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, login: str) -> None:
    monkeypatch.setattr(channel, "directory_of", lambda move: str(tmp_path))
    argv = channel.ssh("move", channel.Door(address="192.0.2.12", host_keys=(), login=login))
    assert_kept_alive(effective([word for word in argv[1:] if word not in ("-F", "/dev/null")]))
    if login != "root":  # ssh inside of ssh
        outer = next(word for word in argv if word.startswith("ProxyCommand=")).removeprefix("ProxyCommand=")
        assert_kept_alive(effective([word for word in shlex.split(outer)[1:] if word not in ("-F", "/dev/null")]))


def test_nobody_else_starts_ssh() -> None:
    """A file that starts ssh, or says how Ansible does, is one of those above."""
    starts = re.compile(r"""["']ssh["'], ["']-|\bControlPersist\b|^ *ssh_args *=""", re.MULTILINE)
    tops = (ROOT / "api", COLLECTION / "plugins", COLLECTION / "playbooks", COLLECTION / "roles", ROOT / "docs")
    kept = [path for top in tops for path in top.rglob("*.*") if path.is_file() and path.suffix != ".pyc"]
    files = [path for path in kept if ROOT / "docs/_build" not in path.parents]  # what `make docs` leaves
    assert {
        path.name for path in [*files, ROOT / "ansible.cfg"] if starts.search(path.read_text(errors="replace"))
    } == {
        *("ansible.cfg", "ansible.cfg.j2", "install.md"),  # by_our_own_configuration
        "playbooks.py",  # by_the_command_and_by_jobs
        "channel.py",  # of_moves
        *("config.py", "commands.py"),  # of_users_and_their_consoles: with -F
    }
