# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""QEMU's programs as children that cannot outlive the run that started them."""

from __future__ import annotations

import os
import subprocess
import typing as t

from .._errors import NovaliteError

STOP_TIMEOUT = 30.0  # seconds
ERRORS = "daemon.stderr"


class DaemonError(NovaliteError):
    """What the program said before it ended."""


def start(argv: t.Sequence[str], work: str) -> subprocess.Popen[bytes]:
    """Start `argv` as a child of the calling thread; it is killed when that thread or the process dies.

    Its messages go to a file in the directory `work`. setpriv sets PR_SET_PDEATHSIG: preexec_fn would run Python
    between fork and exec in a process that has threads.
    """
    with open(os.path.join(work, ERRORS), "wb") as errors:
        try:
            return subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "--", *argv], stdin=subprocess.DEVNULL,
                                    stdout=errors, stderr=errors, env={**os.environ, "LC_ALL": "C"})
        except FileNotFoundError:
            raise NovaliteError("setpriv is not installed on this host (package util-linux)") from None


def stop(daemon: subprocess.Popen[bytes], work: str) -> None:
    """Terminate and reap `daemon`. Raises DaemonError when it had failed or does not end."""
    if daemon.poll() is None:
        daemon.terminate()
        try:
            daemon.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()
    if daemon.returncode != 0:
        with open(os.path.join(work, ERRORS), encoding="utf-8", errors="replace") as handle:
            said = "; ".join(line.strip() for line in handle if line.strip())
        if 'Failed to get "write" lock' in said or 'Failed to get shared "write" lock' in said:
            # QEMU's image locking protects a running guest; it is never switched off here.
            raise DaemonError("its disk is in use: the guest runs; stop it first")
        raise DaemonError(f"QEMU's program ended with {daemon.returncode}: {said or 'no message'}")
