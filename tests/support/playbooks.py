# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""ansible-playbook in a process that has imported it and our plug-ins: to start Python and to import takes most of the
time of a short playbook.

`python -m tests.support.playbooks SOCKET` does it for tests/support/bin/ansible-playbook, for as long as it lives.
Ansible reads its configuration while it is imported, so that there is a process for each configuration that is asked
for; it is forked for each command, and nothing that a fork does stays for the next one.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pathlib
import shutil
import signal
import socket
import sys
import tempfile
import typing as t
import warnings

COMMAND = pathlib.Path(sys.executable).with_name("ansible-playbook")
CACHE = "ansiballz_cache"  # ansible.executor.module_common
MESSAGE = 2**20  # bytes; the kernel lets through less
# What most playbooks use, and what that imports
MODULES = ("ansible.cli.playbook", "ansible.executor.playbook_executor", "ansible.plugins.strategy.linear")
KINDS = ("inventory", "cache", "callback", "strategy", "connection", "shell", "become", "filter", "test")
PLUGINS = (
    "action.server",
    "action.network",
    "action.host_steps",
    "action.host_step",
    "action.ledger_step",
    "lookup.playbook_variables",
)


def configuration(directory: pathlib.Path, environment: t.Mapping[str, str]) -> tuple[object, ...]:
    """Return the settings that Ansible reads while it is imported."""
    named = {name: value for name, value in environment.items() if name.startswith("ANSIBLE_") or name == "NO_COLOR"}
    file = directory / "ansible.cfg"
    return sorted(named.items()), (directory, file.read_text()) if file.exists() else None


def warm_up() -> None:
    """Import what playbooks use, and read what plug-ins say of their options: YAML, which takes as long."""
    from ansible.plugins import loader

    loader.init_plugin_loader()
    for kind in KINDS:
        list(getattr(loader, f"{kind}_loader").all(class_only=True))
    for name in MODULES:
        importlib.import_module(name)
    for name in PLUGINS:
        importlib.import_module(f"ansible_collections.novalite.cloud.plugins.{name}")


def play(words: list[str], directory: str, environment: dict[str, str]) -> None:
    """Be ansible-playbook, as if it had been started now. Raises SystemExit."""
    from ansible.cli.playbook import PlaybookCLI

    become(PlaybookCLI, COMMAND, words, directory, environment)


def become(cli: t.Any, command: pathlib.Path, words: list[str], directory: str, environment: dict[str, str]) -> None:
    """Be the command of Ansible that has this class. Raises SystemExit."""
    from ansible import constants as C

    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    # of its own, which no other fork removes at its end; but the modules that one has put together are of use to all
    cache = os.path.join(C.DEFAULT_LOCAL_TMP, CACHE)
    os.makedirs(cache, exist_ok=True)
    C.DEFAULT_LOCAL_TMP = tempfile.mkdtemp(prefix="ansible-local-", dir=os.path.dirname(C.DEFAULT_LOCAL_TMP))
    os.symlink(cache, os.path.join(C.DEFAULT_LOCAL_TMP, CACHE))
    warnings.filterwarnings("ignore", "AnsibleCollectionFinder has already been configured")
    sys.argv = [str(command), *words]
    try:
        cli.cli_executor(sys.argv)
    finally:
        shutil.rmtree(C.DEFAULT_LOCAL_TMP, ignore_errors=True)


def fork_each(orders: socket.socket, temporary: str, directory: str, environment: dict[str, str]) -> None:
    """Have a fork of this process, with its configuration, do each of the commands; end with who sends them."""
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment, ANSIBLE_LOCAL_TEMP=temporary)
    warm_up()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for forks
    while True:
        message, opened, _flags, _address = socket.recv_fds(orders, MESSAGE, 4)
        if not message:
            return
        answer, *outputs = opened
        if os.fork() == 0:
            orders.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for number, output in enumerate(outputs):
                os.dup2(output, number)
                os.close(output)
            code = 1
            try:
                play(*json.loads(message))
            except SystemExit as ended:
                code = int(ended.code or 0)
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os.write(answer, str(code).encode())
                os._exit(code)
        for number in opened:
            os.close(number)


def serve(path: str) -> None:
    processes: dict[str, socket.socket] = {}
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(path)
        listener.listen(100)
        print("listens", flush=True)
        while True:
            asked, _address = listener.accept()
            with asked:
                message, outputs, _flags, _address = socket.recv_fds(asked, MESSAGE, 3)
                _words, directory, environment = json.loads(message)
                key = repr(configuration(pathlib.Path(directory), environment))
                if key not in processes:
                    processes[key], theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                    if os.fork() == 0:
                        for other in (listener, asked, *processes.values()):
                            other.close()
                        for number in outputs:
                            os.close(number)
                        fork_each(theirs, os.path.dirname(path), directory, environment)
                        os._exit(0)
                    theirs.close()
                socket.send_fds(processes[key], [message], [asked.fileno(), *outputs])
                for number in outputs:
                    os.close(number)


if __name__ == "__main__":
    serve(sys.argv[1])
