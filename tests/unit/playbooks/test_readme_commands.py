# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""README's own ansible-playbook lines, as they stand there: they are accepted, and print no warning."""

from __future__ import annotations

import re
import shlex

import pytest

from tests.unit.playbooks.controller import CATALOGUE, ROOT, Controller

COMMANDS = re.findall(r"(?m)^ansible-playbook (.+)$", (ROOT / "README.md").read_text())


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_readme_prints_no_warning(command: str, controller: Controller) -> None:
    """Whole, where no host and no image takes part; otherwise as far as Ansible gets before it asks one."""
    for name in ("inventories", "playbooks"):
        (controller.elsewhere / name).symlink_to(ROOT / name)
    (controller.elsewhere / "cloud.yml").write_text(CATALOGUE)
    words = shlex.split(command, comments=True)
    if "novalite.cloud.seed" not in words:
        words.append("--syntax-check")
    done = controller.start(*words, ANSIBLE_INVENTORY="hosts.ini")
    assert done.returncode == 0 and not done.stderr, done.stdout + done.stderr
    assert "WARNING" not in done.stdout and not controller.hosts_asked()


def test_the_readme_has_commands() -> None:
    assert len(COMMANDS) >= 6
