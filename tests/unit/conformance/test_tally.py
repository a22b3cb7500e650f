# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pathlib
import re

import pytest
import yaml

from tests.conformance import tally

CONFORMANCE = pathlib.Path(__file__).resolve().parents[2] / "conformance"
TESTS = ["a.b.One.test_x[id-1,smoke]", "a.b.One.test_y[id-2]", "a.b.Two.test_z[id-3]", "a.b.Two.test_w[id-4]"]


def line(test: str, status: str, text: str = "") -> dict[str, object]:
    return {"id": test, "status": status, "seconds": 1.0, "text": text}


def test_each_test_has_one_outcome() -> None:
    lines = [
        line(TESTS[0], "success"),
        line(TESTS[1], "skip", "no such feature"),
        line("setUpClass (a.b.Two)", "fail", "no server"),
        line("tearDownClass (a.b.One)", "fail", "left over"),
    ]
    outcomes = tally.settle(TESTS, lines)
    assert [(outcome.test, outcome.word, outcome.text) for outcome in outcomes] == [
        ("a.b.One.test_x", tally.PASSED, ""),
        ("a.b.One.test_y", tally.SKIPPED, "no such feature"),
        ("a.b.Two.test_z", tally.FAILED, "no server"),
        ("a.b.Two.test_w", tally.FAILED, "no server"),
        ("tearDownClass (a.b.One)", tally.FAILED, "left over"),
    ]
    assert [text.split() for text in tally.table(outcomes)[1:]] == [
        ["1", "1", "0", "1", "a.b.One"],
        ["0", "2", "0", "0", "a.b.Two"],
        ["1", "3", "0", "1", "all"],
    ]
    assert tally.reasons(outcomes) == ["skipped: no such feature", "  a.b.One.test_y"]


def test_what_was_not_reported_has_failed() -> None:
    assert [outcome.word for outcome in tally.settle(TESTS, [])] == [tally.FAILED] * 4


def test_the_list_of_skips_names_tests_with_a_reason() -> None:
    skips = [{"reason": "not here", "tests": [r"Two\.test_z", "nosuch"]}]
    outcomes, unused = tally.left_out(TESTS, skips)
    assert [(outcome.test, outcome.word, outcome.text) for outcome in outcomes] == [
        ("a.b.Two.test_z", tally.SKIPPED, "not here")
    ]
    assert unused == ["nosuch"]


def test_a_listed_failure_fails_nothing_and_a_listed_pass_is_told() -> None:
    outcomes = [tally.Outcome(test, word) for test, word in (("a.X", "failed"), ("a.Y", "passed"), ("a.Z", "failed"))]
    judged, passed = tally.judge(outcomes, [{"reason": "no such plug-in", "tests": ["a.X", "a.Y"]}])
    assert [(outcome.word, outcome.text) for outcome in judged] == [
        (tally.LISTED, "no such plug-in"),
        (tally.PASSED, ""),
        (tally.FAILED, ""),
    ]
    assert passed == ["a.Y"]
    assert tally.reasons(judged) == ["listed: no such plug-in", "  a.X"]


@pytest.mark.parametrize("name", ["skips.yml", "gophercloud.yml"])
def test_the_list_is_one_that_can_be_read(name: str) -> None:
    for skip in yaml.safe_load((CONFORMANCE / name).read_text()):
        assert set(skip) == {"reason", "tests"} and skip["reason"].strip()
        assert all(re.compile(pattern) for pattern in skip["tests"])
