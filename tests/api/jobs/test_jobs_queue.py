# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The queue and what makes runs of it: rows only, no process."""

from __future__ import annotations

import subprocess
import sys
import typing as t

import pytest
import sqlalchemy as sa
import yaml

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import reading, transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_jobs import job
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.jobs import claiming, event_rows
from ansible_collections.novalite.cloud.plugins.plugin_utils import _playbook_variables as rules
from ansible_collections.novalite.cloud.plugins.plugin_utils._playbooks import PLAYBOOKS
from api.jobs import events, queue, runs, supervisor
from api.jobs.kinds import KINDS
from api.jobs.options import Options
from api.web.errors import BadRequestError
from tests.api.jobs.clouds import PROJECTS, ROOT, JobCloud


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
            assert queue.get(connection, made["id"], PROJECTS["demo"])["id"] == made["id"]
            for call in (queue.get, queue.cancel, queue.retry):
                with pytest.raises(NotFoundError):
                    call(connection, made["id"], project_id=PROJECTS["other"])

    def test_pages(self, jobs: JobCloud) -> None:
        made = [jobs.create(f"a{number}")["id"] for number in range(5)]
        with reading(jobs.engine) as connection:
            first = queue.list_jobs(connection, limit=2)
            rest = queue.list_jobs(connection, marker=first[-1]["id"], project_id=PROJECTS["demo"])
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
        gone = jobs.delete(made["instances"])
        assert claim(jobs) == (None, set())
        end(jobs, run_id)
        assert claim(jobs)[1] == {gone["id"]}

    def test_what_comes_later_for_an_instance_does_not_pass(self, jobs: JobCloud) -> None:
        made = jobs.create("a", count=2)
        gone = jobs.delete(made["instances"][:1])
        other = jobs.create("b")
        assert claim(jobs)[1] == {made["id"], other["id"]}
        assert claim(jobs)[1] == set()
        assert jobs.job(gone["id"])["state"] == "queued"

    def test_a_launch_that_a_deletion_overtook_is_not_begun(self, jobs: JobCloud) -> None:
        made = jobs.create("a")
        gone = jobs.delete(made["instances"])
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
        jobs.delete([there[0]])
        assert claim(jobs, runs_per_host=1)[0] is not None
        second, third = jobs.delete([there[1]]), jobs.delete([elsewhere[0]])
        assert claim(jobs, runs_per_host=1)[1] == {third["id"]}
        assert jobs.job(second["id"])["state"] == "queued"

    def test_different_variables_go_apart(self, jobs: JobCloud) -> None:
        with transaction(jobs.engine) as connection:
            first = [queue.enqueue(connection, "console", instances=[u], variables={"lines": 5}) for u in ("u1", "u2")]
            queue.enqueue(connection, "console", instances=["u3"], variables={"lines": 6})
        assert claim(jobs)[1] == {record["id"] for record in first}

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
        if kind == "launch":
            jobs.create("a")
        else:
            with transaction(jobs.engine) as connection:
                queue.enqueue(connection, kind, instances=[] if KINDS[kind].instances == "none" else ["u1"])
        run_id, _jobs = claim(jobs)
        with reading(jobs.engine) as connection:
            variables = runs.plan_of(connection, str(run_id)).variables
        rules.meant(playbook, variables, {playbook}, False, [])
        assert ("uuids" in variables) == ("uuids" in known and KINDS[kind].instances != "none")

    @pytest.mark.parametrize("kind", ["launch", "rebuild", "rescue", "unrescue"])
    def test_no_job_waits_for_an_ssh_server_that_need_not_be_there(self, jobs: JobCloud, kind: str) -> None:
        if kind == "launch":
            jobs.create("a")
        else:
            with transaction(jobs.engine) as connection:
                queue.enqueue(connection, kind, instances=["u1"])
        run_id, _jobs = claim(jobs)
        with reading(jobs.engine) as connection:
            assert runs.plan_of(connection, str(run_id)).variables["wait_for"] == "running"


class TestEnd:
    def test_each_job_is_judged_by_its_instances(self, jobs: JobCloud) -> None:
        good, bad = jobs.create("good"), jobs.create("bad")
        run_id, _jobs = claim(jobs)
        build(jobs, good["instances"])
        jobs.run("server_state", outcomes=[{"uuids": bad["instances"], "state": "error", "reason": "no room"}])
        end(jobs, run_id, runs.FAILED, message="something else")
        assert (jobs.job(good["id"])["state"], jobs.job(good["id"])["message"]) == ("succeeded", None)
        assert (jobs.job(bad["id"])["state"], jobs.job(bad["id"])["message"]) == ("failed", "no room")

    def test_what_came_to_no_end_beside_others_runs_alone(self, jobs: JobCloud) -> None:
        first, second = jobs.create("a"), jobs.create("b")
        run_id, _jobs = claim(jobs)
        end(jobs, run_id, runs.FAILED, message="boom")
        assert {jobs.job(record["id"])["state"] for record in (first, second)} == {"queued"}
        alone = claim(jobs)
        assert alone[1] == {first["id"]}
        assert claim(jobs)[1] == {second["id"]}
        end(jobs, alone[0], runs.FAILED, message="boom")
        failed = jobs.job(first["id"])
        assert (failed["state"], failed["message"]) == ("failed", "boom")
        instance = jobs.instances(first["instances"])[first["instances"][0]]
        assert (instance["vm_state"], instance["task_state"], instance["fault"]["message"]) == ("error", None, "boom")

    def test_hosts_that_failed_beside_others_are_forgiven(self, jobs: JobCloud) -> None:
        first, _second = jobs.create("a"), jobs.create("b")
        run_id, _jobs = claim(jobs)
        set_states(jobs, first["instances"], attempts=["hv1"])
        end(jobs, run_id, runs.FAILED)
        assert jobs.instances(first["instances"])[first["instances"][0]]["attempts"] == []

    def test_a_run_that_is_lost_releases_everything_and_is_cleaned_up(self, jobs: JobCloud) -> None:
        made = jobs.create("a")
        run_id, _jobs = claim(jobs)
        placed = jobs.run("scheduler", instances=list(jobs.instances(made["instances"]).values()))
        jobs.run("fixed_ip", instances=placed["instances"])
        end(jobs, run_id, runs.LOST)
        assert jobs.job(made["id"])["message"] == "its worker died again and again"
        assert jobs.rows(sa.select(tables.allocation)) == []
        assert jobs.rows(sa.select(tables.fixed_ip).where(tables.fixed_ip.c.owner.like("vif:%"))) == []
        (cleaning,) = [record for record in jobs.jobs() if record["kind"] == "reconcile"]
        assert cleaning["variables"] == {"limit": placed["instances"][0]["host"]}
        assert jobs.leaks() == []

    def test_an_end_counts_once(self, jobs: JobCloud) -> None:
        made = jobs.create("a")
        run_id, _jobs = claim(jobs)
        build(jobs, made["instances"])
        end(jobs, run_id)
        with transaction(jobs.engine) as connection:
            assert not runs.end(connection, str(run_id), runs.Outcome(runs.LOST))
        assert jobs.job(made["id"])["state"] == "succeeded"

    def test_a_result_shows_each_job_its_own(self) -> None:
        mine, other = "a" * 36, "b" * 36
        data = {"console": {mine: "m", other: "o"}, "all": 1}
        assert runs.result_of(data, [mine], False) == {"console": {mine: "m"}}
        assert runs.result_of({"all": 1}, [], True) == {"all": 1}
        assert runs.result_of({"all": 1}, [], False) is None

    def test_attempts_are_counted(self, jobs: JobCloud) -> None:
        jobs.create("a")
        run_id, _jobs = claim(jobs)
        with transaction(jobs.engine) as connection:
            decisions = [runs.begin_attempt(connection, str(run_id), "w2", 2) for _number in range(4)]
            assert decisions == ["go", "go", "go", "lost"]
            connection.execute(sa.update(job).values(cancel_requested=True))
            assert runs.begin_attempt(connection, str(run_id), "w2", 2) == "cancelled"
        end(jobs, run_id)
        with transaction(jobs.engine) as connection:
            assert runs.begin_attempt(connection, str(run_id), "w2", 2) == "ended"


class TestCancel:
    def test_one_that_waits_is_cancelled_at_once(self, jobs: JobCloud) -> None:
        made = jobs.create("a")
        assert jobs.cancel(made["id"])["state"] == "cancelled"
        assert claim(jobs) == (None, set())
        instance = jobs.instances(made["instances"])[made["instances"][0]]
        assert (instance["vm_state"], instance["fault"]["message"]) == ("error", "the job was cancelled")
        with pytest.raises(ConflictError, match="ended"):
            jobs.cancel(made["id"])

    def test_in_company_the_others_go_on(self, jobs: JobCloud) -> None:
        doomed, other = jobs.create("a"), jobs.create("b")
        run_id, _jobs = claim(jobs)
        assert jobs.cancel(doomed["id"])["state"] == "running"
        with transaction(jobs.engine) as connection:
            assert not runs.cancel_in_company(connection, str(run_id))
        assert jobs.instances(doomed["instances"])[doomed["instances"][0]]["vm_state"] == "error"
        build(jobs, other["instances"])
        end(jobs, run_id, runs.SUCCESSFUL)
        assert [jobs.job(record["id"])["state"] for record in (doomed, other)] == ["cancelled", "succeeded"]

    def test_retry_begins_again_what_failed(self, jobs: JobCloud) -> None:
        made = jobs.create("a", count=2)
        run_id, _jobs = claim(jobs)
        build(jobs, made["instances"][:1])
        end(jobs, run_id, runs.FAILED, message="boom")
        with transaction(jobs.engine) as connection:
            again = queue.retry(connection, made["id"])
        assert again["instances"] == made["instances"][1:]
        assert again["retry_of"] == made["id"]
        build(jobs, again["instances"])
        end(jobs, claim(jobs)[0])
        assert jobs.job(again["id"])["state"] == "succeeded"
        with pytest.raises(ConflictError), transaction(jobs.engine) as connection:
            queue.retry(connection, again["id"])


class TestEvents:
    def test_texts_are_bounded_and_rid_of_secrets(self) -> None:
        reducer = events.Reducer("r", ["s3cr3t-value"])
        row = reducer.reduce(
            {
                "event": "runner_on_failed",
                "event_data": {
                    "task": "t" * 500,
                    "host": "h",
                    "res": {"msg": "s3cr3t-value\n\x1b[0m password=hunter2 http://me:you@host/ " + "x" * 5000},
                },
            }
        )
        assert row is not None and len(row["text"]) == events.MAX_TEXT and len(row["task"]) == events.MAX_NAME
        for secret in ("s3cr3t-value", "hunter2", "you@", "\n", "\x1b"):
            assert secret not in row["text"]

    def test_what_must_not_be_logged_is_not(self) -> None:
        reducer = events.Reducer("r")
        row = reducer.reduce(
            {
                "event": "runner_on_failed",
                "event_data": {"task": "t", "host": "h", "res": {"censored": "hidden", "msg": "the secret"}},
            }
        )
        assert row is not None and row["text"] == events.CENSORED
        assert "the secret" not in (reducer.failure or "")

    def test_of_a_shared_run_tenants_see_no_texts(self, jobs: JobCloud) -> None:
        mine = jobs.create("a")
        jobs.create("b", project="other")
        run_id, _jobs = claim(jobs)
        row = {"run_id": run_id, "created_at": 1.0, "event": "result", "host": "hv1", "status": "ok", "text": "other's"}
        with transaction(jobs.engine) as connection:
            event_rows.write(connection, [row])
            (seen,) = queue.events(connection, mine["id"])
            (full,) = queue.events(connection, mine["id"], texts=True)
            assert queue.events(connection, mine["id"], after=seen["seq"]) == []
        assert (seen["text"], seen["host"]) == (None, None)
        assert (full["text"], full["host"]) == ("other's", "hv1")

    def test_secrets_of_an_environment(self) -> None:
        found = events.secrets_of({"NOVALITE_LEDGER_URL": "postgresql://u:pass-word@h/d", "HOME": "/root"})
        assert "pass-word" in found and "/root" not in found


def test_no_variable_is_a_template() -> None:
    class Loader(yaml.SafeLoader):
        pass

    tags: list[str] = []

    def unsafe(loader: t.Any, node: t.Any) -> str:
        tags.append(node.tag)
        return str(node.value)

    Loader.add_constructor("!unsafe", unsafe)
    variables = {"a": "{{ x }}", "b": ["y", {"c": "no"}], "d": 1, "e": None, "f": "a\n'\"b: # \u2028"}
    assert yaml.load(runs.variables_file(variables), Loader) == variables
    assert len(tags) == 4


def test_processes_are_found_by_their_marker() -> None:
    command = [sys.executable, "-c", "input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, env={supervisor.MARKER: "r-1"}) as process:
        while not supervisor.processes_of("r-1"):
            assert process.poll() is None
        assert supervisor.processes_of("r-1") == [process.pid]
        assert supervisor.processes_of("r-11") == []
        assert supervisor.reap("r-1") == 1
        assert process.wait() == -9
        assert supervisor.processes_of("r-1") == []


def test_every_kind_has_its_playbook() -> None:
    assert [kind.name for kind in KINDS.values() if not (ROOT / "playbooks" / kind.playbook).exists()] == []


def test_a_deletion_that_was_lost_stays_wanted(jobs: JobCloud) -> None:
    made = jobs.create("a")
    end(jobs, claim(jobs)[0], runs.LOST)
    gone = jobs.delete(made["instances"])
    end(jobs, claim(jobs)[0], runs.LOST)
    assert jobs.job(gone["id"])["state"] == "failed"
    instance = jobs.instances(made["instances"])[made["instances"][0]]
    assert (instance["task_state"], instance["fault"]["message"]) == ("deleting", "its worker died again and again")
    with transaction(jobs.engine) as connection:
        again = queue.retry(connection, gone["id"])
    assert claim(jobs)[1] == {again["id"]}
