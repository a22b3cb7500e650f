"""Nova's side of scheduler.*: runs in the environment that has nova. One line of JSON for each line of its input.

{"hosts": n, "instances": m} -> {"cpu_s": .., "chosen": [..]}; {"parity": true} -> what tests/parity/record.py writes.
"""

from __future__ import annotations

import json
import logging
import sys
import time
import typing as t

from nova.scheduler import manager

from tests.bench import scheduler_cluster
from tests.parity import nova_side, record


def main() -> None:
    scheduler = nova_side.Scheduler()
    for line in sys.stdin:
        asked = json.loads(line)
        answer = record.record() if asked.get("parity") else _measure(scheduler, asked["hosts"], asked["instances"])
        logging.disable(logging.NOTSET)
        print(json.dumps(answer), flush=True)


def _measure(scheduler: nova_side.Scheduler, host_count: int, instances: int) -> dict[str, t.Any]:
    """The loop of SchedulerManager._schedule with Nova's defaults: filters, weighers, choice, consumption.

    Every claim succeeds at once. What Nova does before (requests, database, Placement, HostStates) is not counted.
    """
    case = scheduler_cluster.case(host_count, instances)
    scheduler.configure({})
    states: list[t.Any] = [scheduler.host_state(number, host) for number, host in enumerate(case["hosts"])]
    uuids = [nova_side.uuid_of(number) for number in range(instances)]
    spec = scheduler.spec(case, uuids)
    schedules = manager.SchedulerManager.__new__(manager.SchedulerManager)
    schedules.host_manager = nova_side.HostManager()
    chosen = []
    started = time.process_time()
    for number, uuid in enumerate(uuids):
        spec.instance_uuid = uuid
        states = schedules._get_sorted_hosts(spec, states, number)
        schedules._consume_selected_host(states[0], spec, instance_uuid=uuid)
        chosen.append(states[0].host)
    return {"cpu_s": time.process_time() - started, "chosen": chosen}


if __name__ == "__main__":
    main()
