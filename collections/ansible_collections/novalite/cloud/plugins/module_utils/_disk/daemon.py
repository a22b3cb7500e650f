# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Programs as children that end with the run that started them, and what is left of a run that was killed."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import time
import typing as t

from .._errors import NovaliteError
from .._host.confined import ANY_SIZE, Limits, bounded
from .._host.files import closing
from .._host.waiting import wait_until

STOP_TIMEOUT = 30.0  # seconds
TERMINATE_EVERY = 0.3
PROGRAMS = (b"qemu-storage-daemon", b"qemu-nbd")
ERRORS = "daemon.stderr"
# of what serves one disk: it has threads, of which each reserves address space
DAEMON_LIMITS = Limits(memory=4 << 30, cpu=600, file_size=ANY_SIZE)


class DaemonError(NovaliteError):
    """A program of QEMU ended with an error, or does not end."""


class DiskInUseError(DaemonError):
    """Another process has the disk open; QEMU's image locking is never switched off here."""


def start(argv: t.Sequence[str], work: str, limits: Limits | None = None) -> subprocess.Popen[bytes]:
    """Start `argv` as a child of the calling thread, killed when that thread or the process dies; its messages go to a
    file in the directory `work`.

    setpriv sets PR_SET_PDEATHSIG: preexec_fn would run Python between fork and exec in a process that has threads. With
    `limits` it keeps to these, and has of root's capabilities those that attaching a disk needs.
    """
    dying = ["--pdeathsig", "KILL"]
    before = ["setpriv", *dying, "--"]
    if limits is not None:
        before = bounded(limits, "sys_admin", "dac_override", options=dying)
    with open(os.path.join(work, ERRORS), "wb") as errors:
        try:
            return subprocess.Popen(
                [*before, *argv],
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                env={**os.environ, "LC_ALL": "C"},
            )
        except FileNotFoundError:
            raise NovaliteError("setpriv is not installed on this host (package util-linux)") from None


def wait_ready(
    daemon: subprocess.Popen[bytes], is_ready: t.Callable[[], bool], timeout: float, complaint: str, pause: float = 0.02
) -> None:
    """Return when `daemon` is ready. Raises NovaliteError when it ends before, or after `timeout` seconds."""
    wait_until(lambda: is_ready() or daemon.poll() is not None, timeout, f"{complaint} within {timeout:g} s", pause)
    if daemon.poll() is not None:
        raise NovaliteError(f"{complaint}: its program ended")  # stop() says why


def stop(daemon: subprocess.Popen[bytes], work: str) -> None:
    """Terminate and reap `daemon`. Raises DaemonError when it had failed or does not end."""
    end(daemon)
    if daemon.returncode != 0:
        message = error_output(work)
        if 'Failed to get "write" lock' in message or 'Failed to get shared "write" lock' in message:
            raise DiskInUseError("its disk is in use: the guest runs; stop it first")
        raise DaemonError(f"QEMU's program ended with {daemon.returncode}: {message or 'no message'}")


def end(daemon: subprocess.Popen[bytes]) -> None:
    """Terminate and reap `daemon`, however it ends."""
    if daemon.poll() is None and not _terminated(daemon):
        daemon.kill()
        daemon.wait()


def error_output(work: str) -> str:
    """Return the errors that a program started with `work` has printed, in one line."""
    with open(os.path.join(work, ERRORS), encoding="utf-8", errors="replace") as handle:
        return "; ".join(line.strip() for line in handle if line.strip())


def _terminated(daemon: subprocess.Popen[bytes]) -> bool:
    """Terminate `daemon`, our child; tell whether it ends within STOP_TIMEOUT (seconds).

    It is asked again and again: QEMU 7.2's qemu-storage-daemon looks whether it was asked, and then waits for ever for
    something to happen. A signal between the two is lost, once in a thousand times on a busy host.
    """
    deadline = time.monotonic() + STOP_TIMEOUT
    with closing(os.pidfd_open(daemon.pid)) as pidfd:
        while time.monotonic() < deadline:
            daemon.terminate()
            if select.select([pidfd], [], [], TERMINATE_EVERY)[0]:
                daemon.wait()
                return True
    return False


def end_leftovers(disk: str) -> bool:
    """Kill our programs that still serve `disk`, left where a run was killed between the fork and setpriv's prctl: the
    caller holds the instance's lock, so no other runs. Returns whether there were any. Raises DaemonError."""
    ended = False
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        # suppressed: it is gone in the meantime; pidfd first, so that what is read and what is killed are one process
        with contextlib.suppress(OSError), closing(os.pidfd_open(int(entry))) as pidfd:
            with open(f"/proc/{entry}/cmdline", "rb") as handle:
                ours = serves(handle.read().split(b"\0"), disk)
            if ours:
                ended = True
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
                if not select.select([pidfd], [], [], STOP_TIMEOUT)[0]:
                    raise DaemonError(
                        f"process {entry}, left by a run that was killed, holds the disk and does not end within "
                        f"{STOP_TIMEOUT:g} s"
                    )
    return ended


def serves(argv: t.Sequence[bytes], disk: str) -> bool:
    """Tell whether `argv` is one of PROGRAMS at work on the file `disk`, as start() starts it."""
    return disk in served(argv)


def served(argv: t.Sequence[bytes]) -> list[str]:
    """The files that `argv` is at work on, if it is one of PROGRAMS."""
    if not any(os.path.basename(word) in PROGRAMS for word in argv[:20]):  # setpriv's words come first, for a moment
        return []
    files = []
    for word in argv:
        if word.startswith(b"/"):
            files.append(os.fsdecode(word))
        with contextlib.suppress(ValueError, TypeError, KeyError):
            files.append(str(json.loads(word)["file"]["filename"]))
    return files
