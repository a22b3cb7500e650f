# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A process that has imported what tests need, and is forked for each thing that a test has it do: to start Python and
to import takes most of the time of a short command, and nothing that a fork does stays for the next one."""

from __future__ import annotations

import atexit
import collections.abc as c
import gc
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import typing as t

from tests.support.patience import GENEROUS

ROOT = pathlib.Path(__file__).parents[2]


class Forking:
    """The process, as a test sees it: a module that calls `serve()` when it is run."""

    def __init__(self, module: str, directory: pathlib.Path = ROOT, environment: c.Mapping[str, str] = os.environ):
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=directory,
            env=dict(environment),
        )
        atexit.register(self.end)

    def ask(self, *request: t.Any) -> subprocess.CompletedProcess[str]:
        """Have a fork do what is asked for; return its code and what it wrote."""
        assert self._process.stdin is not None and self._process.stdout is not None
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
            outputs = [f"/proc/{os.getpid()}/fd/{file.fileno()}" for file in (out, errors)]
            deadline = threading.Timer(GENEROUS, self._process.kill)
            deadline.start()
            print(json.dumps([outputs, request]), file=self._process.stdin, flush=True)
            code = self._process.stdout.readline()
            deadline.cancel()
            out.seek(0)
            errors.seek(0)
            done = subprocess.CompletedProcess(request, int(code or -9), out.read(), errors.read())
        assert code, f"{request} did not end: {done.stdout}{done.stderr}"
        return done

    def end(self) -> None:
        # by a signal: somebody else's fork may still hold the other end of its input
        with self._process as process:  # waits
            process.terminate()


def serve(act: c.Callable[..., None]) -> None:
    """Do what standard input asks for, a line each, in a fork each."""
    gc.freeze()
    for line in sys.stdin:
        outputs, request = json.loads(line)
        pid = os.fork()
        if pid == 0:
            for number, path in enumerate(("/dev/null", *outputs)):
                opened = os.open(path, os.O_RDWR)
                os.dup2(opened, number)
                os.close(opened)
            act(*request)
            sys.exit()
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
