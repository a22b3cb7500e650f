# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Jobs for real: workers, supervisors and ansible-runner, killed and cancelled; only the hypervisors are missing."""

from __future__ import annotations

import os
import pathlib
import select
import signal
import subprocess
import sys
import time
import typing as t
import uuid

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import reading, transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_jobs import job, run, worker
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.jobs import job_records
from api.jobs import queue, supervisor
from tests.api.jobs.clouds import PROJECTS, ROOT, JobCloud, overlaps
from tests.support.patience import GENEROUS

LONG = "60"  # seconds that a playbook takes which is to be killed
LOOK = 0.1  # seconds between looks at all processes of this machine


def until(condition: t.Callable[[], t.Any], what: str, seconds: float = GENEROUS) -> t.Any:
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(LOOK)
    return value


def processes(cloud: JobCloud, job_id: str) -> list[int]:
    """The processes of the run that a job is in."""
    run_id = cloud.job(job_id)["run_id"]
    return supervisor.processes_of(run_id) if run_id else []


def at_sleep(cloud: JobCloud, job_id: str) -> list[int]:
    """The same, once its playbook has come to the task that takes a while."""
    pids = processes(cloud, job_id)
    return pids if any(b"sleep\0" in _command(pid)[:8] for pid in pids) else []


def _command(pid: int) -> bytes:
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def supervisor_of(cloud: JobCloud, job_id: str) -> int:
    run_id = cloud.job(job_id)["run_id"]
    return next(note["pid"] for note in reversed(cloud.trace()) if note["run"] == run_id and note["what"] == "start")


class TestOneWorker:
    def test_launches_of_two_projects_share_a_run(self, at_work: JobCloud) -> None:
        made = [at_work.create("a", count=2), at_work.create("b", project="other")]
        done = at_work.wait(*(record["id"] for record in made))
        assert [record["state"] for record in done] == ["succeeded", "succeeded"]
        assert len({record["run_id"] for record in done}) == 1
        states = at_work.instances([uuid for record in made for uuid in record["instances"]]).values()
        assert {state["vm_state"] for state in states} == {"active"}
        gone = at_work.terminate(made[0]["instances"])
        assert at_work.wait(gone["id"])[0]["state"] == "succeeded"
        assert at_work.leaks() == []

    def test_what_reaches_a_playbook_and_what_is_left_of_it(self, at_work: JobCloud) -> None:
        groups = [{"name": "web", "description": "a 'b' \"c\" # d"}]
        with transaction(at_work.engine) as connection:
            made = queue.enqueue(
                connection, "security_groups", variables={"security_groups": groups}, project_id=PROJECTS["demo"]
            )
        (done,) = at_work.wait(made["id"])
        assert done["state"] == "succeeded", done["message"]
        assert done["result"]["groups"] == groups
        environment = dict(line.split("=", 1) for line in done["result"]["environment"].splitlines() if "=" in line)
        assert environment["NOVALITE_RUN_ID"] == done["run_id"]
        assert not [name for name in environment if name.startswith(("NOVALITE_JOBS", "PYTEST"))]
        assert "web" not in done["result"]["arguments"]
        assert not list((at_work.home / "jobs" / "runs").glob("*/env/variables.yml"))

    def test_a_template_in_a_variable_stays_text(self, at_work: JobCloud) -> None:
        # past the check of the kind, which refuses it
        evil = "{{ lookup('ansible.builtin.pipe', 'echo done') }}"
        row: dict[str, t.Any] = {
            "id": str(uuid.uuid4()),
            "kind": "security_groups",
            "variables": {"security_groups": [{"name": evil}]},
            "state": "queued",
            "timeout_seconds": 60,
            "created_at": time.time(),
            "project_id": None,
        }
        at_work.write(sa.insert(job).values(row))
        (done,) = at_work.wait(row["id"])
        assert done["state"] == "succeeded", done["message"]
        assert done["result"]["groups"] == [{"name": evil}]

    def test_what_must_not_be_logged_is_nowhere(self, at_work: JobCloud) -> None:
        with transaction(at_work.engine) as connection:
            made = queue.enqueue(
                connection,
                "security_groups",
                variables={"security_groups": [{"name": "secret"}]},
                project_id=PROJECTS["demo"],
            )
        (done,) = at_work.wait(made["id"])
        assert done["state"] == "failed"
        with reading(at_work.engine) as connection:
            seen = job_records.events_of(connection, made["id"], texts=True)
        assert [event["status"] for event in seen if event["status"]] == ["ok", "failed"]
        assert "hidden-value" not in str(seen) + str(done)
        for path in (at_work.home / "jobs").rglob("*"):
            if path.is_file() and not path.name.startswith("dbos"):
                assert b"hidden-value" not in path.read_bytes()

    def test_a_job_that_takes_too_long_is_ended(self, at_work: JobCloud) -> None:
        with transaction(at_work.engine) as connection:
            made = queue.enqueue(connection, "evict", timeout_seconds=2)
        (done,) = at_work.wait(made["id"])
        assert (done["state"], done["message"]) == ("failed", "it took longer than 2 s")
        assert processes(at_work, made["id"]) == []

    def test_cancelling_ends_every_process_and_releases(self, at_work: JobCloud) -> None:
        with transaction(at_work.engine) as connection:
            made = queue.enqueue(connection, "evict")
        pids = until(lambda: at_sleep(at_work, made["id"]), "the playbook's sleep")
        at_work.cancel(made["id"])
        (done,) = at_work.wait(made["id"])
        assert (done["state"], done["message"]) == ("cancelled", "the job was cancelled")
        assert not [pid for pid in pids if pathlib.Path(f"/proc/{pid}").exists() and _command(pid)]


class TestKilled:
    """A launch comes to its end, once at a time, whoever is killed while it is under way."""

    def launch(self, jobs: JobCloud) -> tuple[dict[str, t.Any], list[int]]:
        jobs.work(ANSIBLE_NOVALITE_SLEEP=LONG)
        made = jobs.create("a", count=2)
        return made, until(lambda: at_sleep(jobs, made["id"]), "the playbook's sleep")

    def ends_well(self, jobs: JobCloud, made: dict[str, t.Any], before: list[int]) -> None:
        (done,) = jobs.wait(made["id"])
        assert done["state"] == "succeeded", done["message"]
        assert not [pid for pid in before if _command(pid)]
        assert {instance["vm_state"] for instance in jobs.instances(made["instances"]).values()} == {"active"}
        assert overlaps(jobs.trace()) == []
        assert jobs.leaks() == []
        (attempts,) = jobs.rows(sa.select(run.c.attempts).where(run.c.id == done["run_id"]))[0]
        assert attempts == 2

    @pytest.mark.thorough  # beside the two that end with their supervisor (below) and with their server (TestEmbedded)
    def test_the_worker(self, jobs: JobCloud) -> None:
        made, before = self.launch(jobs)
        os.kill(jobs.workers[0].pid, signal.SIGKILL)
        until(lambda: not [pid for pid in before if _command(pid)], "the end of its processes")
        jobs.work()
        self.ends_well(jobs, made, before)

    @pytest.mark.thorough  # on PostgreSQL, too: test_on_postgresql_another_worker_goes_on
    def test_the_worker_and_another_one_is_there(self, jobs: JobCloud) -> None:
        made, before = self.launch(jobs)
        jobs.work()
        time.sleep(1)
        os.kill(jobs.workers[0].pid, signal.SIGKILL)
        self.ends_well(jobs, made, before)

    def test_worker_and_supervisor_at_once(self, jobs: JobCloud) -> None:
        made, before = self.launch(jobs)
        pids = [jobs.workers[0].pid, supervisor_of(jobs, made["id"])]
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        jobs.work()
        self.ends_well(jobs, made, before)

    def test_the_supervisor_again_and_again(self, jobs: JobCloud) -> None:
        made, _before = self.launch(jobs)
        killed: set[int] = set()
        while jobs.job(made["id"])["state"] == "running":
            pid = supervisor_of(jobs, made["id"])
            if pid not in killed and at_sleep(jobs, made["id"]):
                os.kill(pid, signal.SIGKILL)
                killed.add(pid)
            time.sleep(LOOK)
        (done,) = jobs.wait(made["id"])
        assert (done["state"], done["message"]) == ("failed", "its worker died again and again")
        assert len(killed) == 4  # the first attempt and three take-ups
        assert {instance["vm_state"] for instance in jobs.instances(made["instances"]).values()} == {"error"}
        assert jobs.leaks() == []

    def test_a_worker_that_is_told_to_stop_leaves_its_run_to_others(self, jobs: JobCloud) -> None:
        made, before = self.launch(jobs)
        jobs.workers[0].send_signal(signal.SIGTERM)
        assert jobs.workers[0].wait(GENEROUS) == 0
        assert not [pid for pid in before if _command(pid)]
        jobs.work()
        (done,) = jobs.wait(made["id"])
        assert done["state"] == "succeeded"
        assert jobs.rows(sa.select(run.c.attempts).where(run.c.id == done["run_id"])) == [(1,)]


@pytest.mark.parametrize("killed", [pytest.param(1, marks=pytest.mark.thorough), 2])
def test_on_postgresql_another_worker_goes_on(jobs_on_postgresql: JobCloud, killed: int) -> None:
    jobs = jobs_on_postgresql
    first = [jobs.work(ANSIBLE_NOVALITE_SLEEP=LONG) for _number in range(killed)]
    made = jobs.create("a")
    before = until(lambda: at_sleep(jobs, made["id"]), "the playbook's sleep")
    jobs.work()
    time.sleep(2)
    for process in first:
        process.kill()
    (done,) = jobs.wait(made["id"])
    assert done["state"] == "succeeded", done["message"]
    assert not [pid for pid in before if _command(pid)]
    assert overlaps(jobs.trace()) == []
    assert jobs.rows(sa.select(job.c.state)) == [("succeeded",)]


def test_a_worker_that_is_told_to_stop_ends_whatever_the_ledger_says(jobs_on_postgresql: JobCloud) -> None:
    process = jobs_on_postgresql.work()
    log = jobs_on_postgresql.home / "workers.log"
    until(lambda: " works" in log.read_text(), "the worker")
    with transaction(jobs_on_postgresql.engine) as connection:
        connection.execute(sa.text("ALTER TABLE worker RENAME TO worker_of_another_version"))
    process.send_signal(signal.SIGTERM)
    assert process.wait(GENEROUS) == 0
    assert not list((jobs_on_postgresql.home / "jobs/workers").iterdir())


class TestEmbedded:
    SERVER = (
        "import sys, time; from api.jobs import embedded, options\n"
        "embedded.Keeper(options.Options.from_environment(home=sys.argv[1])); time.sleep(600)"
    )

    def workers(self, jobs: JobCloud) -> list[int]:
        """The workers that are at work."""
        rows = jobs.rows(sa.select(worker.c.pid).where(worker.c.stopped_at.is_(None)))
        return [pid for (pid,) in rows if b"api.jobs" in _command(pid)]

    def test_a_worker_whose_server_is_killed_has_cancelled_nothing(self, jobs: JobCloud) -> None:
        environment = {**os.environ, **jobs.environment(), "ANSIBLE_NOVALITE_SLEEP": LONG}
        made = jobs.create("a")
        with subprocess.Popen(
            [sys.executable, "-c", self.SERVER, str(jobs.home)], env=environment, stdout=subprocess.DEVNULL
        ) as server:
            before = until(lambda: at_sleep(jobs, made["id"]), "the playbook's sleep")
            (orphan,) = self.workers(jobs)
            server.kill()
        until(lambda: not _command(orphan), "the worker's end")
        until(lambda: not [pid for pid in before if _command(pid)], "the end of its processes")
        # what it cut off is no result: the job is still one that is at work, and whoever comes next goes on with it
        assert jobs.job(made["id"])["state"] == "running"
        assert jobs.rows(sa.select(run.c.state, run.c.outcome)) == [("running", None)]
        jobs.work()
        (done,) = jobs.wait(made["id"])
        assert done["state"] == "succeeded", done["message"]
        assert {instance["vm_state"] for instance in jobs.instances(made["instances"]).values()} == {"active"}

    def test_a_worker_that_is_killed_is_replaced_and_ends_with_its_server(self, jobs: JobCloud) -> None:
        environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'collections'}:{ROOT}"}
        with subprocess.Popen(
            [sys.executable, "-c", self.SERVER, str(jobs.home)], env=environment, stdout=subprocess.DEVNULL
        ) as server:
            (first,) = until(lambda: self.workers(jobs), "the first worker")
            os.kill(first, signal.SIGKILL)
            (second,) = until(lambda: [pid for pid in self.workers(jobs) if pid != first], "the second worker")
            server.kill()
        until(lambda: not _command(second), "the worker's end after its server's")

    # Workers that end at once are started again and again, while the server forks; what it forked lives on
    FORKING = (
        "import os, sys, time; from api.jobs import embedded, options\n"
        "sys.setswitchinterval(1e-6); sys.executable = '/bin/false'\n"
        "environment = options.Options.from_environment(home=sys.argv[1])\n"
        "keepers = [embedded.Keeper(environment) for _number in range(8)]\n"
        "for _number in range(200):\n"
        "    if os.fork() == 0: input(); os._exit(0)\n"
        "    time.sleep(0.01)\n"
        "for keeper in keepers: keeper.stop()\n"
        "print('stopped', flush=True); os._exit(0)"
    )

    def test_a_server_that_forks_while_it_starts_workers_goes_on_starting_them(self, tmp_path: pathlib.Path) -> None:
        environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'collections'}:{ROOT}"}
        command = [sys.executable, "-c", self.FORKING, str(tmp_path)]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, start_new_session=True) as server:
            try:
                assert server.stdout is not None
                assert select.select([server.stdout], [], [], GENEROUS)[0], "a keeper waits for a worker's start"
                assert server.stdout.readline() == b"stopped\n"
            finally:
                os.killpg(server.pid, signal.SIGKILL)


PLAY_OF_STEPS = """
- name: Read consoles
  hosts: localhost
  connection: local
  gather_facts: false
  vars:
    ansible_python_interpreter: /usr/bin/python3
    compute_node_state_dir: STATE
  tasks:
    - name: Build
      novalite.cloud.host_steps:
        steps:
          - {name: Look, module: host_files, args: {files: []}}
          - name: Wait
            module: server_wait
            may_fail: true
            args: {guests: [{name: nobody, address: 198.51.100.9}], timeout: 3}
    - name: Hand the consoles over
      ansible.builtin.set_stats: {data: {console: {}}}
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="/run is root's")
def test_what_a_host_is_at_is_an_event_while_it_happens(jobs: JobCloud, tmp_path: pathlib.Path) -> None:
    playbooks = tmp_path / "project" / "playbooks"
    playbooks.mkdir(parents=True)
    (playbooks / "console.yml").write_text(PLAY_OF_STEPS.replace("STATE", str(tmp_path / "state")))
    made = jobs.create("web")
    with transaction(jobs.engine) as connection:
        connection.execute(sa.delete(job))
        asked = queue.enqueue(connection, "console", instances=made["instances"], project_id=PROJECTS["demo"])
    jobs.work(playbooks)

    def steps() -> list[tuple[str, str]]:
        with reading(jobs.engine) as connection:
            events = job_records.events_of(connection, asked["id"], texts=True)
        return [(event["task"], event["status"]) for event in events if event["event"] == "step"]

    until(
        lambda: ("Wait", "running") in steps() or jobs.job(asked["id"])["state"] == "failed",
        "a step that takes a while",
    )
    assert jobs.job(asked["id"])["state"] == "running"
    jobs.wait(asked["id"])
    assert [pair for pair in steps() if pair[1] != "running"] == [("Look", "ok"), ("Wait", "ignored")]
