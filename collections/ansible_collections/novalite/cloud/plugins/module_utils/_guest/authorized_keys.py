# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lines of a user's authorized_keys, changed with that user's rights and no more."""

from __future__ import annotations

import contextlib
import functools
import os
import pwd
import typing as t

from .._errors import NovaliteError
from .._host.files import read_lines, rewrite
from .._host.locks import locked

_DONE = "+"  # begins the answer of a child process that could do its work
Change = t.Callable[["list[str]"], "list[str]"]


def account(name: str) -> pwd.struct_passwd:
    """The account `name` of this host. Raises NovaliteError."""
    try:
        return pwd.getpwnam(name)
    except KeyError:
        raise NovaliteError(f"this host has no user '{name}'") from None


def change(name: str, edit: Change) -> bool:
    """Replace the lines of the user's ~/.ssh/authorized_keys by `edit(lines)`; returns whether they differ. In a child
    process that is the user: root would follow a symbolic link there to any file of the host. Raises NovaliteError."""
    with locked("authorized-keys"):
        return bool(_as_user(name, functools.partial(_change, edit=edit)))


def lines(name: str) -> list[str]:
    """The lines of the user's file, read likewise. Raises NovaliteError."""
    return _as_user(name, lambda path: "".join(f"{line}\n" for line in read_lines(path))).splitlines()


def _as_user(name: str, work: t.Callable[[str], str]) -> str:
    """Return what `work` makes of the path of the user's file, in a child process that is the user."""
    user = account(name)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        _answer(writer, user, work)
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8", errors="surrogateescape") as answers:
        verdict, answer = answers.read(1), answers.read()
    os.waitpid(child, 0)
    if verdict != _DONE:
        raise NovaliteError(f"the authorized_keys of user '{name}' cannot be used: {answer or 'no message'}")
    return answer


def _answer(writer: int, user: pwd.struct_passwd, work: t.Callable[[str], str]) -> t.NoReturn:
    try:
        if user.pw_uid != os.geteuid():
            os.setgroups(os.getgrouplist(user.pw_name, user.pw_gid))
            os.setgid(user.pw_gid)
            os.setuid(user.pw_uid)
        answer = _DONE + work(os.path.join(user.pw_dir, ".ssh", "authorized_keys"))
    except Exception as error:  # whatever it is: the parent says it
        answer = f"-{error}"
    with contextlib.suppress(OSError), os.fdopen(writer, "wb") as handle:
        handle.write(answer.encode("utf-8", "surrogateescape"))
    os._exit(0)  # never back into the module


def _change(path: str, edit: Change) -> str:
    """Returns something where the lines differ, nothing where they do not."""
    before = read_lines(path)
    after = edit(before)
    if after == before:
        return ""
    with contextlib.suppress(FileExistsError):
        os.mkdir(os.path.dirname(path), 0o700)
    rewrite(path, "".join(f"{line}\n" for line in after), 0o600)
    return "changed"
