# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""`ansible-playbook`, as a run starts it: it and its workers end with the process that started them."""

from __future__ import annotations

import os
import pathlib
import sys

if __name__ == "__main__":
    # as a script, Python put this directory first, where `queue.py` would be taken for the standard library's
    here = str(pathlib.Path(__file__).resolve().parent)
    sys.path[:] = [path for path in sys.path if path and os.path.realpath(path) != here]

import ctypes
import gc
import signal

PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")


def main() -> None:
    parent = os.getppid()
    die_with_parent()
    if os.getppid() != parent:
        os._exit(1)
    os.register_at_fork(after_in_child=die_with_parent)
    # What Ansible loads stays until the end; by Python's own numbers, all of it is gone through for 700 new objects
    gc.set_threshold(50_000, 20, 50)
    from ansible.cli.playbook import main as ansible_playbook

    sys.argv[0] = "ansible-playbook"
    ansible_playbook()


if __name__ == "__main__":
    main()
