# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ways of moves that are open on this host: keys, lines of authorized_keys, gates, and what has arrived."""

from __future__ import annotations

import contextlib
import os
import re
import time
import typing as t

from .._disk import layout
from .._errors import NovaliteError
from .._guest import authorized_keys
from .._model.look import MoveWay
from .._transfer import channel

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_IN_RUN_DIR = re.compile(rf"({_UUID.pattern})(?:\.(gate)(?:\.going)?)?")
_ARRIVES = re.compile(rf"/{layout.INCOMING}/({_UUID.pattern})\"")


def find(state_dir: str) -> list[MoveWay]:
    """List all ways that moves have open here, whosever they are. What has arrived for an instance, without a line that
    names its move, has no `id`. Changes nothing."""
    ways: dict[str, MoveWay] = {}
    arriving: dict[str, MoveWay] = {}  # by instance

    def add(move: str, what: str, expired: bool) -> MoveWay:
        way = ways.setdefault(move, {"id": move, "uuid": "", "what": [], "expired": True})
        way["what"] = sorted({*way["what"], what})
        way["expired"] &= expired
        return way

    for name, expired in _in(channel.RUN_DIR):
        if match := _IN_RUN_DIR.fullmatch(name):
            add(match[1], match[2] or "key", expired)
    for line in _lines():
        move = channel.move_of(line)
        if move is not None and _UUID.fullmatch(move):
            way = add(move, "authorized_keys", channel.is_expired(line))
            if instance := _ARRIVES.search(line):
                way["uuid"] = instance[1]
                arriving[instance[1]] = way
    for name, expired in _in(os.path.join(state_dir, layout.INCOMING)):
        if _UUID.fullmatch(name):
            if name not in arriving:
                arriving[name] = ways[name] = {"id": "", "uuid": name, "what": [], "expired": expired}
            arriving[name]["what"].append(layout.INCOMING)
    return [ways[key] for key in sorted(ways)]


def _in(directory: str) -> t.Iterator[tuple[str, bool]]:
    """The names in a directory, and whether that is so old that no key opens anything of it."""
    with contextlib.suppress(FileNotFoundError):
        for entry in os.scandir(directory):
            with contextlib.suppress(FileNotFoundError):
                yield entry.name, time.time() - entry.stat(follow_symlinks=False).st_mtime > channel.LIFETIME


def _lines() -> t.Iterator[str]:
    for login in channel.logins():
        with contextlib.suppress(NovaliteError):  # no such user, or a home that is away
            yield from authorized_keys.lines(login)
