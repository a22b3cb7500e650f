# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tempest against the API over the lab. See tools/conformance, which installs it."""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import typing as t

import yaml

from tests.clients.cloud import ROOT, cloud

from . import configuration, tally

HERE = pathlib.Path(__file__).resolve().parent
BIN = ROOT / ".cache/tempest/bin"
ALL = r"^tempest\.(api\.(compute|identity\.(admin\.)?v3|image\.v2|network|volume)\.|scenario\.test_server_basic_ops\.)"


def main() -> int:
    parser = argparse.ArgumentParser(prog="tools/conformance", description="Tempest against the API over the lab.")
    parser.add_argument("chosen", nargs="?", default="", metavar="REGEX", help="searched in the tests' names")
    parser.add_argument("--workers", type=int, default=configuration.WORKERS, help="that test at the same time")
    parser.add_argument("--no-ssh", action="store_true", help="do not log in to guests")
    asked = parser.parse_args()
    # whoever ends this ends what it began: the API, Tempest, the lab
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    # who may look at hypervisors: as Nova has it
    os.environ.setdefault("NOVALITE_API_POLICY", "compute:hypervisors:read=admin")
    began = time.monotonic()
    with cloud() as running:
        workspace = running.home / "conformance"
        workspace.mkdir(mode=0o700, exist_ok=True)
        configuration.record(running, workspace)
        configuration.write(running, workspace, _package(), ssh=not asked.no_ssh)
        tests = _tests(workspace, asked.chosen)
        without, unused = tally.left_out(tests, yaml.safe_load((HERE / "skips.yml").read_text()))
        named = {each.test for each in without}
        wanted = [test for test in tests if tally.name_of(test) not in named]
        outcomes = [*tally.settle(wanted, _run(workspace, wanted, asked.workers)), *without]
    if not asked.chosen:
        for pattern in unused:
            print(f"skips.yml: there is no test {pattern}")
    return _report(outcomes, time.monotonic() - began)


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
    found = [line for line in said.stdout.split("\n") if re.search(ALL, line) and re.search(chosen, line)]
    if not found:
        raise SystemExit(f"no test's name has {chosen}")
    return found


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


def _report(outcomes: list[tally.Outcome], seconds: float) -> int:
    failed = [outcome for outcome in outcomes if outcome.word == tally.FAILED]
    passed = [outcome for outcome in outcomes if outcome.word == tally.PASSED]
    for outcome in failed:
        print(f"\nFAILED {outcome.test}")
        print("\n".join(f"  {line}" for line in outcome.text.splitlines()[-25:]))
    print()
    print("\n".join(tally.reasons(outcomes)))
    print()
    print("\n".join(tally.table(outcomes)))
    for outcome in failed:
        print(f"FAILED {outcome.test}")
    skipped = len(outcomes) - len(passed) - len(failed)
    print(f"{len(passed)} passed, {len(failed)} failed, {skipped} skipped in {seconds:.0f} s")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
