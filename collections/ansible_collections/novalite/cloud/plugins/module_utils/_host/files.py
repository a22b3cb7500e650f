# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files of a host or of the controller: read, written whole, removed; and where an instance's are."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import time
import typing as t

from .._errors import NovaliteError

STATE_DIR = "/var/lib/novalite"  # on a compute host: _base/ (image cache) and instances/<uuid>/
INSTANCES = "instances"  # in the state directory
_UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def read_text(path: str) -> str | None:
    """The text of a file; None where there is none, or it cannot be read."""
    with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as handle:
        return handle.read()
    return None


def read_bytes(path: str) -> bytes | None:
    """The content of a file; None where there is none, or it cannot be read."""
    with contextlib.suppress(OSError), open(path, "rb") as handle:
        return handle.read()
    return None


def write_atomically(
    path: str, data: str | bytes, mode: int = 0o644, prepare: t.Callable[[int], None] = lambda _fd: None
) -> None:
    """Replace `path` by `data` so that a reader, or a crash, sees the old or the new content, never a part. `prepare`
    is called with the new file's descriptor before it has its mode, and its name."""
    import tempfile  # a command that only looks does without, and without the random numbers that it takes

    directory = os.path.dirname(path)
    fd, temporary = tempfile.mkstemp(prefix=f".{os.path.basename(path)}.", dir=directory)
    try:
        with os.fdopen(fd, "wb") as handle:
            handle.write(data.encode() if isinstance(data, str) else data)
            prepare(handle.fileno())
            os.fchmod(handle.fileno(), mode)
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def write_less(path: str, text: str) -> None:
    """Replace the content of `path` as write_atomically() does; where the file system is full, in its place if it is
    not longer than before: who makes room, by removing a guest, takes its lines out of such files first."""
    try:
        write_atomically(path, text)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        data = text.encode()
        with opened(path, os.O_WRONLY | os.O_NOFOLLOW) as fd:
            if len(data) > os.fstat(fd).st_size:
                raise
            os.pwrite(fd, data, 0)
            os.ftruncate(fd, len(data))
            os.fsync(fd)


def rewrite(path: str, text: str, mode: int) -> None:
    """Replace the content of a file that is others', too, as write_atomically() does. It keeps its owner, its mode and
    its attributes, as far as the caller may give them, and a link to it stays one; a new file gets `mode`. What was no
    UTF-8 when read_lines() read it is written as it was. Raises OSError."""
    path = os.path.realpath(path)
    data = text.encode("utf-8", "surrogateescape")
    try:
        status = os.stat(path)
    except FileNotFoundError:
        write_atomically(path, data, mode)
        return

    def like_before(fd: int) -> None:
        made = os.fstat(fd)
        if (made.st_uid, made.st_gid) != (status.st_uid, status.st_gid):
            with contextlib.suppress(PermissionError):  # of a user's file that is root's, or another group's
                os.fchown(fd, status.st_uid, status.st_gid)
        names: list[str] = []
        with contextlib.suppress(OSError):  # not all file systems have attributes
            names = os.listxattr(path)
        for name in names:
            with contextlib.suppress(OSError):  # a label that this user may not give is the directory's
                os.setxattr(fd, name, os.getxattr(path, name))

    write_atomically(path, data, stat.S_IMODE(status.st_mode), like_before)


def read_lines(path: str) -> list[str]:
    """The lines of a file of others, without their ends; none where there is no file. Raises OSError."""
    with (
        contextlib.suppress(FileNotFoundError),
        open(path, encoding="utf-8", errors="surrogateescape", newline="\n") as handle,
    ):
        return [line.removesuffix("\n") for line in handle]
    return []


@contextlib.contextmanager
def closing(fd: int) -> t.Iterator[int]:
    """Close the descriptor `fd`, which it yields, at the end."""
    try:
        yield fd
    finally:
        os.close(fd)


def opened(path: str, flags: int = os.O_RDONLY) -> t.ContextManager[int]:
    """Open `path`, with mode 0600 if it is made; yields its descriptor, which no program inherits."""
    return closing(os.open(path, flags | os.O_CLOEXEC, 0o600))


def sync(path: str, mode: int | None = None) -> None:
    """Return when the file, or directory, `path` is on the disk, with this `mode` if there is one."""
    with opened(path) as fd:
        if mode is not None:
            os.fchmod(fd, mode)
        os.fsync(fd)


def remove_file(path: str) -> None:
    """Remove the file `path`, if it is there."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def remove_stale(directory: str, seconds: float, prefix: str) -> None:
    """Remove the files in `directory` with this `prefix` that nobody has written to for so long: what else is there may
    be kept for years as it is."""
    for name in os.listdir(directory):
        path = os.path.join(directory, name)
        with contextlib.suppress(OSError):
            if name.startswith(prefix) and time.time() - os.lstat(path).st_mtime > seconds:
                os.unlink(path)


def make_private(path: str) -> None:
    """Make the file `path` anew, empty, and nobody's but ours from the start."""
    remove_file(path)
    with opened(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL):
        pass


def instance_dir(state_dir: str, uuid: str) -> str:
    """The directory of the instance `uuid`; whatever is not a plain UUID is refused, so no path can leave it."""
    if not is_uuid(uuid):
        raise NovaliteError(f"'{uuid}' is not the UUID of an instance")
    return os.path.join(state_dir, INSTANCES, uuid)


def is_uuid(text: str) -> bool:
    """Tell whether `text` is a UUID, in lower case with its four dashes."""
    return _UUID.fullmatch(text) is not None
