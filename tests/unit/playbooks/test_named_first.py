# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Destructive playbooks name what they touch, by name, UUID and host, before a host is told to touch it."""

from __future__ import annotations

import pathlib
import shutil

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import open_ledger, transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_volumes import volume
from tests.support.rows import add_instance
from tests.unit.playbooks.answering import Hosts

COMMANDS = {  # {web} is the UUID of web
    "terminate": ("server=web", "web ({web}) on hv1"),
    "rebuild": ("server=web", "web ({web}) on hv1"),
    "shelve_offload": ("server=put", "put ({put}) on hv1"),
    "evacuate": ("server=lost", "lost ({lost}) from hv2 to hv1"),
    "interface_detach": ("server=web network=private", "web ({web}) on hv1"),
    "volumes": ("volume=data volume_state=absent", "delete data ({data}) on hv1"),
    "compute_node_remove": ("host=hv3", "compute host hv3: its record"),
    "evict": ("max_age=600", "0a1b"),
    "ledger_restore": ("ledger_file=copy force=true", "with its 3 servers is replaced by copy"),
}


@pytest.fixture(scope="module")
def hosts(seeded: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> Hosts:
    hosts = Hosts(tmp_path_factory.mktemp("hosts"))
    shutil.copytree(seeded, hosts.home, dirs_exist_ok=True)
    dead = hosts.stand_in.with_name("dead")
    dead.write_text("")
    for playbook, options in (
        ("launch.yml", "server=web flavor=m1.nano image=tiny novalite_facts_max_age=0"),
        ("volumes.yml", "volume=data volume_size=1 host=hv1"),
        ("ledger_export.yml", "ledger_file=copy"),
    ):
        done = hosts.play(playbook, "-e", options)
        assert done.returncode == 0, done.stdout + done.stderr
    dead.write_text("hv2")
    engine, columns = open_ledger(str(hosts.home)), tables.instance.c
    with transaction(engine) as connection:
        demo, image = connection.execute(sa.select(columns.project_id, columns.image)).one()
        shared = {"project_id": demo, "image": image}
        add_instance(connection, "put", vm_state="shelved", host="hv1", **shared)
        add_instance(connection, "lost", host="hv2", **shared)
    engine.dispose()
    return hosts


def uuids(hosts: Hosts) -> dict[str, str]:
    engine, columns = open_ledger(str(hosts.home)), tables.instance.c
    with transaction(engine) as connection:
        servers = connection.execute(sa.select(columns.name, columns.uuid)).all()
        volumes = connection.execute(sa.select(volume.c.name, volume.c.id)).all()
    engine.dispose()
    return {str(name): str(uuid) for name, uuid in [*servers, *volumes]}


@pytest.mark.parametrize("playbook", COMMANDS)
def test_what_is_touched_is_named_in_check_mode(hosts: Hosts, playbook: str) -> None:
    options, line = COMMANDS[playbook]
    done = hosts.play(f"{playbook}.yml", "-e", options, "--check")
    assert line.format(**uuids(hosts)) in done.stdout, done.stdout + done.stderr


def test_what_is_touched_is_named_first(hosts: Hosts) -> None:
    done = hosts.play("terminate.yml", "-e", "server=web")
    line = f"web ({uuids(hosts)['web']}) on hv1"
    assert done.returncode == 0 and 0 < done.stdout.index(line) < done.stdout.index("[hv1]"), done.stdout + done.stderr
