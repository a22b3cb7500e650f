# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rolling maintenance: hosts have their turn one after another, guests run all the time, and a run that was cut off or
stopped is taken up again where it was."""

from __future__ import annotations

import pathlib
import shutil

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import open_ledger, reading
from tests.unit.playbooks.answering import Hosts

# notes that it came by, with the host's servers of that time; fails where the file `broken` names the host
TASK = """
- name: Upgrade the host
  hosts: compute
  gather_facts: false
  connection: local
  tasks:
    - name: Read which servers are there
      novalite.cloud.server_info: {host: "{{ inventory_hostname }}", all_projects: true}
      delegate_to: localhost
      register: there

    - name: Note the host
      ansible.builtin.shell: "echo {{ inventory_hostname }} {{ there.servers | length }} >>upgraded"

    - name: Fail on a broken host
      ansible.builtin.command: grep -qvx {{ inventory_hostname }} broken
"""


@pytest.fixture
def hosts(seeded: pathlib.Path, tmp_path: pathlib.Path) -> Hosts:
    hosts = Hosts(tmp_path)
    shutil.copytree(seeded, hosts.home, dirs_exist_ok=True)
    hosts.stand_in.with_name("dead").write_text("")
    (hosts.elsewhere / "upgrade.yml").write_text(TASK)
    (hosts.elsewhere / "broken").write_text("none\n")
    return hosts


def roll(hosts: Hosts, *more: str) -> tuple[int, str]:
    done = hosts.play("rolling.yml", "-e", "task=upgrade.yml", *more)
    return done.returncode, done.stdout + done.stderr


def upgraded(hosts: Hosts) -> list[str]:
    path = hosts.elsewhere / "upgraded"
    return path.read_text().splitlines() if path.exists() else []


def service(hosts: Hosts) -> dict[str, tuple[bool, str | None]]:
    engine, columns = open_ledger(str(hosts.home)), tables.compute_host.c
    with reading(engine) as connection:
        rows = connection.execute(sa.select(columns.name, columns.enabled, columns.disabled_reason)).all()
    engine.dispose()
    return {str(name): (bool(enabled), reason) for name, enabled, reason in rows}


@pytest.mark.thorough
def test_a_host_that_fails_stops_the_maintenance_which_goes_on_with_it(hosts: Hosts) -> None:
    for host in ("hv1", "hv2"):
        looked = hosts.play("host_look.yml", "-e", f"host={host}")
        assert looked.returncode == 0, looked.stdout + looked.stderr
    code, said = roll(hosts, "--check")
    assert code == 0 and "in turn: hv1, hv2" in said and not upgraded(hosts), said
    (hosts.elsewhere / "broken").write_text("hv1\n")
    code, said = roll(hosts)
    assert code != 0 and "Fail on a broken host" in said, said
    closed = (False, "rolling maintenance upgrade.yml")
    assert (service(hosts)["hv1"], service(hosts)["hv2"]) == (closed, (True, None))
    (hosts.elsewhere / "broken").write_text("none\n")
    hosts.stand_in.with_name("dead").write_text("hv2\n")  # dies after its turn began
    code, said = roll(hosts)
    assert code != 0 and "hv2 is out of order: " in said, said
    assert upgraded(hosts) == ["hv1 0", "hv1 0", "hv2 0"]
    assert (service(hosts)["hv1"], service(hosts)["hv2"]) == ((True, None), closed)
    hosts.stand_in.with_name("dead").write_text("")
    code, said = roll(hosts)
    assert code == 0 and "2 hosts were maintained: hv1, hv2" in said, said
    assert upgraded(hosts)[3:] == ["hv2 0"]
    assert service(hosts) == {"hv1": (True, None), "hv2": (True, None)}
