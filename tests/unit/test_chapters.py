# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Chapters whose commands the scenario `chapters` runs as printed: each command is there, with what comes of it."""

from __future__ import annotations

import itertools
import sys

import pytest

from tests.molecule.chapters import __main__ as scenario
from tests.molecule.chapters.printed import chapter, expected, parsed, pattern

CHAPTERS = ["README", "launch", "lifecycle", "networks", "volumes", "security-groups", "stack"]
RESULTS = {"says", "shows", "moves", "status"}


@pytest.mark.parametrize("name", CHAPTERS)
def test_each_command_of_a_chapter_is_run(name: str) -> None:
    assert [step["run"] for step in expected()[name] if "run" in step] == list(chapter(name).commands)


def test_few_blocks_are_not_run_and_few_commands_are_not_looked_at() -> None:
    reasons = list(itertools.chain(*(chapter(name).reasons for name in CHAPTERS)))
    assert len(reasons) <= 8 and all(len(reason) > 10 for reason in reasons)
    steps = list(itertools.chain(*expected().values()))
    assert len([step for step in steps if "given" in step]) <= 8
    unseen = [step["run"] for step in steps if "run" in step and not RESULTS & set(step)]
    assert len(unseen) <= 8, unseen


def test_a_page_is_parsed_into_what_is_typed_and_what_is_seen() -> None:
    page = parsed(
        "```\nexport A=1 \\\n  B=2   # both\n\n# nothing\nnovalite list\n```\n"
        "```yaml\n# one.yml\na: 1\n```\n```text\nREADY <uuid>\n```\n"
        "<!-- not run: it never ends -->\n```\nnovalite api\n```\n"
    )
    assert page.commands == ("export A=1 B=2", "novalite list")
    assert page.files == {"one.yml": "# one.yml\na: 1\n"}
    assert (page.outputs, page.reasons) == (("READY <uuid>\n",), ("it never ends",))
    with pytest.raises(ValueError, match="name of the file"):
        parsed("```yaml\na: 1\n```\n")


def test_printed_output_is_found_whatever_differs_each_time() -> None:
    ready = pattern("READY instance=<uuid> host=<host> ip=<fixed ip> ssh='<command>'\n")
    came = "READY instance=11111111-2222-3333-4444-555555555555 host=hv1 ip=10.20.0.3 ssh='ssh -F x web'\n"
    assert ready.search(f"before\n{came}after\n")
    assert not ready.search(came.replace("ip=10.20.0.3 ", ""))
    table = pattern("+ server  web\n...\nPlan: 2 to add.\n")
    assert table.search("  +  server    web\n  +  server  db\nPlan: 2 to add.\n")
    assert not table.search("  +  server    web\nPlan: 3 to add.\n")


@pytest.mark.parametrize(("problems", "ends"), [([], None), (["it ended with 2"], "it ended with 2")])
def test_the_scenario_fails_when_something_went_wrong(
    problems: list[str], ends: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["chapters", "/nowhere"])
    monkeypatch.setattr(scenario, "prepare", lambda _home, _directory: None)
    monkeypatch.setattr(scenario, "write_files", lambda _directory, _files: None)
    monkeypatch.setattr(scenario, "expected", lambda: {"install": []})
    monkeypatch.setattr(scenario, "run", lambda *_page: problems)
    with pytest.raises(SystemExit) as ended:
        scenario.main()
    assert ended.value.code == ends
