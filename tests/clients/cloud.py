# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The API that is tested: one that runs already, or one that is served for this, over the lab."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import time
import typing as t
import urllib.request

if t.TYPE_CHECKING:
    from openstack.connection import Connection

ROOT = pathlib.Path(__file__).resolve().parents[2]
START = 600.0  # seconds, for a lab from nothing
STOP = 60.0
LOGIN = 120.0  # seconds that a guest under emulation may take to answer over ssh
EXPORT = re.compile(r"^export (\w+)='?([^'\n]*)'?$", re.MULTILINE)


def said(
    command: t.Sequence[str], timeout: float, environment: t.Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """A command that ended within `timeout` seconds, with what it said."""
    return subprocess.run(
        command,
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=timeout,
        check=False,
    )


def answer_of(ssh: t.Sequence[str]) -> str:
    """What an ssh command says, tried until the guest answers. Raises AssertionError after LOGIN seconds."""
    deadline = time.monotonic() + LOGIN
    while (done := said(ssh, LOGIN)).returncode:
        if time.monotonic() > deadline:
            raise AssertionError(f"no answer over ssh: {done.stderr.strip()}")
        time.sleep(1)
    return done.stdout.strip()


def play_result(
    playbook: pathlib.Path, variables: t.Mapping[str, str], timeout: float, environment: t.Mapping[str, str]
) -> dict[str, t.Any]:
    """What a playbook tells as its RESULT."""
    command = ["ansible-playbook", "-i", "localhost,", "-e", json.dumps(variables), str(playbook)]
    done = said(command, timeout, environment)
    assert done.returncode == 0, done.stdout + done.stderr
    line = next(line for line in done.stdout.splitlines() if '"msg": "RESULT ' in line)
    return dict(json.loads(json.loads("{" + line.strip().rstrip(",") + "}")["msg"].removeprefix("RESULT ")))


@dataclasses.dataclass(frozen=True)
class Cloud:
    home: pathlib.Path  # of the ledger
    logins: pathlib.Path  # directory of openrc & co

    def environment(self, login: str = "openrc") -> dict[str, str]:
        """This process's environment with what a login file exports."""
        exports = EXPORT.findall((self.logins / login).read_text())
        plain = {key: value for key, value in os.environ.items() if not key.startswith(("OS_", "AWS_"))}
        return {**plain, **dict(exports), "NO_COLOR": "1"}

    def connect(self, login: str = "openrc") -> Connection:
        """openstacksdk, with what the command line would read from its environment."""
        import openstack

        environment = self.environment(login)
        return openstack.connect(
            load_yaml_config=False,
            load_envvars=False,
            auth={
                key: environment[f"OS_{key.upper()}"]
                for key in (
                    "auth_url",
                    "username",
                    "password",
                    "user_domain_name",
                    "project_name",
                    "project_domain_name",
                )
            },
            region_name=environment["OS_REGION_NAME"],
            identity_api_version="3",
        )

    def ssh(self, uuid: str, *command: str) -> str:
        """What `command` says in the guest, as soon as that answers."""
        return answer_of(["ssh", "-F", str(self.home / "ssh_config"), "-o", "BatchMode=yes", uuid, *command])


@contextlib.contextmanager
def cloud() -> t.Iterator[Cloud]:
    """The API that `make api` serves, if it does; else one of our own, with a lab for it if there is none."""
    home = pathlib.Path(os.environ.get("NOVALITE_HOME") or ROOT / ".novalite")
    bind = os.environ.get("NOVALITE_API_BIND", "127.0.0.1:8774")
    logins = pathlib.Path(os.environ.get("NOVALITE_LOGINS") or ROOT / "lab")
    if (logins / "openrc").exists() and bind in (logins / "openrc").read_text() and _answers(bind):
        yield Cloud(home, logins)
        return
    arguments, made = [], False
    if "NOVALITE_INVENTORY" in os.environ:
        arguments = ["--no-lab"]  # somebody else's hypervisors, which are ready
    else:
        made = not (home / "lab/hypervisors").exists()
    try:
        with (
            tempfile.TemporaryDirectory(prefix="novalite-clients-") as directory,
            _served(home, pathlib.Path(directory), arguments) as served,
        ):
            yield served
    finally:
        if made:
            environment = {**os.environ, "NOVALITE_HOME": str(home)}
            subprocess.run([str(ROOT / "tools/lab"), "down"], env=environment, check=False)


@contextlib.contextmanager
def _served(home: pathlib.Path, directory: pathlib.Path, arguments: t.Sequence[str]) -> t.Iterator[Cloud]:
    bind = f"127.0.0.1:{_free_port()}"
    logins = directory / "logins"
    environment = {**os.environ, "NOVALITE_HOME": str(home), "NOVALITE_API_BIND": bind, "NOVALITE_LOGINS": str(logins)}
    log = directory / "api.log"
    with log.open("wb") as output:
        server = subprocess.Popen(
            [str(ROOT / "tools/api"), *arguments],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + START
        while not _answers(bind):
            if server.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"the API did not start:\n{log.read_text()[-3000:]}")
            time.sleep(0.5)
        yield Cloud(home, logins)
    finally:
        server.send_signal(signal.SIGTERM)
        try:
            server.wait(STOP)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()


def _answers(bind: str) -> bool:
    """Tell whether an API is there and ready to work."""
    try:
        with urllib.request.urlopen(f"http://{bind}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
