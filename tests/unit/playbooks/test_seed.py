# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""seed.yml with what a new user writes first: the document of docs/install.md, and parts of it."""

from __future__ import annotations

import pathlib
import subprocess

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import open_ledger
from tests.molecule.chapters.printed import chapter
from tests.unit.playbooks.controller import Controller

PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ2ZrEW7v7EmTZ1FPH3pwW9LmqzQUvVb8nXKPqvMZ3XN me@example"
PARTS = ("flavors", "images", "networks", "floating_pools", "keypairs", "security_groups")
IN_DOCUMENT = "/srv/images/debian-12-genericcloud-amd64.qcow2"


def names(home: pathlib.Path, table: sa.Table) -> list[str]:
    engine = open_ledger(str(home))
    try:
        with engine.connect() as connection:
            return sorted(connection.scalars(sa.select(table.c.name)))
    finally:
        engine.dispose()


def test_the_document_of_install_md_is_recorded(controller: Controller, tmp_path: pathlib.Path) -> None:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh/id_ed25519.pub").write_text(PUBLIC_KEY + "\n")
    image = tmp_path / "debian.qcow2"
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", str(image), "1M"], check=True)
    document = chapter("install").files["cloud.yml"]
    assert IN_DOCUMENT in document
    (controller.elsewhere / "cloud.yml").write_text(document.replace(IN_DOCUMENT, str(image)))

    done = controller.play("seed.yml", "-e", "@cloud.yml", HOME=str(tmp_path))
    assert done.returncode == 0 and not done.stderr, done.stdout + done.stderr
    recorded = {table.name: names(controller.home, table) for table in (tables.flavor, tables.image, tables.keypair)}
    assert recorded == {"flavor": ["m1.small", "m1.tiny"], "image": ["debian-12"], "keypair": ["me"]}


def test_a_part_may_come_alone(controller: Controller) -> None:
    (controller.elsewhere / "pools.yml").write_text(
        "novalite_cloud: {floating_pools: [{name: public, cidr: 203.0.113.0/24, interface: eth1}]}\n"
    )
    done = controller.play("seed.yml", "-e", "@pools.yml")
    assert done.returncode == 0 and not done.stderr, done.stdout + done.stderr
    assert names(controller.home, tables.floating_pool) == ["public"]


@pytest.mark.parametrize("written", ["", "[]", "{}"])
def test_a_part_that_says_nothing_is_left_out(controller: Controller, written: str) -> None:
    parts = [*PARTS, "projects"] if written != "{}" else []
    (controller.elsewhere / "parts.yml").write_text(
        "novalite_cloud:" + "".join(f"\n  {part}: {written}" for part in parts) + "\n"
    )
    done = controller.play("seed.yml", "-e", "@parts.yml")
    assert done.returncode == 0 and not done.stderr, done.stdout + done.stderr
    assert names(controller.home, tables.project) == ["demo"]


@pytest.mark.parametrize("part", ["flavours", "volume_types", "users", "Flavors"])
def test_a_part_that_nothing_is_recorded_of_ends_the_run(controller: Controller, part: str) -> None:
    (controller.elsewhere / "parts.yml").write_text(
        f"novalite_cloud: {{flavors: [{{name: m1.nano, vcpus: 1, memory_mb: 96}}], {part}: [{{name: a}}]}}\n"
    )
    for words in ((), ("--check",)):
        done = controller.play("seed.yml", "-e", "@parts.yml", *words)
        assert done.returncode == 2 and f"novalite_cloud has {part}, of which nothing is recorded" in done.stdout
        assert not (controller.home / "ledger.sqlite").exists()
