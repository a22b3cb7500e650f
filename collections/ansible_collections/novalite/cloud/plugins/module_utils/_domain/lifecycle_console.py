# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The end of what a guest said on its console. All of it is the guest's choice: data, never interpreted."""

from __future__ import annotations

import os
import stat

from .._errors import NovaliteError
from .._host.files import opened

MAX_BYTES = 64 * 1024
ROTATED = ".0"  # virtlogd's newest old file; it begins a new one every 2 MiB


def tail(path: str, lines: int | None = None, max_bytes: int = MAX_BYTES) -> str:
    """The last `lines` lines (None: all) of the log at `path`, of at most `max_bytes` bytes; empty when there is no
    log. What is no UTF-8 becomes U+FFFD; control characters stay. Raises NovaliteError for what is no plain file."""
    data = _end(path, max_bytes)
    if len(data) < max_bytes and (lines is None or data.count(b"\n") < lines):
        data = _end(path + ROTATED, max_bytes - len(data)) + data
    if len(data) == max_bytes:  # it may begin amid a character
        data = data[next((at for at, byte in enumerate(data[:4]) if byte & 0xC0 != 0x80), 0) :]
    text = data.decode(errors="replace")
    if lines is None:
        return text
    kept = text.split("\n")
    if kept[-1] == "":  # the last line has an end
        lines += 1
    return "\n".join(kept[-lines:]) if lines > 0 else ""


def _end(path: str, max_bytes: int) -> bytes:
    try:
        # NONBLOCK: to open a pipe that nobody writes to would wait for ever
        with opened(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK) as fd:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode):
                raise NovaliteError(f"the console log {path} is not a plain file")
            return os.pread(fd, max_bytes, max(0, status.st_size - max_bytes))
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise NovaliteError(f"the console log {path} cannot be read: {error.strerror}") from None
