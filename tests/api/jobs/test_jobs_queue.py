# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The queue and what makes runs of it: rows only, no process."""

from __future__ import annotations

import pathlib
import re
import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import reading, transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_jobs import job
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.jobs import claiming
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.call import by_playbook
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.jobs import job_records
from ansible_collections.novalite.cloud.plugins.plugin_utils import _playbook_variables as rules
from ansible_collections.novalite.cloud.plugins.plugin_utils._playbooks import PLAYBOOKS
from api.jobs import queue, runs
from api.jobs.kinds import KINDS
from api.jobs.options import Options
from api.web.errors import BadRequestError
from tests.api.jobs.clouds import PROJECTS, JobCloud

COLLECTION = pathlib.Path(__file__).parents[3] / "collections/ansible_collections/novalite/cloud"


def claim(cloud: JobCloud, worker: str = "w1", full: bool = False, **options: t.Any) -> tuple[str | None, set[str]]:
    """Claim once; returns the run and its jobs."""
    with transaction(cloud.engine) as connection:
        run_id = claiming.claim(connection, worker, KINDS, Options(home=str(cloud.home), **options), full)
        if run_id is None:
            return None, set()
        return run_id, set(connection.execute(sa.select(job.c.id).where(job.c.run_id == run_id)).scalars())


def end(cloud: JobCloud, run_id: str | None, how: str = runs.SUCCESSFUL, **more: t.Any) -> None:
    assert run_id is not None
    with transaction(cloud.engine) as connection:
        assert runs.end(connection, run_id, runs.Outcome(how, **more))


def set_states(cloud: JobCloud, uuids: t.Sequence[str], **states: t.Any) -> None:
    cloud.write(sa.update(tables.instance).where(tables.instance.c.uuid.in_(uuids)).values(**states))


def build(cloud: JobCloud, uuids: t.Sequence[str]) -> None:
    """Write what a launch writes in the end."""
    placed = cloud.run("scheduler", instances=list(cloud.instances(uuids).values()), service_down_time=10**9)
    for instance in placed["instances"]:
        cloud.run("server_state", outcomes=[{"uuids": [instance["uuid"]], "host": instance["host"], "state": "active"}])


def waits(playbook: str) -> bool:
    """Tell whether a play of the book, or of what it imports, starts guests and may wait for them."""
    text = (path := COLLECTION / "playbooks" / playbook).read_text()
    steps = [
        (COLLECTION / "roles/spawn/tasks" / name).read_text() for name in re.findall(r"novalite_steps: (\S+)", text)
    ]
    imported = re.findall(r"import_playbook: (\S+)", text)
    return (
        "build.yml" in imported
        or any("start_guests.yml" in step for step in steps)
        or any(waits(f"{path.parent}/{name}") for name in imported)
    )


def ways(kind: str) -> list[str]:
    """The ways in which a job of this kind may name its servers."""
    by_names = [name for name in ("server", "servers", "uuids") if name in KINDS[kind].schema["properties"]]
    return [*by_names, *(["instances"] if KINDS[kind].instances != "none" else [])] or ["nothing"]


class TestEnqueue:
    def test_the_same_key_is_the_same_job(self, jobs: JobCloud) -> None:
        first = jobs.create("a", idempotency_key="k1")
        with transaction(jobs.engine) as connection:
            again = queue.enqueue(
                connection, "launch", instances=first["instances"], project_id=PROJECTS["demo"], idempotency_key="k1"
            )
        assert again["id"] == first["id"]
        assert len(jobs.jobs()) == 1

    def test_the_same_key_for_something_else_is_refused(self, jobs: JobCloud) -> None:
        jobs.create("a", idempotency_key="k1")
        with pytest.raises(ConflictError, match="k1"):
            jobs.create("b", idempotency_key="k1")
        assert len(jobs.jobs()) == 1

    def test_a_key_belongs_to_its_project(self, jobs: JobCloud) -> None:
        mine = jobs.create("a", idempotency_key="k")
        theirs = jobs.create("a", project="other", idempotency_key="k")
        assert mine["id"] != theirs["id"]

    def test_nothing_is_left_when_the_transaction_is_not_committed(self, jobs: JobCloud) -> None:
        with pytest.raises(RuntimeError), transaction(jobs.engine) as connection:
            queue.enqueue(connection, "evict")
            raise RuntimeError
        assert jobs.jobs() == []

    @pytest.mark.parametrize(
        ("kind", "variables"),
        [
            ("evict", {"max_age": -1}),
            ("evict", {"other": 1}),
            ("evict", {"limit": "-hv1"}),
            ("evict", {"limit": "@/etc/passwd"}),
            ("evict", {"limit": "hv1\n--become"}),
            ("precache", {"image": "{{ lookup('pipe', 'id') }}"}),
            ("launch", {"servers": [{"name": "a", "metadata": {"{% raw %}": "x"}}]}),
            ("launch", {"servers": [{"name": "a", "admin_password": "x"}]}),
            ("stop", {}),
        ],
    )
    def test_what_a_kind_does_not_take_is_refused(self, jobs: JobCloud, kind: str, variables: dict[str, t.Any]) -> None:
        with pytest.raises(BadRequestError), transaction(jobs.engine) as connection:
            queue.enqueue(connection, kind, variables=variables)

    def test_an_unknown_kind_is_not_found(self, jobs: JobCloud) -> None:
        with pytest.raises(NotFoundError), transaction(jobs.engine) as connection:
            queue.enqueue(connection, "format_disks")

    def test_the_project_is_the_callers(self, jobs: JobCloud) -> None:
        with transaction(jobs.engine) as connection:
            made = queue.enqueue(
                connection, "precache", variables={"image": "x", "project": "other"}, project_id=PROJECTS["demo"]
            )
        assert made["variables"]["project"] == "demo"

    def test_a_foreign_project_does_not_find_it(self, jobs: JobCloud) -> None:
        made = jobs.create("a")
        with reading(jobs.engine) as connection:
            assert job_records.get(connection, made["id"], PROJECTS["demo"])["id"] == made["id"]
            for act in (job_records.get, queue.cancel):
                with pytest.raises(NotFoundError):
                    act(connection, made["id"], project_id=PROJECTS["other"])
            with pytest.raises(NotFoundError):
                queue.retry(by_playbook(connection), made["id"], project_id=PROJECTS["other"])

    def test_pages(self, jobs: JobCloud) -> None:
        made = [jobs.create(f"a{number}")["id"] for number in range(5)]
        with reading(jobs.engine) as connection:
            first = job_records.list_jobs(connection, limit=2)
            rest = job_records.list_jobs(connection, marker=first[-1]["id"], project_id=PROJECTS["demo"])
        assert [record["id"] for record in first + rest] == made[::-1]


class TestClaim:
    def test_launches_that_wait_go_together(self, jobs: JobCloud) -> None:
        made = {jobs.create("a")["id"], jobs.create("b", project="other")["id"], jobs.create("c", count=3)["id"]}
        assert claim(jobs)[1] == made
        assert claim(jobs) == (None, set())

    def test_other_kinds_go_apart(self, jobs: JobCloud) -> None:
        first = jobs.create("a")
        with transaction(jobs.engine) as connection:
            evict = queue.enqueue(connection, "evict")
        second = jobs.create("b")
        assert claim(jobs)[1] == {first["id"], second["id"]}
        assert claim(jobs)[1] == {evict["id"]}

    def test_an_instance_is_in_one_run_at_a_time(self, jobs: JobCloud) -> None:
        made = jobs.create("a")
        run_id, _jobs = claim(jobs)
        gone = jobs.terminate(made["instances"])
        assert claim(jobs) == (None, set())
        end(jobs, run_id)
        assert claim(jobs)[1] == {gone["id"]}

    def test_what_comes_later_for_an_instance_does_not_pass(self, jobs: JobCloud) -> None:
        made = jobs.create("a", count=2)
        gone = jobs.terminate(made["instances"][:1])
        other = jobs.create("b")
        assert claim(jobs)[1] == {made["id"], other["id"]}
        assert claim(jobs)[1] == set()
        assert jobs.job(gone["id"])["state"] == "queued"

    def test_a_launch_that_a_deletion_overtook_is_not_begun(self, jobs: JobCloud) -> None:
        made = jobs.create("a")
        gone = jobs.terminate(made["instances"])
        assert claim(jobs)[1] == {gone["id"]}
        assert (jobs.job(made["id"])["state"], jobs.job(made["id"])["message"]) == (
            "failed",
            "ended by a request to delete",
        )

    def test_who_only_reads_waits_for_nobody_and_nobody_for_it(self, jobs: JobCloud) -> None:
        made = jobs.create("a")
        claim(jobs)
        with transaction(jobs.engine) as connection:
            reads = queue.enqueue(connection, "console", instances=made["instances"])
        assert claim(jobs)[1] == {reads["id"]}
        second = jobs.create("b")
        with transaction(jobs.engine) as connection:
            queue.enqueue(connection, "console", instances=second["instances"])
        jobs.write(sa.update(job).where(job.c.id == second["id"]).values(created_at=job.c.created_at + 60))
        assert claim(jobs)[1] not in (set(), {second["id"]})
        assert claim(jobs)[1] == {second["id"]}

    def test_limits(self, jobs: JobCloud) -> None:
        for number in range(KINDS["launch"].runs):
            jobs.create(f"a{number}", project="other" if number == 0 else "demo")
            assert claim(jobs)[0] is not None
        jobs.create("b")
        assert claim(jobs)[0] is None  # of one kind
        with transaction(jobs.engine) as connection:
            queue.enqueue(connection, "evict")
        assert claim(jobs, runs=KINDS["launch"].runs)[0] is None  # in all
        assert claim(jobs)[0] is not None

    def test_what_a_request_waits_for_goes_first_and_past_the_limits(self, jobs: JobCloud) -> None:
        first, second = jobs.create("a"), jobs.create("b")
        build(jobs, first["instances"])
        with transaction(jobs.engine) as connection:
            reads = [
                queue.enqueue(connection, "console", instances=first["instances"], variables={"lines": lines})
                for lines in range(KINDS["console"].runs + 1)
            ]
        limits: dict[str, t.Any] = {"runs": 1, "runs_per_host": 1}
        for record in reads[:-1]:
            assert claim(jobs, **limits)[1] == {record["id"]}
        assert claim(jobs, full=True, **limits)[0] is None  # its own kind's limit holds
        assert claim(jobs, **limits)[1] == {first["id"], second["id"]}  # and it takes no place away
        assert claim(jobs, **limits)[0] is None
        end(jobs, jobs.job(reads[0]["id"])["run_id"])
        assert claim(jobs, full=True, **limits)[1] == {reads[-1]["id"]}

    def test_a_limit_for_each_host(self, jobs: JobCloud) -> None:
        made = jobs.create("a", count=4)
        build(jobs, made["instances"])
        end(jobs, claim(jobs)[0])
        hosts = jobs.instances(made["instances"])
        first = next(iter(hosts))
        there = [uuid for uuid in hosts if hosts[uuid]["host"] == hosts[first]["host"]]
        elsewhere = [uuid for uuid in hosts if uuid not in there]
        assert len(there) > 1 and elsewhere
        jobs.terminate([there[0]])
        assert claim(jobs, runs_per_host=1)[0] is not None
        second, third = jobs.terminate([there[1]]), jobs.terminate([elsewhere[0]])
        assert claim(jobs, runs_per_host=1)[1] == {third["id"]}
        assert jobs.job(second["id"])["state"] == "queued"

    def test_different_variables_go_apart(self, jobs: JobCloud) -> None:
        with transaction(jobs.engine) as connection:
            first = [queue.enqueue(connection, "console", instances=[u], variables={"lines": 5}) for u in ("u1", "u2")]
            queue.enqueue(connection, "console", instances=["u3"], variables={"lines": 6})
        assert claim(jobs)[1] == {record["id"] for record in first}

    def test_a_launch_by_names_is_its_users(self, jobs: JobCloud) -> None:
        servers = [{"name": "web", "flavor": "m1.tiny", "image": "tiny", "key": "test"}]
        with transaction(jobs.engine) as connection:
            queue.enqueue(connection, "launch", variables={"servers": servers}, user_id="u" * 32)
        run_id, _jobs = claim(jobs)
        with reading(jobs.engine) as connection:
            assert runs.plan_of(connection, str(run_id)).variables["novalite_user"] == "u" * 32

    def test_reservations_are_for_each_job(self, jobs: JobCloud) -> None:
        first = jobs.create("a", count=2)
        second = jobs.create("b", count=2, variables={"all_or_nothing": False})
        run_id, _jobs = claim(jobs)
        with reading(jobs.engine) as connection:
            plan = runs.plan_of(connection, str(run_id))
        assert sorted(plan.variables["uuids"]) == sorted(first["instances"] + second["instances"])
        together = plan.variables["novalite_reservations"]
        assert {together[instance] for instance in first["instances"]} == {first["id"]}
        assert {instance: together[instance] for instance in second["instances"]} == {
            instance: instance for instance in second["instances"]
        }
        assert plan.variables["novalite_alone"] is False

    @pytest.mark.parametrize("kind", sorted(KINDS))
    def test_a_playbook_is_told_nothing_that_it_refuses(self, jobs: JobCloud, kind: str) -> None:
        playbook = KINDS[kind].playbook.removesuffix(".yml")
        taken = KINDS[kind].schema["properties"].keys() - {"limit"}  # which becomes --limit
        known = PLAYBOOKS[playbook].variables
        assert taken <= known.keys() | {alias for variable in known.values() for alias in variable.aliases}
        names: dict[str, t.Any] = (
            {"servers": [{"name": "a"}]} if "servers" in taken else {}
        )  # as /v1 keeps them in its jobs
        if kind == "cdrom":
            names["eject"] = True
        if kind == "launch":
            jobs.create("a", variables=names)
        else:
            with transaction(jobs.engine) as connection:
                instances = [] if KINDS[kind].instances == "none" else ["u1"]
                queue.enqueue(connection, kind, instances=instances, variables=names)
        run_id, _jobs = claim(jobs)
        with reading(jobs.engine) as connection:
            variables = runs.plan_of(connection, str(run_id)).variables
        rules.meant(playbook, variables, {playbook}, False, [])
        if variables.keys() & known.keys():
            rules.complete(playbook, variables, variables, [])
        assert ("uuids" in variables) == ("uuids" in known and KINDS[kind].instances != "none")

    @pytest.mark.parametrize(
        ("kind", "by"), [(kind, by) for kind, of in KINDS.items() if waits(of.playbook) for by in ways(kind)]
    )
    def test_no_job_waits_for_an_ssh_server_that_need_not_be_there(self, jobs: JobCloud, kind: str, by: str) -> None:
        names: dict[str, t.Any] = {
            "server": "a",
            "servers": [{"name": "a"}],
            "uuids": ["1" * 8 + "-1111" * 3 + "-" + "1" * 12],
        }
        if (kind, by) == ("launch", "instances"):
            jobs.create("a")
        else:
            with transaction(jobs.engine) as connection:
                variables = {by: names[by]} if by in names else {}
                queue.enqueue(connection, kind, instances=[] if variables else ["u1"], variables=variables)
        run_id, _jobs = claim(jobs)
        with reading(jobs.engine) as connection:
            assert runs.plan_of(connection, str(run_id)).variables["wait_for"] == "running"
