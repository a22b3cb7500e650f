# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""cli.launch_one: `novalite launch` of one guest until its domain runs, beside a bare shell script that does the same
steps. Medians of several rounds, in turn, after one that fills the caches and starts the waiting playbook (without it:
NOVALITE_WAITING=0)."""

from __future__ import annotations

import os
import pathlib
import statistics
import sys
import typing as t

from tests.bench import launch
from tests.bench.cloud import Cloud

NAME = "cli.launch_one"
ROUNDS = 5
WORDS = ("launch", "bench", "-f", "m1.nano", "-I", "ami-tiny", "-k", "test", "-w", "running")


def run(prefix: str) -> t.Iterator[dict[str, t.Any]]:
    if not (NAME.startswith(prefix) or prefix.startswith(NAME)):
        return
    novalite = str(pathlib.Path(sys.executable).with_name("novalite"))
    ours, reference = [], []
    with Cloud(instances=1, environment={"NOVALITE_WAITING": os.environ.get("NOVALITE_WAITING", "1")}) as cloud:
        launch.warm_up(cloud)
        for _round in range(ROUNDS + 1):
            ours.append(cloud.run([novalite, *WORDS, "-i", str(cloud.inventory)]))
            launch.terminate(cloud, 1)
            reference.append(launch.by_script(cloud, "up", 1))
            launch.by_script(cloud, "down", 1)
    yield launch.figure(NAME, statistics.median(ours[1:]), statistics.median(reference[1:]), "s")
