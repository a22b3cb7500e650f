# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pathlib

import pytest

from tests.conformance import gophercloud, tally

PASSES = 'printf "=== RUN\\n--- PASS: TestX (0.00s)\\nPASS\\n"'
SKIPS = 'printf "    conditions.go:12: must be admin to run this test\\n--- SKIP: TestX (0.00s)\\nPASS\\n"'
FAILS = 'printf "2026/11/25 OpenStack Response Headers:\\nServer: gunicorn\\n    x_test.go:1: 404\\n"; exit 1'


@pytest.mark.parametrize(
    ("script", "word", "text"),
    [
        (PASSES, tally.PASSED, "--- PASS"),
        (SKIPS, tally.SKIPPED, "must be admin to run this test"),
        (FAILS, tally.FAILED, "    x_test.go:1: 404\n"),
    ],
)
def test_a_test_is_a_process_of_its_own(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, script: str, word: str, text: str
) -> None:
    monkeypatch.setattr(gophercloud, "BINARIES", tmp_path)
    monkeypatch.setattr(gophercloud, "SOURCES", tmp_path)
    (tmp_path / "compute/v2").mkdir(parents=True)
    binary = tmp_path / "compute-v2"
    binary.write_text(f"#!/bin/sh\n{script}\n")
    binary.chmod(0o755)
    outcome = gophercloud._outcome(gophercloud.Test("compute/v2", "TestX"), {})
    assert (outcome.test, outcome.word) == ("gophercloud.compute.v2.TestX", word)
    assert text in outcome.text and "gunicorn" not in outcome.text
