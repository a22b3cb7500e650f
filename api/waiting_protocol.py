# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Protocol between the command and the waiting playbook (waiting_playbook.py): a message with open files, an
answer, signals, and how the run ended. A file of its own, since the command imports no more than that."""

from __future__ import annotations

import socket
import struct

MESSAGE = 2**17  # bytes; larger ones are not sent
FILES = 250  # open files; the kernel lets no more through
FOLLOWS, STALE = b"follows", b"stale"  # first answers


def peer(connection: socket.socket) -> tuple[int, int]:
    """Return the process at the other end: its id, and its user's."""
    pid, uid, _gid = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return int(pid), int(uid)
