# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A volume in shared storage names no host: its snapshots tell that it is somewhere."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.catalog import volume_types
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import volumes as operations
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volumes.volume_views import (
    Volume,
    volumes_by,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.volumes import (
    volume_plans,
    volume_snapshots,
    volumes,
)
from tests.support.calls import Job, a_call
from tests.support.rows import DEMO
from tests.unit._ledger.volumes.volumes_of_tests import blank, now


@pytest.fixture
def shared(connection: sa.Connection) -> Volume:
    connection.execute(sa.update(tables.compute_host).values(up=True, enabled=True))
    volume_types.create_type(connection, {"name": "shared", "backend": "nfs", "options": {"share": "s"}})
    return blank(connection, type="shared")


def test_a_volume_whose_first_snapshot_is_taken_stays_in_its_storage(connection: sa.Connection, shared: Volume) -> None:
    local = volume_types.type_of(connection, None)
    taken = volume_snapshots.create_snapshot(connection, DEMO, {"volume_id": shared.id})
    with pytest.raises(ConflictError, match="would have to move"):
        volumes.retype(connection, shared.id, local)
    volume_snapshots.finish_snapshot(connection, taken.id, error="no room")
    volume_snapshots.begin_delete_snapshot(connection, taken.id)
    volume_snapshots.finish_delete_snapshot(connection, taken.id)
    assert volumes.retype(connection, shared.id, local).backend == "file"


def test_a_volume_goes_with_its_snapshots_by_a_host(connection: sa.Connection, shared: Volume) -> None:
    jobs: list[Job] = []
    taken = volume_snapshots.create_snapshot(connection, DEMO, {"volume_id": shared.id})
    volume_snapshots.finish_snapshot(connection, taken.id, error="no room")
    operations.delete(a_call(connection, jobs=jobs), shared.id, project_id=DEMO, with_snapshots=True)
    assert [job.kind for job in jobs] == ["volume_delete"]
    hosts, nowhere = volume_plans.plan(connection, volumes=[now(connection, shared)])
    assert [[each["id"] for each in plan["gone"]] for plan in hosts.values()] == [[taken.id, shared.id]]
    assert nowhere == []
    volume_snapshots.finish_delete_snapshot(connection, taken.id)
    volumes.finish_delete(connection, shared.id)
    assert volumes_by(connection, ids=[shared.id]) == []
