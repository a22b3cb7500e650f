# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whose runs are to be taken over: those of workers that are gone."""

from __future__ import annotations

import time

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import reading
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_jobs import run, worker
from api.jobs import workers
from api.jobs.options import Options
from tests.api.jobs.clouds import JobCloud


@pytest.fixture(params=["jobs", "jobs_on_postgresql"])
def cloud(request: pytest.FixtureRequest) -> JobCloud:
    """A cloud without a worker, on each database in turn."""
    return request.getfixturevalue(request.param)


def test_a_worker_of_another_machine_is_gone_after_a_long_silence_or_when_it_was_stopped(cloud: JobCloud) -> None:
    now = time.time()
    for name, silent, stopped_at in (("alive", 5, None), ("dead", 60, None), ("stopped", 5, now - 5)):
        row = {"id": name, "machine": "another", "hostname": "h", "pid": 1, "started_at": now - 100}
        cloud.write(sa.insert(worker).values(seen_at=now - silent, stopped_at=stopped_at, **row))
        cloud.write(sa.insert(run).values(id=f"of-{name}", kind="evict", state="running", worker_id=name, created_at=0))
    cloud.write(sa.insert(run).values(id="of-none", kind="evict", state="running", worker_id="none", created_at=0))
    options = Options(home=str(cloud.home), ledger_url=cloud.ledger_url, lost_after=20)
    with reading(cloud.engine) as connection:
        gone = workers.orphans(connection, options, "me")
        assert sorted(gone) == [("of-dead", "dead"), ("of-none", "none"), ("of-stopped", "stopped")]
        assert ("of-dead", "dead") not in workers.orphans(connection, options, "dead")
