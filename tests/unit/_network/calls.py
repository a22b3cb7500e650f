# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The modules' functions, called in the namespaces of a test's place by forks of a process that has imported them."""

from __future__ import annotations

import ctypes
import os
import sys

from tests.support.forking import serve
from tests.unit._network.conftest import IMPORTS


def call(pid: int, script: str, argument: str, environment: dict[str, str]) -> None:
    """Run a script where the process is."""
    libc = ctypes.CDLL(None, use_errno=True)
    for namespace in [os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC) for kind in ("mnt", "net")]:
        if libc.setns(namespace, 0):
            raise OSError(ctypes.get_errno(), "setns")
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["-c", argument]
    exec(compile(script, "<call>", "exec"), {"__name__": "__main__"})


if __name__ == "__main__":
    exec(IMPORTS, {})
    serve(call)
