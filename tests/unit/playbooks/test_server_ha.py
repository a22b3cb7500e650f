# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""server_ha.yml, run by ansible-playbook: words of a person become what the ledger has of a server."""

from __future__ import annotations

import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import open_ledger, reading, transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import lookups
from tests.support.rows import add_host, an_instance
from tests.unit.playbooks.controller import Controller

WISHES = [tables.instance.c[name] for name in ("ha", "ha_priority", "ha_rebuild")]


@pytest.fixture
def ledger(cloud: Controller) -> t.Iterator[sa.Engine]:
    """The cloud's ledger with the server web, for as long as a test lasts."""
    engine = open_ledger(str(cloud.home))
    with transaction(engine) as connection:
        add_host(connection, "hv1")
        demo = lookups.project_by_name(connection, "demo")["id"]
        connection.execute(sa.insert(tables.instance).values(an_instance("web", project_id=demo, host="hv1")))
    yield engine
    with transaction(engine) as connection:
        for table in (tables.instance_action_event, tables.instance_action, tables.instance, tables.compute_host):
            connection.execute(sa.delete(table))
    engine.dispose()


def wishes(engine: sa.Engine) -> tuple[t.Any, ...]:
    with reading(engine) as connection:
        return tuple(connection.execute(sa.select(*WISHES)).one())


def test_words_on_the_command_line_are_recorded_and_shown(cloud: Controller, ledger: sa.Engine) -> None:
    words = ("-e", "server=web ha=yes ha_rebuild=true ha_priority=10")
    checked = cloud.play("server_ha.yml", *words, "--check")
    assert checked.returncode == 0 and "changed=1" in checked.stdout and wishes(ledger) == (False, 0, False)
    done = cloud.play("server_ha.yml", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "changed=1" in done.stdout and "HA_PRIORITY" in done.stdout and wishes(ledger) == (True, 10, True)
    assert "changed=0" in cloud.play("server_ha.yml", *words).stdout
    assert cloud.play("server_ha.yml", "-e", "server=web ha=no").returncode == 0
    assert wishes(ledger) == (False, 10, True)
    refused = cloud.play("server_ha.yml", "-e", "server=web ha=yes ha_rebuild=no")
    assert refused.returncode == 2 and "ha: true needs a disk on shared storage" in refused.stdout + refused.stderr
    assert wishes(ledger) == (False, 10, True) and not cloud.hosts_asked()
