# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Wishes for servers whose host dies are kept on their hosts, and come back from there with the ledger."""

from __future__ import annotations

import json
import typing as t

import hypothesis
import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._rules import ha_wishes
from tests.support.cloud import Cloud
from tests.support.examples import part_of
from tests.unit._ledger.servers.actions.test_rebuild import empty, kept, rebuild

SERVER = tables.instance.c
WISHES = tuple(SERVER[name] for name in ha_wishes.FIELDS)
wish = st.tuples(st.booleans(), st.integers(ha_wishes.LEAST, ha_wishes.MOST), st.booleans())
on_sqlite_cloud = pytest.mark.parametrize("cloud", ["sqlite"], indirect=True)


def wishes(cloud: Cloud) -> dict[str, tuple[t.Any, ...]]:
    rows = cloud.rows(sa.select(SERVER.name, *WISHES).where(SERVER.deleted == 0, SERVER.host.is_not(None)))
    return {name: tuple(values) for name, *values in rows}


@on_sqlite_cloud
@hypothesis.settings(
    max_examples=part_of(20), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@hypothesis.given(st.lists(wish, min_size=3, max_size=3))
def test_a_ledger_that_is_made_again_has_the_wishes_of_all_servers(full: Cloud, drawn: list[tuple[t.Any, ...]]) -> None:
    expected = dict(zip(sorted(wishes(full)), drawn))
    assert len(expected) == 3
    for name, values in expected.items():
        full.write(sa.update(tables.instance).where(SERVER.name == name).values(dict(zip(WISHES, values))))
    hosts = kept(full)
    empty(full)
    rebuild(full, hosts)
    assert wishes(full) == expected


@on_sqlite_cloud
def test_a_record_of_before_says_nothing_of_it(full: Cloud) -> None:
    full.write(sa.update(tables.instance).values(ha=True, ha_priority=5, ha_rebuild=True))
    hosts = kept(full)
    for host in hosts:
        for key, text in host["records"].items():
            record = json.loads(text)
            for row in record["tables"]["instance"]:
                for name in ha_wishes.FIELDS:
                    del row[name]
            host["records"][key] = json.dumps(record)
    empty(full)
    assert len(rebuild(full, hosts)["servers"]) == 3
    assert set(wishes(full).values()) == {(False, 0, False)}


@on_sqlite_cloud
def test_a_ledger_that_was_restored_learns_what_was_decided_since(full: Cloud) -> None:
    full.write(sa.update(tables.instance).values(updated_at=SERVER.updated_at - 10))
    full.task("server_ha", servers=["web-1"], ha=True, ha_rebuild=True, ha_priority=8)
    hosts = kept(full)
    before = {"ha": False, "ha_priority": 0, "ha_rebuild": False, "updated_at": SERVER.updated_at - 10}
    full.write(sa.update(tables.instance).where(SERVER.name == "web-1").values(before))
    result = rebuild(full, hosts)
    assert wishes(full)["web-1"] == (True, 8, True) and any("web-1" in line for line in result["updated"])
