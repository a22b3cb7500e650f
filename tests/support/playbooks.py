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
import json
import os
import pathlib
import signal
import socket
import sys
import typing as t

from api.waiting_playbook import become, warm_up

COMMAND = pathlib.Path(sys.executable).with_name("ansible-playbook")
MESSAGE = 2**20  # bytes; the kernel lets through less


def configuration(directory: pathlib.Path, environment: t.Mapping[str, str]) -> tuple[object, ...]:
    """Return the settings that Ansible reads while it is imported."""
    named = {name: value for name, value in environment.items() if name.startswith("ANSIBLE_") or name == "NO_COLOR"}
    file = directory / "ansible.cfg"
    return sorted(named.items()), (directory, file.read_text()) if file.exists() else None


def play(words: list[str], directory: str, environment: dict[str, str]) -> None:
    """Be ansible-playbook, as if it had been started now. Raises SystemExit."""
    from ansible.cli.playbook import PlaybookCLI

    become(PlaybookCLI, str(COMMAND), words, directory, environment)


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
