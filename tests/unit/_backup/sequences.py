# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Random lives of a guest, with backups in all of them: each one that is restored has to be what the disks were.

`unshare -m --propagation private /usr/bin/python3 -m tests.unit._backup.sequences --first 1 --count 300` runs so many;
`--first SEED --count 1` does one again. What happens follows from the seed alone. The disks are written by qemu-io
through the guest's own devices, and a copy of them beside it; `--fault` plants one of `faults.FAULTS` in the engine.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import pathlib
import sys
import tempfile
import time
import typing as t

from tests.unit._backup import faults
from tests.unit._backup.hypervisor import Hypervisor
from tests.unit._backup.life import Life


def live(
    hosts: t.Sequence[Hypervisor], seed: int, steps: int, fault: str | None = None, key: str | None = None
) -> str | None:
    """Live the life of this seed on two hosts; returns why it failed, or None."""
    life = Life(hosts[0], seed, fault, key, hosts[1])
    try:
        life.live(steps)
    except Exception as error:
        return f"seed {seed} after {' '.join(life.told)}: {type(error).__name__}: {error}"
    finally:
        life.close()
    return None


def main() -> int:
    """Live some lives; each prints its seed, and why it failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--count", type=int, default=15)
    parser.add_argument("--seeds", type=int, nargs="*", help="instead of these, lives of these seeds")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--restic", type=int, default=0, help="each so many lives have restic as their store")
    parser.add_argument("--fault", help="one of faults.FAULTS, or all: as many lives as it takes to find it")
    options = parser.parse_args()
    seeds = options.seeds or range(options.first, options.first + options.count)
    began = time.monotonic()
    results: collections.Counter[str] = collections.Counter()
    with tempfile.TemporaryDirectory(prefix="lives-") as directory:
        os.chmod(directory, 0o711)
        hosts = [Hypervisor(pathlib.Path(directory), is_here=True)]
        try:
            hosts.append(Hypervisor(pathlib.Path(directory)))
            for fault in list(faults.FAULTS) if options.fault == "all" else [options.fault]:
                for seed in seeds:
                    key = "secret" if options.restic and seed % options.restic == 0 else None
                    failed = live(hosts, seed, options.steps, fault, key)
                    results["failed" if failed else "passed"] += 1
                    print(f"{fault + ': ' if fault else ''}{failed or f'seed {seed} passed'}", flush=True)
                    if fault and failed:
                        results["found"] += 1
                        break
        finally:
            for host in hosts:
                host.close()
    print(json.dumps({**results, "seconds": round(time.monotonic() - began)}))
    return 1 if results["failed"] and not options.fault else 0


if __name__ == "__main__":
    sys.exit(main())
