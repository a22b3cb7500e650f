# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""growth.*: what one thing costs in a cloud of 1,000 hosts and 20,000 guests, beside the same in a tenth of it.

Processor time of the operations (`_cpu`) and bytes of what they answer (`_bytes`), medians of several rounds. The ratio
is that of the two clouds: 1.0 where the size of the cloud is no matter.

* `launch_one`: a launch of one guest, recorded, scheduled, addressed and planned, and the report that it runs
* `list`: the command `novalite list`, a process of its own
* `ports_page`: a page of 100 ports of the Network API
* `drift_one`: the comparison of one host of 20 guests with the ledger
* `group_member`: the plan for a guest that leaves a group with a tenth of all guests; the bytes are those for each of
  the five hosts whose rules name the group
"""

from __future__ import annotations

import contextlib
import gc
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network import network_records
from tests.support.cloud import Cloud, size_of, sqlite
from tests.support.grown import Call, Grown, compare, grow

LIST = "growth.list"
SIZES = (100, 1000)  # hosts
ROUNDS, LISTS = 21, 3
Case = t.Callable[[Call], t.Any]

CASES: dict[str, Case] = {
    "growth.launch_one": lambda call: call.launched("sg0"),
    "growth.ports_page": lambda call: [
        vars(port)
        for port in network_records.ports_chosen(
            call.connection, None, network_records.PortChoice(), network_records.Page(100, None, False)
        )
    ],
    "growth.drift_one": lambda call: compare(call, "host_drift"),
    "growth.group_member": lambda call: call.change_of_members(call.named("g0")),
}


def run(prefix: str) -> t.Iterator[dict[str, t.Any]]:
    names = [name for name in (*CASES, LIST) if name.startswith(prefix) or prefix.startswith(name)]
    if not names:
        return
    with contextlib.ExitStack() as stack:
        clouds = []
        for hosts in SIZES:
            home = stack.enter_context(tempfile.TemporaryDirectory())
            cloud = Cloud(sqlite(pathlib.Path(home)))
            stack.callback(cloud.close)
            clouds.append((cloud, grow(cloud.engine, hosts), home))
        gc.collect()
        gc.freeze()  # what is there by now is looked through in no round
        stack.callback(gc.unfreeze)
        for name in names:
            measured: list[list[tuple[float, int]]] = [[], []]
            for number in range(1 + (LISTS if name == LIST else ROUNDS)):
                # close to each other, and each first as often as the other: the machine is busy meanwhile
                for rounds, (cloud, grown, home) in list(zip(measured, clouds))[:: 1 if number % 2 else -1]:
                    rounds.append(_listed(home) if name == LIST else _cost(cloud, grown, CASES[name]))
            # the first compiles the statements
            small, large = (rounds[1:] for rounds in measured)
            for place, (what, unit) in enumerate((("cpu", "s"), ("bytes", "B"))):
                of_large, of_small = ([cost[place] for cost in rounds] for rounds in (large, small))
                yield _figure(f"{name}_{what}", of_large, of_small, unit)


def _cost(cloud: Cloud, grown: Grown, case: Case) -> tuple[float, int]:
    """Seconds of this process, and bytes of the answer."""
    with transaction(cloud.engine, check_mode=True) as connection:
        gc.collect()
        began = time.process_time()
        answer = case(Call(connection, grown))
        return time.process_time() - began, size_of(answer)


def _listed(home: str) -> tuple[float, int]:
    """Seconds of the command, and bytes of what it prints."""
    command = [str(pathlib.Path(sys.executable).with_name("novalite")), "--home", home, "list", "--all-projects"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    size = len(subprocess.run(command, check=True, capture_output=True).stdout)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, size


def _figure(name: str, large: t.Sequence[float], small: t.Sequence[float], unit: str) -> dict[str, t.Any]:
    ours, reference = statistics.median(large), statistics.median(small)
    figures = {"ours": round(ours, 5), "reference": round(reference, 5), "ratio": round(ours / reference, 3)}
    return {"bench": name, **figures, "unit": unit}
