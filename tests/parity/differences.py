"""Differences to Nova on purpose: one predicate for each, named in README.md with the reason."""

from __future__ import annotations

import typing as t

from tests.parity.cases import Case

Answer = t.Mapping[str, t.Any]


def nova_raises(case: Case, answer: Answer) -> bool:
    return "raises" in answer


def zone_nova_by_name(case: Case, answer: Answer) -> bool:
    return case["request"]["availability_zone"] == "nova"


def swap_is_not_taken(case: Case, answer: Answer) -> bool:
    return case["request"]["count"] > 1 and case["request"]["flavor"]["swap_mb"] > 0


def host_filled_up(case: Case, answer: Answer) -> bool:
    return bool(answer["full"])


OF_A_CASE = (nova_raises, zone_nova_by_name, swap_is_not_taken)
OF_THE_LITERAL_LOOP = (host_filled_up,)
