# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Our ranking and choice beside nova 34.0.0's own, as tests/parity/record.py wrote them down."""

from __future__ import annotations

import functools
import gzip
import json
import pathlib
import typing as t

from tests.parity import cases, differences, our_side

EXPECTED = pathlib.Path(__file__).parents[2] / "parity/expected.json.gz"


@functools.lru_cache(maxsize=1)
def recorded() -> dict[str, t.Any]:
    return t.cast(dict, json.loads(gzip.decompress(EXPECTED.read_bytes())))


def test_the_expectations_are_those_of_these_cases() -> None:
    assert recorded()["nova"] == "34.0.0"
    assert recorded()["digest"] == cases.digest(), "the generator was changed: run tests/parity/record.py"


def test_every_ranking_weight_and_choice_is_novas() -> None:
    different, compared, ranked, literal = [], 0, 0, 0
    for seed, answer in enumerate(recorded()["answers"]):
        case = cases.case(seed)
        if any(excluded(case, answer) for excluded in differences.OF_A_CASE):
            continue
        compared += 1
        ours = [list(decision) if decision else None for decision in our_side.answer(case)]
        ranked += ours[0] is not None and len(ours[0][0]) > 1
        if ours != answer["steps"]:
            different.append(seed)
        if not any(excluded(case, answer) for excluded in differences.OF_THE_LITERAL_LOOP):
            literal += 1
            chosen = None if None in ours else [decision[0][0] for decision in ours if decision]
            if chosen != answer["literal"]:
                different.append(seed)
    assert different == []
    # that all this has compared something
    assert compared >= 1000 and ranked >= 500 and literal >= 900
