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


class Warm:
    """The process for the configuration that was asked for last."""

    def __init__(self) -> None:
        self._process: Forking | None = None
        self._configuration: object = None
        self._temporary = tempfile.TemporaryDirectory()

    def run(
        self,
        words: c.Sequence[str],
        directory: pathlib.Path,
        environment: c.Mapping[str, str],
        command: str = "ansible-playbook",
    ) -> subprocess.CompletedProcess[str]:
        """Run the command with these words in a directory."""
        own = configuration(directory, environment)
        if self._process is None or own != self._configuration:
            self.end()
            all_forks = {**environment, "ANSIBLE_LOCAL_TEMP": self._temporary.name}
            self._process, self._configuration = Forking(__name__, directory, all_forks), own
        return self._process.ask(command, words, str(directory), dict(environment))

    def end(self) -> None:
        if self._process is not None:
            self._process.end()
            self._process = None


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
