# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""cli.list2000, cli.hosts, cli.networks, cli.show: processor time of `novalite list`, `hosts`, `networks` and `show`
over a ledger of 2,000 servers on 100 hosts, beside `python3 -c pass`: at most 15 times that, and 0.3 s. Medians of
several rounds, in turn."""

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

LOOKS = {
    "cli.list2000": ["list", "--all-projects"],
    "cli.hosts": ["hosts"],
    "cli.networks": ["networks"],
    "cli.show": ["show", "--all-projects", "g1321"],
}
HOSTS = 100  # of 20 servers each
ROUNDS = 9


def run(prefix: str) -> t.Iterator[dict[str, t.Any]]:
    chosen = {name: words for name, words in LOOKS.items() if name.startswith(prefix) or prefix.startswith(name)}
    with tempfile.TemporaryDirectory() as home:
        if chosen:
            cloud = Cloud(sqlite(pathlib.Path(home)))
            grow(cloud.engine, HOSTS)
            cloud.close()
        programs = pathlib.Path(sys.executable).parent
        nothing = [str(programs / "python3"), "-c", "pass"]
        for name, words in chosen.items():
            look = [str(programs / "novalite"), "--home", home, *words]
            pairs = [(seconds(look), seconds(nothing)) for _round in range(ROUNDS)]
            ours, reference = (statistics.median(column) for column in zip(*pairs))
            figures = {"ours": round(ours, 5), "reference": round(reference, 5), "ratio": round(ours / reference, 3)}
            yield {"bench": name, **figures, "unit": "s"}


def seconds(command: t.Sequence[str]) -> float:
    """Return the processor time of a process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
