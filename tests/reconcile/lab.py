# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A lab of throwaway hypervisors, as the tests of reconcile.yml see it: playbooks, commands on hosts, the ledger."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import tempfile
import typing as t

import sqlalchemy as sa

from tests.support.cloud import Cloud, sqlite

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARED = ROOT / "tests/molecule/shared"
HYPERVISORS = SHARED / "hypervisors"
HOSTS = ("hv1", "hv2")

Row = dict[str, t.Any]


class Failed(Exception):
    """A playbook did not do what it was to do."""


class Lab(Cloud):
    """`home` is NOVALITE_HOME, `inventory` what ansible-playbook is given."""

    def __init__(self, home: str, inventory: str) -> None:
        self.home = pathlib.Path(home)
        super().__init__(sqlite(self.home))
        self._inventory = inventory
        self.environment = {**os.environ, "NOVALITE_HOME": home, "NO_COLOR": "1", "ANSIBLE_FORCE_COLOR": "0"}

    def command(self, playbook: str, *arguments: str, **variables: t.Any) -> list[str]:
        extra_vars = ["-e", json.dumps(variables)] if variables else []
        return ["ansible-playbook", "-i", self._inventory, str(ROOT / "playbooks" / playbook), *arguments, *extra_vars]

    def play(self, playbook: str, *arguments: str, **variables: t.Any) -> str:
        """Run a playbook to its end; returns what it said. Raises Failed."""
        done = subprocess.run(
            self.command(playbook, *arguments, **variables),
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise Failed(f"{playbook} ended with {done.returncode}:\n{done.stdout[-6000:]}{done.stderr[-2000:]}")
        return done.stdout

    def reconcile(self, *arguments: str) -> tuple[list[Row], str]:
        """The differences that reconcile.yml told, and its output. Nobody else is at work: it need not wait."""
        with tempfile.NamedTemporaryFile(suffix=".json") as report:
            said = self.play("reconcile.yml", *arguments, output=report.name, build_timeout=0)
            return json.loads(pathlib.Path(report.name).read_text())["differences"], said

    def on(self, host: str, script: str, check: bool = True) -> str:
        """Run a shell script as root on a hypervisor; returns what it wrote."""
        argv = [str(HYPERVISORS), "exec", "--state", str(self.home / "lab/hypervisors"), host, "bash", "-c", script]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120)
        if check and done.returncode:
            raise Failed(f"{host}: {script}\nended with {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def idle_image(self) -> str:
        """Record an image whose guests run and cost nothing, for what does not look at them from inside; its name."""
        images = os.environ.get("NOVALITE_IMAGES", str(ROOT / ".cache/images"))
        subprocess.run([SHARED / "partitioned-images", images, self.home / "images"], check=True)
        self.run("image", images=[{"name": "idle", "source": f"{self.home}/images/mbr.qcow2", "disk_format": "qcow2"}])
        return "idle"

    def insert_like(self, table: sa.Table, example: t.Any, **other: t.Any) -> None:
        """Insert a row like `example`, with some `other` values."""
        self.write(sa.insert(table).values({**example._mapping, **other}))
