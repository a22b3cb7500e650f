# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Small records of root's that last until the next boot: one JSON object in a file below /run."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import typing as t

from .._errors import NovaliteError
from .._json import JsonMapping, JsonObject
from .own_directory import opened_own, own_entry

RUN_DIR = "/run/novalite"
LARGEST = 4096  # bytes


def read(name: str) -> JsonObject | None:
    """Return the record `name`, None where there is none. Raises NotOwnError for one that is not this user's alone,
    NovaliteError for what is no record."""
    with contextlib.suppress(FileNotFoundError), opened_own(RUN_DIR) as parent:
        return _read(name, parent)
    return None


def replace(name: str, change: t.Callable[[JsonObject | None], JsonMapping]) -> tuple[JsonObject | None, JsonObject]:
    """Have `change` make the record `name` anew of what it was, and return both; those who change it take turns.

    A reader, or a crash, sees the record of before or of after. Raises as read()."""
    with opened_own(RUN_DIR, make=True) as parent:
        fcntl.flock(parent, fcntl.LOCK_EX)
        before = _read(name, parent)
        after = dict(change(before))
        if after != before:
            temporary = f".{name}.{secrets.token_hex(8)}"
            try:
                with own_entry(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, parent) as fd:
                    os.write(fd, json.dumps(after).encode())
                os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
            except BaseException:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(temporary, dir_fd=parent)
                raise
        return before, after


def _read(name: str, parent: int) -> JsonObject | None:
    with contextlib.suppress(FileNotFoundError), own_entry(name, os.O_RDONLY, parent) as fd:
        text = os.read(fd, LARGEST)
        try:
            record = json.loads(text)
        except ValueError:
            record = None
        if not isinstance(record, dict):
            raise NovaliteError(f"{RUN_DIR}/{name} is damaged: remove it, and it is written again")
        return record
    return None
