# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Variables of an inventory that are named like options of our playbooks: nothing that is done follows from them."""

from __future__ import annotations

import json
import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import open_ledger, reading, transaction
from ansible_collections.novalite.cloud.plugins.plugin_utils._playbooks import WORDS
from tests.support.rows import add_host, add_instance
from tests.unit.playbooks.controller import ROOT, Controller

POISON = {
    **dict.fromkeys(WORDS, "poison"),
    "servers": [{"name": "theirs"}],
    "host": "hv2",
    "count": 7,
    "takeover": True,
}


class Cloud:
    """`ours` and `theirs` are servers on no host, which can be deleted without one. The inventory means all words."""

    def __init__(self, controller: Controller) -> None:
        self.controller = controller
        engine = open_ledger(str(controller.home))
        with transaction(engine) as connection:
            demo = connection.execute(
                sa.select(tables.project.c.id).where(tables.project.c.name == "demo")
            ).scalar_one()
            self.uuids = {
                name: add_instance(connection, name, project_id=demo, vm_state="error") for name in ("ours", "theirs")
            }
            for name in ("hv1", "hv2"):
                add_host(connection, name)
        self.engine = engine
        self.group_vars = controller.elsewhere / "group_vars/all.yml"
        self.group_vars.write_text(json.dumps(POISON))

    def servers(self) -> set[str]:
        query = sa.select(tables.instance.c.name).where(tables.instance.c.deleted == 0)
        with reading(self.engine) as connection:
            return set(connection.execute(query).scalars())

    def disabled(self) -> set[str]:
        query = sa.select(tables.compute_host.c.name).where(~tables.compute_host.c.enabled)
        with reading(self.engine) as connection:
            return set(connection.execute(query).scalars())


@pytest.fixture
def poisoned(cloud: Controller) -> t.Iterator[Cloud]:
    made = Cloud(cloud)
    yield made
    with transaction(made.engine) as connection:
        for table in (tables.instance, tables.compute_host):
            connection.execute(sa.delete(table))
    made.engine.dispose()
    made.group_vars.unlink(missing_ok=True)


def test_the_server_of_the_command_line_is_deleted_and_not_the_inventorys(poisoned: Cloud) -> None:
    done = poisoned.controller.play("terminate.yml", "-e", "server=ours")
    assert done.returncode == 0, done.stdout + done.stderr
    assert poisoned.servers() == {"theirs"}
    assert "terminate.yml takes its options from -e, and not from the inventory, which has count" in done.stderr


def test_a_server_that_is_unknown_stands_for_no_other(poisoned: Cloud) -> None:
    """What is not there is deleted already."""
    done = poisoned.controller.play("terminate.yml", "-e", "server=nosuch")
    assert done.returncode == 0 and poisoned.servers() == {"ours", "theirs"}, done.stdout + done.stderr


def test_nothing_is_deleted_that_no_command_names(poisoned: Cloud) -> None:
    done = poisoned.controller.play("terminate.yml")
    assert done.returncode == 4 and poisoned.servers() == {"ours", "theirs"}
    assert "The inventory's server, servers, uuids is not an option of it" in done.stderr


def test_the_operators_own_word_is_not_warned_of(poisoned: Cloud) -> None:
    poisoned.group_vars.write_text("servers: [{name: theirs}]\nnovalite_extra_variables: [servers]\n")
    done = poisoned.controller.play("terminate.yml", "-e", "server=ours")
    assert done.returncode == 0 and poisoned.servers() == {"theirs"} and not done.stderr, done.stderr


@pytest.mark.parametrize("name", ["terminate.yml", "novalite.cloud.terminate"])
def test_a_playbook_of_somebody_elses_says_which(poisoned: Cloud, name: str) -> None:
    """By its own variables, which may lead to those of the inventory."""
    ours = ROOT / "playbooks" / name if name.endswith(".yml") else name
    theirs = poisoned.controller.elsewhere / "theirs.yml"
    theirs.write_text(f"- import_playbook: {ours}\n  vars: {{servers: '{{{{ going }}}}', uuids: []}}\n")
    done = poisoned.controller.play("./theirs.yml")
    assert (
        done.returncode == 4 and "uuids (from the playbook that imports terminate.yml) takes the place" in done.stderr
    )
    theirs.write_text(f"- import_playbook: {ours}\n  vars: {{servers: '{{{{ going }}}}'}}\n")
    poisoned.group_vars.write_text(json.dumps({**POISON, "going": [{"name": "ours"}]}))
    done = poisoned.controller.play("./theirs.yml")
    assert done.returncode == 0 and poisoned.servers() == {"theirs"}, done.stdout + done.stderr


def test_two_words_for_one_thing_end_the_run(poisoned: Cloud) -> None:
    done = poisoned.controller.play("terminate.yml", "-e", f"server=ours uuids={poisoned.uuids['theirs']}")
    assert done.returncode == 4 and poisoned.servers() == {"ours", "theirs"}
    assert "uuids (from -e) takes the place of server (from -e): leave out either" in done.stderr


def test_a_host_of_the_inventorys_is_not_emptied(poisoned: Cloud) -> None:
    done = poisoned.controller.play("host_evacuate.yml")
    assert done.returncode == 4 and not poisoned.disabled()
    done = poisoned.controller.play("host_evacuate.yml", "-e", "host=hv1")
    assert done.returncode == 0 and poisoned.disabled() == {"hv1"}, done.stdout + done.stderr
