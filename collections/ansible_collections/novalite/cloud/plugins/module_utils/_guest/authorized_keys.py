# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lines of a user's authorized_keys, changed with that user's rights and no more."""

from __future__ import annotations

import contextlib
import os
import pwd
import typing as t

from .._errors import NovaliteError
from .._host import locked, write_atomically

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
    user = account(name)
    with locked("authorized-keys"):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            _answer(writer, user, edit)
        os.close(writer)
        with os.fdopen(reader, encoding="utf-8", errors="replace") as answers:
            answer = answers.read()
        os.waitpid(child, 0)
    if answer not in ("same", "changed"):
        raise NovaliteError(f"the authorized_keys of user '{name}' cannot be changed: {answer or 'no message'}")
    return answer == "changed"


def _answer(writer: int, user: pwd.struct_passwd, edit: Change) -> t.NoReturn:
    try:
        if user.pw_uid != os.geteuid():
            os.setgroups(os.getgrouplist(user.pw_name, user.pw_gid))
            os.setgid(user.pw_gid)
            os.setuid(user.pw_uid)
        answer = "changed" if _change(os.path.join(user.pw_dir, ".ssh", "authorized_keys"), edit) else "same"
    except Exception as error:  # whatever it is: the parent says it
        answer = str(error)
    with contextlib.suppress(OSError):
        os.write(writer, answer.encode())
    os._exit(0)  # never back into the module


def _change(path: str, edit: Change) -> bool:
    before: list[str] = []
    with contextlib.suppress(FileNotFoundError), open(path, encoding="utf-8", errors="surrogateescape") as handle:
        before = handle.read().splitlines()
    after = edit(before)
    if after == before:
        return False
    with contextlib.suppress(FileExistsError):
        os.mkdir(os.path.dirname(path), 0o700)
    text = "".join(f"{line}\n" for line in after)
    write_atomically(path, text.encode("utf-8", "surrogateescape"), 0o600)
    return True
