# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Eight controllers schedule 200 instances at once (--thorough: 400 and 1,000, too) on hosts that hold exactly nine
tenths of them; also when they are killed."""

from __future__ import annotations

import collections
import concurrent.futures
import random
import signal
import threading
import time
import typing as t
import uuid

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import open_ledger, transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables import (
    allocation,
    compute_host,
    instance,
    instance_action,
    project,
    security_group,
    security_group_rule,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute.views import instances_by
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.security.security_groups import (
    ensure_default_group,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.steps.ledger_heal import ledger_heal
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.steps.server_state import server_state
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.compute_host import (
    compute_host as record_hosts,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.scheduler import scheduler
from ansible_collections.novalite.cloud.plugins.module_utils._ledger_module import run_operation
from tests.support.beside import CONTEXT, PRELOADED, report_modules
from tests.support.patience import GENEROUS
from tests.support.rows import DEMO, a_flavor, an_instance
from tests.unit._ledger.conftest import on_postgresql

pytestmark = pytest.mark.both_databases

FLAVOR = a_flavor(vcpus=4)
IMAGE = {"virtual_size": 1024, "min_ram_mb": 0, "properties": {}}
WORKERS, BATCH = 8, 10
TIMES = [2, *(pytest.param(times, marks=pytest.mark.thorough) for times in (4, 10))]  # hundreds of instances


def fits_of(times: int) -> list[int]:
    """Numbers that fit on each host, by what runs out first: vCPUs at a ratio of 4, RAM over its reserve, disk."""
    fits = [10, 15, 20, 25, 20] * times
    assert sum(fits) == times * 90
    return fits


def hosts(times: int) -> list[dict[str, t.Any]]:
    made = []
    for number, fits in enumerate(fits_of(times)):
        room = {"vcpus": 30, "memory_mb": 512 + 30 * 512, "disk_gb": 30}
        scarce = ("vcpus", "memory_mb", "disk_gb")[number % 3]
        exact = {"vcpus": fits, "memory_mb": 512 + fits * 512, "disk_gb": fits}[scarce]
        made.append({"name": f"hv{number:02}", "up": True, "traits": [], **room, scarce: exact})
    return made


def uuids(worker: int, times: int) -> list[str]:
    share = random.Random(worker)
    return [str(uuid.UUID(int=share.getrandbits(128), version=4)) for _ in range(times * 100 // WORKERS)]


@pytest.fixture
def cluster(ledger: sa.Engine, times: int) -> sa.Engine:
    """Hosts, and the records of instances that are to be built."""
    with transaction(ledger) as connection:
        record_hosts(connection, {"compute_hosts": hosts(times)})
        row = {"flavor": FLAVOR, "image": IMAGE, "vm_state": "building", "task_state": "scheduling"}
        names = {
            instance_uuid: f"web-{worker}-{number}"
            for worker in range(WORKERS)
            for number, instance_uuid in enumerate(uuids(worker, times))
        }
        rows = [
            an_instance(name, uuid=instance_uuid, updated_at=int(time.time()), **row)
            for instance_uuid, name in names.items()
        ]
        connection.execute(sa.insert(instance), rows)
        action = {"action": "create", "request_id": "req-1", "started_at": 1, "details": {"hints": {}}}
        connection.execute(sa.insert(instance_action), [{"instance_uuid": name, **action} for name in names])
    return ledger


def launch(url: str, worker: int, times: int, ready: t.Any) -> None:
    """A controller: for each batch the steps of a playbook, each in its transaction. It may begin again."""
    engine = open_ledger(url=url)
    share = uuids(worker, times)
    if ready is not None:
        ready.wait(GENEROUS)
    for first in range(0, len(share), BATCH):
        with transaction(engine) as connection:
            asked = instances_by(connection, uuids=share[first : first + BATCH])
            if all(server["vm_state"] == "active" for server in asked):
                continue
            # half of them want all of a batch or none of it; a host has room for whole batches only
            placed = scheduler(
                connection, {"instances": asked, "all_or_nothing": worker % 2 == 0, "service_down_time": 3600}
            )["instances"]
        with transaction(engine) as connection:
            outcomes = [{"uuids": [server["uuid"]], "state": "active", "host": server["host"]} for server in placed]
            assert server_state(connection, {"outcomes": outcomes})["errors"] == []


def test_processes_begin_with_what_they_need() -> None:
    """A name that their parent does not find is left out, and each of them imports it once more."""
    answers = CONTEXT.Queue()
    process = CONTEXT.Process(target=report_modules, args=(answers,))
    process.start()
    assert set(PRELOADED) <= set(answers.get(timeout=GENEROUS))
    process.join(GENEROUS)


def started(url: str, worker: int, times: int, ready: t.Any = None) -> t.Any:
    process = CONTEXT.Process(target=launch, args=(url, worker, times, ready), daemon=True)
    process.start()
    return process


def states(engine: sa.Engine) -> collections.Counter[str]:
    with transaction(engine) as connection:
        return collections.Counter(connection.execute(sa.select(instance.c.vm_state)).scalars())


def check_claims(engine: sa.Engine, times: int) -> int:
    """No host over its capacity, every sum that of its claims, every claim that of its instance. Returns how many."""
    with transaction(engine) as connection:
        rows = connection.execute(sa.select(compute_host).order_by(compute_host.c.id)).all()
        claims = connection.execute(sa.select(allocation)).all()
        living = connection.execute(
            sa.select(instance.c.uuid, instance.c.host).where(
                instance.c.vm_state.in_(["building", "active"]), instance.c.host.is_not(None)
            )
        ).all()
    names = {row.id: row.name for row in rows}
    assert len(rows) == len(fits_of(times))
    placed = [(claim.instance_uuid, names[claim.compute_host_id]) for claim in claims]
    assert sorted(placed) == sorted(tuple(row) for row in living)
    for row, fits in zip(rows, fits_of(times)):
        mine = [claim for claim in claims if claim.compute_host_id == row.id]
        assert len(mine) <= fits, f"{row.name} has room for {fits}"
        assert row.num_instances == len(mine)
        assert row.vcpus_used == sum(claim.vcpus for claim in mine) <= (row.vcpus - row.reserved_vcpus) * row.cpu_ratio
        assert row.memory_mb_used == sum(claim.memory_mb for claim in mine) <= row.memory_mb - row.reserved_memory_mb
        assert row.disk_gb_used == sum(claim.disk_gb for claim in mine) <= row.disk_gb
    return len(claims)


@pytest.mark.parametrize("times", TIMES)
def test_exactly_what_fits_is_placed(cluster: sa.Engine, ledger_url: str, times: int) -> None:
    cluster.dispose()
    ready = CONTEXT.Barrier(WORKERS)
    workers = [started(ledger_url, worker, times, ready) for worker in range(WORKERS)]
    for worker in workers:
        worker.join(GENEROUS)
    assert [worker.exitcode for worker in workers] == [0] * WORKERS
    assert states(cluster) == {"active": times * 90, "error": times * 10}
    assert check_claims(cluster, times) == times * 90
    with transaction(cluster) as connection:
        assert ledger_heal(connection, {})["corrections"] == []


@pytest.mark.parametrize("times", TIMES)
def test_killed_controllers_leave_nothing_that_repair_does_not_find(
    cluster: sa.Engine, ledger_url: str, times: int
) -> None:
    """At random moments a worker is killed; half of the killed are started again, as their owners would."""
    cluster.dispose()
    rng, capacity = random.Random(1), times * 90
    ready = CONTEXT.Barrier(WORKERS + 1)
    running = {worker: started(ledger_url, worker, times, ready) for worker in range(WORKERS)}
    ready.wait(GENEROUS)
    killed = 0
    while killed < 12 and any(process.is_alive() for process in running.values()):
        time.sleep(rng.uniform(0.0, 0.15))
        worker = rng.choice(sorted(running))
        process = running[worker]
        if not process.is_alive():
            continue
        process.kill()
        process.join(GENEROUS)
        killed += process.exitcode == -signal.SIGKILL
        if rng.random() < 0.5:
            running[worker] = started(ledger_url, worker, times)
    for process in running.values():
        process.join(GENEROUS)
    assert {process.exitcode for process in running.values()} <= {0, -signal.SIGKILL}
    assert killed >= 3
    check_claims(cluster, times)  # even now: what was cut off is gone, what was committed is whole

    with transaction(cluster) as connection:
        corrections = ledger_heal(connection, {"build_timeout": 0})["corrections"]
    # builds that nobody goes on with, and what they held; nothing that a transaction would have left half done
    assert {correction["kind"] for correction in corrections} == {"instance"}
    after = states(cluster)
    assert set(after) == {"active", "error"} and after["active"] <= capacity
    assert check_claims(cluster, times) == after["active"]
    with transaction(cluster) as connection:
        assert ledger_heal(connection, {"build_timeout": 0})["corrections"] == []
        # and the room that the killed had taken is there again
        failed = [
            {**server, "attempts": []}
            for server in instances_by(connection, project_id="d" * 32)
            if server["vm_state"] == "error"
        ]
        asked = {"instances": failed, "all_or_nothing": False, "service_down_time": 3600}
        again = scheduler(connection, asked)
        assert len(again["instances"]) == min(len(failed), capacity - after["active"])
    check_claims(cluster, times)


@on_postgresql
def test_two_operations_that_wait_for_each_other_both_succeed(ledger: sa.Engine, ledger_url: str) -> None:
    with transaction(ledger) as connection:
        connection.execute(sa.insert(project).values(id="e" * 32, name="other", created_at=0))
    ids = ["d" * 32, "e" * 32]
    both_hold_a_row = threading.Barrier(2)
    began: list[list[str]] = []

    def touch(connection: sa.Connection, params: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
        began.append(list(params["ids"]))
        for number, project_id in enumerate(params["ids"]):
            row = sa.update(project).where(project.c.id == project_id)
            connection.execute(row.values(created_at=project.c.created_at + 1))
            if number == 0 and len(began) <= 2:
                both_hold_a_row.wait(GENEROUS)
        return {"changed": True}

    def run(order: list[str]) -> None:
        run_operation(touch, {"ids": order, "ledger_url": ledger_url}, False)

    threads = [threading.Thread(target=run, args=(order,), daemon=True) for order in (ids, ids[::-1])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(GENEROUS)
    assert len(began) > 2  # the database took one of them back
    with transaction(ledger) as connection:
        assert connection.execute(sa.select(project.c.created_at)).scalars().all() == [2, 2]


def rows_of_default(engine: sa.Engine) -> tuple[int, int]:
    """Count the groups `default`, and the rules of all groups."""
    with transaction(engine) as connection:
        groups = connection.execute(sa.select(security_group.c.id).where(security_group.c.name == "default")).all()
        return len(groups), len(connection.execute(sa.select(security_group_rule.c.id)).all())


@on_postgresql
def test_two_first_requests_of_a_project_have_one_default_group(ledger: sa.Engine, ledger_url: str) -> None:
    """The second one waits for the first, which has made the group and not yet committed, and takes that group."""
    second = open_ledger(url=ledger_url)

    def ensure(engine: sa.Engine) -> int:
        with transaction(engine) as connection:
            return ensure_default_group(connection, DEMO, open_to_members=True)

    waiting = sa.text("SELECT count(*) FROM pg_locks WHERE NOT granted")
    with concurrent.futures.ThreadPoolExecutor(1) as worker, ledger.connect() as watcher:
        with transaction(ledger) as connection:
            number = ensure_default_group(connection, DEMO, open_to_members=True)
            other = worker.submit(ensure, second)
            deadline = time.monotonic() + GENEROUS
            while not watcher.execute(waiting).scalar_one():
                assert time.monotonic() < deadline and not other.done(), "the second request did not wait for the first"
                time.sleep(0.01)
        assert other.result(30) == number
    assert rows_of_default(ledger) == (1, 2)
    second.dispose()
