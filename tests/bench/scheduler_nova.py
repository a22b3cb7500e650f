"""Nova's side of scheduler.*: runs in the environment that has nova. One line of JSON for each line of its input.

{"hosts": n, "instances": m, "repetitions": r} -> {"cpu_s": [r numbers]}
{"parity": true} -> what tests/parity/record.py writes
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
        if asked.get("parity"):
            answer = record.record()
            logging.disable(logging.NOTSET)
        else:
            repetitions = range(asked["repetitions"])
            answer = {"cpu_s": [_measure(scheduler, asked["hosts"], asked["instances"]) for _repetition in repetitions]}
        print(json.dumps(answer), flush=True)


def _measure(scheduler: nova_side.Scheduler, host_count: int, instances: int) -> float:
    """CPU seconds of the loop of SchedulerManager._schedule, with Nova's default filters and weighers.

    Every claim succeeds at once. What Nova does before (requests, database, Placement, HostStates) is not counted.
    """
    case = scheduler_cluster.case(host_count, instances)
    scheduler.configure({})
    states: list[t.Any] = [scheduler.host_state(number, host) for number, host in enumerate(case["hosts"])]
    uuids = [nova_side.uuid_of(number) for number in range(instances)]
    spec = scheduler.spec(case, uuids)
    schedules = manager.SchedulerManager.__new__(manager.SchedulerManager)
    schedules.host_manager = nova_side.HostManager()
    started = time.process_time()
    for number, uuid in enumerate(uuids):
        spec.instance_uuid = uuid
        states = schedules._get_sorted_hosts(spec, states, number)
        schedules._consume_selected_host(states[0], spec, instance_uuid=uuid)
    return time.process_time() - started


if __name__ == "__main__":
    main()
