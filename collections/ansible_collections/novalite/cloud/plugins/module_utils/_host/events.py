# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Events of a trip while it happens: a line of JSON for each, appended to the file of its token (trip.py), and read by
the controller (plugin_utils/_events.py) as it grows.

Lines hold numbers only: which step of the request, times of the monotonic clock, bytes. Nobody waits for them, and
what goes wrong with them does not fail the trip.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
import typing as t

from .own_directory import NotOwnError, opened_own, own_entry

EVERY = 1.0  # seconds between two words on how many bytes there are
OVER = b"\n"  # all that is left of the events when the trip has ended

Sample = t.Callable[[], tuple[int, int]]  # bytes that are done, and of how many (0: nobody knows)


class _Stream:
    """The file that is open in this process, and what is being moved."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.step = 0
        self.began = 0.0
        self.moving: dict[object, Sample] = {}
        self.lock = threading.Lock()
        self.watched = False

    def tell(self, **event: object) -> None:
        line = json.dumps({"step": self.step, "at": round(time.monotonic(), 3), **event})
        with contextlib.suppress(OSError):  # the memory below /run is full
            os.write(self.fd, line.encode() + b"\n")

    def watch(self) -> None:
        """Tell about once a second how far those are that move, until none does."""
        while True:
            time.sleep(EVERY)
            with self.lock:
                moving = list(self.moving.values())
                if not moving:
                    self.watched = False
                    return
            counts = []
            for sample in moving:
                with contextlib.suppress(Exception):  # a file that is not there yet, a guest that is gone
                    counts.append(sample())
            if counts:
                self.tell(done=sum(done for done, _total in counts), total=sum(total for _done, total in counts))


_stream: _Stream | None = None


@contextlib.contextmanager
def kept(directory: str, token: str) -> t.Iterator[None]:
    """Keep the events of the block in the file `token`, which is there, in `directory`, and remove them afterwards.
    Where that cannot be, there are none."""
    global _stream
    with contextlib.ExitStack() as opened:
        try:
            place = opened.enter_context(opened_own(directory))
            fd = opened.enter_context(own_entry(token, os.O_WRONLY | os.O_APPEND, place))
        except (OSError, NotOwnError):
            yield
            return
        _stream = _Stream(fd)
        try:
            yield
        finally:
            _stream = None
            with contextlib.suppress(OSError):
                os.ftruncate(fd, 0)
                os.write(fd, OVER)


def begun(step: int) -> None:
    """Tell that the step of this number in the request begins."""
    if _stream is not None:
        _stream.step, _stream.began = step, time.monotonic()
        _stream.tell(event="begin")


def ended(changed: bool, failed: bool) -> None:
    """Tell how the step ended that had begun."""
    if _stream is not None:
        seconds = round(time.monotonic() - _stream.began, 3)
        _stream.tell(event="end", changed=changed, failed=failed, seconds=seconds)


@contextlib.contextmanager
def moving(sample: Sample) -> t.Iterator[None]:
    """Tell, while the block lasts, how many bytes are done. `sample` is asked in a thread of its own, and may raise
    what it likes. What moves at the same time is summed up."""
    stream = _stream
    if stream is None:
        yield
        return
    key = object()
    with stream.lock:
        stream.moving[key] = sample
        starts, stream.watched = not stream.watched, True
    if starts:
        threading.Thread(target=stream.watch, name="novalite events", daemon=True).start()
    try:
        yield
    finally:
        with stream.lock:
            stream.moving.pop(key, None)


def growing(path: str, total: int) -> t.ContextManager[None]:
    """Tell, while the block lasts, how many bytes of the disk the file `path` takes, of `total`."""
    return moving(lambda: (os.stat(path, follow_symlinks=False).st_blocks * 512, total))


def reading(pid: int, total: int) -> t.ContextManager[None]:
    """Tell, while the block lasts, how many bytes the process `pid` has read, of `total`."""

    def sample() -> tuple[int, int]:
        with open(f"/proc/{pid}/io", encoding="ascii") as file:
            return int(file.readline().split()[1]), total  # rchar

    return moving(sample)


def size_on_disk(path: str) -> int:
    """The bytes that the file `path` takes, 0 where nobody can say."""
    try:
        return os.stat(path).st_blocks * 512
    except OSError:
        return 0
