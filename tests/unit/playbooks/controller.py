# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A controller whose two hypervisors answer nobody, and that notices which of them was asked."""

from __future__ import annotations

import os
import pathlib
import subprocess

from tests.support.patience import GENEROUS
from tests.support.playbooks import COMMAND
from tests.unit.playbooks.warm import WARM

ROOT = pathlib.Path(__file__).parents[3]
CATALOGUE = """
novalite_cloud:
  projects: [{name: demo}]
  flavors: [{name: m1.nano, vcpus: 1, memory_mb: 96}]
  images: []
  networks: [{name: private, cidr: 10.20.0.0/24, bridge: br100}]
  keypairs: []
  security_groups: [{name: default, rules: [{protocol: tcp, port_min: 22}]}]
"""


class Controller:
    """`home` is novalite's, `elsewhere` a directory of the user's own, from which the commands are run."""

    def __init__(self, path: pathlib.Path) -> None:
        self.home, self.elsewhere, self.asked = path / "home", path / "elsewhere", path / "asked"
        self.home.mkdir()
        (self.elsewhere / "group_vars").mkdir(parents=True)
        ssh = path / "ssh"
        ssh.write_text(f'#!/bin/sh\necho "$*" >>{self.asked}\nexit 255\n')
        ssh.chmod(0o755)
        (self.elsewhere / "hosts.ini").write_text(
            f"[compute]\nhv1\nhv2\n\n[compute:vars]\nansible_ssh_executable={ssh}\nansible_ssh_retries=0\n"
        )
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "NOVALITE_"))},
            "ANSIBLE_COLLECTIONS_PATH": f"{ROOT}/collections:{ROOT}/.cache/collections",
            "ANSIBLE_FORCE_COLOR": "0",
            "COLUMNS": "1000",
            "NOVALITE_HOME": str(self.home),
        }

    def play(self, playbook: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run one of our playbooks as a user does who has the collection, and no ansible.cfg of ours."""
        path = playbook if "/" in playbook else str(ROOT / "playbooks" / playbook)
        return self.run("-i", "hosts.ini", path, *arguments, **environment)

    def run(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run ansible-playbook with these words, in the user's directory."""
        return WARM.run(words, self.elsewhere, {**self.environment, **environment})

    def start(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run ansible-playbook as a process of its own, for tests of what is said while it is imported."""
        return subprocess.run(
            [str(COMMAND), *words],
            cwd=self.elsewhere,
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=GENEROUS,
        )

    def hosts_asked(self) -> set[str]:
        text = self.asked.read_text() if self.asked.exists() else ""
        return {host for host in ("hv1", "hv2") if f" {host} " in f"{text} "}
