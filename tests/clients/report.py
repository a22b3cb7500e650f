# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A list of what passed and what did not, as it happens."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
import typing as t


class Skipped(Exception):
    """A step left out: what it needs did not come about."""


class Report:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.passed = 0
        self.failed: list[str] = []

    @contextlib.contextmanager
    def step(self, part: str, name: str) -> t.Iterator[None]:
        """Run what is within as one step. A failure is taken down, and the part goes on with its next step."""
        began = time.monotonic()
        error: Exception | None = None
        try:
            yield
        except Exception as caught:
            error = caught
        word = "ok    " if error is None else "skip  " if isinstance(error, Skipped) else "FAILED"
        with self._lock:
            if error is None:
                self.passed += 1
            else:
                self.failed.append(f"{part}: {name}")
            print(f"{word} {time.monotonic() - began:6.1f} s  {part:8} {name}", flush=True)
            if error is not None:
                print("\n".join(f"         {line}" for line in str(error).splitlines()[-15:]), flush=True)

    def summary(self) -> int:
        """Print the sum of it, and return the exit status."""
        print(f"{self.passed} passed, {len(self.failed)} failed", flush=True)
        for name in self.failed:
            print(f"  {name}", file=sys.stderr)
        return 1 if self.failed or not self.passed else 0
