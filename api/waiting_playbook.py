# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""ansible-playbook in a process that has imported it and our plug-ins, and is forked for each run (cli/waiting.py):
`python -m novalite_api.waiting_playbook SOCKET`, by itself, so that Ansible is the first to import its collections.

It ends when nobody has asked for some minutes, and when anything that it has imported was changed. Nothing that a fork
does stays for the next one.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import importlib
import json
import os
import pathlib
import selectors
import shutil
import signal
import socket
import sys
import tempfile
import traceback
import typing as t
import warnings

from .kept_documents import KeptDocuments
from .kept_templates import Kept
from .waiting_protocol import FILES, FOLLOWS, MESSAGE, STALE, peer

IDLE = 300.0  # seconds after which it ends
PATIENCE = 5.0  # seconds for which it listens to who says nothing
CACHE = "ansiballz_cache"  # ansible.executor.module_common
# What most playbooks use, and what that imports. No plug-ins of variables: what is imported before there is an
# inventory reads no variables of groups
MODULES = ("ansible.cli.playbook", "ansible.executor.playbook_executor", "ansible.plugins.strategy.linear")
KINDS = ("inventory", "cache", "callback", "strategy", "connection", "shell", "become", "filter", "test")
COLLECTION = "ansible_collections.novalite.cloud"
PLUGINS = (
    "action.server",
    "action.network",
    "action.host_steps",
    "action.host_step",
    "action.ledger_step",
    "action.ssh_config",
    "callback.launch_summary",
    "callback.progress",
    "lookup.playbook_variables",
)
Stamps = dict[str, tuple[object, ...]]  # path of a file or directory -> by what a change of it is seen


def warm_up() -> None:
    """Import what playbooks use, and read what plug-ins say of their options: YAML, which takes as long."""
    from ansible.plugins import loader

    loader.init_plugin_loader()
    for kind in KINDS:
        list(getattr(loader, f"{kind}_loader").all(class_only=True))
    for name in MODULES:
        importlib.import_module(name)
    for name in PLUGINS:
        importlib.import_module(f"{COLLECTION}.plugins.{name}")
    importlib.import_module(f"{COLLECTION}.plugins.module_utils._domain.guest").template()
    for kept in (Kept(), KeptDocuments()):
        kept.install()
        kept.fill(_collection())


def _rehearse() -> None:
    """Have what a launch's tasks compile at their first use compiled here; without it they are slower, and no worse."""
    from . import rehearsal  # no sooner than Ansible has imported its collections

    errors = importlib.import_module(f"{COLLECTION}.plugins.module_utils._errors")
    with contextlib.suppress(OSError, errors.NovaliteError):
        rehearsal.rehearse()


def _collection() -> pathlib.Path:
    return pathlib.Path(str(sys.modules[f"{COLLECTION}.plugins"].__path__[0])).parent


def become(cli: t.Any, command: str, words: list[str], directory: str, environment: dict[str, str]) -> None:
    """Be the command of Ansible that has this class, as if it had been started now. Raises SystemExit."""
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
    sys.argv = [command, *words]
    try:
        cli.cli_executor(sys.argv)
    finally:
        shutil.rmtree(C.DEFAULT_LOCAL_TMP, ignore_errors=True)


def _stamps() -> Stamps:
    """Return the state of all files that were imported, their directories, and what Ansible sends to hosts."""
    files = {file for module in list(sys.modules.values()) if (file := getattr(module, "__file__", None))}
    collection = _collection()
    files |= {str(path) for path in (collection / "meta").rglob("*")}
    for folder, _folders, names in os.walk(collection / "plugins"):
        if os.path.basename(folder) != "__pycache__":
            files |= {os.path.join(folder, name) for name in names}
    stamps: Stamps = dict.fromkeys(files, ())
    for path in files:
        with contextlib.suppress(OSError):
            status = os.stat(path)
            stamps[path] = (status.st_mtime_ns, status.st_size, status.st_ino)
    for directory in {os.path.dirname(file) for file in files}:
        with contextlib.suppress(OSError):  # by names but for compiled files, which whoever imports makes
            stamps[directory] = tuple(sorted(name for name in os.listdir(directory) if name != "__pycache__"))
    return stamps


def _ask_in_front(caller: int) -> None:
    """Have Ansible ask at the terminal of the process `caller` while that is in its foreground.

    A terminal may be read, and set, from other sessions, but who asks for its foreground gets ENOTTY there.
    """

    def group_in_front(_terminal: int) -> int:
        with open(f"/proc/{caller}/stat", encoding="utf-8", errors="replace") as file:
            _state, _parent, group, _session, _device, in_front = file.read().rpartition(")")[2].split()[:6]
        return os.getpgrp() if group == in_front else 0

    os.tcgetpgrp = group_in_front


def _run(message: bytes, opened: list[int], caller: int) -> t.NoReturn:
    """Do a run, as the leader of a session of its own, with the caller's input and outputs."""
    from ansible.cli.playbook import PlaybookCLI

    code: object = 1
    try:
        os.setsid()
        numbers, *order = json.loads(message)
        # first out of the way of each other
        aside = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, 512) for descriptor in opened]
        for descriptor in opened:
            os.close(descriptor)
        for number, descriptor in zip(numbers, aside):
            os.dup2(descriptor, number)
            os.close(descriptor)
        sys.stdout.reconfigure(line_buffering=sys.stdout.isatty())  # type: ignore[union-attr]  # as Python begins
        _ask_in_front(caller)
        become(PlaybookCLI, "ansible-playbook", *order)
    except SystemExit as ended:
        code = ended.code
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 0 if code is None else 1)


class Waiting:
    """The process: who asks, and the runs that are under way."""

    def __init__(self, path: str, lock: t.TextIO) -> None:
        self._lock = lock
        self._stamps = _stamps()
        self._events = selectors.DefaultSelector()
        self._runs: dict[socket.socket, int] = {}
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind(path)
        self._listener.listen(10)
        self._events.register(self._listener, selectors.EVENT_READ, self._meet)

    def serve(self) -> None:
        """Do what is asked for, until nobody has asked for a while and nothing is under way."""
        while True:
            ready = self._events.select(None if self._runs else IDLE)
            if not ready:
                return
            for key, _mask in ready:
                if not key.data():
                    return

    def _meet(self) -> bool:
        asked, _address = self._listener.accept()
        with contextlib.suppress(OSError):
            asked.settimeout(PATIENCE)
            message, opened, _flags, _address = socket.recv_fds(asked, MESSAGE + 1, FILES)
            caller, user = peer(asked)
            if user == os.geteuid():
                if _stamps() != self._stamps:
                    asked.send(STALE)
                    return bool(self._runs)
                asked.send(FOLLOWS)
                pid = os.fork()
                if pid == 0:
                    self._events.close()
                    self._lock.close()
                    for other in (self._listener, asked, *self._runs):
                        other.close()
                    _run(message, opened, caller)
                ended = os.pidfd_open(pid)
                self._runs[asked] = pid
                self._events.register(asked, selectors.EVENT_READ, lambda: self._pass_on(asked))
                self._events.register(ended, selectors.EVENT_READ, lambda: self._end(asked, ended))
            for descriptor in opened:
                os.close(descriptor)
        return True

    def _pass_on(self, asked: socket.socket) -> bool:
        """Send the run the signal that its caller got; who is gone was killed."""
        number = int(asked.recv(MESSAGE) or signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._runs[asked], number)
        if number == signal.SIGKILL:
            self._events.unregister(asked)
        return True

    def _end(self, asked: socket.socket, ended: int) -> bool:
        """Tell the caller how its run ended."""
        _pid, status = os.waitpid(self._runs.pop(asked), 0)
        self._events.unregister(ended)
        os.close(ended)
        with contextlib.suppress(KeyError):
            self._events.unregister(asked)
        with asked, contextlib.suppress(OSError):
            asked.send(str(os.waitstatus_to_exitcode(status)).encode())
        return True


def main(path: str) -> None:
    """Wait at the socket, unless another process does."""
    lock = f"{path}.lock"
    with open(lock, "a", encoding="utf-8") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return
        held.truncate(0)
        held.write(str(os.getpid()))
        held.flush()
        try:
            warm_up()
            _rehearse()
            gc.freeze()
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)  # of one that was killed
            Waiting(path, held).serve()
        finally:
            for own in (path, lock):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(own)


if __name__ == "__main__":
    main(sys.argv[1])
