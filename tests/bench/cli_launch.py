# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Seconds of `novalite launch` of one guest, beside a bare shell script that does the same steps:

* `cli.launch_one`: until libvirt says that the domain was started
* `cli.launch_one_end`: until the command and the script have ended; the command also records what it did

Medians of several rounds, in turn, after one that fills the caches and starts the waiting playbook (without it:
NOVALITE_WAITING=0)."""

from __future__ import annotations

import contextlib
import os
import pathlib
import queue
import statistics
import sys
import threading
import time
import typing as t

from tests.bench import launch
from tests.bench.cloud import Cloud

NAME, WHOLE = "cli.launch_one", "cli.launch_one_end"
ROUNDS = 5
WORDS = ("launch", "bench", "-f", "m1.nano", "-I", "ami-tiny", "-k", "test", "-w", "running")
# virsh knows no end but a signal, which nothing outside of the hypervisor's namespaces can send it
EVENTS = "stdbuf --output=L virsh --quiet event --event lifecycle --loop & read -r _end; kill $!"
STARTED = "Started Booted"  # virsh's words for VIR_DOMAIN_EVENT_STARTED_BOOTED


def run(prefix: str) -> t.Iterator[dict[str, t.Any]]:
    if not any(name.startswith(prefix) or prefix.startswith(name) for name in (NAME, WHOLE)):
        return
    novalite = str(pathlib.Path(sys.executable).with_name("novalite"))
    ours, reference = [], []
    with Cloud(instances=1, environment={"NOVALITE_WAITING": os.environ.get("NOVALITE_WAITING", "1")}) as cloud:
        launch.warm_up(cloud)
        command = [novalite, *WORDS, "-i", str(cloud.inventory)]
        with _starts(cloud) as starts:
            for _round in range(ROUNDS + 1):
                ours.append(_until_started(starts, lambda: cloud.run(command)))
                launch.terminate(cloud, 1)
                reference.append(_until_started(starts, lambda: launch.by_script(cloud, "up", 1)))
                launch.by_script(cloud, "down", 1)
    for name, which in ((NAME, 0), (WHOLE, 1)):
        command_s, script_s = (statistics.median(each[which] for each in side[1:]) for side in (ours, reference))
        yield launch.figure(name, command_s, script_s, "s")


@contextlib.contextmanager
def _starts(cloud: Cloud) -> t.Iterator[queue.Queue[float]]:
    """Moments (of time.perf_counter) at which libvirt said that a domain was started."""
    moments: queue.Queue[float] = queue.Queue()
    with cloud.beside_on_host("bash", "-c", EVENTS) as lines:

        def note() -> None:
            for line in lines:
                if STARTED in line:
                    moments.put(time.perf_counter())

        reader = threading.Thread(target=note)
        reader.start()
        yield moments
    reader.join()


def _until_started(starts: queue.Queue[float], work: t.Callable[[], float]) -> tuple[float, float]:
    """Return the seconds until the domain was started, and until `work` ended."""
    began = time.perf_counter()
    whole = work()
    return starts.get(timeout=10) - began, whole
