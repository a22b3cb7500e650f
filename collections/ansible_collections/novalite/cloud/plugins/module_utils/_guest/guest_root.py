# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files inside a guest's root file system, which is hostile: no path leads out of it, only plain files are touched."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import os
import secrets
import stat
import typing as t

from .._disk.syscalls import open_in_root
from .._errors import NovaliteError
from .._host.files import closing

MAX_READ = 1 << 20  # bytes; what is read here are configuration files
SELINUX_LABEL = "security.selinux"

REASONS = {
    errno.ELOOP: "it is a symbolic link, or there are too many on the way",
    errno.ENXIO: "it is not a regular file",
    errno.EACCES: "it is a device",
    errno.EXDEV: "it lies on another file system",
    errno.ENOTDIR: "something on the way is not a directory",
    errno.EISDIR: "it is a directory",
    errno.ENOSPC: "the guest's file system is full",
    errno.EDQUOT: "the guest's file system is full",
    errno.EROFS: "the guest's file system turned read-only: it is damaged",
    errno.EUCLEAN: "the guest's file system is damaged",
    errno.EIO: "the guest's disk cannot be read or written",
}


@dataclasses.dataclass(frozen=True)
class Entry:
    """A file (`data`) or directory (`data` is None) as it is, or as it must become."""

    mode: int
    uid: int = 0
    gid: int = 0
    data: bytes | None = None


class GuestRoot:
    """The tree below one mounted directory. Every path is the guest's, absolute; every error a NovaliteError."""

    def __init__(self, directory: str) -> None:
        self._root = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def __enter__(self) -> GuestRoot:
        return self

    def __exit__(self, *_unused: object) -> None:
        os.close(self._root)

    def read(self, path: str, follow: bool = False) -> Entry | None:
        """The regular file `path`, or None when there is none. With `follow`, a last symbolic link is followed (inside
        the root); without, the file must have one name only, because it is going to be replaced."""
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | (0 if follow else os.O_NOFOLLOW)
        with self._opened(path, flags) as fd:
            if fd is None:
                return None
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode):
                raise _refused(path, "it is not a regular file")
            if not follow and status.st_nlink != 1:
                raise _refused(path, f"it has {status.st_nlink} hard links")
            with os.fdopen(fd, "rb", closefd=False) as handle:
                data = handle.read(MAX_READ + 1)
            if len(data) > MAX_READ:
                raise _refused(path, f"it is larger than {MAX_READ} bytes")
            return Entry(stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid, data)

    def directory(self, path: str) -> Entry | None:
        """The directory `path`, or None when nothing is there."""
        with self._opened(path, os.O_RDONLY | os.O_DIRECTORY) as fd:
            if fd is None:
                return None
            status = os.fstat(fd)
            return Entry(stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid)

    def is_link(self, path: str) -> bool:
        """Tell whether `path` itself is a symbolic link, wherever that leads."""
        with self._opened(path, os.O_PATH | os.O_NOFOLLOW, (FileNotFoundError, NotADirectoryError)) as fd:
            return fd is not None and stat.S_ISLNK(os.fstat(fd).st_mode)

    @contextlib.contextmanager
    def _opened(
        self, path: str, flags: int, absent: tuple[type[OSError], ...] = (FileNotFoundError,)
    ) -> t.Iterator[int | None]:
        """Open `path`; yields its descriptor, or None for what is not there: an `absent` error."""
        with _translated(path), contextlib.ExitStack() as stack:
            fd = None
            with contextlib.suppress(*absent):
                fd = stack.enter_context(closing(open_in_root(self._root, _relative(path), flags)))
            yield fd

    def make_directory(self, path: str, entry: Entry) -> None:
        """Make `path` a directory with this mode and owner; parents that are missing get 0755 root:root."""
        with _translated(path):
            parts = _relative(path).split("/")
            for depth in range(1, len(parts)):
                self._make_one("/".join(parts[:depth]), Entry(0o755), only_if_missing=True)
            self._make_one("/".join(parts), entry, only_if_missing=False)

    def _make_one(self, relative: str, entry: Entry, only_if_missing: bool) -> None:
        parent, _sep, name = relative.rpartition("/")
        with closing(open_in_root(self._root, parent or ".", os.O_RDONLY | os.O_DIRECTORY)) as parent_fd:
            try:
                os.mkdir(name, 0o700, dir_fd=parent_fd)
            except FileExistsError:
                if only_if_missing:
                    return  # a symbolic link to a directory is one too; the next step finds out
            else:
                os.fsync(parent_fd)
        with closing(open_in_root(self._root, relative, os.O_RDONLY | os.O_DIRECTORY)) as fd:
            _set_owner_and_mode(fd, entry)
            os.fsync(fd)

    def write(self, path: str, entry: Entry) -> None:
        """Replace the file `path` (or create it, with its parents) by `entry`.

        A new file takes its place by rename: whatever bears the name now, a link, a FIFO or a device, is never
        opened for writing, and a full file system leaves the old content as it was.
        """
        parent, _sep, name = _relative(path).rpartition("/")
        with _translated(path):
            if parent and self.directory(f"/{parent}") is None:
                self.make_directory(f"/{parent}", Entry(0o755))
            with closing(open_in_root(self._root, parent or ".", os.O_RDONLY | os.O_DIRECTORY)) as parent_fd:
                temporary = f".novalite-{secrets.token_hex(8)}"
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
                try:
                    with os.fdopen(os.open(temporary, flags, 0o600, dir_fd=parent_fd), "wb") as handle:
                        handle.write(entry.data or b"")
                        handle.flush()
                        _set_owner_and_mode(handle.fileno(), entry)
                        self._copy_label(path, handle.fileno())
                        os.fsync(handle.fileno())
                    os.rename(temporary, name, src_dir_fd=parent_fd, dst_dir_fd=parent_fd)
                except BaseException:
                    with contextlib.suppress(OSError):
                        os.unlink(temporary, dir_fd=parent_fd)
                    raise
                os.fsync(parent_fd)

    def _copy_label(self, path: str, target: int) -> None:
        """Keep the SELinux label of the file that is replaced: without one an enforcing guest denies access."""
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
        with contextlib.suppress(OSError), closing(open_in_root(self._root, _relative(path), flags)) as fd:
            os.setxattr(target, SELINUX_LABEL, os.getxattr(fd, SELINUX_LABEL))  # where there is one


def _relative(path: str) -> str:
    """The guest's absolute `path` without its leading slash and empty parts; ".." is refused (CVE-2012-3360)."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if not path.startswith("/") or ".." in parts or "\0" in path or not parts:
        raise NovaliteError(f"'{path}' is not an absolute path to something inside the guest")
    return "/".join(parts)


def _set_owner_and_mode(fd: int, entry: Entry) -> None:
    os.fchown(fd, entry.uid, entry.gid)
    os.fchmod(fd, entry.mode)  # after the owner: chown clears setuid bits


def _refused(path: str, why: str) -> NovaliteError:
    return NovaliteError(f"{path} in the guest is not touched: {why}")


@contextlib.contextmanager
def _translated(path: str) -> t.Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno == errno.ENOENT:
            raise _refused(path, "a symbolic link on the way leads nowhere inside the guest") from error
        raise _refused(path, REASONS.get(error.errno or 0, error.strerror or str(error))) from error
