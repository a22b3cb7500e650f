# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""ansible-playbook, forked for each command from a process that has imported it and our plug-ins.

Ansible reads its configuration while it is imported, so that commands share a process as long as it is the same.
"""

from __future__ import annotations

import collections.abc as c
import importlib
import os
import pathlib
import subprocess
import sys
import warnings

from tests.support.forking import Forking, serve

COMMAND = pathlib.Path(sys.executable).with_name("ansible-playbook")
# What most playbooks use, and what that imports
PLUGINS = ("action.server", "action.network", "action.host_steps", "action.host_step", "lookup.playbook_variables")


class Warm:
    """The process for the configuration that was asked for last."""

    def __init__(self) -> None:
        self._process: Forking | None = None
        self._configuration: object = None

    def run(
        self, words: c.Sequence[str], directory: pathlib.Path, environment: c.Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        """Run ansible-playbook with these words in a directory."""
        file = directory / "ansible.cfg"
        configuration = (
            {name: value for name, value in environment.items() if name.startswith("ANSIBLE_")},
            (directory, file.read_text()) if file.exists() else None,
        )
        if self._process is None or configuration != self._configuration:
            self.end()
            self._process, self._configuration = Forking(__name__, directory, environment), configuration
        return self._process.ask(words, str(directory), dict(environment))

    def end(self) -> None:
        if self._process is not None:
            self._process.end()
            self._process = None


WARM = Warm()


def play(words: list[str], directory: str, environment: dict[str, str]) -> None:
    """Be ansible-playbook, as if it had been started now."""
    from ansible import constants as C
    from ansible.cli.playbook import PlaybookCLI

    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    os.makedirs(C.DEFAULT_LOCAL_TMP, mode=0o700, exist_ok=True)  # the command before removed it at its end
    warnings.filterwarnings("ignore", "AnsibleCollectionFinder has already been configured")
    sys.argv = [str(COMMAND), *words]
    PlaybookCLI.cli_executor(sys.argv)


if __name__ == "__main__":
    from ansible.plugins.loader import init_plugin_loader

    init_plugin_loader()
    for name in ("ansible.cli.playbook", "ansible.executor.playbook_executor", "ansible.plugins.strategy.linear"):
        importlib.import_module(name)
    for name in PLUGINS:
        importlib.import_module(f"ansible_collections.novalite.cloud.plugins.{name}")
    serve(play)
