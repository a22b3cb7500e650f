# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Our fit beside nova 34.0.0's own, as tests/parity/numa_record.py wrote it down."""

from __future__ import annotations

import gzip
import json
import pathlib

from tests.parity import numa_cases, numa_our_side

EXPECTED = pathlib.Path(__file__).parents[2] / "parity/numa_expected.json.gz"


def page_size_sticks(case: numa_cases.Case) -> bool:
    """Tell whether Nova may stay with the size of pages that the first node had, which the next has not."""
    asks = any(request["extra_specs"].get("hw:mem_page_size") == "any" for request in case["requests"])
    return asks and len(case["facts"]["numa"]) > 1


def test_every_fit_and_every_pin_is_novas() -> None:
    recorded = json.loads(gzip.decompress(EXPECTED.read_bytes()))
    assert recorded["nova"] == "34.0.0"
    assert recorded["digest"] == numa_cases.digest(), "the generator was changed: run tests/parity/numa_record.py"
    different, fits, refusals = [], 0, 0
    for seed, expected in enumerate(recorded["answers"]):
        case = numa_cases.case(seed)
        if page_size_sticks(case):
            continue
        fits += sum(isinstance(answer, list) for answer in expected)
        refusals += expected.count(None)
        if numa_our_side.answer(case) != expected:
            different.append(seed)
    assert different == []
    assert fits > 1000 and refusals > 2000  # that all this has compared something
