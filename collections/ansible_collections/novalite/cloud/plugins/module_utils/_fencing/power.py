# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Power of a host by its fence agent, which runs on the controller: off, and an independent status after that.

Never `reboot` or `cycle`: a host that comes back while its guests are started elsewhere is what fencing is to prevent,
and agents have reported a cycle as done before the power was off. An agent that does not end in time has failed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import stat
import subprocess

from .._errors import NovaliteError
from .._json import JsonMapping
from . import agents

DIRECTORY = "/usr/sbin"  # of the packages; no other place is looked at
OFF, ON, UNKNOWN = "off", "on", "unknown"
SAYS_OFF = 2  # return code of `status`, which an interpreter that finds no script has, too
SHORTEST, LONGEST = 5, 300  # seconds
PATIENCE = 30.0  # seconds for an agent that describes itself, which asks no device
LAST_WORDS = 300  # characters


@dataclasses.dataclass(frozen=True)
class Ended:
    """End of an agent's run; `rc` is None for one that was ended after its time."""

    rc: int | None
    output: str
    errors: str


@dataclasses.dataclass(frozen=True)
class Answer:
    """Answer about a host: whether it was switched `off`, what the independent `status` said, and that in words."""

    off: bool
    status: str
    words: str


class Supply:
    """Power supply of `host`: an agent that is there, and takes these `parameters`. Raises NovaliteError otherwise."""

    def __init__(self, host: str, agent: str, parameters: JsonMapping, timeout: float) -> None:
        agents.check_name(host, agent)
        if not SHORTEST <= timeout <= LONGEST:
            raise NovaliteError(f"timeout {timeout:g}: choose {SHORTEST} to {LONGEST} seconds for {agent}")
        self._path, self._parameters, self._timeout = _path_of(agent), parameters, timeout
        described = _run([self._path, "-o", "metadata"], "", PATIENCE)
        if described.rc != 0:
            raise NovaliteError(f"{agent} does not describe itself: {_last(described, PATIENCE)}")
        self._agent = agents.agent_of(agent, described.output)
        agents.check_parameters(host, self._agent, parameters)

    def status(self) -> Answer:
        """Ask whether the power is on."""
        ended = self._do("status")
        if ended.rc == 0:
            return Answer(False, ON, f"{self._agent.name} says that the power is on")
        if ended.rc == SAYS_OFF and "status: off" in ended.output.lower():
            return Answer(False, OFF, f"{self._agent.name} says that the power is off")
        return Answer(False, UNKNOWN, f"{self._agent.name} has no status: {self._words(ended)}")

    def off(self) -> Answer:
        """Switch the power off, and ask for the status anew. Both have to say so."""
        ended = self._do("off")
        if ended.rc != 0:
            status = self.status().status  # for the words only: nobody has switched it off
            return Answer(False, status, f"{self._agent.name} did not switch it off: {self._words(ended)}")
        afterwards = self.status()
        if afterwards.status != OFF:
            words = f"{self._agent.name} says that it switched it off, but {afterwards.words}"
            return Answer(True, afterwards.status, words)
        return Answer(True, OFF, f"{self._agent.name} switched it off, and its status says off")

    def validate(self) -> Answer:
        """Ask the device whether it lets novalite in, and for the status, without changing anything."""
        ended = self._do("monitor")
        if ended.rc != 0:
            return Answer(False, UNKNOWN, f"{self._agent.name} cannot be used: {self._words(ended)}")
        return self.status()

    def _do(self, action: str) -> Ended:
        text = agents.standard_input(self._agent, self._parameters, action)
        return _run([self._path], text, self._timeout)

    def _words(self, ended: Ended) -> str:
        return agents.without_secrets(_last(ended, self._timeout), self._parameters)


def _path_of(agent: str) -> str:
    """Return the path of an agent that only root can have put there. Raises NovaliteError."""
    path = os.path.join(DIRECTORY, agent)
    try:
        status = os.stat(path)
    except OSError:
        raise NovaliteError(
            f"{agent} is not installed on the controller: install fence-agents (Debian), or fence-agents-all (EL)"
        ) from None
    if not stat.S_ISREG(status.st_mode) or status.st_uid != 0 or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise NovaliteError(f"{path} is not a program that root alone may write to: install its package anew")
    return path


def _run(argv: list[str], text: str, timeout: float) -> Ended:
    """Run an agent with `text` on its standard input, in an environment without anything of ours. After its time it is
    ended with all that it started: what it left behind might switch the host off after it came back."""
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C", "HOME": "/"}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        argv, stdin=pipe, stdout=pipe, stderr=pipe, env=environment, cwd="/", start_new_session=True
    ) as process:
        try:
            output, errors = process.communicate(text.encode(), timeout)
        except BaseException as error:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                return Ended(None, "", "")
            raise
    return Ended(process.returncode, output.decode(errors="replace"), errors.decode(errors="replace"))


def _last(ended: Ended, timeout: float) -> str:
    if ended.rc is None:
        return f"no answer within {timeout:g} s"
    lines = [line.strip() for line in f"{ended.output}\n{ended.errors}".splitlines()]
    said = [line for line in lines if line and not line.endswith("Please use '-h' for usage")]
    return said[-1][-LAST_WORDS:] if said else f"it ended with {ended.rc} and said nothing"
