# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""API servers and workers, forked from a process that has imported what they are: to import it takes most of a second,
and of a worker more than one. The commands themselves are started by tests/api/test_chaos.py."""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import typing as t

from api import API

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODULES = {
    "api": ("api.__main__", "api.server", *(f"api.{name}" for name in API)),
    "api.jobs": ("api.jobs.__main__", "api.jobs.worker"),
}


class Process:
    """One that was started, as subprocess.Popen has it."""

    def __init__(self, forking: Forking, pid: int) -> None:
        self.pid, self.returncode = pid, t.cast("int | None", None)
        self._forking = forking

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode = self._forking.ask("status", self.pid)
        return self.returncode

    def wait(self, timeout: float) -> int:
        deadline = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(str(self.pid), timeout)
            time.sleep(0.02)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(9)


class Forking:
    def __init__(self, module: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", __name__, module],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        atexit.register(self.end)

    def ask(self, *request: t.Any) -> t.Any:
        assert self._process.stdin is not None and self._process.stdout is not None
        print(json.dumps(request), file=self._process.stdin, flush=True)
        return json.loads(self._process.stdout.readline())

    def start(self, words: t.Sequence[str], environment: t.Mapping[str, str], log: pathlib.Path) -> Process:
        """Run the module with these words, in a session of its own; what it says is added to `log`."""
        log.touch()
        return Process(self, self.ask("start", [*words], {**environment}, str(log)))

    def end(self) -> None:
        with self._process as process:  # waits
            process.terminate()


_forking: dict[str, Forking] = {}


def start(module: str, *words: str, environment: t.Mapping[str, str], log: pathlib.Path) -> Process:
    """Start `python -m module words`."""
    if module not in _forking:
        _forking[module] = Forking(module)
    return _forking[module].start(words, environment, log)


def become(main: t.Callable[[], int], words: list[str], environment: dict[str, str], log: str) -> t.NoReturn:
    os.setsid()
    opened = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for number, file in enumerate((os.open(os.devnull, os.O_RDONLY), opened, opened)):
        os.dup2(file, number)
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None  # TMPDIR is read anew
    sys.argv[1:] = words
    sys.exit(main())


def serve(module: str) -> None:
    for name in MODULES[module]:
        importlib.import_module(name)
    gc.freeze()
    for line in sys.stdin:
        what, *request = json.loads(line)
        answer: int | None
        if what == "start":
            answer = os.fork()
            if answer == 0:
                become(importlib.import_module(MODULES[module][0]).main, *request)
        else:
            known, status = os.waitpid(request[0], os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if known else None
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    serve(sys.argv[1])
