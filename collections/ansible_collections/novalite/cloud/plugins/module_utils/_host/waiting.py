# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Waiting for what others do, and doing several things at a time."""

from __future__ import annotations

import concurrent.futures
import time
import typing as t

from .._errors import NovaliteError

T = t.TypeVar("T")
R = t.TypeVar("R")


def wait_until(done: t.Callable[[], object], timeout: float, complaint: str, pause: float = 0.02) -> None:
    """Return when `done`, asked every `pause` seconds, is true. Raises NovaliteError after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while not done():
        if time.monotonic() > deadline:
            raise NovaliteError(complaint)
        time.sleep(pause)


def retried(call: t.Callable[[], R], passing: int, timeout: float, pause: float = 0.02) -> R:
    """Return what `call` does; while it raises the OSError `passing`, it is called again, for `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            return call()
        except OSError as error:
            if error.errno != passing or time.monotonic() > deadline:
                raise
        time.sleep(pause)


def in_threads(work: t.Callable[[T], R], items: t.Sequence[T], workers: int = 8) -> list[R]:
    """`[work(item) for item in items]` with up to `workers` threads; the first error is raised after all ended.

    For work that waits on commands and libvirt, not on Python: every item is finished (or failed) on return, so
    that the caller's undo never races a thread that is still building.
    """
    if len(items) <= 1:
        return [work(item) for item in items]
    with concurrent.futures.ThreadPoolExecutor(min(workers, len(items))) as pool:
        return [future.result() for future in [pool.submit(work, item) for item in items]]
