# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The user's waiting playbook, as the command sees it: a process that has imported Ansible, and forks for a run
(../waiting_playbook.py). To start Python and to import takes most of the time of a launch of one server.

It is there for who has the same program, directory, environment, ansible.cfg and rights: the name of its socket is made
of those, so another one is never asked. Where anything is unusual, the caller goes on without it.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import signal
import socket
import stat
import sys
import typing as t

from .. import keep_alive
from ..waiting_protocol import FILES, FOLLOWS, MESSAGE, peer

VARIABLE = "NOVALITE_WAITING"  # 0: never; 1: also without a terminal
# Variables that differ from one terminal, or login, to the next; a run gets its caller's
OF_TERMINAL = frozenset(
    [
        *("_", "PWD", "OLDPWD", "SHLVL", "COLUMNS", "LINES", "WINDOWID", "SSH_TTY", "SSH_CLIENT", "SSH_CONNECTION"),
        *("SSH_AUTH_SOCK", "SSH_AGENT_PID", "XDG_SESSION_ID", "TMUX", "TMUX_PANE", "STY", "GPG_TTY", VARIABLE),
    ]
)
MOST = 4  # processes that wait at the same time
_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGWINCH)
# What else a process hands down to what it starts: rights and limits (proc(5))
_RIGHTS = ("Umask", "Uid", "Gid", "Groups", "SigBlk", "SigIgn", "NoNewPrivs", "Seccomp")
_LIMITS = ("Cpus_allowed_list", "Mems_allowed_list")
_FILES = ("limits", "cgroup", "attr/current", "oom_score_adj", "loginuid")


def hand_over(words: t.Sequence[str], environment: t.Mapping[str, str]) -> None:
    """Have the waiting playbook do a run with these words of ansible-playbook, and end as it ends. Returns where none
    waits, after one has been started; and where none is wanted, or it would not be as without."""
    may_wait = environment.get(VARIABLE, "1" if sys.stdout.isatty() else "0") == "1"
    if not may_wait or _handed_down()[:3] != [0, 1, 2]:
        return
    with contextlib.suppress(OSError):
        directory = _directory(environment)
        path = os.path.join(directory, _digest(environment))
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
            try:
                connection.connect(path)
            except OSError:
                if _count(directory) < MOST:
                    _start(path, environment)
                return
            if peer(connection)[1] == os.geteuid():
                _follow(connection, words, environment)


def _follow(connection: socket.socket, words: t.Sequence[str], environment: t.Mapping[str, str]) -> None:
    """Have the run done, and end as it does; returns where nothing was done."""
    opened = _handed_down()
    message = json.dumps([opened, list(words), os.getcwd(), dict(environment)]).encode()
    if len(message) > MESSAGE or len(opened) > FILES:
        return
    sys.stdout.flush()
    sys.stderr.flush()
    signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON)  # until they are passed on
    try:
        socket.send_fds(connection, [message], opened)
        if connection.recv(MESSAGE) != FOLLOWS:
            return

        def pass_on(number: int, _frame: object) -> None:
            with contextlib.suppress(OSError):
                connection.send(str(number).encode())

        def stop(_number: int, _frame: object) -> None:
            pass_on(signal.SIGSTOP, None)
            os.kill(os.getpid(), signal.SIGSTOP)
            pass_on(signal.SIGCONT, None)

        for number in _PASSED_ON:
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, pass_on)
        signal.signal(signal.SIGTSTP, stop)
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _PASSED_ON)
    code = int(connection.recv(MESSAGE) or -signal.SIGKILL)
    if code < 0:  # as it was killed, so that a shell sees it
        signal.signal(-code, signal.SIG_DFL) if -code not in (signal.SIGKILL, signal.SIGSTOP) else None
        os.kill(os.getpid(), -code)
    os._exit(code)


def _directory(environment: t.Mapping[str, str]) -> str:
    """The user's own directory of sockets. Raises OSError where it is another's, or others may enter."""
    base = environment.get("XDG_RUNTIME_DIR") or os.path.expanduser("~/.cache")
    path = os.path.join(base, "novalite")
    os.makedirs(path, mode=0o700, exist_ok=True)
    status = os.lstat(path)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise PermissionError(f"{path} is not this user's alone: chmod 700 it")
    return path


def _count(directory: str) -> int:
    """Return how many processes wait. Each holds its lock; one that was killed has left it behind. Raises OSError."""
    paths = [os.path.join(directory, name) for name in os.listdir(directory) if name.endswith(".lock")]
    return sum(map(_is_held, paths))


def _is_held(path: str) -> bool:
    with open(path, encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _digest(environment: t.Mapping[str, str]) -> str:
    """Name what a run depends on that a process which was started before cannot take from its caller."""
    with open("/proc/self/status", encoding="utf-8") as file:
        fields = dict(line.split(":", 1) for line in file)
    of_process = {
        name: value for name, value in fields.items() if name in (*_RIGHTS, *_LIMITS) or name.startswith("Cap")
    }
    handed_down: list[object] = [of_process, os.nice(0), os.uname().nodename, os.getcwd(), os.stat(".").st_ino]
    handed_down += [_text(f"/proc/self/{name}") for name in _FILES]
    handed_down += [os.readlink(f"/proc/self/ns/{name}") for name in sorted(os.listdir("/proc/self/ns"))]
    handed_down += [os.readlink("/proc/self/root"), os.stat("/proc/self/root/.").st_ino]
    file_of_settings = keep_alive.configuration(environment, os.curdir)
    settings = [file_of_settings, _text(file_of_settings) if file_of_settings else None]
    program = [sys.executable, sys.version, __file__, sorted(sys.warnoptions), sys.flags]
    named = sorted((name, value) for name, value in environment.items() if name not in OF_TERMINAL)
    return hashlib.sha256(repr([program, handed_down, settings, named]).encode()).hexdigest()[:32]


def _text(path: str) -> str | None:
    with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as file:
        return file.read()
    return None


def _handed_down() -> list[int]:
    """Return the open files that a program in this one's place would have: standard input and outputs, and such as
    those of `-e @<(...)`."""
    handed_down = []
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            if os.get_inheritable(int(name)):
                handed_down.append(int(name))
    return sorted(handed_down)


def _start(path: str, environment: t.Mapping[str, str]) -> None:
    """Start the process that waits at this socket."""
    import subprocess  # which no run needs that is handed over

    program = f"{keep_alive.__package__}.waiting_playbook"
    subprocess.Popen(
        [sys.executable, "-P", "-m", program, path],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env=dict(environment),
    )
