# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""ansible-playbook, forked for each command from a process that has imported it and our plug-ins.

Importing them takes half of a short command's time. Ansible reads its configuration while it is imported, so that
commands share a process as long as their configuration is the same.

Run as a script, this file is that process: it reads commands from its standard input, and writes their exit codes.
"""

from __future__ import annotations

import collections.abc as c
import gc
import importlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import typing as t
import warnings

from tests.support.patience import GENEROUS

COMMAND = pathlib.Path(sys.executable).with_name("ansible-playbook")
# What most playbooks use, and what that imports
PLUGINS = ("action.server", "action.network", "action.host_steps", "action.host_drift", "lookup.playbook_variables")


class Warm:
    """The process for the configuration that was asked for last."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._configuration: object = None

    def run(
        self, words: c.Sequence[str], directory: pathlib.Path, environment: c.Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        """Run ansible-playbook with these words in a directory."""
        process = self._for(directory, environment)
        assert process.stdin is not None and process.stdout is not None
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
            outputs = [f"/proc/{os.getpid()}/fd/{file.fileno()}" for file in (out, errors)]
            deadline = threading.Timer(GENEROUS, process.kill)
            deadline.start()
            print(json.dumps([words, str(directory), dict(environment), *outputs]), file=process.stdin, flush=True)
            code = process.stdout.readline()
            deadline.cancel()
            out.seek(0)
            errors.seek(0)
            done = subprocess.CompletedProcess(words, int(code or -9), out.read(), errors.read())
        assert code, f"ansible-playbook {' '.join(words)} did not end: {done.stdout}{done.stderr}"
        return done

    def end(self) -> None:
        if self._process is not None:
            with self._process as process:  # closes its input, which ends it, and waits
                assert process.stdin is not None
                process.stdin.close()
            self._process = None

    def _for(self, directory: pathlib.Path, environment: c.Mapping[str, str]) -> subprocess.Popen[str]:
        file = directory / "ansible.cfg"
        configuration = (
            {name: value for name, value in environment.items() if name.startswith("ANSIBLE_")},
            (directory, file.read_text()) if file.exists() else None,
        )
        if self._process is None or self._process.poll() is not None or configuration != self._configuration:
            self.end()
            self._configuration = configuration
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", __name__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                cwd=directory,
                env={**environment, "PYTHONPATH": str(pathlib.Path(__file__).parents[3])},
            )
        return self._process


WARM = Warm()


def serve() -> None:
    """Run a process for each line of standard input."""
    from ansible.cli.playbook import PlaybookCLI
    from ansible.plugins.loader import init_plugin_loader

    init_plugin_loader()
    for name in ("ansible.executor.playbook_executor", "ansible.plugins.strategy.linear"):
        importlib.import_module(name)
    for name in PLUGINS:
        importlib.import_module(f"ansible_collections.novalite.cloud.plugins.{name}")
    gc.freeze()
    for line in sys.stdin:
        command = json.loads(line)
        pid = os.fork()
        if pid == 0:
            become(*command)
            PlaybookCLI.cli_executor(sys.argv)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


def become(words: list[str], directory: str, environment: dict[str, str], *outputs: str) -> None:
    """Be a process of the command's own, as if it had been started now."""
    from ansible import constants as C

    for number, path in enumerate(("/dev/null", *outputs)):
        opened = os.open(path, os.O_RDWR)
        os.dup2(opened, number)
        os.close(opened)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    os.makedirs(t.cast(str, C.DEFAULT_LOCAL_TMP), mode=0o700, exist_ok=True)  # the command before removed it at its end
    warnings.filterwarnings("ignore", "AnsibleCollectionFinder has already been configured")
    sys.argv = [str(COMMAND), *words]


if __name__ == "__main__":
    serve()
