# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""ansible-playbook, or ansible-inventory, forked for each command from a process that has imported our plug-ins."""

from __future__ import annotations

import collections.abc as c
import pathlib
import subprocess
import tempfile

from api.waiting_playbook import become, warm_up
from tests.support.forking import Forking, serve
from tests.support.playbooks import COMMAND, configuration, play

MOST = 3  # processes, of 100 MB each


class Warm:
    """Processes for the configurations that were asked for last."""

    def __init__(self) -> None:
        self._processes: dict[str, Forking] = {}  # by their configuration, the last one used at the end
        self._temporary = tempfile.TemporaryDirectory()

    def run(
        self,
        words: c.Sequence[str],
        directory: pathlib.Path,
        environment: c.Mapping[str, str],
        command: str = "ansible-playbook",
    ) -> subprocess.CompletedProcess[str]:
        """Run the command with these words in a directory."""
        own = repr(configuration(directory, environment))
        process = self._processes.pop(own, None)
        if process is None:
            while len(self._processes) >= MOST:
                self._processes.pop(next(iter(self._processes))).end()
            process = Forking(__name__, directory, {**environment, "ANSIBLE_LOCAL_TEMP": self._temporary.name})
        self._processes[own] = process
        return process.ask(command, words, str(directory), dict(environment))

    def end(self) -> None:
        while self._processes:
            self._processes.popitem()[1].end()


WARM = Warm()


def act(command: str, words: list[str], directory: str, environment: dict[str, str]) -> None:
    """Be the command. Raises SystemExit."""
    if command == "ansible-playbook":
        play(words, directory, environment)
    else:
        from ansible.cli.inventory import InventoryCLI

        become(InventoryCLI, str(COMMAND.with_name(command)), words, directory, environment)


if __name__ == "__main__":
    warm_up()
    serve(act)
