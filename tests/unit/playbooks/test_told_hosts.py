# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host that is only told of guests on others, and cannot be: those that build go on."""

from __future__ import annotations

import pytest

from tests.unit.playbooks.controller import Controller

PLAY = """
- hosts: localhost
  connection: local
  gather_facts: false
  tasks:
    - ansible.builtin.include_role: {name: novalite.cloud.spawn, tasks_from: TASKS}
      vars:
        spawn_plan: {}
        spawn_peers: {bridges: [{no_such_option: 1}], dhcp_networks: [], ledger: abc}
"""


@pytest.mark.parametrize(("tasks", "ends"), [("main.yml", "rescued=1"), ("tell.yml", "ignored=1")])
def test_the_play_goes_on(controller: Controller, tasks: str, ends: str) -> None:
    (controller.elsewhere / "told.yml").write_text(PLAY.replace("TASKS", tasks))
    done = controller.run("-i", "hosts.ini", "told.yml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no_such_option" in done.stdout + done.stderr and "failed=0 " in done.stdout
    assert ends in done.stdout
