# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The bell that a worker waits at until somebody rings: see the ledger's `jobs/waking.py`, which does."""

from __future__ import annotations

import contextlib
import os
import socket
import threading

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.jobs.waking import CHANNEL

LOOK_INTERVAL = 1.0  # seconds


class Bell:
    """The bell that a worker waits at: `wait()` returns early when somebody rings."""

    def __init__(self, home: str, name: str, url: str | None) -> None:
        self._rung = threading.Event()
        self._closed = False
        self._path = os.path.join(home, "jobs", "wake", name)
        target, arguments = (self._sockets, ()) if url is None else (self._notifications, (url,))
        threading.Thread(target=target, args=arguments, daemon=True, name="bell").start()

    def wait(self, seconds: float = LOOK_INTERVAL) -> bool:
        """Tell whether it rang since the last call, or does within `seconds`."""
        rung = self._rung.wait(seconds)
        self._rung.clear()
        return rung

    def notify(self) -> None:
        self._rung.set()

    def close(self) -> None:
        self._closed = True
        self._rung.set()
        with contextlib.suppress(OSError):
            os.unlink(self._path)

    def _sockets(self) -> None:
        directory, name = os.path.split(self._path)
        where = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as receiver:
            receiver.bind(f"/proc/self/fd/{where}/{name}")
            while not self._closed:
                receiver.recv(16)
                self._rung.set()

    def _notifications(self, url: str) -> None:
        import psycopg

        while not self._closed:
            try:
                with psycopg.connect(url, autocommit=True, connect_timeout=10) as connection:
                    connection.execute(f"LISTEN {CHANNEL}")
                    self._rung.set()  # what came before is not told
                    while not self._closed:
                        for _note in connection.notifies(timeout=5, stop_after=1):
                            self._rung.set()
            except psycopg.Error:
                threading.Event().wait(LOOK_INTERVAL)
