# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host that is only told of guests on others, and cannot be: those that build go on. Hosts are told of groups."""

from __future__ import annotations

import json

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from tests.support.cloud import Cloud, sqlite
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


def test_hosts_are_told_of_groups_by_ids(controller: Controller) -> None:
    """The host of whoever is in a group whose rules changed, and of whoever left one that is gone by now."""
    cloud = Cloud(sqlite(controller.home))
    project = cloud.project("demo")
    group = "11111111-1111-1111-1111-111111111111"
    number = cloud.insert(tables.security_group, uuid=group, project_id=project, name="web", description="")
    cloud.instance(project, "in", cloud.host("hv1"), groups=[number])
    left = cloud.instance(project, "out", cloud.host("hv2"))
    before = cloud.rows(tables.security_group.select()), cloud.rows(tables.instance_security_group.select())
    for variables, host in (
        ({"changed_groups": [group]}, "hv1"),
        ({"changed_groups": ["22222222-2222-2222-2222-222222222222"], "changed_members": [left]}, "hv2"),
    ):
        controller.asked.unlink(missing_ok=True)
        controller.play("security_groups.yml", "-e", json.dumps(variables))
        assert controller.hosts_asked() == {host}
    assert (cloud.rows(tables.security_group.select()), cloud.rows(tables.instance_security_group.select())) == before
    cloud.close()
