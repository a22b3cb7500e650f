# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""One project against all: however much it asks for, others' jobs begin within one job's time."""

from __future__ import annotations

import time
import typing as t
import uuid

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import QuotaError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_jobs import job
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.jobs import claiming
from api.jobs import queue, runs
from api.jobs.kinds import KINDS
from api.jobs.options import Options
from tests.api.jobs.clouds import PROJECTS, JobCloud
from tests.support.patience import GENEROUS

FLOOD = 2000


@pytest.fixture(params=["jobs", "jobs_on_postgresql"])
def cloud(request: pytest.FixtureRequest) -> JobCloud:
    """A cloud without a worker."""
    return t.cast(JobCloud, request.getfixturevalue(request.param))


def flood(cloud: JobCloud, kind: str, count: int = FLOOD, project: str = "other", **variables: t.Any) -> None:
    """Have `count` jobs of a project wait, longer than any other does, as they were before quotas bounded them."""
    row = {
        "kind": kind,
        "project_id": PROJECTS[project],
        "variables": variables,
        "state": "queued",
        "timeout_seconds": 300,
    }
    began = time.time() - 3600
    with transaction(cloud.engine) as connection:
        connection.execute(
            sa.insert(job), [{**row, "id": str(uuid.uuid4()), "created_at": began + number} for number in range(count)]
        )


def ask(cloud: JobCloud, kind: str, project: str = "demo", **more: t.Any) -> str:
    with transaction(cloud.engine) as connection:
        return str(queue.enqueue(connection, kind, project_id=PROJECTS[project], **more)["id"])


def begin(cloud: JobCloud) -> tuple[str, list[str]] | None:
    """Make the next run; returns it with its jobs' projects, None when nothing may go now."""
    with transaction(cloud.engine) as connection:
        run_id = claiming.claim(connection, "w1", KINDS, Options(home=str(cloud.home)))
        if run_id is None:
            return None
        of = connection.execute(sa.select(job.c.project_id).where(job.c.run_id == run_id)).scalars()
        return run_id, [name for number in of for name in PROJECTS if PROJECTS[name] == number]


def end(cloud: JobCloud, run_id: str) -> None:
    with transaction(cloud.engine) as connection:
        runs.end(connection, run_id, runs.Outcome(runs.SUCCESSFUL))


@pytest.mark.parametrize(
    ("kind", "variables"),
    [
        ("plan", {}),
        ("launch", {"servers": [{"name": "x"}]}),  # not one of them goes with another
        ("volume_create", {"volumes": [str(uuid.UUID(int=1))]}),
    ],
    ids=["plan", "launch", "volume_create"],
)
def test_a_full_queue_leaves_others_a_slot(jobs: JobCloud, kind: str, variables: dict[str, t.Any]) -> None:
    flood(jobs, kind, **variables)
    mine = 0
    while begun := begin(jobs):
        assert begun[1] == ["other"]
        mine += 1
    assert mine in (2, 3)  # it works on, and not everywhere
    launch = jobs.create("web")
    begun = begin(jobs)
    assert begun is not None and begun[1] == ["demo"]
    assert jobs.job(launch["id"])["state"] == "running"


def test_of_what_goes_one_after_the_other_each_project_has_its_turn(cloud: JobCloud) -> None:
    flood(cloud, "security_groups")
    for number in range(3):
        ask(cloud, "security_groups", variables={"security_groups": [{"name": str(number)}]})
    turns = []
    for _number in range(7):
        begun = begin(cloud)
        assert begun is not None
        turns += begun[1]
        assert begin(cloud) is None
        end(cloud, begun[0])
    assert turns[:6] in (["other", "demo"] * 3, ["demo", "other"] * 3)
    assert turns[6] == "other"


def test_what_a_project_has_at_work_counts_for_its_turn(jobs: JobCloud) -> None:
    """However long ago it began: whoever has nothing at work goes first, even if others were served before."""

    def volume(project: str = "demo") -> str:
        return ask(jobs, "volume_create", project, variables={"volumes": [str(uuid.uuid4())]})

    for _number in range(3):
        volume("other")
    at_work = [begin(jobs), begin(jobs)]
    assert [begun and begun[1] for begun in at_work] == [["other"], ["other"]]
    jobs.write(sa.update(job).where(job.c.state == "running").values(started_at=1.0))
    jobs.write(sa.update(job).where(job.c.id == volume()).values(state="succeeded", started_at=time.time()))
    volume()
    begun = begin(jobs)
    assert begun is not None and begun[1] == ["demo"]


def test_one_project_alone_goes_in_the_order_in_which_it_asked(jobs: JobCloud) -> None:
    asked = [ask(jobs, "security_groups", variables={"security_groups": [{"name": str(n)}]}) for n in range(3)]
    for job_id in asked:
        begun = begin(jobs)
        assert begun is not None
        assert jobs.job(job_id)["run_id"] == begun[0]
        end(jobs, begun[0])


def test_turns_do_not_turn_round_what_is_asked_of_one_instance(cloud: JobCloud) -> None:
    for number in range(3):
        ask(cloud, "floating_ips", variables={"address": f"192.0.2.{number}"})
    stop = ask(cloud, "stop", instances=["u1"])
    start = ask(cloud, "start", project="other", instances=["u1"])  # an administrator, in a project of its own
    while begin(cloud):
        pass
    assert (cloud.job(stop)["state"], cloud.job(start)["state"]) == ("running", "queued")


def test_a_project_has_so_many_open_jobs_and_no_more(jobs: JobCloud) -> None:
    quota = tables.quota
    limit = {"project_id": PROJECTS["demo"], "resource": "jobs", "hard_limit": 3}
    jobs.write(sa.insert(quota).values(limit))
    for _number in range(3):
        ask(jobs, "plan")
    with pytest.raises(QuotaError, match="quota exceeded for jobs: 4 wanted, 3 allowed"):
        ask(jobs, "plan")
    ask(jobs, "plan", project="other")  # each has its own
    ask(jobs, "terminate", instances=["u1"])  # who has too much is not kept from giving it back
    begun = begin(jobs)
    assert begun is not None
    with pytest.raises(QuotaError):
        ask(jobs, "plan")  # what runs is open, too
    end(jobs, begun[0])
    ask(jobs, "plan")
    with transaction(jobs.engine) as connection:  # the cloud's own has none
        for _number in range(4):
            queue.enqueue(connection, "evict")


def test_quotas_bound_a_flood_by_default(jobs: JobCloud) -> None:
    flood(jobs, "plan", 500)
    with pytest.raises(QuotaError):
        ask(jobs, "plan", project="other")


def test_with_a_worker_a_launch_does_not_wait_for_the_flood(jobs: JobCloud) -> None:
    flood(jobs, "security_groups")
    jobs.work()
    deadline = time.monotonic() + GENEROUS
    while not jobs.rows(sa.select(job.c.id).where(job.c.state == "running")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    launch = jobs.create("web")
    assert jobs.wait(launch["id"])[0]["state"] == "succeeded"
    (waiting,) = jobs.rows(sa.select(sa.func.count()).where(job.c.state == "queued"))
    assert waiting[0] > FLOOD - 200
