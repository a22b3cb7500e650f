# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A controller whose hypervisors answer: they say of every step that it was taken (stand_in_ssh.py)."""

from __future__ import annotations

import json
import pathlib
import shutil
import sys
import typing as t

import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import open_ledger, reading
from tests.unit.playbooks.controller import Controller


class Hosts(Controller):
    """A controller with two hosts: hv1 does everything, hv2 is dead."""

    def __init__(self, path: pathlib.Path) -> None:
        super().__init__(path)
        self.stand_in = path / "stand_in_ssh.py"
        shutil.copy(pathlib.Path(__file__).with_name("stand_in_ssh.py"), self.stand_in)
        (path / "ssh").write_text(f'#!/bin/sh\nexec {sys.executable} -I {self.stand_in} "$@"\n')
        (path / "dead").write_text("hv2")
        self.taken = path / "taken"
        inventory = self.elsewhere / "hosts.ini"
        inventory.write_text(inventory.read_text() + "ansible_python_interpreter=/usr/bin/python3\n")
        (self.elsewhere / "group_vars/all.yml").write_text("novalite_facts_max_age: 0\n")
        self.environment["ANSIBLE_PIPELINING"] = "1"

    def trips(self) -> list[tuple[str, list[str]]]:
        """The steps that hosts took since this was asked before, in any order."""
        lines = self.taken.read_text().splitlines() if self.taken.exists() else []
        self.taken.unlink(missing_ok=True)
        return sorted((host, [step["module"] for step in steps]) for host, _check, steps in map(json.loads, lines))

    def servers(self) -> list[tuple[t.Any, ...]]:
        engine, columns = open_ledger(str(self.home)), tables.instance.c
        query = sa.select(columns.name, columns.vm_state, columns.task_state, columns.host).order_by(columns.id)
        with reading(engine) as connection:
            rows = [tuple(row) for row in connection.execute(query)]
        engine.dispose()
        return rows
