# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Scenes for a status page to show: instances with addresses and a history, jobs with events, names meant to hurt."""

from __future__ import annotations

import dataclasses
import time
import typing as t
import uuid

import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_jobs import (
    job,
    job_event,
    job_instance,
    run,
    run_job,
)
from tests.api import seeds
from tests.support.rows import change_address

SCRIPT = "<script>document.title='broken'</script><img src=x onerror=alert(1)>"
CONSOLE = f"\x1b[32mStarting\x1b[0m sshd\r\n\x1b]0;title\x07login: {SCRIPT}\n"

EXPLANATION = {
    "choice": "filter_scheduler",
    "hosts": 2,
    "alternates": [],
    "host": "hv1",
    "filters": [
        {"filter": "compute", "start": 2, "end": 2, "removed": {}},
        {"filter": "ram", "start": 2, "end": 1, "removed": {"hv2": "has 100 MiB left, 512 are asked for"}},
    ],
    "weights": [{"host": "hv1", "score": 2.5, "details": {"cpu": 1.0, "ram": 1.0, "disk": 0.5}}],
    "message": "hv1 was chosen for 'web-1' by filter_scheduler from 1 of 2 hosts",
    "lines": ["hv1: weight 2.5 (cpu 1, ram 1, disk 0.5) chosen", "hv2: removed by ram: has 100 MiB left"],
}


@dataclasses.dataclass(frozen=True)
class Scene:
    """UUIDs of what there is in the cloud."""

    web: str  # active, of demo
    stopped: str  # of demo
    building: str  # of demo, with a task under way
    failed: str  # of demo, with a fault and a hurtful name
    foreign: str  # active, of alt
    network: str
    launched: str  # a job of demo that succeeded
    going: str  # one that runs
    broken: str  # one that failed
    foreign_job: str


def build(api: seeds.Api) -> Scene:
    with api.engine.connect() as connection:
        network = connection.execute(sa.select(tables.network).where(tables.network.c.name == "private")).one()
    now = int(time.time())

    def server(project: str, name: str, address: str | None, **values: t.Any) -> str:
        instance_uuid = api.instance(project, name, **{"created_at": now - 4000, "launched_at": now - 3980, **values})
        if address is not None:
            api.vif(instance_uuid, network.id, address)
        return instance_uuid

    web = server(
        "demo",
        "web-1",
        "10.20.0.5",
        host="hv1",
        key_name="test",
        public_key=seeds.PUBLIC_KEY,
        description="the shop's front",
        metadata={"tier": "front", "<b>": SCRIPT},
    )
    stopped = server("demo", "batch", "10.20.0.6", host="hv2", vm_state="stopped", power_state=4)
    building = server(
        "demo", "db-1", "10.20.0.7", host="hv2", vm_state="building", task_state="spawning", launched_at=None
    )
    failed = server(
        "demo",
        "odd",
        None,
        vm_state="error",
        display_name=f"odd \u202e{SCRIPT}",
        launched_at=None,
        fault={"code": 500, "message": f"No valid host was found {SCRIPT}", "created": now},
    )
    foreign = server("alt", "other-1", "10.20.0.9", host="hv1")
    for instance, ended in ((web, {"finished_at": now - 3980}), (building, {})):
        api.insert(
            tables.instance_action,
            instance_uuid=instance,
            action="create",
            request_id=f"req-{uuid.uuid4()}",
            started_at=now - 4000,
            details={"scheduler": EXPLANATION},
            **ended,
        )
    api.change_host("hv1", vcpus_used=3, memory_mb_used=5000, disk_gb_used=96)
    down = f"no answer over ssh {SCRIPT}"
    api.change_host("hv2", up=False, down_reason=down, vcpus_used=2, memory_mb_used=1024)
    with transaction(api.engine) as connection:
        change_address(connection, "10.20.0.2", owner="dhcp:hv1")
        change_address(connection, "10.20.0.3", owner="dhcp:hv2")
        change_address(connection, "10.20.0.8", released_at=now - 5, last_owner="vif:gone")
    launched = add_job(api, "demo", "launch", "succeeded", [web], variables={"servers": [{"name": "web"}]})
    broken = add_job(api, "demo", "stop", "failed", [stopped], message=f"hv2: unreachable {SCRIPT}")
    going = add_job(api, "demo", "launch", "running", [building])
    foreign_job = add_job(api, "alt", "launch", "succeeded", [foreign])
    add_job(api, "demo", "console", "succeeded", [web], result={"console": {web: CONSOLE}})
    return Scene(web, stopped, building, failed, foreign, network.uuid, launched, going, broken, foreign_job)


def add_things(api: seeds.Api) -> None:
    """Give demo a volume, a floating IP and a group with rules; let a run of a playbook have failed, and one go on."""
    api.task("volume", project="demo", volumes=[{"name": "data", "size": 20}])
    api.task("floating_pool", floating_pools=[{"name": "public", "cidr": "198.51.100.0/29", "interface": "eth0"}])
    address = {"project_id": api.projects["demo"], "released_at": 0}
    (row,) = api.rows(sa.select(tables.floating_ip.c.address).limit(1))
    api.write(sa.update(tables.floating_ip).where(tables.floating_ip.c.address == row.address).values(**address))
    rules = [
        {"protocol": "tcp", "port_min": port, "port_max": port, "cidr": cidr}
        for port, cidr in ((22, "10.0.0.0/8"), (80, "0.0.0.0/0"), (443, "0.0.0.0/0"))
    ]
    api.task("security_group", project="demo", security_groups=[{"name": "web", "rules": rules}])
    server = {"flavor": "m1.nano", "image": "ami-tiny", "networks": ["private"]}
    api.task("server", project="demo", servers=[{"name": f"worker-{number}", **server} for number in (1, 2, 3)])


def add_job(
    api: seeds.Api, project: str, kind: str, state: str, instances: t.Sequence[str] = (), **values: t.Any
) -> str:
    """A job, with the run that it is in unless it waits, and a few events."""
    now = time.time()
    number, run_id = str(uuid.uuid4()), None
    if state != "queued":
        run_id = str(uuid.uuid4())
        ended = {"finished_at": now - 10, "outcome": "successful"} if state != "running" else {}
        api.insert(
            run,
            id=run_id,
            kind=kind,
            project_id=api.projects[project],
            worker_id="w",
            created_at=now - 30,
            state="ended" if ended else "running",
            **ended,
        )
    row = {
        "id": number,
        "kind": kind,
        "project_id": api.projects[project],
        "user_id": api.users["demo"],
        "request_id": f"req-{uuid.uuid4()}",
        "variables": {},
        "state": state,
        "run_id": run_id,
        "timeout_seconds": 600,
        "created_at": now - 31,
        "started_at": None if run_id is None else now - 30,
        "finished_at": now - 10 if state in ("succeeded", "failed", "cancelled") else None,
        **values,
    }
    api.insert(job, **row)
    for instance in instances:
        api.insert(job_instance, job_id=number, instance_uuid=instance)
    if run_id is not None:
        api.insert(run_job, run_id=run_id, job_id=number)
        add_event(api, number, task="Choose a host for each instance and claim it", host="localhost", status="ok")
        add_event(api, number, task="Ensure the disks of the instances", host="hv1", status="changed", text=SCRIPT)
    return number


def add_event(api: seeds.Api, job_id: str, **values: t.Any) -> int:
    with api.engine.connect() as connection:
        run_id = connection.execute(sa.select(job.c.run_id).where(job.c.id == job_id)).scalar_one()
    row = {"event": "result", "play": "Build", "created_at": time.time() - 20, "duration": 0.3, **values}
    return int(api.insert(job_event, run_id=run_id, **row))


def end_job(api: seeds.Api, job_id: str, state: str = "succeeded") -> None:
    api.write(sa.update(job).where(job.c.id == job_id).values(state=state, finished_at=time.time()))
