# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
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
import typing as t
import uuid

import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_jobs import run, worker

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
        self._directory = os.path.join(options.directory, "workers")
        self._path = os.path.join(self._directory, self.id)
        self._lock = open(self._path, "w")  # noqa: SIM115
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def write(self, connection: sa.Connection) -> None:
        now = time.time()
        connection.execute(
            sa.insert(worker).values(
                id=self.id,
                machine=this_machine(),
                hostname=socket.gethostname()[:255],
                pid=os.getpid(),
                started_at=now,
                seen_at=_clock(connection),
            )
        )

    def beat(self, connection: sa.Connection) -> None:
        connection.execute(sa.update(worker).where(worker.c.id == self.id).values(seen_at=_clock(connection)))

    def stop(self, connection: sa.Connection) -> None:
        connection.execute(sa.update(worker).where(worker.c.id == self.id).values(stopped_at=time.time()))

    def close(self) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self._path)
        self._lock.close()


def orphans(connection: sa.Connection, options: Options, me: str) -> list[tuple[str, str]]:
    """Runs whose workers are gone, as (run, worker)."""
    rows = connection.execute(
        sa.select(run.c.id, run.c.worker_id, worker.c.machine, worker.c.seen_at, worker.c.stopped_at)
        .outerjoin(worker, worker.c.id == run.c.worker_id)
        .where(run.c.state == "running", run.c.worker_id != me)
    ).all()
    if not rows:
        return []
    now, machine = connection.execute(sa.select(_clock(connection))).scalar_one(), this_machine()
    return [
        (row.id, row.worker_id)
        for row in rows
        if row.machine is None
        or row.stopped_at is not None
        or (
            _is_free(os.path.join(options.directory, "workers", row.worker_id))
            if row.machine == machine
            else now - row.seen_at > options.lost_after
        )
    ]


def take_over(connection: sa.Connection, run_id: str, of: str, me: str) -> bool:
    """Take a run that its worker left; False when another worker was first."""
    return bool(
        connection.execute(
            sa.update(run)
            .where(run.c.id == run_id, run.c.worker_id == of, run.c.state == "running")
            .values(worker_id=me)
        ).rowcount
    )


def forget(connection: sa.Connection, options: Options) -> None:
    """Remove the rows and files of workers that are long gone."""
    then = time.time() - FORGOTTEN_AFTER
    busy = sa.select(run.c.worker_id).where(run.c.state == "running")
    connection.execute(sa.delete(worker).where(worker.c.seen_at < then, worker.c.id.not_in(busy)))
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


def _clock(connection: sa.Connection) -> t.Any:
    """Now, by a clock that all workers share."""
    if connection.dialect.name == "postgresql":
        return sa.func.extract("epoch", sa.func.clock_timestamp())
    return sa.literal(time.time())
