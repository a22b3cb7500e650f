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
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.compute_host import compute_host
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.scheduler import scheduler
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.views import instances_by
from ansible_collections.novalite.cloud.plugins.module_utils._model.instance import Instance

NAME = "scheduler.claims_10000x1000_s"
HOSTS, INSTANCES, GOAL = 10_000, 1_000, 5.0  # seconds
ROUNDS = 3
PROJECT = "d" * 32


def run(wanted: str) -> t.Iterator[dict[str, t.Any]]:
    if not NAME.startswith(wanted):
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
    flavor = {
        "name": "m1.small",
        "vcpus": 1,
        "memory_mb": 2048,
        "root_gb": 20,
        "ephemeral_gb": 0,
        "swap_mb": 0,
        "extra_specs": {},
    }
    image = {"id": str(uuid.uuid4()), "name": "tiny", "virtual_size": 1 << 30, "min_ram_mb": 0, "properties": {}}
    row: dict[str, t.Any] = {"project_id": PROJECT, "flavor": flavor, "image": image, "metadata": {}}
    row |= {"attempts": [], "vm_state": "building", "task_state": "scheduling", "created_at": 1, "updated_at": 1}
    uuids = [str(uuid.uuid4()) for _number in range(INSTANCES)]
    with transaction(engine) as connection:
        if connection.execute(sa.select(project.c.id)).first() is None:
            connection.execute(sa.insert(project).values(id=PROJECT, name="demo", created_at=0))
        connection.execute(
            sa.insert(instance),
            [
                {"uuid": instance_uuid, "name": instance_uuid, "hostname": instance_uuid, **row}
                for instance_uuid in uuids
            ],
        )
        action = {"action": "create", "request_id": "req-1", "started_at": 1, "details": {"hints": {}}}
        connection.execute(
            sa.insert(instance_action), [{"instance_uuid": instance_uuid, **action} for instance_uuid in uuids]
        )
        return instances_by(connection, uuids=uuids)
