# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The playbook that makes a server of an OVA: image, flavor, volumes and launch, once."""

from __future__ import annotations

import pathlib
import shutil

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import open_ledger, reading, transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_volumes import volume
from tests.support.rows import add_host
from tests.unit._image_import.appliances import archive, converted, descriptor, member, raw_disk
from tests.unit.playbooks.answering import Hosts


@pytest.fixture
def hosts(seeded: pathlib.Path, tmp_path: pathlib.Path) -> Hosts:
    """Hosts that the ledger knows, and a project with a network and an image."""
    hosts = Hosts(tmp_path)
    shutil.copytree(seeded, hosts.home, dirs_exist_ok=True)
    engine = open_ledger(str(hosts.home))
    with transaction(engine) as connection:
        for host in ("hv1", "hv2"):
            add_host(connection, host)
    engine.dispose()
    return hosts


@pytest.fixture
def ova(tmp_path: pathlib.Path) -> pathlib.Path:
    """An appliance of two processors, 96 MiB and two disks."""
    disk = converted(raw_disk(tmp_path / "disk.raw"), "vmdk").read_bytes()
    names = ["a.vmdk", "b.vmdk"]
    text = descriptor(names, memory=96)
    return archive(tmp_path / "web.ova", member("web.ovf", text), *(member(name, disk) for name in names))


def recorded(hosts: Hosts) -> dict[str, list[str]]:
    engine = open_ledger(str(hosts.home))
    columns = {"images": tables.image.c.name, "flavors": tables.flavor.c.name, "servers": tables.instance.c.name}
    with reading(engine) as connection:
        there = {
            kind: sorted(connection.execute(sa.select(column)).scalars())
            for kind, column in {**columns, "volumes": volume.c.name}.items()
        }
    engine.dispose()
    return there


def test_an_appliance_becomes_a_server(hosts: Hosts, ova: pathlib.Path) -> None:
    words = ("-e", f"server=web source={ova} novalite_facts_max_age=0")
    before = recorded(hosts)
    checked = hosts.play("import.yml", *words, "--check")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "2 CPUs, 96 MiB, 2 disks; interfaces on VM Network, which become the default network" in checked.stdout
    assert recorded(hosts) == before

    done = hosts.play("import.yml", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    after = recorded(hosts)
    assert {kind: sorted(set(after[kind]) - set(before[kind])) for kind in after} == {
        "images": ["web", "web-disk2"],
        "flavors": ["web"],
        "servers": ["web"],
        "volumes": ["web-disk2"],
    }
    again = hosts.play("import.yml", *words)
    assert again.returncode == 0 and recorded(hosts) == after, again.stdout + again.stderr


def test_what_is_missing_is_said_at_once(hosts: Hosts) -> None:
    done = hosts.play("import.yml", "-e", "server=web")
    assert done.returncode != 0 and "source" in done.stdout + done.stderr
