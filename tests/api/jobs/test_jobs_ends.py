# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""How jobs end: their results, cancellation and events."""

from __future__ import annotations

import dataclasses
import fcntl
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time
import typing as t

import pytest
import sqlalchemy as sa
import yaml

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_jobs import job
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.jobs import run_rows
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.call import by_playbook
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.jobs import job_records
from ansible_collections.novalite.cloud.plugins.plugin_utils._events import Event
from api.jobs import events, playbook, queue, runs, supervisor
from api.jobs.children import Child
from api.jobs.kinds import KINDS
from tests.api.jobs.clouds import ROOT, JobCloud
from tests.api.jobs.test_jobs_queue import build, claim, end, set_states
from tests.support.patience import GENEROUS


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
        to_delete, other = jobs.create("a"), jobs.create("b")
        run_id, _jobs = claim(jobs)
        assert jobs.cancel(to_delete["id"])["state"] == "running"
        with transaction(jobs.engine) as connection:
            assert not runs.cancel_in_company(connection, str(run_id))
        assert jobs.instances(to_delete["instances"])[to_delete["instances"][0]]["vm_state"] == "error"
        build(jobs, other["instances"])
        end(jobs, run_id, runs.SUCCESSFUL)
        assert [jobs.job(record["id"])["state"] for record in (to_delete, other)] == ["cancelled", "succeeded"]

    def test_retry_begins_again_what_failed(self, jobs: JobCloud) -> None:
        made = jobs.create("a", count=2)
        run_id, _jobs = claim(jobs)
        build(jobs, made["instances"][:1])
        end(jobs, run_id, runs.FAILED, message="boom")
        with transaction(jobs.engine) as connection:
            again = queue.retry(by_playbook(connection), made["id"])
        assert again["instances"] == made["instances"][1:]
        assert again["retry_of"] == made["id"]
        build(jobs, again["instances"])
        end(jobs, claim(jobs)[0])
        assert jobs.job(again["id"])["state"] == "succeeded"
        with pytest.raises(ConflictError), transaction(jobs.engine) as connection:
            queue.retry(by_playbook(connection), again["id"])


def step(kind: str, at: float = 0.0, host: str = "hv1", **more: t.Any) -> dict[str, t.Any]:
    """An event of a step, as a supervisor passes it on."""
    event = Event(host, "Put the image there", "image_cache", t.cast(t.Any, kind), at, **more)
    return {"event": supervisor.STEP, "created": None, "event_data": dataclasses.asdict(event)}


class TestEvents:
    @pytest.mark.parametrize(
        ("event", "status", "duration", "text"),
        [
            (step("begin"), "running", None, None),
            (step("moving", done=3 << 20, total=7 << 20), "running", None, "3 of 7 MiB"),
            (step("moving", done=3 << 20), "running", None, "3 MiB"),
            (step("end", seconds=1.5), "ok", 1.5, None),
            (step("end", seconds=1.5, changed=True), "changed", 1.5, None),
            (step("end", seconds=1.5, changed=True, failed=True), "failed", 1.5, None),
            (step("end", seconds=1.5, failed=True, may_fail=True), "ignored", 1.5, None),
        ],
    )
    def test_a_step_of_a_host_is_an_event(
        self, event: dict[str, t.Any], status: str, duration: float | None, text: str | None
    ) -> None:
        row = events.Reducer("r").reduce(event)
        assert row is not None and (row["event"], row["task"], row["host"]) == ("step", "Put the image there", "hv1")
        assert (row["status"], row["duration"], row["text"]) == (status, duration, text)

    def test_bytes_are_told_now_and_then(self) -> None:
        reducer = events.Reducer("r")
        rows = [reducer.reduce(step("moving", at / 2, host)) for at in range(30) for host in ("a", "b")]
        assert sum(row is not None for row in rows) == 2 * 3
        assert reducer.failure is None

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
            run_rows.write_events(connection, [row])
            (seen,) = job_records.events_of(connection, mine["id"])
            (full,) = job_records.events_of(connection, mine["id"], texts=True)
            assert job_records.events_of(connection, mine["id"], after=seen["seq"]) == []
        assert (seen["text"], seen["host"]) == (None, None)
        assert (full["text"], full["host"]) == ("other's", "hv1")

    def test_secrets_of_an_environment(self) -> None:
        secrets = events.secrets_of({"NOVALITE_LEDGER_URL": "postgresql://u:pass-word@h/d", "HOME": "/root"})
        assert "pass-word" in secrets and "/root" not in secrets


def test_no_variable_is_a_template() -> None:
    class Loader(yaml.SafeLoader):
        pass

    tags: list[str] = []

    def unsafe(loader: t.Any, node: t.Any) -> str:
        tags.append(node.tag)
        return str(node.value)

    Loader.add_constructor("!unsafe", unsafe)
    variables = {"a": "{{ x }}", "b": ["y", {"c": "none"}], "d": 1, "e": None, "f": "a\n'\"b: # \u2028"}
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


def test_a_process_is_found_by_a_marker_that_it_gets_later() -> None:
    """So are its forks, and what it starts."""
    code = (
        "import os, subprocess, sys; from api.jobs.playbook import mark; mark(*sys.argv[1:])\n"
        "os.fork() or subprocess.call(['/bin/cat']); input()"
    )
    command = [sys.executable, "-c", code, supervisor.MARKER, "r-1"]
    env = {"A": "1", f"NOT_{supervisor.MARKER}": supervisor.UNKNOWN, supervisor.MARKER: supervisor.UNKNOWN, "Z": "26"}
    with subprocess.Popen(command, stdin=subprocess.PIPE, env=env, cwd=ROOT) as process:
        while len(supervisor.processes_of("r-1")) < 3:
            assert process.poll() is None
        variables = pathlib.Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")
        assert [variable for variable in variables if variable] == [
            f"{name}={value}".encode() for name, value in {**env, supervisor.MARKER: "r-1"}.items()
        ]
        assert supervisor.reap("r-1") == 3


def test_a_marker_that_is_longer_than_its_place_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLACE", "-")
    with pytest.raises(ValueError, match="longer"):
        playbook.mark("PLACE", "r-1")


def test_a_playbook_that_waits_takes_up_what_is_configured_meanwhile(tmp_path: pathlib.Path) -> None:
    config, book = tmp_path / "ansible.cfg", tmp_path / "show.yml"
    config.write_text("[defaults]\nforks = 3\n")
    book.write_text(
        "- hosts: localhost\n  gather_facts: false\n  tasks:\n"
        "    - ansible.builtin.debug: {msg: \"forks {{ lookup('ansible.builtin.config', 'DEFAULT_FORKS') }}\"}\n"
    )
    os.mkfifo(tmp_path / "order")
    order = os.open(tmp_path / "order", os.O_RDWR)
    command = [sys.executable, playbook.__file__, str(tmp_path / "order")]
    env = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", supervisor.MARKER: supervisor.UNKNOWN}
    with subprocess.Popen(command, env=env, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        deadline, sleeps = time.monotonic() + GENEROUS, 0
        while sleeps < 25:  # it has imported Ansible, and reads
            assert process.poll() is None and time.monotonic() < deadline
            state = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0]
            sleeps = sleeps + 1 if state == "S" else 0
            time.sleep(0.02)
        config.write_text("[defaults]\nforks = 7\n")
        line = {"marker": supervisor.MARKER, "run": "r-1", "command": ["-i", "localhost,", str(book)]}
        os.write(order, f"{json.dumps(line)}\n".encode())
        said, _nothing = process.communicate(timeout=GENEROUS)
    os.close(order)
    assert process.returncode == 0 and "forks 7" in said, said


def test_what_a_killed_supervisor_left_is_told_from_what_is_anothers(tmp_path: pathlib.Path) -> None:
    for name in ("living", "killed", "just-made", "half-made"):
        (tmp_path / name).mkdir()
    (tmp_path / "killed/owner").touch()
    with open(tmp_path / "living/owner", "w") as owner:
        fcntl.flock(owner, fcntl.LOCK_EX)
        os.utime(tmp_path / "half-made", (0, 0))
        assert sorted(supervisor.left_in(str(tmp_path))) == [str(tmp_path / "half-made"), str(tmp_path / "killed")]
        assert supervisor.left_in(str(tmp_path / "before-the-first")) == []


def test_a_run_that_is_cancelled_while_it_waits_for_its_lock_leaves_nothing(tmp_path: pathlib.Path) -> None:
    directory = tmp_path / "runs"
    child = Child(supervisor.Ahead(str(directory), str(tmp_path), {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}))
    with open(tmp_path / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        run = supervisor.Run(id="r-1", lock=lock.name, command=["none.yml"], variables="{}", timeout=60)
        child.send({"run": run.__dict__})
        child.cancel()
        messages = [child.receive(60), child.receive(60)]
    child.close()
    assert messages == [{"ready": True}, {"ended": {"stopped": "cancelled", "rc": None}}]
    assert list(directory.iterdir()) == []


def test_a_directory_in_which_a_thread_still_writes_is_removed_whole(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "run"
    directory.mkdir()
    playbook = object.__new__(supervisor.Playbook)  # without its processes, whose files come when they like
    playbook._directory = str(directory)
    remove, late = shutil.rmtree, iter([True])

    def remove_but_for_a_late_file(path: str, ignore_errors: bool) -> None:
        if not next(late, False):
            remove(path, ignore_errors=ignore_errors)

    monkeypatch.setattr(shutil, "rmtree", remove_but_for_a_late_file)
    playbook.remove()
    assert not directory.exists()


def test_every_kind_has_its_playbook() -> None:
    assert [kind.name for kind in KINDS.values() if not (ROOT / "playbooks" / kind.playbook).exists()] == []


def test_a_deletion_that_was_lost_stays_wanted(jobs: JobCloud) -> None:
    made = jobs.create("a")
    end(jobs, claim(jobs)[0], runs.LOST)
    gone = jobs.terminate(made["instances"])
    end(jobs, claim(jobs)[0], runs.LOST)
    assert jobs.job(gone["id"])["state"] == "failed"
    instance = jobs.instances(made["instances"])[made["instances"][0]]
    assert (instance["task_state"], instance["fault"]["message"]) == ("deleting", "its worker died again and again")
    with transaction(jobs.engine) as connection:
        again = queue.retry(by_playbook(connection), gone["id"])
    assert claim(jobs)[1] == {again["id"]}
