"""inject.overlay100: the disks of 100 instances in one call, beside a shell loop of bare `qemu-img create`.

Ours is a fresh Python process with all that the module does: checks, directories, the records of the formats, locks and
fsync. The loop makes nothing but the files.
"""

from __future__ import annotations

import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import typing as t

NAME = "inject.overlay100"
COUNT, ROUNDS = 100, 7
CHECKSUM = "a" * 64
LOOP = 'for i in $(seq "$1"); do mkdir "$2/$i"; qemu-img create -q -f qcow2 -b "$3" -F raw "$2/$i/disk" 1G; done'
OURS = f"""
import sys, uuid
from ansible_collections.novalite.cloud.plugins.module_utils._disk.overlay import Disk, create_disks
disks = [Disk(str(uuid.uuid4()), "sha256:{CHECKSUM}", 1) for _number in range(int(sys.argv[1]))]
assert create_disks(disks, sys.argv[2])["changed"]
"""


def run(prefix: str) -> t.Iterator[dict[str, t.Any]]:
    if not NAME.startswith(prefix):
        return
    ours, reference = [], []
    for _round in range(ROUNDS):
        with tempfile.TemporaryDirectory(prefix="novalite-bench-", dir="/var/tmp") as state:
            base = pathlib.Path(state, "_base", f"{CHECKSUM}.raw")
            base.parent.mkdir()
            with open(base, "wb") as handle:
                handle.truncate(32 << 20)
            ours.append(_seconds([sys.executable, "-c", OURS, str(COUNT), state]))
            _check(pathlib.Path(state, "instances"))
        with tempfile.TemporaryDirectory(prefix="novalite-bench-", dir="/var/tmp") as state:
            base = pathlib.Path(state, CHECKSUM)
            with open(base, "wb") as handle:
                handle.truncate(32 << 20)
            reference.append(_seconds(["bash", "-c", LOOP, "loop", str(COUNT), state, str(base)]))
    mine, bare = statistics.median(ours), statistics.median(reference)
    yield {
        "bench": NAME,
        "ours": round(mine, 3),
        "reference": round(bare, 3),
        "ratio": round(mine / bare, 3),
        "unit": "s",
    }


def _seconds(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True)
    return time.perf_counter() - began


def _check(instances: pathlib.Path) -> None:
    disks = sorted(instances.glob("*/disk"))
    assert len(disks) == COUNT, f"{len(disks)} disks were made"
    subprocess.run(["qemu-img", "check", "-q", "-f", "qcow2", os.fspath(disks[0])], check=True)
