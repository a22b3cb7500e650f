# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Jobs that nobody asks for: reconciling now and then, and forgetting what is old."""

from __future__ import annotations

import time
import types

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_jobs import (
    job,
    job_instance,
    run,
    run_job,
)
from api.jobs import queue
from api.jobs.options import Options
from tests.api.jobs.clouds import JobCloud

DAY = 24 * 3600.0


@pytest.fixture
def housekeeping() -> types.ModuleType:
    """The module, which imports DBOS: that is too much for those who only collect tests."""
    from api.jobs import housekeeping

    return housekeeping


def set_job(cloud: JobCloud, job_id: str | None, **values: object) -> None:
    cloud.write(sa.update(job).where(job.c.id == job_id).values(**values))


def test_a_reconcile_is_asked_for_when_the_last_one_is_long_ago(jobs: JobCloud, housekeeping: types.ModuleType) -> None:
    first = housekeeping.reconcile_when_due(jobs.engine, 60)
    assert jobs.job(str(first))["kind"] == "reconcile"
    set_job(jobs, first, created_at=time.time() - 100)
    assert housekeeping.reconcile_when_due(jobs.engine, 60) is None  # it waits still
    set_job(jobs, first, state="succeeded")
    assert housekeeping.reconcile_when_due(jobs.engine, 200) is None
    assert housekeeping.reconcile_when_due(jobs.engine, 60) is not None
    assert housekeeping.reconcile_when_due(jobs.engine, 60) is None


def test_a_job_for_one_host_counts_for_nothing(jobs: JobCloud, housekeeping: types.ModuleType) -> None:
    with transaction(jobs.engine) as connection:
        queue.enqueue(connection, "reconcile", variables={"limit": "hv1"})
        queue.enqueue(connection, "reconcile", check_mode=True)
    assert housekeeping.reconcile_when_due(jobs.engine, 60) is not None


def test_it_is_off_unless_asked_for() -> None:
    assert Options.from_environment({}).reconcile_seconds == 0
    assert Options.from_environment({"NOVALITE_API_RECONCILE_SECONDS": "600"}).reconcile_seconds == 600
    with pytest.raises(NovaliteError, match="NOVALITE_API_RECONCILE_SECONDS='often' is not a positive number"):
        Options.from_environment({"NOVALITE_API_RECONCILE_SECONDS": "often"})


def test_old_jobs_are_forgotten_with_all_that_hangs_on_them(
    jobs: JobCloud, housekeeping: types.ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping.durable, "forget", lambda _then: None)  # there is no DBOS here
    now = time.time()
    made = {}
    for name, state, age in (("old", "failed", 91), ("new", "succeeded", 89), ("at work", "running", 91)):
        record = jobs.create(name.replace(" ", "-"))
        made[name] = record["id"]
        run_id = f"run of {name}"
        values = {"kind": "launch", "worker_id": "w", "created_at": now - age * DAY, "finished_at": now - age * DAY}
        jobs.write(sa.insert(run).values(id=run_id, state="running" if state == "running" else "ended", **values))
        jobs.write(sa.insert(run_job).values(run_id=run_id, job_id=record["id"]))
        ended = None if state == "running" else now - age * DAY
        set_job(jobs, record["id"], state=state, run_id=run_id, finished_at=ended, created_at=now - age * DAY)
    options = Options(home=str(jobs.home), keep_days=1000)
    options.make_directories()
    housekeeping.keep_house(jobs.engine, options)
    assert {row.id for row in jobs.rows(sa.select(job.c.id))} == {made["new"], made["at work"]}
    assert {row.job_id for row in jobs.rows(sa.select(job_instance.c.job_id))} == {made["new"], made["at work"]}
    assert {row.id for row in jobs.rows(sa.select(run.c.id))} == {"run of new", "run of at work"}


def test_what_a_guest_wrote_is_kept_as_long_as_the_events(
    jobs: JobCloud, housekeeping: types.ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping.durable, "forget", lambda _then: None)  # there is no DBOS here
    now, said = time.time(), {"console": {"u": "x"}}
    old, new = (jobs.create(name)["id"] for name in ("old", "new"))
    for job_id, age in ((old, 8), (new, 6)):
        set_job(jobs, job_id, state="succeeded", result=said, finished_at=now - age * DAY)
    options = Options(home=str(jobs.home))
    options.make_directories()
    housekeeping.keep_house(jobs.engine, options)
    assert (jobs.job(old)["result"], jobs.job(new)["result"]) == (None, said)
