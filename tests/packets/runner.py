# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The module `firewall`, run as Ansible runs it: in this process, or in one of its own.

`python -m tests.packets.runner <namespace> <lock directory>` takes one line of JSON with arguments for each run and
answers each with the result.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import json
import os
import select
import subprocess
import sys
import typing as t

from ansible.module_utils.common import warnings
from ansible.module_utils.testing import patch_module_args

from ansible_collections.novalite.cloud.plugins.module_utils._firewall import apply, tables
from ansible_collections.novalite.cloud.plugins.module_utils._host import locks
from ansible_collections.novalite.cloud.plugins.module_utils._network import users
from ansible_collections.novalite.cloud.plugins.modules import firewall

CLONE_NEWNET = 0x40000000


@contextlib.contextmanager
def entered(name: str) -> t.Iterator[None]:
    """Run the block, and the commands that it starts, in a network namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    there = os.open(f"/run/netns/{name}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        if libc.setns(there, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")
        yield
    finally:
        libc.setns(home, CLONE_NEWNET)
        os.close(there)
        os.close(home)


@contextlib.contextmanager
def own_locks(directory: str) -> t.Iterator[None]:
    """Not the locks, not the notes, and not the guests, of this machine's own hypervisor."""
    locked = locks.locked.__wrapped__  # type: ignore[attr-defined]  # a wrapped function has it
    timeout, lock_directory = locked.__defaults__
    options = t.cast("dict[str, t.Any]", apply.apply.__kwdefaults__)
    notes = options["directory"]
    locked.__defaults__ = (timeout, directory)
    options["directory"] = os.path.join(directory, "notes")
    script, domains = tables.SCRIPT, users.domains
    users.domains = lambda uri: {}
    if script.startswith("/usr/local"):  # this machine's own
        tables.SCRIPT = os.path.join(directory, "none")
    try:
        yield
    finally:
        tables.SCRIPT, users.domains = script, domains
        locked.__defaults__ = (timeout, lock_directory)
        options["directory"] = notes


def run_firewall(namespace: str, locks: str, arguments: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Run the module, and return its answer; `failed` and `msg` are among it when it failed."""
    out = io.StringIO()
    with contextlib.ExitStack() as stack:
        stack.enter_context(entered(namespace))
        stack.enter_context(own_locks(locks))
        stack.enter_context(patch_module_args(dict(arguments)))
        stack.enter_context(contextlib.redirect_stdout(out))
        stack.enter_context(contextlib.suppress(SystemExit))
        warnings._global_warnings.clear()  # of an earlier run in this process
        firewall.main()
    return t.cast("dict[str, t.Any]", json.loads(out.getvalue()))


class Runner:
    """Runs in a process of its own, so that it can be raced and killed. Its commands are in its process group."""

    def __init__(self, namespace: str, locks: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", __name__, namespace, locks],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._read()  # it has imported everything

    def start(self, **arguments: t.Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(arguments) + "\n")
        self.process.stdin.flush()

    def finish(self) -> dict[str, t.Any]:
        return t.cast("dict[str, t.Any]", json.loads(self._read()))

    def done(self) -> bool:
        """Tell whether finish() would return at once."""
        assert self.process.stdout is not None
        return bool(select.select([self.process.stdout], [], [], 0)[0])

    def _read(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *_exception: object) -> None:
        with self.process:  # closes its pipes and waits
            if self.process.poll() is None:
                self.process.kill()


if __name__ == "__main__":
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(run_firewall(sys.argv[1], sys.argv[2], json.loads(line))), flush=True)
