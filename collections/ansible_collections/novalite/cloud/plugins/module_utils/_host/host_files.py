# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files that a host has from novalite: looked at together, and written together only if all of them can be."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import stat
import typing as t

from .._errors import NovaliteError
from .._json import JsonMapping, JsonObject
from .files import opened, read_text, write_atomically
from .module import Result, compared_each
from .own_directory import make_own

MODE = re.compile(r"0[0-7]{3}")
STATES = ("file", "directory", "link", "absent")
_MODES = {"file": "0644", "directory": "0755"}


@dataclasses.dataclass(frozen=True)
class HostFile:
    """A file as it shall be. `mode` is octal; that of a directory which is there already stays unless it is given."""

    path: str
    state: str = "file"  # of STATES
    content: str | None = None  # of a file
    target: str | None = None  # of a link
    mode: str | None = None


def parse(values: t.Iterable[JsonMapping]) -> list[HostFile]:
    """The module's `files`, checked. Raises NovaliteError that names the offending path."""
    files = [_parse_one(value) for value in values]
    paths = [file.path for file in files]
    if twice := sorted({path for path in paths if paths.count(path) > 1}):
        raise NovaliteError(f"{twice[0]} is given twice: a path has one state")
    return files


def ensure_files(files: t.Sequence[HostFile], check_mode: bool = False) -> Result:
    """Have all `files` as they shall be, in their order, owned by the user that this runs as. Returns `changed`, the
    `diff` by path, and the paths that are other than they were as `written`.

    Raises NovaliteError, and changes nothing, where something of another kind is in the way.
    """
    before = [_look(file) for file in files]
    for file, there in zip(files, before):
        _check(file, there)
    after = [_state_of(file, there) for file, there in zip(files, before)]
    paths = [file.path for file in files]
    changes = {path: new for path, old, new in zip(paths, before, after) if old != new}
    if not check_mode:
        for path, state in changes.items():
            try:
                _write(path, state)
            except OSError as error:
                raise NovaliteError(f"{path} cannot be written: {error.strerror}") from error
    return compared_each(paths, zip(before, after), written=list(changes))


def _parse_one(value: JsonMapping) -> HostFile:
    path, state = str(value["path"]), value.get("state") or "file"
    if not os.path.isabs(path) or os.path.normpath(path) != path:
        raise NovaliteError(f"{path!r}: give the whole path, without '..', '//' or a slash at its end")
    needs = {"file": "content", "link": "target"}.get(state)
    if needs is not None and value.get(needs) is None:
        raise NovaliteError(f"{path}: a {state} has a {needs}")
    mode = value.get("mode")
    if mode is not None and not MODE.fullmatch(mode):
        raise NovaliteError(f"{path}: write the mode {mode!r} with four octal digits, as in '0644'")
    return HostFile(path, state, value.get("content"), value.get("target"), mode)


def _look(file: HostFile) -> JsonObject:
    """The state of what is at the path: links are not followed."""
    try:
        status = os.lstat(file.path)
    except (FileNotFoundError, NotADirectoryError):
        return {"state": "absent"}
    if stat.S_ISLNK(status.st_mode):
        return {"state": "link", "target": os.readlink(file.path)}
    known = {"mode": f"0{stat.S_IMODE(status.st_mode):03o}", "owner": status.st_uid}
    if stat.S_ISDIR(status.st_mode):
        return {"state": "directory", **known}
    if stat.S_ISREG(status.st_mode):
        return {"state": "file", **known, "content": read_text(file.path)}
    return {"state": "neither a file, a directory nor a link"}


def _check(file: HostFile, there: JsonObject) -> None:
    """Raise NovaliteError unless what is `there` may make room."""
    if file.state == "directory" and there["state"] == "link" and os.path.isdir(file.path):
        return  # an operator has it elsewhere
    if there["state"] in ("absent", file.state) or (file.state == "absent" and there["state"] in ("file", "link")):
        return
    raise NovaliteError(
        f"{file.path} is to be {'gone' if file.state == 'absent' else f'a {file.state}'}, and a {there['state']} is in "
        "its place: move that away"
    )


def _state_of(file: HostFile, there: JsonObject) -> JsonObject:
    """The state that `file` shall be in, in the words of _look()."""
    if file.state == "absent":
        return {"state": "absent"}
    if file.state == "link":
        return {"state": "link", "target": file.target}
    if file.state == "directory" and there["state"] != "absent" and (file.mode is None or there["state"] == "link"):
        return there
    known = {"state": file.state, "mode": file.mode or _MODES[file.state], "owner": os.geteuid()}
    return {**known, "content": file.content} if file.state == "file" else known


def _write(path: str, state: JsonObject) -> None:
    """Have at `path` what is described in the words of _look()."""
    if state["state"] == "absent":
        os.unlink(path)
    elif state["state"] == "file":
        write_atomically(path, state["content"], int(state["mode"], 8))
    elif state["state"] == "directory":
        make_own(os.path.dirname(path), 0o755, links=True)
        with contextlib.suppress(FileExistsError):
            os.mkdir(path)
        with opened(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW) as fd:
            os.fchown(fd, state["owner"], os.getegid())
            os.fchmod(fd, int(state["mode"], 8))
    else:
        temporary = f"{path}.new"
        if os.path.islink(temporary):  # a run that was cut off left it
            os.unlink(temporary)
        os.symlink(state["target"], temporary)
        os.replace(temporary, path)
