# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""cli.list2000: processor time of `novalite list` over a ledger of 2,000 servers, beside `python3 -c pass`: at most 15
times that. Medians of several rounds, in turn."""

from __future__ import annotations

import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import typing as t

from tests.support.cloud import Cloud, sqlite
from tests.support.grown import grow

NAME = "cli.list2000"
HOSTS = 100  # of 20 servers each
ROUNDS = 9


def run(prefix: str) -> t.Iterator[dict[str, t.Any]]:
    if not (NAME.startswith(prefix) or prefix.startswith(NAME)):
        return
    with tempfile.TemporaryDirectory() as home:
        cloud = Cloud(sqlite(pathlib.Path(home)))
        grow(cloud.engine, HOSTS)
        cloud.close()
        programs = pathlib.Path(sys.executable).parent
        look = [str(programs / "novalite"), "--home", home, "list", "--all-projects"]
        nothing = [str(programs / "python3"), "-c", "pass"]
        pairs = [(seconds(look), seconds(nothing)) for _round in range(ROUNDS)]
    ours, reference = (statistics.median(column) for column in zip(*pairs))
    figures = {"ours": round(ours, 5), "reference": round(reference, 5), "ratio": round(ours / reference, 3)}
    yield {"bench": NAME, **figures, "unit": "s"}


def seconds(command: t.Sequence[str]) -> float:
    """Return the processor time of a process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
