# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Calls that may never return, such as those of a file server that is gone, or of a QEMU that hangs."""

from __future__ import annotations

import threading
import typing as t

R = t.TypeVar("R")


class NoAnswerError(Exception):
    """A call did not return in time. Its thread is left behind, and ends with the process."""


def within(seconds: float, call: t.Callable[[], R]) -> R:
    """Return what `call` does, or raise what it raises. Raises NoAnswerError if that takes longer than `seconds`: no
    signal of Python's ends a call into C, so it runs in a thread of its own."""
    results: list[R] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            results.append(call())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not results:
        raise NoAnswerError
    return results[0]
