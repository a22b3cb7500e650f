"""scheduler.*: CPU time of our filters, weighers and choices beside nova 34.0.0's own, on the same hosts."""

from __future__ import annotations

import json
import pathlib
import statistics
import subprocess
import sys
import time
import types
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.select import select
from tests.bench import scheduler_cluster
from tests.bench.cloud import REPOSITORY
from tests.parity import cases, differences, our_side

ENVIRONMENT = REPOSITORY / ".cache/nova-venv"
SIZES = {  # hosts, instances, rounds in turn, and repetitions in a row: a process that has just waited starts cold
    "scheduler.nova_1000x1": (1000, 1, 3, 20),
    "scheduler.nova_1000x100": (1000, 100, 3, 1),
    "scheduler.nova_10000x100": (10_000, 100, 1, 1),
}
GROWTH = 12  # times the time that ten times the hosts may take


def run(prefix: str) -> t.Iterator[dict[str, t.Any]]:
    sizes = {name: size for name, size in SIZES.items() if name.startswith(prefix)}
    if sizes or "scheduler.parity_live".startswith(prefix):
        with Nova() as nova:
            for name, (hosts, instances, rounds, repetitions) in sizes.items():
                question = {"hosts": hosts, "instances": instances, "repetitions": repetitions}
                ours: list[float] = []
                reference: list[float] = []
                for _round in range(rounds):
                    ours += [_ours(hosts, instances) for _repetition in range(repetitions)]
                    reference += nova.ask(question)["cpu_s"]
                # the least of each side: what other work on the machine adds to CPU time, it adds to the short one most
                yield _figure(name, min(ours), min(reference), "s")
            if "scheduler.parity_live".startswith(prefix):
                yield _parity(nova)
    if "scheduler.growth_10x".startswith(prefix):
        small = statistics.median(_ours(1000, 100) for _round in range(5))
        large = statistics.median(_ours(10_000, 100) for _round in range(3))
        yield _figure("scheduler.growth_10x", large / small, GROWTH, "times")


class Nova:
    """A process with nova in an environment of its own, made when missing."""

    def __enter__(self) -> Nova:
        python = _environment()
        self._process = subprocess.Popen(
            [str(python), "-W", "ignore", "-m", "tests.bench.scheduler_nova"],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: types.TracebackType | None
    ) -> None:
        self._process.communicate()

    def ask(self, question: dict[str, t.Any]) -> dict[str, t.Any]:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise SystemExit(f"nova's side gave no answer to {question}: run tests.bench.scheduler_nova by hand")
        return t.cast(dict, json.loads(answer))


def _environment() -> pathlib.Path:
    python = ENVIRONMENT / "bin/python"
    if not (ENVIRONMENT / "complete").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(ENVIRONMENT)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", "nova==34.0.0"], check=True, stdout=sys.stderr)
        (ENVIRONMENT / "complete").touch()
    return python


def _ours(hosts: int, instances: int) -> float:
    """CPU seconds of one `select`; every claim succeeds at once, and the rows are there already."""
    case = scheduler_cluster.case(hosts, instances)
    states, requests = our_side.hosts_of(case), our_side.requests_of(case)
    started = time.process_time()
    decisions = select(states, requests, "filter_scheduler")
    seconds = time.process_time() - started
    assert all(decision.host for decision in decisions)
    return seconds


def _parity(nova: Nova) -> dict[str, t.Any]:
    """Cases that differ, of those that may not, decided live on both sides."""
    different = compared = 0
    for seed, answer in enumerate(nova.ask({"parity": True})["answers"]):
        case = cases.case(seed)
        if not any(excluded(case, answer) for excluded in differences.OF_A_CASE):
            compared += 1
            different += [list(decision) if decision else None for decision in our_side.answer(case)] != answer["steps"]
    return _figure("scheduler.parity_live", different, compared, "different cases")


def _figure(name: str, ours: float, reference: float, unit: str) -> dict[str, t.Any]:
    return {
        "bench": name,
        "ours": round(ours, 5),
        "reference": round(reference, 5),
        "ratio": round(ours / reference, 5),
        "unit": unit,
    }
