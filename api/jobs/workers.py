# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Workers: the row, sign of life and bell of each, and those that are gone.

On one machine a lock on a file tells of a worker's end within a moment. Of another machine's worker nothing is known
but that it was silent for a while; that it was wrongly thought dead does no harm, for a run's lock is asked last.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import threading
import time
import uuid

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import clock
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.jobs import worker_rows
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.jobs.waking import CHANNEL

from .options import Options

HEARTBEAT = 2.0  # seconds
LOOK_INTERVAL = 1.0  # seconds
FORGOTTEN_AFTER = 24 * 3600  # seconds


def this_machine() -> str:
    """A name for this boot of this machine: pids and locks on files mean something on no other."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return socket.gethostname()


class Registration:
    """Row and lock of a worker, for as long as its process lives."""

    def __init__(self, options: Options) -> None:
        self.id = str(uuid.uuid4())
        self._path = os.path.join(options.directory, "workers", self.id)
        self._lock = open(self._path, "w")  # noqa: SIM115  # open for as long as the worker lives
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def write(self, connection: Connection) -> None:
        worker_rows.add(
            connection, self.id, machine=this_machine(), hostname=socket.gethostname()[:255], pid=os.getpid()
        )

    def close(self) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self._path)
        self._lock.close()


class Bell:
    """The bell that a worker waits at until somebody rings (the ledger's `jobs/waking.py`)."""

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


def orphans(connection: Connection, options: Options, me: str) -> list[tuple[str, str]]:
    """Runs whose workers are gone, as (run, worker)."""
    machine = this_machine()
    return [
        (row.id, row.worker_id)
        for row in worker_rows.runs_of_others(connection, me)
        if row.machine is None
        or row.stopped_at is not None
        or (
            _is_free(os.path.join(options.directory, "workers", row.worker_id))
            if row.machine == machine
            else row.silent is None or row.silent > options.lost_after
        )
    ]


def forget(connection: Connection, options: Options) -> None:
    """Remove the rows and files of workers that are long gone."""
    worker_rows.forget(connection, clock.before(connection, FORGOTTEN_AFTER))
    then = time.time() - FORGOTTEN_AFTER
    directory = os.path.join(options.directory, "workers")
    for name in os.listdir(directory):
        path = os.path.join(directory, name)
        with contextlib.suppress(OSError):
            if os.stat(path).st_mtime < then and _is_free(path):
                os.unlink(path)


def _is_free(path: str) -> bool:
    """Tell whether nobody holds the lock on a worker's file; a file that is gone was removed by who held it."""
    try:
        with open(path) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return True
    except BlockingIOError:
        return False
    return True
