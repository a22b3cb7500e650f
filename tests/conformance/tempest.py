# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tempest, OpenStack's own test suite. See tools/conformance, which installs it."""

from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import typing as t

import yaml

from tests.clients.cloud import ROOT, Cloud

from . import configuration, tally

HERE = pathlib.Path(__file__).resolve().parent
BIN = ROOT / ".cache/tempest/bin"
ALL = r"^tempest\.(api\.(compute|identity\.(admin\.)?v3|image\.v2|network|volume)\.|scenario\.test_server_basic_ops\.)"


def run(running: Cloud, workspace: pathlib.Path, chosen: str, workers: int, ssh: bool) -> list[tally.Outcome]:
    """Run the tests whose names match `chosen`; their outcomes, with those of the tests that skips.yml leaves out."""
    configuration.record(running, workspace, configuration.accounts(workspace))
    configuration.write(running, workspace, _package(), ssh=ssh)
    tests = _tests(workspace, chosen)
    left_out, unused = tally.left_out(tests, yaml.safe_load((HERE / "skips.yml").read_text()))
    if not chosen:
        for pattern in unused:
            print(f"skips.yml: there is no test {pattern}")
    names = {outcome.test for outcome in left_out}
    tests = [test for test in tests if tally.name_of(test) not in names]
    return [*tally.settle(tests, _run(workspace, tests, workers)), *left_out]


def _environment(workspace: pathlib.Path) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("OS_", "PYTHON"))}
    return {
        **kept,
        "PATH": f"{BIN}:{kept['PATH']}",
        "TEMPEST_CONFIG_DIR": str(workspace),
        "TEMPEST_CONFIG": "tempest.conf",
        "OS_TEST_TIMEOUT": "3600",
    }


def _package() -> pathlib.Path:
    said = subprocess.run(
        [BIN / "python", "-c", "import tempest; print(tempest.__file__)"],
        env=_environment(ROOT),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    return pathlib.Path(said.strip()).parent


def _tests(workspace: pathlib.Path, chosen: str) -> list[str]:
    """The tests of the suites that are wanted, with Tempest's attributes."""
    shutil.rmtree(workspace / ".stestr", ignore_errors=True)  # it would keep every run
    shutil.rmtree(workspace / "locks", ignore_errors=True)  # of a run that was killed, which holds accounts
    subprocess.run([BIN / "stestr", "init"], cwd=workspace, env=_environment(workspace), check=True)
    said = subprocess.run(
        [BIN / "stestr", "list"],
        cwd=workspace,
        env=_environment(workspace),
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if said.returncode:
        raise SystemExit(f"Tempest cannot tell its tests:\n{said.stdout[-3000:]}")
    return [line for line in said.stdout.split("\n") if re.search(ALL, line) and re.search(chosen, line)]


def _run(workspace: pathlib.Path, tests: list[str], workers: int) -> t.Iterator[dict[str, t.Any]]:
    """Run `tests`; what is reported of them, as it comes."""
    if not tests:
        return
    (workspace / "tests.txt").write_text("\n".join(tests) + "\n")
    environment = _environment(workspace)
    tempest = subprocess.Popen(
        [BIN / "stestr", "run", "--subunit", "--load-list", "tests.txt", "--concurrency", str(workers)],
        cwd=workspace,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        process_group=0,
    )
    with subprocess.Popen(
        [BIN / "python", HERE / "listen.py"], env=environment, stdin=tempest.stdout, stdout=subprocess.PIPE, text=True
    ) as listener:
        assert tempest.stdout is not None and listener.stdout is not None
        tempest.stdout.close()  # the listener's
        try:
            with (workspace / "outcomes.jsonl").open("w") as kept:
                for text in listener.stdout:
                    kept.write(text)
                    kept.flush()
                    line = json.loads(text)
                    print(f"{line['status']:8} {line['seconds']:7.1f} s  {tally.name_of(line['id'])}", flush=True)
                    yield line
        except BaseException:
            os.killpg(tempest.pid, signal.SIGTERM)  # with its workers
            raise
    tempest.wait()
