# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tally of each test's outcome, by class. Pure functions."""

from __future__ import annotations

import dataclasses
import re
import typing as t

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
WORDS = {"success": PASSED, "xfail": PASSED, "skip": SKIPPED}  # all others are failures
FIXTURE = re.compile(r"^(setUpClass|tearDownClass) \((.+)\)$")


@dataclasses.dataclass(frozen=True)
class Outcome:
    test: str  # without Tempest's attributes in brackets
    word: str
    seconds: float = 0.0
    text: str = ""  # reason or traceback


def name_of(test_id: str) -> str:
    return test_id.partition("[")[0]


def class_of(test: str) -> str:
    found = FIXTURE.match(test)
    return found[2] if found else test.rpartition(".")[0]


def left_out(tests: t.Iterable[str], skips: t.Iterable[dict[str, t.Any]]) -> tuple[list[Outcome], list[str]]:
    """Of `tests` those that the list of skips names, with its reason, and the patterns that name none of them."""
    found: dict[str, Outcome] = {}
    unused = []
    names = [name_of(test) for test in tests]
    for skip in skips:
        for pattern in skip["tests"]:
            named = [name for name in names if re.search(pattern, name)]
            if not named:
                unused.append(pattern)
            for name in named:
                found.setdefault(name, Outcome(name, SKIPPED, text=skip["reason"]))
    return list(found.values()), unused


def settle(tests: t.Iterable[str], lines: t.Iterable[dict[str, t.Any]]) -> list[Outcome]:
    """One outcome for each of `tests`, of what was reported. A class that was skipped or failed as a whole reports only
    that: it holds for its tests. What nothing was reported of has failed."""
    reported: dict[str, Outcome] = {}
    whole: dict[str, Outcome] = {}
    others: list[Outcome] = []
    for line in lines:
        test = name_of(line["id"])
        outcome = Outcome(test, WORDS.get(line["status"], FAILED), line["seconds"], line["text"])
        if FIXTURE.match(test):
            if test.startswith("setUpClass"):
                whole[class_of(test)] = outcome
            elif outcome.word == FAILED:
                others.append(outcome)
        else:
            reported[test] = outcome
    settled = []
    for test in dict.fromkeys(name_of(each) for each in tests):
        outcome = reported.get(test) or whole.get(class_of(test)) or Outcome(test, FAILED, text="it was not run")
        settled.append(dataclasses.replace(outcome, test=test))
    return settled + others


def table(outcomes: t.Iterable[Outcome]) -> list[str]:
    """Lines: for each class how many tests passed, failed, were skipped; the last one is of all."""
    counts: dict[str, dict[str, int]] = {}
    for outcome in outcomes:
        for key in (class_of(outcome.test), ""):
            counts.setdefault(key, dict.fromkeys((PASSED, FAILED, SKIPPED), 0))[outcome.word] += 1
    total = counts.pop("", dict.fromkeys((PASSED, FAILED, SKIPPED), 0))
    lines = [f"{PASSED:>6} {FAILED:>6} {SKIPPED:>7}  class"]
    for name, each in [*sorted(counts.items()), ("all", total)]:
        lines.append(f"{each[PASSED]:6} {each[FAILED]:6} {each[SKIPPED]:7}  {name}")
    return lines


def reasons(outcomes: t.Iterable[Outcome]) -> list[str]:
    """Lines: each reason for a skip, and the tests that were skipped for it."""
    by_reason: dict[str, list[str]] = {}
    for outcome in outcomes:
        if outcome.word == SKIPPED:
            by_reason.setdefault(" ".join(outcome.text.split()), []).append(outcome.test)
    lines = []
    for reason, tests in sorted(by_reason.items()):
        lines.append(f"skipped: {reason}")
        lines += [f"  {test}" for test in sorted(tests)]
    return lines
