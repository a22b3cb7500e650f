# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tally of each test's outcome, by class. Pure functions."""

from __future__ import annotations

import dataclasses
import re
import typing as t

PASSED, FAILED, LISTED, SKIPPED = "passed", "failed", "listed", "skipped"  # listed: it failed, as its list says
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
    fixture = FIXTURE.match(test)
    return fixture[2] if fixture else test.rpartition(".")[0]


def left_out(tests: t.Iterable[str], skips: t.Iterable[dict[str, t.Any]]) -> tuple[list[Outcome], list[str]]:
    """Of `tests` those that the list of skips names, with its reason, and the patterns that name none of them."""
    outcome_by_name: dict[str, Outcome] = {}
    unused = []
    names = [name_of(test) for test in tests]
    for skip in skips:
        for pattern in skip["tests"]:
            named = [name for name in names if re.search(pattern, name)]
            if not named:
                unused.append(pattern)
            for name in named:
                outcome_by_name.setdefault(name, Outcome(name, SKIPPED, text=skip["reason"]))
    return list(outcome_by_name.values()), unused


def judge(outcomes: t.Iterable[Outcome], expectations: t.Iterable[dict[str, t.Any]]) -> tuple[list[Outcome], list[str]]:
    """Return the outcomes, in which a failure that `expectations` names is LISTED with its reason, and the names of the
    tests that are listed and passed."""
    reasons = {test: each["reason"] for each in expectations for test in each["tests"]}
    judged, passed = [], []
    for outcome in outcomes:
        if outcome.test in reasons and outcome.word == FAILED:
            outcome = dataclasses.replace(outcome, word=LISTED, text=reasons[outcome.test])
        elif outcome.test in reasons and outcome.word == PASSED:
            passed.append(outcome.test)
        judged.append(outcome)
    return judged, passed


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


def count(outcomes: t.Iterable[Outcome]) -> dict[str, int]:
    """The number of outcomes of each word."""
    counts = dict.fromkeys((PASSED, FAILED, LISTED, SKIPPED), 0)
    for outcome in outcomes:
        counts[outcome.word] += 1
    return counts


def table(outcomes: t.Iterable[Outcome]) -> list[str]:
    """Lines: for each class how many tests have which outcome; the last one is of all."""
    by_class: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        by_class.setdefault(class_of(outcome.test), []).append(outcome)
    rows = [(name, count(each)) for name, each in sorted(by_class.items())]
    rows.append(("all", count(outcome for each in by_class.values() for outcome in each)))
    lines = [" ".join(f"{word:>7}" for word in rows[-1][1]) + "  class"]
    lines += [" ".join(f"{number:7}" for number in counts.values()) + f"  {name}" for name, counts in rows]
    return lines


def reasons(outcomes: t.Iterable[Outcome]) -> list[str]:
    """Lines: each reason for a skip or a listed failure, and its tests."""
    by_reason: dict[tuple[str, str], list[str]] = {}
    for outcome in outcomes:
        if outcome.word in (SKIPPED, LISTED):
            by_reason.setdefault((outcome.word, " ".join(outcome.text.split())), []).append(outcome.test)
    lines = []
    for (word, reason), tests in sorted(by_reason.items()):
        lines.append(f"{word}: {reason}")
        lines += [f"  {test}" for test in sorted(tests)]
    return lines
