# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Waking the workers when there is something to do, so that nobody waits for a poll.

PostgreSQL: NOTIFY, which it delivers when the transaction is committed. SQLite: a datagram to a socket of each worker
beside the ledger. To wake is no more than a hint: workers look by themselves every second.
"""

from __future__ import annotations

import contextlib
import os
import socket
import typing as t

import sqlalchemy as sa

CHANNEL = "novalite_jobs"
_INFO = "novalite_ring"


def notify(connection: sa.Connection) -> None:
    """Wake the workers of this ledger once the connection's transaction is committed."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"NOTIFY {CHANNEL}")
        return
    path = connection.engine.url.database
    if not path or path == ":memory:":
        return
    # When the connection goes back to its pool: the event "commit" comes before the commit, and who is woken then finds
    # nothing
    connection.info[_INFO] = os.path.dirname(path)
    if not sa.event.contains(connection.engine, "checkin", _ring_at_last):
        sa.event.listen(connection.engine, "checkin", _ring_at_last)


def _ring_at_last(_connection: t.Any, record: t.Any) -> None:
    if home := record.info.pop(_INFO, None):
        ring_sockets(home)


def ring_sockets(home: str) -> None:
    """Send a datagram to every worker that listens in this home. What is left of one that is gone is removed."""
    directory = os.path.join(home, "jobs", "wake")
    try:
        names = os.listdir(directory)
        where = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return
    with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as sender:
        sender.setblocking(False)
        for name in names:
            try:
                # a path of a socket has 107 bytes, and the home's may be longer
                sender.sendto(b"!", f"/proc/self/fd/{where}/{name}")
            except ConnectionRefusedError:
                with contextlib.suppress(OSError):
                    os.unlink(name, dir_fd=where)
            except OSError:  # its buffer is full: it is awake
                continue
    os.close(where)
