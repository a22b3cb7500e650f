# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""API servers and workers as a machine's init runs them: what dies is started again. And who of them may be killed."""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time
import typing as t

RESTART = 0.5  # seconds between an end and the next start
STOP_PATIENCE = 300.0  # seconds


class Service:
    """One process, started again when it ends."""

    def __init__(
        self, name: str, command: t.Sequence[str], environment: t.Mapping[str, str], log: pathlib.Path
    ) -> None:
        self.name = name
        self._command, self._environment, self._log = list(command), dict(environment), log
        self._process: subprocess.Popen[bytes] | None = None
        self._next = 0.0
        self.ends: list[int] = []  # how it ended, each time

    def keep(self) -> None:
        """Start it when it is not there."""
        if self._process is not None and self._process.poll() is not None:
            self.ends.append(self._process.returncode)
            self._process, self._next = None, time.monotonic() + RESTART
        if self._process is None and time.monotonic() >= self._next:
            with self._log.open("ab") as log:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "api", *self._command],
                    env=self._environment,
                    cwd=self._environment["PWD"],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                )

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def ask_to_stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)

    def stop(self) -> None:
        self.ask_to_stop()
        if self._process is None:
            return
        try:
            self._process.wait(STOP_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class Victims:
    """The processes that may be killed, by what they are."""

    def __init__(self, services: t.Sequence[Service], supervisors: t.Callable[[], t.Iterable[int]]) -> None:
        self._services, self._supervisors = services, supervisors

    def find(self) -> dict[str, list[int]]:
        pids_by_kind: dict[str, list[int]] = {"arbiter": [], "api": [], "worker": [], "supervisor": []}
        children = _children()
        for service in self._services:
            if (pid := service.pid) is None:
                continue
            if service.name.startswith("worker"):
                pids_by_kind["worker"].append(pid)
                continue
            pids_by_kind["arbiter"].append(pid)
            for child in children.get(pid, ()):
                pids_by_kind["worker" if b"api.jobs" in command(child) else "api"].append(child)
        # a number may belong to somebody else by now
        pids_by_kind["supervisor"] = [pid for pid in self._supervisors() if b"supervisor.py" in command(pid)]
        return {what: pids for what, pids in pids_by_kind.items() if pids}


def command(pid: int) -> bytes:
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _children() -> dict[int, list[int]]:
    pids_by_parent: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError):
                stat = pathlib.Path(f"/proc/{name}/stat").read_text()
                pids_by_parent.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(name))
    return pids_by_parent
