# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A run's supervisor, as its worker sees it: started ahead, told what to run, listened to."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import queue
import subprocess
import sys
import threading

from ansible_collections.novalite.cloud.plugins.module_utils._json import JsonObject

from . import supervisor

# What the supervisor itself needs; the playbook's environment is handed over with the run
ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "VIRTUAL_ENV", "PGPASSFILE", "PGSSLROOTCERT")


class Child:
    """Supervisor process, whose playbook waits for a run. The pipe to it is its life line: it ends its run when this
    process ends."""

    def __init__(self, ahead: supervisor.Ahead) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-s", supervisor.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # a Ctrl-C in the terminal is the worker's to act on
            env={name: os.environ[name] for name in ENVIRONMENT if name in os.environ},
        )
        self._messages: queue.SimpleQueue[JsonObject | None] = queue.SimpleQueue()
        self._sending = threading.Lock()
        threading.Thread(target=self._listen, daemon=True, name="supervisor").start()
        self.send({"ahead": dataclasses.asdict(ahead)})

    def send(self, message: JsonObject) -> None:
        """Nothing happens when it is gone: that is noticed by who listens."""
        with self._sending, contextlib.suppress(OSError, ValueError):
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()

    def receive(self, timeout: float) -> JsonObject | None:
        """The next message; None when there is none within `timeout` seconds. Raises EOFError when it is gone."""
        try:
            message = self._messages.get(timeout=timeout)
        except queue.Empty:
            return None
        if message is None:
            self._messages.put(None)
            raise EOFError
        return message

    def alive(self) -> bool:
        return self._process.poll() is None

    def cancel(self) -> None:
        self.send({"cancel": True})

    def close(self) -> None:
        """Let it go: it ends when it has nothing to do any more."""
        with self._sending, contextlib.suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        self._process.wait()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines, contextlib.suppress(ValueError):  # cut off in the middle of a line
            for line in lines:
                self._messages.put(json.loads(line))
        self._messages.put(None)


class Supervisors:
    """Keeps one supervisor waiting, so that a run does not wait for one to start."""

    def __init__(self, ahead: supervisor.Ahead) -> None:
        self._ahead = ahead
        self._lock = threading.Lock()
        self._waiting: Child | None = None

    def take(self) -> Child:
        with self._lock:
            child, self._waiting = self._waiting, None
        return child if child is not None and child.alive() else Child(self._ahead)

    def refill(self) -> None:
        with self._lock:
            if self._waiting is None or not self._waiting.alive():
                self._waiting = Child(self._ahead)

    def close(self) -> None:
        with self._lock:
            if self._waiting is not None:
                self._waiting.close()
                self._waiting = None
