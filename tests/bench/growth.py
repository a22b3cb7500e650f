# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""growth.*: what one thing costs in a cloud of 1,000 hosts and 20,000 guests, beside the same in a tenth of it.

Processor time of the operations (`_cpu`, the quickest of several rounds) and bytes of what they answer (`_bytes`). The
ratio is that of the two clouds: 1.0 where the size of the cloud is no matter.

* `launch_one`: a launch of one guest, recorded, scheduled, addressed and planned, and the report that it runs
* `list`: all servers, as `novalite list` reads them
* `ports_page`: a page of 100 ports of the Network API
* `drift_one`: the comparison of one host of 20 guests with the ledger
* `group_member`: the plan for a guest that leaves a group with a tenth of all guests; the bytes are those for each of
  the five hosts whose rules name the group
"""

from __future__ import annotations

import contextlib
import gc
import pathlib
import tempfile
import time
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import network_records, server_listing
from tests.support.cloud import Cloud, sqlite
from tests.support.grown import Call, Grown, compare, grow, size_of

SIZES = (100, 1000)  # hosts
ROUNDS = 3
Case = t.Callable[[Call], t.Any]

CASES: dict[str, Case] = {
    "growth.launch_one": lambda call: call.launched("sg0"),
    "growth.list": lambda call: server_listing.load(
        call.connection, server_listing.find(call.connection, server_listing.Query())
    ),
    "growth.ports_page": lambda call: [
        vars(port)
        for port in network_records.ports_chosen(
            call.connection, None, network_records.PortChoice(), network_records.Page(100, None, False)
        )
    ],
    "growth.drift_one": lambda call: compare(call, "host_drift"),
    "growth.group_member": lambda call: call.told(call.named("g0")),
}


def run(prefix: str) -> t.Iterator[dict[str, t.Any]]:
    cases = {name: case for name, case in CASES.items() if name.startswith(prefix) or prefix.startswith(name)}
    if not cases:
        return
    with contextlib.ExitStack() as stack:
        clouds = []
        for hosts in SIZES:
            home = stack.enter_context(tempfile.TemporaryDirectory())
            cloud = Cloud(sqlite(pathlib.Path(home)))
            stack.callback(cloud.close)
            clouds.append((cloud, grow(cloud.engine, hosts)))
        for name, case in cases.items():
            small, large = (_cost(cloud, grown, case) for cloud, grown in clouds)
            yield _figure(f"{name}_cpu", large[0], small[0], "s")
            yield _figure(f"{name}_bytes", large[1], small[1], "B")


def _cost(cloud: Cloud, grown: Grown, case: Case) -> tuple[float, int]:
    """Seconds of this process, and bytes of the answer."""
    seconds, size = [], 0
    for _round in range(ROUNDS + 1):  # the first compiles the statements
        with transaction(cloud.engine, check_mode=True) as connection:
            gc.collect()
            began = time.process_time()
            answer = case(Call(connection, grown))
            seconds.append(time.process_time() - began)
        size = size_of(answer)
        del answer
    return min(seconds[1:]), size


def _figure(name: str, large: float, small: float, unit: str) -> dict[str, t.Any]:
    figures = {"ours": round(large, 5), "reference": round(small, 5), "ratio": round(large / small, 3)}
    return {"bench": name, **figures, "unit": unit}
