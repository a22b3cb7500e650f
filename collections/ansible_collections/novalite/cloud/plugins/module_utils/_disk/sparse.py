# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files with holes: copied as they are, made larger, and wiped where they hold something."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import hashlib
import os
import stat
import typing as t

from .._errors import NovaliteError
from .._host import events
from .._host.confined import ANY_SIZE, Limits, run_bounded
from .._host.files import closing, opened

FICLONE = 0x40049409  # linux/fs.h; share the blocks of a file on XFS and Btrfs
FALLOC_FL_KEEP_SIZE = 0x1
FALLOC_FL_PUNCH_HOLE = 0x2
CHUNK = 1 << 20
WIPES = ("none", "discard", "zero")

_libc = ctypes.CDLL(None, use_errno=True)


def copy_file(source: str, target: str, mode: int) -> None:
    """Copy `source` to `target`, which must not exist; holes stay holes. On the disk (fsync) on return.

    A copy, not a hard link: libvirt's DAC driver changes the owner of the files a guest opens, and would change that
    of the cache and of every other instance with it. Raises OSError.
    """
    with open(source, "rb") as reader, open(target, "xb") as writer:
        os.fchmod(writer.fileno(), 0o600)
        try:
            fcntl.ioctl(writer.fileno(), FICLONE, reader.fileno())
        except OSError:  # another file system, or one that cannot share blocks
            with events.growing(target, events.size_on_disk(source)):
                for start, end in data_of(reader.fileno()):
                    _fill(writer.fileno(), start, end, lambda length, at: os.pread(reader.fileno(), length, at))
            writer.truncate(os.fstat(reader.fileno()).st_size)
        os.fchmod(writer.fileno(), mode)
        os.fsync(writer.fileno())


def data_of(fd: int) -> t.Iterator[tuple[int, int]]:
    """Start and end of each part of a file that is no hole."""
    end, size = 0, os.fstat(fd).st_size
    while end < size:
        try:
            start = os.lseek(fd, end, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # nothing but a hole up to the end
                return
            raise
        end = os.lseek(fd, start, os.SEEK_HOLE)
        yield start, end


def sha256_of(fd: int, report: t.Callable[[int], object] = lambda _done: None) -> str:
    """The SHA-256 of a file in hexadecimal. Holes are not read. `report` is told the bytes that were gone through."""
    digest, done, size = hashlib.sha256(), 0, os.fstat(fd).st_size
    zeros = memoryview(bytes(CHUNK))
    for start, end in (*data_of(fd), (size, size)):
        os.lseek(fd, start, os.SEEK_SET)
        while done < end:
            chunk = zeros[: start - done] if done < start else os.read(fd, min(CHUNK, end - done))
            if not chunk:  # it was cut meanwhile
                return digest.hexdigest()
            digest.update(chunk)
            done += len(chunk)
            report(done)
    return digest.hexdigest()


def _fill(fd: int, start: int, end: int, read: t.Callable[[int, int], bytes]) -> None:
    """Write from `start` to `end` what `read(length, offset)` returns, a CHUNK at most at a time, to its end."""
    while start < end and (chunk := read(min(CHUNK, end - start), start)):
        start += os.pwrite(fd, chunk, start)


def allocate(path: str, size: int) -> None:
    """Reserve room for the first `size` bytes of a file, as Nova's `fallocate -n`: its length stays. Raises
    NovaliteError."""
    try:
        with opened(path, os.O_RDWR | os.O_NOFOLLOW) as fd:
            _fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, size)
    except OSError as error:
        raise NovaliteError(
            f"no room of {size} bytes can be reserved for {path}: {error.strerror}; "
            "use preallocation none, or another host"
        ) from error


def resize(path: str, disk_format: str, size: int) -> None:
    """Make a disk in a file `size` bytes large. Raises CommandError."""
    argv = ["qemu-img", "resize", "-q", "-f", disk_format, path, str(size)]
    run_bounded(argv, limits=Limits(file_size=ANY_SIZE), timeout=600)


def wipe_file(path: str, how: str) -> None:
    """Make what a regular file holds unreadable before it is removed (CVE-2012-5625); anything else is left alone.

    "zero" overwrites every byte that was ever written, "discard" gives the blocks back to the file system, and so to a
    device that is mounted with discard. Raises NovaliteError; the file is still there then.
    """
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR, errno.ENOENT):
            return
        raise NovaliteError(f"{path} cannot be wiped: {error.strerror}; it was not removed") from error
    try:
        with closing(fd):
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                return
            for start, end in list(data_of(fd)):
                if how == "discard":
                    _fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, start, end - start)
                else:
                    _fill(fd, start, end, lambda length, _at: bytes(length))
            os.fsync(fd)
    except OSError as error:
        raise NovaliteError(f"{path} cannot be wiped ({how}): {error.strerror}; it was not removed") from error


def _fallocate(fd: int, mode: int, offset: int, length: int) -> None:
    # os.posix_fallocate knows no modes
    if _libc.fallocate(fd, mode, ctypes.c_int64(offset), ctypes.c_int64(length)):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def check_wipe(wipe: str) -> None:
    """Raise NovaliteError for what is none of WIPES."""
    if wipe not in WIPES:
        raise NovaliteError(f"wipe '{wipe}' is none of {', '.join(WIPES)}")


def wipe_files(how: str, directory: str) -> None:
    """wipe_file() for all files in `directory` and below."""
    for parent, _directories, names in os.walk(directory):
        for name in names:
            wipe_file(os.path.join(parent, name), how)
