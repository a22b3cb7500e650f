# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Directories that are this user's alone, root's on a compute host: opened component by component, checked, made.

A directory that somebody else may write to, or has put in its place, or that a link leads to, has root write and
remove where they please (`/run/lock` is 1777 on Debian). Once the whole way is checked, nobody but root can change it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import pwd
import stat
import typing as t

from .._errors import NovaliteError

_MOST_LINKS = 40  # as Linux has it
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY
_SAFE = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK  # a FIFO would be waited for
_PATH = os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW


class NotOwnError(NovaliteError):
    """A directory, or a file in it, is not this user's alone."""


@contextlib.contextmanager
def opened_own(
    path: str, make: bool = False, mode: int = 0o700, links: bool = False, via: t.Collection[int] = ()
) -> t.Iterator[int]:
    """Open the directory `path`; yields its descriptor. With `make` it is made, with this mode, and so are those on the
    way. With `links`, one that root made where only root can is followed: an operator has the state directory there.
    Directories on the way may belong to the users `via` (uids), too.

    Raises NotOwnError, and OSError: FileNotFoundError for what is missing and is not to be made."""
    fd = _walk(os.path.abspath(path), make, mode, links, {0, os.geteuid(), *via})
    try:
        yield fd
    finally:
        os.close(fd)


def make_own(path: str, mode: int = 0o700, links: bool = False, via: t.Collection[int] = ()) -> bool:
    """Have the directory `path`, checked as in opened_own(); returns whether it was missing. One that is there keeps
    its mode. Raises NotOwnError, OSError."""
    missing = not os.path.lexists(path)
    with opened_own(path, True, mode, links, via):
        return missing


def check_own(path: str) -> None:
    """Raise NotOwnError unless the directory `path` is missing, or as opened_own() with `links` takes it."""
    with contextlib.suppress(OSError), opened_own(path, links=True):
        pass


@contextlib.contextmanager
def own_entry(name: str, flags: int, directory: int) -> t.Iterator[int]:
    """Open `name` in `directory`, a file, or a directory with O_DIRECTORY, without following a link; yields its
    descriptor. A file that is made has mode 0600. Raises OSError, and NotOwnError for what somebody else may write to,
    or what is of another kind."""
    try:
        fd = os.open(name, flags | _SAFE, 0o600, dir_fd=directory)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.ENXIO, errno.EISDIR):
            raise _refused(_path_of(directory, name), os.lstat(name, dir_fd=directory)) from error
        raise
    try:
        status = os.fstat(fd)
        is_kind = stat.S_ISDIR if flags & os.O_DIRECTORY else stat.S_ISREG
        if not is_kind(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & _OTHERS_WRITE:
            raise _refused(_path_of(directory, name), status)
        yield fd
    finally:
        os.close(fd)


def _walk(path: str, make: bool, mode: int, links: bool, trusted: t.Collection[int]) -> int:
    """Descriptor of the directory `path`, absolute, after each one on the way was checked to be of `trusted` users."""
    todo = [name for name in path.split("/")[::-1] if name]
    followed = 0
    fd = os.open("/", _PATH | os.O_DIRECTORY)
    try:
        while todo:
            name = todo.pop()
            here = _opened(name, fd, make, 0o755 if todo else mode)
            status = os.fstat(here)
            roots = status.st_uid in (0, os.geteuid()) and not os.fstat(fd).st_mode & _OTHERS_WRITE
            if links and roots and stat.S_ISLNK(status.st_mode):
                target = os.readlink("", dir_fd=here)
                os.close(here)
                followed += 1
                if followed > _MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
                todo += [part for part in target.split("/")[::-1] if part]
                here = os.open("/" if target.startswith("/") else ".", _PATH | os.O_DIRECTORY, dir_fd=fd)
            elif not _may_lead_on(status, trusted) or (not todo and not _is_own(status)):
                where = _path_of(here)
                os.close(here)
                raise _refused(where, status)
            os.close(fd)
            fd = here
        return os.open(".", _DIRECTORY | os.O_CLOEXEC, dir_fd=fd)
    finally:
        os.close(fd)


def _opened(name: str, parent: int, make: bool, mode: int) -> int:
    try:
        return os.open(name, _PATH, dir_fd=parent)
    except FileNotFoundError:
        if not make:
            raise
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=parent)
        with own_entry(name, _DIRECTORY, parent) as made:
            os.fchmod(made, mode)  # mkdir's own mode is cut by the umask
    return os.open(name, _PATH, dir_fd=parent)


def _may_lead_on(status: os.stat_result, trusted: t.Collection[int]) -> bool:
    """Tell whether nobody but `trusted` users can replace what root has in this directory: the sticky bit keeps those
    from that who may write there."""
    shared = status.st_mode & _OTHERS_WRITE and not status.st_mode & stat.S_ISVTX
    return stat.S_ISDIR(status.st_mode) and status.st_uid in trusted and not shared


def _is_own(status: os.stat_result) -> bool:
    return status.st_uid == os.geteuid() and not status.st_mode & _OTHERS_WRITE


def _path_of(fd: int, name: str = "") -> str:
    return os.path.join(os.readlink(f"/proc/self/fd/{fd}"), name).rstrip("/") or "/"


def _refused(path: str, status: os.stat_result) -> NotOwnError:
    user, owner = _name_of(os.geteuid()), _name_of(status.st_uid)
    mode = stat.S_IMODE(status.st_mode)
    if stat.S_ISDIR(status.st_mode):
        remedy = f"only {user} may write where {user} works: look at who made it, then chown {user} and chmod go-w it"
        return NotOwnError(f"{path} belongs to {owner} and has mode {mode:04o}: {remedy}")
    kind = _KINDS.get(stat.S_IFMT(status.st_mode), "no directory")
    if stat.S_ISREG(status.st_mode):
        kind = f"a file (mode {mode:04o})"
    return NotOwnError(f"{path} is {kind} of {owner}, where {user} works: look at who made it, and remove it")


_KINDS = {stat.S_IFLNK: "a link", stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket"}


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"
