# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""ansible-playbook, forked for each command from a process that has imported it and our plug-ins."""

from __future__ import annotations

import collections.abc as c
import pathlib
import subprocess
import tempfile

from tests.support.forking import Forking, serve
from tests.support.playbooks import configuration, play, warm_up


class Warm:
    """The process for the configuration that was asked for last."""

    def __init__(self) -> None:
        self._process: Forking | None = None
        self._configuration: object = None
        self._temporary = tempfile.TemporaryDirectory()

    def run(
        self, words: c.Sequence[str], directory: pathlib.Path, environment: c.Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        """Run ansible-playbook with these words in a directory."""
        own = configuration(directory, environment)
        if self._process is None or own != self._configuration:
            self.end()
            all_forks = {**environment, "ANSIBLE_LOCAL_TEMP": self._temporary.name}
            self._process, self._configuration = Forking(__name__, directory, all_forks), own
        return self._process.ask(words, str(directory), dict(environment))

    def end(self) -> None:
        if self._process is not None:
            self._process.end()
            self._process = None


WARM = Warm()


if __name__ == "__main__":
    warm_up()
    serve(play)
