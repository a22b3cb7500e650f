# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tempest and gophercloud's acceptance tests against the API over the lab. tools/conformance installs them."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time

from tests.clients.cloud import cloud

from . import configuration, gophercloud, tally, tempest

SUITES = ("tempest", "gophercloud")  # each begins the names of its tests


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="tools/conformance", description="Tempest and gophercloud's acceptance tests against the API over the lab."
    )
    parser.add_argument(
        "chosen",
        nargs="?",
        default="",
        metavar="REGEX",
        help="searched in the tests' names, which begin with their suite",
    )
    parser.add_argument("--workers", type=int, default=configuration.WORKERS, help="of Tempest, at the same time")
    parser.add_argument("--no-ssh", action="store_true", help="do not log in to guests")
    asked = parser.parse_args()
    # whoever ends this ends what it began: the API, Tempest, the lab
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    # who may look at hypervisors: as Nova has it
    os.environ.setdefault("NOVALITE_API_POLICY", "compute:hypervisors:read=admin")
    began = time.monotonic()
    outcomes: list[tally.Outcome] = []
    with cloud() as running:
        workspace = running.home / "conformance"
        workspace.mkdir(mode=0o700, exist_ok=True)
        for suite in [name for name in SUITES if asked.chosen.startswith(name)] or SUITES:
            if suite == "tempest":
                outcomes += tempest.run(running, workspace, asked.chosen, asked.workers, ssh=not asked.no_ssh)
            else:
                outcomes += gophercloud.run(running, workspace, asked.chosen)
    if not outcomes:
        raise SystemExit(f"no test's name has {asked.chosen}")
    return _report(outcomes, time.monotonic() - began)


def _report(outcomes: list[tally.Outcome], seconds: float) -> int:
    failed = [outcome for outcome in outcomes if outcome.word == tally.FAILED]
    for outcome in failed:
        print(f"\nFAILED {outcome.test}")
        print("\n".join(f"  {line}" for line in outcome.text.splitlines()[-25:]))
    print()
    print("\n".join(tally.reasons(outcomes)))
    print()
    print("\n".join(tally.table(outcomes)))
    for outcome in failed:
        print(f"FAILED {outcome.test}")
    counts = tally.count(outcomes)
    print(", ".join(f"{number} {word}" for word, number in counts.items()) + f" in {seconds:.0f} s")
    return 1 if failed or not counts[tally.PASSED] else 0


if __name__ == "__main__":
    sys.exit(main())
