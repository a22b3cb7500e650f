# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who works: each worker's row and sign of life, and who is gone.

On one machine a lock on a file tells of a worker's end within a moment. Of another machine's worker nothing is known
but that it was silent for a while; that it was wrongly thought dead does no harm, for a run's lock is asked last.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import time
import uuid

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.jobs import worker_rows

from .options import Options

HEARTBEAT = 2.0  # seconds
FORGOTTEN_AFTER = 24 * 3600  # seconds


def this_machine() -> str:
    """A name for this boot of this machine: pids and locks on files mean something on no other."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return socket.gethostname()


class Registration:
    """One worker's row and lock, for as long as the process lives."""

    def __init__(self, options: Options) -> None:
        self.id = str(uuid.uuid4())
        self._path = os.path.join(options.directory, "workers", self.id)
        self._lock = open(self._path, "w")  # noqa: SIM115
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def write(self, connection: Connection) -> None:
        worker_rows.add(
            connection, self.id, machine=this_machine(), hostname=socket.gethostname()[:255], pid=os.getpid()
        )

    def close(self) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self._path)
        self._lock.close()


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
    then = time.time() - FORGOTTEN_AFTER
    worker_rows.forget(connection, then)
    directory = os.path.join(options.directory, "workers")
    for name in os.listdir(directory):
        path = os.path.join(directory, name)
        with contextlib.suppress(OSError):
            if os.stat(path).st_mtime < then and _is_free(path):
                os.unlink(path)


def _is_free(path: str) -> bool:
    """Whether nobody holds the lock on a worker's file; a file that is gone was removed by who held it."""
    try:
        with open(path) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return True
    except BlockingIOError:
        return False
    return True
