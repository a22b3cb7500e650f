# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""`ansible-playbook`, started before there is a run: it has imported what it needs when it is told what to play.

Its argument is a FIFO, into which its supervisor writes one line of JSON: `marker` and `run`, the name and the value of
the variable that the run's processes are found by, and `command`, the arguments of ansible-playbook. It and its workers
end with the process that started them.
"""

from __future__ import annotations

import os
import pathlib
import sys

if __name__ == "__main__":
    # as a script, Python put this directory first, where `queue.py` would be taken for the standard library's
    here = str(pathlib.Path(__file__).resolve().parent)
    sys.path[:] = [path for path in sys.path if path and os.path.realpath(path) != here]

import contextlib
import ctypes
import gc
import json
import signal

PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")


def mark(name: str, value: str) -> None:
    """Set a variable for the processes that this one starts, and in what /proc says of this one and its forks.

    The kernel shows the memory in which a process found its variables at its start (proc(5), `environ`), so the new
    value takes the old one's place there. Raises ValueError where it is longer.
    """
    with open("/proc/self/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    start, end = int(fields[47]), int(fields[48])  # env_start and env_end, fields 50 and 51 of proc(5)
    before, after = f"{name}={os.environ[name]}".encode(), f"{name}={value}".encode()
    if len(after) > len(before):
        raise ValueError(f"{value} is longer than the value of {name} that this process was started with")
    block = b"\0" + ctypes.string_at(start, end - start)
    place = start + block.index(b"\0" + before + b"\0")
    os.environ[name] = value
    ctypes.memmove(place, after.ljust(len(before), b"\0"), len(before))


def changed_at(path: str | None) -> int | None:
    """Return when a file was changed, in nanoseconds since the epoch; None if there is no such file."""
    with contextlib.suppress(OSError):
        return os.stat(path).st_mtime_ns if path else None
    return None


def main() -> None:
    parent = os.getppid()
    die_with_parent()
    if os.getppid() != parent:
        os._exit(1)
    os.register_at_fork(after_in_child=die_with_parent)
    # What Ansible loads stays until the end; by Python's own numbers, all of it is gone through for 700 new objects
    gc.set_threshold(50_000, 20, 50)
    with open(sys.argv[1]) as fifo:
        # A third of a second of each run, had it to wait for it
        from ansible.cli.playbook import main as ansible_playbook
        from ansible.constants import CONFIG_FILE

        read_at = changed_at(CONFIG_FILE)
        line = sys.argv[2] if len(sys.argv) > 2 else fifo.readline()
    if not line:  # the supervisor is gone
        os._exit(1)
    if changed_at(CONFIG_FILE) != read_at:  # Ansible reads it once, when it is imported
        os.execv(sys.executable, [sys.executable, sys.argv[0], sys.argv[1], line])
    order = json.loads(line)
    mark(order["marker"], order["run"])
    sys.argv = ["ansible-playbook", *order["command"]]
    ansible_playbook()


if __name__ == "__main__":
    main()
