# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Shares that all compute hosts mount, so that a volume on one can follow its instance."""

from __future__ import annotations

import os
import re
import typing as t

from .._errors import ConflictError, NovaliteError
from .._host.command import run
from .._host.files import read_lines, rewrite
from .._host.locks import locked
from .._json import JsonObject
from .._model.plain_text import is_plain
from . import layout

FSTAB = "/etc/fstab"
MOUNTS = "/proc/self/mountinfo"
MOUNT_TIMEOUT = 60.0  # seconds; a server that does not answer must not hang the play
_ESCAPES = {" ": "\\040", "\t": "\\011", "\n": "\\012", "\\": "\\134"}

Share = t.Mapping[str, str]  # name, source, fstype, options


def ensure_mounted(shares: t.Sequence[Share], state_dir: str, check_mode: bool = False) -> JsonObject:
    """Mount each share at <state_dir>/shares/<name>, now and after the next boot (fstab). Returns `changed` and `diff`.
    Raises NovaliteError, and ConflictError where another file system is mounted already."""
    before, after = {}, {}
    for share in shares:
        path = _path(share, state_dir)
        line = _line(share, path)
        mounted = path in mount_points()
        known = next((entry for entry in read_lines(FSTAB) if _is_of(entry, path)), None)
        if known is not None and _fields(known) != _fields(line) and mounted:
            raise ConflictError(f"{path} is mounted as '{known}' says, not as '{line}': unmount it first")
        if mounted and known is not None:
            continue
        before[path] = known if not mounted else f"{known} (mounted)"
        after[path] = f"{line} (mounted)"
        if check_mode:
            continue
        if not mounted:
            layout.make_searchable(state_dir, os.path.join(state_dir, layout.SHARES), path)
            options = ["-o", share["options"]] if share["options"] else []
            run(["mount", "-t", share["fstype"], *options, "--", share["source"], path], timeout=MOUNT_TIMEOUT)
        with locked("fstab"):  # read again: mounting takes its time, and another run may have added its own
            kept = [entry for entry in read_lines(FSTAB) if not _is_of(entry, path)]
            rewrite(FSTAB, "".join(f"{entry}\n" for entry in [*kept, line]), 0o644)
    return {"changed": bool(after), "diff": {"before": before, "after": after}}


def mount_points() -> set[str]:
    """The paths at which something is mounted."""
    with open(MOUNTS, encoding="utf-8", errors="surrogateescape") as handle:
        return {_plain(_fields(line)[4]) for line in handle}


def _path(share: Share, state_dir: str) -> str:
    name = share["name"]
    if not name or name in (".", "..") or "/" in name or not is_plain(name) or len(name) > 63:
        raise NovaliteError(
            f"share '{name[:70]}' has no plain name: use at most 63 characters, without a slash or control characters"
        )
    return os.path.join(os.path.abspath(state_dir), layout.SHARES, name)


def _line(share: Share, path: str) -> str:
    # _netdev: not before the network; nofail: a host boots without its file server
    options = ",".join(filter(None, [share["options"] or "defaults", "_netdev", "nofail"]))
    return f"{_escaped(share['source'])} {_escaped(path)} {share['fstype']} {options} 0 0"


def _is_of(entry: str, path: str) -> bool:
    """Tell whether this line of fstab(5) says what is mounted at `path`."""
    return not entry.lstrip().startswith("#") and _fields(entry)[1:2] == [_escaped(path)]


def _fields(line: str) -> list[str]:
    """The fields of a line of fstab(5): blanks of other scripts are a part of one."""
    return re.findall(r"[^ \t\n]+", line)


def _escaped(text: str) -> str:
    return "".join(_ESCAPES.get(char, char) for char in text)


def _plain(text: str) -> str:
    for char, escape in _ESCAPES.items():
        text = text.replace(escape, char)
    return text
