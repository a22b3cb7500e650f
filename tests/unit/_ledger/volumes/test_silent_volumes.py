# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Volumes show no sign of life of their own: those of servers at work are as alive as these."""

from __future__ import annotations

import time
import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import clock, tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_jobs import job, job_instance
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_volumes import volume
from tests.support.cloud import Cloud
from tests.unit._ledger.volumes.volumes_of_tests import with_data

OLD = int(time.time()) - 1200


@pytest.fixture(autouse=True)
def known_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "before", lambda connection, age: clock.now(connection) - age)


def slow_build(cloud: Cloud, silent: bool, state: str | None) -> str:
    """Begin to build a server with a volume of each origin, long ago; with a job in this state (None: a playbook's)."""
    with transaction(cloud.engine) as connection:
        there = with_data(connection, name="data")
    disks = [{"boot": True, "size": 5}, {"volume": there.name}, {"size": 1}]
    asked = {"name": "big", "flavor": "m1.tiny", "image": "ami-tiny", "volumes": disks}
    (server,) = cloud.server(asked)["to_build"]
    uuid = str(server["uuid"])
    cloud.place(uuid)
    cloud.write(sa.update(volume).values(updated_at=OLD))
    if silent:
        cloud.write(sa.update(tables.instance).values(updated_at=OLD))
    if state is not None:
        values = {"id": "j", "kind": "launch", "variables": {}, "timeout_seconds": 1, "created_at": OLD}
        cloud.write(
            sa.insert(job).values(**values, state=state), sa.insert(job_instance).values(job_id="j", instance_uuid=uuid)
        )
    return uuid


def statuses(cloud: Cloud) -> list[tuple[str, bool]]:
    rows = cloud.rows(sa.select(volume.c.status, volume.c.made_at))
    return sorted((row.status, row.made_at is not None) for row in rows)


@pytest.mark.parametrize(("silent", "state"), [(True, "queued"), (True, "running"), (False, None)])
def test_volumes_of_a_slow_build_are_its_own(cloud: Cloud, silent: bool, state: str | None) -> None:
    uuid = slow_build(cloud, silent, state)
    before = statuses(cloud)
    assert cloud.task("ledger_heal")["corrections"] == [] and statuses(cloud) == before
    cloud.state({"uuids": [uuid], "state": "active", "host": "hv1"})
    assert statuses(cloud) == [("in-use", True)] * 3


def test_volumes_of_a_dead_build_end_with_it(cloud: Cloud) -> None:
    slow_build(cloud, True, "failed")
    corrections: list[dict[str, t.Any]] = cloud.task("ledger_heal")["corrections"]
    assert [each["kind"] for each in corrections] == ["instance", *["volume"] * 3]
    assert statuses(cloud) == [("error", False), ("error", False), ("error_attaching", True)]


@pytest.mark.parametrize("status", ["error", "error_attaching"])
def test_a_guest_that_runs_has_its_volumes_whatever_was_said_of_them(cloud: Cloud, status: str) -> None:
    uuid = slow_build(cloud, True, "running")
    cloud.write(sa.update(volume).values(status=status))
    cloud.state({"uuids": [uuid], "state": "active", "host": "hv1"})
    assert statuses(cloud) == [("in-use", True)] * 3
