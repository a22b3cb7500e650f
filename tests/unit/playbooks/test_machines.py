# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Playbooks whose inventory leads to other machines than the ledger has under these names.

Each machine is this one in a mount namespace, with a machine id and a state directory of its own.
"""

from __future__ import annotations

import json
import pathlib
import shutil
import sys
import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from tests.support.cloud import Cloud, sqlite
from tests.unit.playbooks.controller import Controller

SSH = r"""#!/bin/sh
# ssh to the machine that an argument names: the words after it are the command
for word; do
  shift
  [ -d "DIR/$word" ] && break
done
exec unshare --mount sh -c '
  mount --bind "$1/machine-id" /etc/machine-id && mount --bind "$1/state" DIR/state && shift && exec sh -c "$*"
' sh "DIR/$word" "$@"
"""
WRITE = """
- hosts: compute
  gather_facts: false
  tasks:
    - novalite.cloud.host_step: {step: host_files, args: {files: [{path: STATE/file, content: "{{ text }}"}]}}
      ASYNC
"""
SWAPPED = "{}: this machine is {} of this ledger, and {} is expected here"


class Machines:
    """A controller, its ledger and two machines, `m1` and `m2`. The inventory leads hv1 to m1 and hv2 to m2."""

    def __init__(self, path: pathlib.Path, migrated: pathlib.Path) -> None:
        self.path, self.controller = path, Controller(path)
        shutil.copytree(migrated, self.controller.home, dirs_exist_ok=True)
        self.cloud = Cloud(sqlite(self.controller.home))
        (path / "state").mkdir()
        for number in (1, 2):
            (path / f"m{number}/state").mkdir(parents=True)
            (path / f"m{number}/machine-id").write_text(f"{number}" * 32)
            self.cloud.host(f"hv{number}", identity={"machine_id": f"{number}" * 32}, state_dir=str(path / "state"))
        ssh = path / "ssh"
        ssh.write_text(SSH.replace("DIR", str(path)))
        ssh.chmod(0o755)
        self.lead(hv1="m1", hv2="m2")

    def lead(self, **ways: str) -> None:
        """Have the inventory lead each of these names to a machine."""
        variables = {
            "ansible_ssh_executable": str(self.path / "ssh"),
            "ansible_ssh_transfer_method": "piped",
            "ansible_python_interpreter": sys.executable,
            "compute_node_state_dir": str(self.path / "state"),
        }
        hosts = {name.replace("_", "."): {"ansible_host": machine} for name, machine in ways.items()}
        inventory = {"all": {"children": {"compute": {"hosts": hosts, "vars": variables}}}}
        (self.controller.elsewhere / "hosts.yml").write_text(json.dumps(inventory))

    def play(self, playbook: str, *words: str, fails: bool = False, **environment: str) -> str:
        """Run a playbook, ours or one of this test; return what it said."""
        path = playbook if playbook.startswith("/") else f"novalite.cloud.{playbook}"
        done = self.controller.run("-i", "hosts.yml", path, *words, **{"ANSIBLE_PIPELINING": "true", **environment})
        assert (done.returncode != 0) == fails, done.stdout + done.stderr
        return done.stdout

    def write(self, text: str, fails: bool = False, options: str = "", **environment: str) -> str:
        """Have a task write a file on each host."""
        book = self.path / "write.yml"
        book.write_text(WRITE.replace("STATE", str(self.path / "state")).replace("ASYNC", options))
        return self.play(str(book), "-e", f"text={text}", fails=fails, **environment)

    def texts(self) -> list[str | None]:
        files = [self.path / machine / "state/file" for machine in ("m1", "m2")]
        return [file.read_text() if file.exists() else None for file in files]

    def marks(self) -> list[t.Any]:
        """What each machine has of its host."""
        directories = [self.path / machine / "state/ledgers" for machine in ("m1", "m2")]
        return [json.loads(next(directory.iterdir()).read_text()) for directory in directories]

    def names(self) -> list[str]:
        return [row.name for row in self.cloud.rows(sa.select(tables.compute_host).order_by(tables.compute_host.c.id))]


@pytest.fixture
def machines(migrated: pathlib.Path, tmp_path: pathlib.Path) -> t.Iterator[Machines]:
    made = Machines(tmp_path, migrated)
    yield made
    made.cloud.close()


# Ansible's own way is a module for the comparison, and one for the step
WAYS: dict[str, dict[str, t.Any]] = {
    "in a trip": {},
    "in modules": {"environment": {"ANSIBLE_PIPELINING": "false"}},
    "asynchronous": {"options": "async: 60\n      poll: 1"},
}


# an asynchronous task goes by modules, too
@pytest.mark.parametrize("way", ["in a trip", pytest.param("in modules", marks=pytest.mark.thorough), "asynchronous"])
def test_a_task_on_swapped_hosts_does_nothing(machines: Machines, way: str) -> None:
    options = WAYS[way]
    environment, words = options.get("environment", {}), {"options": options.get("options", "")}
    machines.write("first", **words, **environment)
    before = machines.marks()
    assert machines.texts() == ["first", "first"]
    machines.lead(hv1="m2", hv2="m1")
    said = machines.write("second", fails=True, **words, **environment)
    assert SWAPPED.format("hv1", "hv2", "hv1") in said and SWAPPED.format("hv2", "hv1", "hv2") in said
    assert (machines.texts(), machines.marks()) == (["first", "first"], before)
    machines.lead(hv1="m1", hv2="m2")
    machines.write("third", **words, **environment)
    assert machines.texts() == ["third", "third"]
    assert [mark["host"] for mark in machines.marks()] == ["hv1", "hv2"] and machines.marks() != before


@pytest.mark.parametrize(
    "playbook", ["reconcile", "compute_nodes", "compute_node_remove -e host=hv2", "ledger_rebuild"]
)
def test_playbooks_fail_on_swapped_hosts(machines: Machines, playbook: str) -> None:
    machines.write("first")
    before = machines.marks(), machines.names()
    machines.lead(hv1="m2", hv2="m1")
    said = machines.play(*playbook.split(), fails=True)
    assert SWAPPED.format("hv2", "hv1", "hv2") in said
    assert "unreachable=0" in said and "unreachable=1" not in said
    assert (machines.marks(), machines.names()) == before
    assert all(len(list((machines.path / machine / "state").iterdir())) == 3 for machine in ("m1", "m2"))


def test_two_names_of_one_machine_are_refused_before_either_is_recorded(machines: Machines) -> None:
    machines.lead(hv1="m1", hv2="m2", hv1_example="m1")
    said = machines.play("compute_nodes", fails=True)
    assert "hv1.example: this machine is hv1 of this ledger" in said and "compute_node_rename.yml -e host=hv1" in said
    for name in ("hv1", "hv2"):
        machines.cloud.operate("compute_host", name=name, state="absent")
    machines.lead(hv1="m1", hv1_example="m1")
    said = machines.play("compute_nodes", fails=True)
    assert "this machine is hv1" in said and machines.names() == []


def test_a_host_is_renamed(machines: Machines) -> None:
    machines.write("first")
    machines.lead(node1="m1", hv2="m2")
    said = machines.write("second", fails=True)
    assert "compute_node_rename.yml -e host=hv1 -e new_name=node1" in said
    said = machines.play("compute_node_rename", "-e", "host=hv2", "-e", "new_name=node1", fails=True)
    assert SWAPPED.format("hv2", "hv1", "hv2") in said
    machines.play("compute_node_rename", "-e", "host=hv1", "-e", "new_name=node1", "--check")
    assert machines.names() == ["hv1", "hv2"]
    for changed in ("changed=2", "changed=0"):  # the ledger, and the ways in
        said = machines.play("compute_node_rename", "-e", "host=hv1", "-e", "new_name=node1")
        assert changed in said.rpartition("localhost")[2]
    assert machines.names() == ["node1", "hv2"]
    machines.write("third")
    assert machines.texts() == ["third", "third"] and machines.marks()[0]["host"] == "node1"


def test_a_host_that_leaves_takes_no_mark_along(machines: Machines) -> None:
    """Or it would be taken, when it is back, for one that a newer ledger knows."""
    machines.write("first")
    machines.cloud.instance(machines.cloud.project("demo"), "web", host="hv2")
    before = machines.marks()
    assert "instances: web" in machines.play("compute_node_remove", "-e", "host=hv2", fails=True)
    assert (machines.marks(), machines.names()) == (before, ["hv1", "hv2"])
