"""scheduler.claims_*: the whole operation, hosts read, choices made, claims and reasons written, on SQLite."""

from __future__ import annotations

import gc
import statistics
import tempfile
import time
import typing as t
import uuid

import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import open_ledger, transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables import instance, instance_action, project
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute.views import instances_by
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.compute_host import compute_host
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.scheduler import scheduler
from ansible_collections.novalite.cloud.plugins.module_utils._model.instance import Instance
from tests.support.rows import a_flavor, add_project, an_image, an_instance

NAME = "scheduler.claims_10000x1000_s"
HOSTS, INSTANCES, GOAL = 10_000, 1_000, 5.0  # seconds
ROUNDS = 3
PROJECT = "d" * 32


def run(prefix: str) -> t.Iterator[dict[str, t.Any]]:
    if not NAME.startswith(prefix):
        return
    with tempfile.TemporaryDirectory() as home:
        engine = open_ledger(home)
        with transaction(engine) as connection:
            compute_host(connection, {"compute_hosts": list(_hosts())})
        ours = statistics.median(_request(engine) for _round in range(ROUNDS))
        engine.dispose()
    yield {"bench": NAME, "ours": round(ours, 3), "reference": GOAL, "ratio": round(ours / GOAL, 3), "unit": "s"}


def _request(engine: sa.Engine) -> float:
    """Seconds for a request of INSTANCES on hosts that have some, but not all, of the ones before."""
    asked = _recorded(engine)
    gc.collect()
    began = time.perf_counter()
    with transaction(engine) as connection:
        result = scheduler(connection, {"instances": asked, "service_down_time": 10**9})
    seconds = time.perf_counter() - began
    assert len(result["instances"]) == INSTANCES, result["msg"]
    return seconds


def _hosts() -> t.Iterator[dict[str, t.Any]]:
    """Machines of three sizes in ten zones."""
    for number in range(HOSTS):
        size = 1 << number % 3
        yield {
            "name": f"hv{number:05}",
            "up": True,
            "vcpus": 16 * size,
            "memory_mb": 65536 * size,
            "disk_gb": 1000 * size,
            "zone": f"zone{number % 10}",
            "traits": ["HW_CPU_X86_AVX2"],
            "arch": "x86_64",
            "hypervisor_type": "QEMU",
            "hypervisor_version": 7002000,
            "address": f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}",
        }


def _recorded(engine: sa.Engine) -> list[Instance]:
    """The records of INSTANCES new instances, as `server` returns them."""
    row = {"flavor": a_flavor("m1.small", memory_mb=2048, root_gb=20), "image": an_image("tiny"), "project_id": PROJECT}
    row |= {"vm_state": "building", "task_state": "scheduling"}
    rows = [an_instance(str(number), uuid=str(uuid.uuid4()), **row) for number in range(INSTANCES)]
    uuids = [row["uuid"] for row in rows]
    with transaction(engine) as connection:
        if connection.execute(sa.select(project.c.id)).first() is None:
            add_project(connection, "demo", PROJECT)
        connection.execute(sa.insert(instance), rows)
        action = {"action": "create", "request_id": "req-1", "started_at": 1, "details": {"hints": {}}}
        connection.execute(
            sa.insert(instance_action), [{"instance_uuid": instance_uuid, **action} for instance_uuid in uuids]
        )
        return instances_by(connection, uuids=uuids)
