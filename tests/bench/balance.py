"""Balancing: the whole decision for 2,000 guests on 200 hosts, beside one second of the clock it has to keep."""

from __future__ import annotations

import random
import time
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._scheduling import balance
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.balance_placed import Peak, Placed
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.options import Options
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.rows import HostState, Request

SIZES = ((1, 512, 10), (1, 2048, 20), (2, 4096, 40), (4, 8192, 80), (8, 16384, 160))  # vCPUs, MiB, GiB
LIMIT = 1.0  # seconds


def run(prefix: str) -> t.Iterator[dict[str, t.Any]]:
    for name, measured in (("balance.2000_s", False), ("balance.2000_measured_s", True)):
        if name.startswith(prefix) or prefix == "balance":
            hosts, placed, peaks = _cluster(measured)
            start = time.process_time()
            moves = balance.moves(hosts, placed, Options(), peaks=peaks)
            ours = time.process_time() - start
            yield {
                "bench": name,
                "ours": ours,
                "reference": LIMIT,
                "ratio": ours / LIMIT,
                "unit": "s",
                "moves": len(moves),
            }


def _cluster(measured: bool) -> tuple[list[HostState], list[Placed], dict[str, Peak]]:
    rng = random.Random(1)
    hosts = {f"hv{at}": HostState(f"hv{at}", 64, 262144, 8192, cpu_ratio=4.0) for at in range(200)}
    placed, peaks = [], dict.fromkeys(hosts, Peak())
    for number in range(2000):
        vcpus, memory_mb, disk_gb = rng.choice(SIZES)
        host = f"hv{min(199, int(rng.betavariate(1.2, 2.5) * 200))}"
        request = Request(str(number), f"i{number}", vcpus, memory_mb, disk_gb)
        hosts[host] = hosts[host].after(request)
        peak = Peak(vcpus * rng.uniform(0.05, 0.9), memory_mb * 0.8) if measured else None
        placed.append(Placed(request, host, peak, memory_mb))
        if peak is not None:
            at = peaks[host]
            peaks[host] = Peak(at.cores + peak.cores, at.memory_mb + peak.memory_mb)
    return list(hosts.values()), placed, peaks if measured else {}
