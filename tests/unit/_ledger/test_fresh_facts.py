# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host that was heard of just now is believed, as long as the inventory says the same; it checks its room itself."""

from __future__ import annotations

import typing as t

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._domain.usage import Room, Share, shortage
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables import compute_host as table
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.placement.compute_hosts import record
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.placement.fresh_facts import (
    fresh_hosts,
    record_reported,
    rooms,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.compute_host import compute_host
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.scheduler import scheduler
from tests.unit._ledger.test_claims import facts, some, write

SAID = {"zone": "nova", "address": "192.0.2.1", "state_dir": "/var/lib/novalite"}


def heard_of(connection: sa.Connection, now: int, **more: t.Any) -> None:
    record(connection, [facts("hv1", address="192.0.2.1", zone="nova", **more)], now)


def is_fresh(connection: sa.Connection, now: int, **said: t.Any) -> bool:
    return fresh_hosts(connection, {"hv1": {**SAID, **said}}, 60, now) == ["hv1"]


@pytest.mark.parametrize(("age", "fresh"), [(0, True), (60, True), (61, False), (-1, False)])
def test_facts_are_fresh_for_so_long(age: int, fresh: bool, engine: sa.Engine) -> None:
    with transaction(engine) as connection:
        heard_of(connection, 1000)
        assert is_fresh(connection, 1000 + age) == fresh
        assert fresh_hosts(connection, {"hv2": {}}, 60, 1000) == []


@pytest.mark.parametrize("said", [{"zone": "west"}, {"cpu_ratio": 2.0}, {"state_dir": "/srv"}, {"antispoof": "chains"}])
def test_a_host_of_which_the_inventory_says_something_else_is_asked(said: dict[str, t.Any], engine: sa.Engine) -> None:
    with transaction(engine) as connection:
        heard_of(connection, 1000)
        assert not is_fresh(connection, 1000, **said)
        assert fresh_hosts(connection, {"hv1": None}, 60, 1000) == []  # the inventory makes no sense of it


def test_a_host_that_is_down_is_asked(engine: sa.Engine) -> None:
    with transaction(engine) as connection:
        heard_of(connection, 1000)
        record(connection, [{"name": "hv1", "up": False, "down_reason": "gone"}], 1001)
        assert not is_fresh(connection, 1001)


def test_a_host_that_failed_to_build_is_asked(engine: sa.Engine) -> None:
    with transaction(engine) as connection:
        heard_of(connection, 1000)
        connection.execute(sa.update(table).values(failed_builds=1))
        assert not is_fresh(connection, 1000)


def test_a_build_brings_facts_back(engine: sa.Engine) -> None:
    with transaction(engine) as connection:
        heard_of(connection, 1000, antispoof="chains")
        guest = {"uuid": "u", "name": "db", "state": "running", "vcpus": 2, "memory_mb": 1024, "disk_gb": 10}
        # as a host has them: it does not know what the inventory says
        said = facts("hv1", antispoof="nwfilter", domains=[guest])
        record_reported(connection, [said, facts("taken-out")], 2000)
        row = connection.execute(sa.select(table)).one()
    assert (row.last_seen_at, row.memory_mb_others) == (2000, 1024)
    assert (row.facts["antispoof"], row.facts["address"]) == ("chains", "192.0.2.1")


def test_a_room_is_what_the_ledger_counts_on(engine: sa.Engine) -> None:
    instances = some(2)
    with transaction(engine) as connection:
        write(connection, instances)
        compute_host(connection, {"compute_hosts": [facts("hv1")]})
        scheduler(connection, {"instances": instances})
        uuids = [instance["uuid"] for instance in instances]
        row = connection.execute(sa.select(table)).one()
        room = rooms(connection, {"hv1": uuids[:1]})["hv1"]
    assert room["instances"] == sorted(uuids)
    assert room["memory_mb"] == {"used": row.memory_mb_used, "reserved": 512, "ratio": 1.0} and row.memory_mb_used
    assert ("disk_gb" in room) == bool(row.disk_gb_used)


amounts = st.integers(0, 64)


@given(total=amounts, used=amounts, reserved=amounts, ratio=st.sampled_from([0.5, 1.0, 1.5, 16.0]), others=amounts)
def test_there_is_room_by_the_rule_of_a_claim(total: int, used: int, reserved: int, ratio: float, others: int) -> None:
    mine = {"uuid": "mine", "state": "running", "vcpus": 64, "memory_mb": 1, "disk_gb": 1}
    guest = {"uuid": "theirs", "state": "running", "vcpus": others, "memory_mb": 1, "disk_gb": 1}
    room = Room("running", frozenset({"mine"}), {"vcpus": Share(used, reserved, ratio)})
    lacking = shortage({"vcpus": total, "domains": [mine, guest]}, room)
    assert (lacking is None) == (used + others <= (total - reserved) * ratio)
    assert lacking is None or (f"{others}" in lacking and "vCPUs" in lacking)
