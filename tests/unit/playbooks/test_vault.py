# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ledger's URL in the inventory, with a password and in a vault: it is used, and it is in no output."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import typing as t
import uuid

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import open_ledger, reading
from tests.support import postgresql
from tests.unit.playbooks.controller import CATALOGUE, Controller

SECRET = "hunter2isinhere"
# a module of the controller's, one whose plug-in asks the ledger and then the host, one that asks the host first, and a
# mistake
OWN = """
- hosts: hv1
  gather_facts: false
  connection: local
  vars: {ansible_python_interpreter: /usr/bin/python3}  # which libvirt's binding is for
  tasks:
    - novalite.cloud.project: {projects: [{name: vaulted}]}
    - novalite.cloud.host_step: {step: host_record, args: {state_dir: STATE}}
    - novalite.cloud.compute_host: {state_dir: STATE}
    - novalite.cloud.flavor: {flavors: [{name: "", vcpus: 1, memory_mb: 1}]}
      ignore_errors: true
"""


@pytest.fixture(params=[pytest.param("sqlite", marks=pytest.mark.thorough), "postgresql"])  # whose URLs have a secret
def url(
    request: pytest.FixtureRequest, tmp_path: pathlib.Path, tmp_path_factory: pytest.TempPathFactory
) -> t.Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/{SECRET}.sqlite"
        return
    with postgresql.shared_server(tmp_path_factory.getbasetemp()) as server:
        # the server asks for no password
        yield server.create(f"vault_{uuid.uuid4().hex}").replace("@", f":{SECRET}@", 1)


def vaulted(controller: Controller, text: str) -> None:
    """Have the inventory say `text` for the ledger's URL, encrypted."""
    password = controller.elsewhere / "password"
    password.write_text("vault's own\n")
    encrypted = subprocess.run(
        [
            pathlib.Path(sys.executable).with_name("ansible-vault"),
            "encrypt_string",
            "--vault-password-file",
            password,
            "--name",
            "novalite_ledger_url",
            text,
        ],
        capture_output=True,
        text=True,
        check=True,
        env=controller.environment,
    ).stdout
    assert SECRET not in encrypted
    (controller.elsewhere / "group_vars/all.yml").write_text(encrypted)
    controller.environment["ANSIBLE_VAULT_PASSWORD_FILE"] = str(password)


def test_the_url_is_used_and_never_shown(controller: Controller, url: str, tmp_path: pathlib.Path) -> None:
    vaulted(controller, url)
    (controller.elsewhere / "catalogue.yml").write_text(CATALOGUE)
    (tmp_path / "state").mkdir()
    (controller.elsewhere / "own.yml").write_text(OWN.replace("STATE", str(tmp_path / "state")))
    done = controller.play("seed.yml", "./own.yml", "-e", "@catalogue.yml", "-vvv", "--diff")
    said = done.stdout + done.stderr
    assert done.returncode == 0 and SECRET not in said, said
    engine = open_ledger(url=url)
    with reading(engine) as connection:
        names = {
            *connection.execute(sa.select(tables.project.c.name)).scalars(),
            *connection.execute(sa.select(tables.compute_host.c.name)).scalars(),
        }
    engine.dispose()
    assert names == {"demo", "vaulted", "hv1"} and not (controller.home / "ledger.sqlite").exists()


def test_nor_when_no_ledger_is_there(controller: Controller) -> None:
    vaulted(controller, f"postgresql://u:{SECRET}/y@127.0.0.1:1/x")  # the slash should have been written as %2F
    (controller.elsewhere / "catalogue.yml").write_text(CATALOGUE)
    done = controller.play("seed.yml", "-e", "@catalogue.yml", "-vvv")
    assert done.returncode == 4 and SECRET not in done.stdout + done.stderr, done.stdout + done.stderr
